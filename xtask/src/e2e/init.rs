//! `mcptest init` with servers of others, in clean folders: what it writes validates and runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Checks;
use super::init_servers::{self, Outcome};
use super::lab::Lab;
use crate::workspace;

pub fn run(lab: &Lab, checks: &mut Checks<'_>) {
    checks.check("init: FastMCP, from its entry point", || fastmcp(lab));
    checks.check(
        "init: server-everything, with attacks and snapshots",
        || everything(lab),
    );
    checks.check("init: a client's configuration with both", || both(lab));
    for server in init_servers::SAMPLE {
        checks.check(&format!("init: {server}, one of many servers"), || {
            let found = init_servers::try_server(lab, server)?;
            ensure!(!matches!(found.outcome, Outcome::Wrong(_)), "{found}");
            Ok(())
        });
    }
}

/// The interpreter with FastMCP is the `python3` of the shell.
fn with_fastmcp(lab: &Lab, command: &mut Command) -> Result<()> {
    let bin = lab.parts.fastmcp_python.parent();
    let bin = bin.context("the interpreter is in no folder")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(paths)?);
    Ok(())
}

fn fastmcp(lab: &Lab) -> Result<()> {
    let folder = lab.scratch("init-fastmcp")?;
    let script = workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    std::fs::copy(script, folder.join("server.py")).context("cannot copy the server")?;
    let played = play(lab, &folder, &["--from", "server.py"])?;
    ensure!(played.contains("passed"), "{played}");
    Ok(())
}

fn everything(lab: &Lab) -> Result<()> {
    let folder = lab.scratch("init-everything")?;
    let program = lab.parts.npm_bin.join("mcp-server-everything");
    let program = program.to_string_lossy();
    let played = play(lab, &folder, &["--attacks", "--snapshots", "--", &program])?;
    ensure!(
        played.contains("obeyed 0/36") && played.contains("get-sum answers"),
        "{played}"
    );
    Ok(())
}

fn both(lab: &Lab) -> Result<()> {
    let folder = lab.scratch("init-config")?;
    let script = workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    let config = serde_json::json!({"servers": {
        "library": {"command": lab.parts.fastmcp_python, "args": [script]},
        "everything": {"command": lab.parts.npm_bin.join("mcp-server-everything"), "env": {"A_KEY": "s3cr3t-value"}},
    }});
    std::fs::create_dir_all(folder.join(".vscode"))?;
    std::fs::write(
        folder.join(".vscode/mcp.json"),
        format!("// written by hand\n{config:#}\n"),
    )?;
    play(lab, &folder, &["--from", ".vscode/mcp.json"])?;
    let suite = std::fs::read_to_string(folder.join("mcptest.yml"))?;
    ensure!(
        suite.contains("${A_KEY}") && !suite.contains("s3cr3t"),
        "{suite}"
    );
    Ok(())
}

/// Runs `init`, `validate` and `run` in a folder. Returns what `run` printed.
fn play(lab: &Lab, folder: &Path, arguments: &[&str]) -> Result<String> {
    let step = |arguments: &[&str]| -> Result<String> {
        let mut command = lab.mcptest(arguments)?;
        command.current_dir(folder).env("A_KEY", "s3cr3t-value");
        with_fastmcp(lab, &mut command)?;
        let done = lab.finish(&mut command)?;
        done.expect_code(0)?;
        Ok(done.stdout)
    };
    // A repository of its own: a workflow goes to the root of the one around it.
    std::fs::create_dir_all(folder.join(".git"))?;
    step(&[&["init", "--yes"], arguments].concat())?;
    let expected: [PathBuf; 5] = [
        folder.join("mcptest.yml"),
        folder.join(".github/workflows/mcptest.yml"),
        folder.join(".mcptest/suite.schema.json"),
        folder.join(".gitignore"),
        folder.join("mocks"),
    ];
    for path in expected {
        ensure!(path.exists(), "{} was not written", path.display());
    }
    step(&["validate", "--deny-warnings"])?;
    step(&["run", "--no-history"])
}
