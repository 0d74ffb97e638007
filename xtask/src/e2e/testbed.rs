//! The environment that all checks share: the program under test, installed parts, and a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::parts::{self, Parts};
use super::processes::{self, Finished, Running};
use crate::workspace::{self, Profile};

pub struct Testbed {
    pub program: PathBuf,
    pub parts: Parts,
    /// The folder of this invocation; its path is in no other process's arguments.
    pub folder: PathBuf,
}

impl Testbed {
    pub fn set_up() -> Result<Self> {
        // Also descendants without our environment must be found.
        ensure!(
            Path::new("/proc/self/environ").exists(),
            "the end-to-end checks look for processes in /proc, which is not there"
        );
        let target = workspace::target_directory()?.join("e2e");
        let parts = parts::install(&target)?;
        let program = workspace::build(Profile::Dev)?;
        let folder = target.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self {
            program,
            parts,
            folder,
        })
    }

    /// Removes the folder; a failure to do so is not a failure of a check.
    pub fn clean_up(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// A folder with nothing in it.
    pub fn scratch(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Our program, with the variables that the suites use.
    pub fn mcptest(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .current_dir(workspace::root())
            .args(arguments)
            .env("E2E_NPM_BIN", &self.parts.npm_bin)
            .env("E2E_TIME_BIN", &self.parts.time_bin)
            .env("E2E_FASTMCP_PYTHON", &self.parts.fastmcp_python)
            .envs(
                [
                    ("E2E_FASTMCP_SERVER", "fastmcp_server.py"),
                    ("E2E_FASTMCP_PROTOCOL_SERVER", "fastmcp_protocol_server.py"),
                    ("E2E_PYTHON_SDK_SERVER", "python_sdk_server.py"),
                ]
                .map(|(name, script)| (name, workspace::root().join("xtask/src/e2e").join(script))),
            )
            .env("E2E_SCRATCH", self.scratch("scratch")?)
            // Nothing is kept in the folder for a next run.
            .env("CI", "true")
            .env("NO_COLOR", "1");
        Ok(command)
    }

    /// Runs our program to its end, which must leave nothing behind.
    pub fn run(&self, arguments: &[&str]) -> Result<Finished> {
        self.finish(&mut self.mcptest(arguments)?)
    }

    pub fn finish(&self, command: &mut Command) -> Result<Finished> {
        processes::run(command, &self.folder.to_string_lossy())
    }

    pub fn start(&self, command: &mut Command) -> Result<Running> {
        processes::start(command, &self.folder.to_string_lossy())
    }
}

/// The JSON report on standard output.
pub fn report(finished: &Finished) -> Result<Value> {
    serde_json::from_str(&finished.stdout).with_context(|| {
        format!(
            "standard output is not a JSON report\nstdout: {}\nstderr: {}",
            finished.stdout, finished.stderr
        )
    })
}

/// Fails unless a part of the report is this.
pub fn expect(report: &Value, pointer: &str, wanted: impl Into<Value>) -> Result<()> {
    let (found, wanted) = (
        report.pointer(pointer).unwrap_or(&Value::Null),
        wanted.into(),
    );
    ensure!(
        *found == wanted,
        "{pointer} of the report is {found} instead of {wanted}{}",
        failures(report)
    );
    Ok(())
}

/// The tests that did not pass, for the message of a failed check.
fn failures(report: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut lines = String::new();
    for test in list(&report["tests"])
        .iter()
        .filter(|test| test["verdict"] != "pass")
    {
        lines.push_str(&format!("\n{}: {}", test["name"], test["verdict"]));
        for run in list(&test["runs"]) {
            if !run["error"].is_null() {
                lines.push_str(&format!("\n  {}", run["error"]));
            }
            for assertion in list(&run["assertions"])
                .iter()
                .filter(|one| one["passed"] != true)
            {
                lines.push_str(&format!(
                    "\n  {} should be {} and is {}",
                    assertion["target"], assertion["matcher"], assertion["actual"]
                ));
            }
        }
    }
    lines
}
