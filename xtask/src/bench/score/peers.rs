//! Other programs that compare recorded calls with expected ones, on the same traces.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::e2e::parts;

/// A package of PyPI and the program that uses it.
pub struct Peer {
    pub name: &'static str,
    /// The key in JSON.
    pub key: &'static str,
    /// The arguments of `pip install`.
    packages: &'static [&'static str],
    script: &'static str,
    /// The number of traces that it reads, so that it takes about a second.
    pub traces: u64,
    /// The least rate of scoring, as a multiple of that of the peer.
    pub target: f64,
}

pub const PEERS: &[Peer] = &[
    Peer {
        name: "BFCL's AST check",
        key: "bfcl",
        packages: &["--no-deps", "bfcl-eval==2026.3.23"],
        script: include_str!("bfcl.py"),
        traces: 5000,
        target: 20.0,
    },
    Peer {
        name: "agentevals, trajectory match",
        key: "agentevals",
        packages: &["agentevals==0.0.9"],
        script: include_str!("agentevals_match.py"),
        traces: 1000,
        target: 200.0,
    },
    Peer {
        name: "deepeval, tool correctness",
        key: "deepeval",
        packages: &["deepeval==4.3.1"],
        script: include_str!("deepeval_tools.py"),
        traces: 1000,
        target: 200.0,
    },
];

/// A peer that is installed.
pub struct Installed {
    python: PathBuf,
    script: PathBuf,
    traces: u64,
}

/// The last line that a peer prints.
#[derive(Deserialize)]
struct Printed {
    traces: u64,
    cpu_s: f64,
    good: u64,
}

impl Peer {
    /// Installs the package below a folder, and writes the program to another one.
    pub fn install(&self, folder: &Path, scratch: &Path) -> Result<Installed> {
        let bin = parts::venv(&folder.join(self.key), self.packages)?;
        let script = scratch.join(format!("{}.py", self.key));
        std::fs::write(&script, self.script)?;
        Ok(Installed {
            python: bin.join("python"),
            script,
            traces: self.traces,
        })
    }
}

impl Installed {
    /// The number of traces that it scores in a second of processor time. Its imports do not count.
    pub fn rate(&self, file: &Path) -> Result<f64> {
        let output = Command::new(&self.python)
            .arg(&self.script)
            .arg(file)
            .arg(self.traces.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.python.display()))?;
        ensure!(
            output.status.success(),
            "{} failed: {}",
            self.script.display(),
            output.status
        );
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.trim_end().lines().last().unwrap_or_default();
        let printed: Printed = serde_json::from_str(last)
            .with_context(|| format!("{} printed {text:?}", self.script.display()))?;
        // Every trace is as expected: another number means that something else was measured.
        ensure!(
            printed.good == printed.traces && printed.traces > 0,
            "{}: {} of {} traces are as expected",
            self.script.display(),
            printed.good,
            printed.traces
        );
        Ok(printed.traces as f64 / printed.cpu_s)
    }
}
