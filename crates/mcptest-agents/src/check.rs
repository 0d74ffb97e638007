//! Checks of an agent's installation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcptest_wire::{IsolatedCommand, IsolatedProcess};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;

use crate::agent::{Agent, AgentKind, Argument};
use crate::run_folders::RunFolders;

/// Time for a command to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The bytes of a version that are read.
const MAX_VERSION_BYTES: usize = 4 * 1024;

/// The state of an agent's installation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The program, as found on PATH. An HTTP agent has none.
    pub program: Option<PathBuf>,
    /// The name of a program that is not on PATH.
    pub missing: Option<String>,
    /// The version that it prints.
    pub version: Option<String>,
    /// The version that the preset was tested with.
    pub tested: Option<String>,
    /// The variable with the key, if it is not set.
    pub missing_key: Option<String>,
}

/// Finds the program of an agent and asks it for its version.
pub async fn check(
    agent: &Agent,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
    tmp: &Path,
) -> CheckReport {
    let mut report = CheckReport {
        tested: agent.tested.clone(),
        missing_key: agent
            .api_key_env
            .clone()
            .filter(|name| variables(name).is_none_or(|value| value.is_empty())),
        ..CheckReport::default()
    };
    if agent.kind() == AgentKind::Http {
        return report;
    }
    let name = match agent.arguments.first() {
        Some(Argument::Text(template)) => template.render(&|_| serde_json::Value::Null),
        _ => String::new(),
    };
    report.program = find(&name, variables("PATH").as_deref());
    if report.program.is_none() {
        report.missing = Some(name);
        return report;
    }
    report.version = version(agent, variables, tmp).await;
    report
}

/// The version that an agent's own command prints, run in its own folders.
pub async fn version(
    agent: &Agent,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
    tmp: &Path,
) -> Option<String> {
    let argv = agent.version.clone()?;
    let folders = RunFolders::create(tmp, None).ok()?;
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let command = IsolatedCommand {
        argv,
        env: vec![
            ("PATH".to_owned(), variables("PATH").unwrap_or_default()),
            ("HOME".to_owned(), path(folders.home())),
            ("TMPDIR".to_owned(), path(folders.tmp())),
            ("NO_COLOR".to_owned(), "1".to_owned()),
        ],
        cwd: folders.cwd(),
        folder: folders.run_dir().to_owned(),
        stdin: false,
    };
    let (mut process, mut streams) = IsolatedProcess::start(agent.name(), &command).ok()?;
    let mut text = Vec::new();
    let read = async {
        let mut limited = (&mut streams.stdout).take(MAX_VERSION_BYTES as u64);
        let _ = limited.read_to_end(&mut text).await;
        process.wait().await.is_ok_and(|status| status.success())
    };
    let succeeded = timeout(VERSION_TIMEOUT, read).await.unwrap_or(false);
    process.end().await;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    succeeded.then(|| version_in(line).to_owned())
}

/// The word of a line that looks like a version; the whole line if none does.
fn version_in(line: &str) -> &str {
    line.split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_end_matches(['.', ',']))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .unwrap_or(line)
}

/// Finds a program as the system does.
fn find(name: &str, path: Option<&str>) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;

    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    std::env::split_paths(path?)
        .map(|folder| folder.join(name))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_lines() {
        for (line, version) in [
            ("2.1.325 (Claude Code)", "2.1.325"),
            ("codex-cli 0.166.0", "0.166.0"),
            ("GitHub Copilot CLI 1.0.102.", "1.0.102"),
            ("v1.2", "1.2"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(version_in(line), version);
        }
    }
}
