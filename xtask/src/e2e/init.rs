//! `mcptest init` with servers of others, in clean folders: what it writes validates and runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::Checks;
use super::init_servers::{self, Outcome};
use super::testbed::Testbed;
use crate::workspace;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check("init: FastMCP, from its entry point", || fastmcp(testbed));
    checks.check(
        "init: server-everything, with attacks and snapshots",
        || everything(testbed),
    );
    checks.check("init: a client's configuration with both", || both(testbed));
    for server in init_servers::SAMPLE {
        checks.check(&format!("init: {server}, one of many servers"), || {
            let found = init_servers::try_server(testbed, server)?;
            ensure!(!matches!(found.outcome, Outcome::Wrong(_)), "{found}");
            Ok(())
        });
    }
}

/// The interpreter with FastMCP is the `python3` of the shell.
fn with_fastmcp(testbed: &Testbed, command: &mut Command) -> Result<()> {
    let bin = testbed.parts.fastmcp_python.parent();
    let bin = bin.context("the interpreter is in no folder")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(paths)?);
    Ok(())
}

fn fastmcp(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("init-fastmcp")?;
    let script = workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    std::fs::copy(script, folder.join("server.py")).context("cannot copy the server")?;
    let played = play(testbed, &folder, &["--from", "server.py"])?;
    ensure!(played.contains("passed"), "{played}");
    Ok(())
}

fn everything(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("init-everything")?;
    let program = testbed.parts.npm_bin.join("mcp-server-everything");
    let program = program.to_string_lossy();
    let played = play(
        testbed,
        &folder,
        &["--attacks", "--snapshots", "--", &program],
    )?;
    ensure!(
        played.contains("obeyed 0/36") && played.contains("get-sum answers"),
        "{played}"
    );
    Ok(())
}

fn both(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("init-config")?;
    let script = workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    let config = serde_json::json!({"servers": {
        "library": {"command": testbed.parts.fastmcp_python, "args": [script]},
        "everything": {"command": testbed.parts.npm_bin.join("mcp-server-everything"), "env": {"A_KEY": "s3cr3t-value"}},
    }});
    std::fs::create_dir_all(folder.join(".vscode"))?;
    std::fs::write(
        folder.join(".vscode/mcp.json"),
        format!("// written by hand\n{config:#}\n"),
    )?;
    play(testbed, &folder, &["--from", ".vscode/mcp.json"])?;
    let suite = std::fs::read_to_string(folder.join("mcptest.yml"))?;
    ensure!(
        suite.contains("${A_KEY}") && !suite.contains("s3cr3t"),
        "{suite}"
    );
    Ok(())
}

/// Runs `init`, `validate` and `run` in a folder. Returns what `run` printed.
fn play(testbed: &Testbed, folder: &Path, arguments: &[&str]) -> Result<String> {
    let step = |arguments: &[&str]| -> Result<String> {
        let mut command = testbed.mcptest(arguments)?;
        command.current_dir(folder).env("A_KEY", "s3cr3t-value");
        with_fastmcp(testbed, &mut command)?;
        let done = testbed.finish(&mut command)?;
        done.expect_code(0)?;
        Ok(done.stdout)
    };
    // A separate repository: a workflow goes to the root of the one around it.
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
