//! The servers that are compared, ours first, and starting them.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

use super::KIB_PER_MIB;
use crate::e2e::parts;
use crate::workspace::{self, Profile};

pub const RMCP: &str = "rmcp 3.8.0";
pub const TYPESCRIPT_1: &str = "TypeScript SDK 1.32.2";
pub const TYPESCRIPT_2: &str = "TypeScript SDK 2.4.0";
pub const AXUM: &str = "bare axum 0.8";
const FASTMCP: &str = "FastMCP 4.1.2";
const OURS: &str = "mcptest mock";

const NPM: [&str; 3] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/server@2.4.0",
    "zod@4.6.7",
];

/// A server and how to start it.
pub struct Peer {
    pub name: &'static str,
    argv: Vec<PathBuf>,
}

impl Peer {
    fn new(name: &'static str, argv: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            name,
            argv: argv.into_iter().collect(),
        }
    }

    /// Starts it, with pipes where it talks.
    pub fn start(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Process> {
        let child = Command::new(&self.argv[0])
            .args(&self.argv[1..])
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        Ok(Process {
            name: self.name,
            child,
        })
    }
}

/// Where everything is.
pub struct Peers {
    program: PathBuf,
    rust: PathBuf,
    node: PathBuf,
    python: PathBuf,
    sources: PathBuf,
}

impl Peers {
    /// Builds and installs what is not there yet.
    pub fn prepare() -> Result<Self> {
        let target = workspace::target_directory()?;
        let sources = workspace::root().join("xtask/src/bench/mock");
        let node = target.join("bench/npm");
        parts::npm(&node, &NPM)?;
        for script in ["echo_v1.mjs", "echo_v2.mjs"] {
            // Beside the packages: that is where Node looks for what a script imports.
            std::fs::copy(sources.join(script), node.join(script))
                .with_context(|| format!("cannot copy {script}"))?;
        }
        Ok(Self {
            program: workspace::build(Profile::Release)?,
            rust: workspace::build_apart("xtask/peers", &target.join("bench/peers"))?,
            python: parts::venv(&target.join("e2e/fastmcp"), &parts::FASTMCP)?.join("python"),
            node,
            sources,
        })
    }

    fn ours(&self, more: &[&str]) -> Peer {
        let arguments = [self.program.clone(), "mock".into(), "--tools-from".into()];
        let arguments = arguments.into_iter().chain([self.sources.join("echo.yml")]);
        Peer::new(OURS, arguments.chain(more.iter().map(PathBuf::from)))
    }

    /// Those that speak over stdio, ours first.
    pub fn stdio(&self) -> Vec<Peer> {
        let script = |name| self.node.join(name);
        vec![
            self.ours(&[]),
            Peer::new(RMCP, [self.rust.join("peer-rmcp")]),
            Peer::new(TYPESCRIPT_1, ["node".into(), script("echo_v1.mjs")]),
            Peer::new(TYPESCRIPT_2, ["node".into(), script("echo_v2.mjs")]),
            Peer::new(
                FASTMCP,
                [self.python.clone(), self.sources.join("echo_fastmcp.py")],
            ),
        ]
    }

    /// Those that speak over HTTP, ours first.
    pub fn http(&self) -> Vec<Peer> {
        vec![
            self.ours(&["--http", "0"]),
            Peer::new(AXUM, [self.rust.join("peer-axum")]),
        ]
    }
}

/// A running server, ended when it is no longer needed.
pub struct Process {
    pub name: &'static str,
    pub child: Child,
}

impl Process {
    /// The resident memory now, as the kernel counts it.
    pub fn resident_mib(&self) -> Result<f64> {
        let status = format!("/proc/{}/status", self.child.id());
        let text =
            std::fs::read_to_string(&status).with_context(|| format!("cannot read {status}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        let kib: f64 = kib.context("no VmRSS")?.parse()?;
        Ok(kib / KIB_PER_MIB)
    }

    /// The processor time of all its threads so far, in microseconds. Threads that have ended are
    /// missing, so only the work of the same threads can be measured by the difference of
    /// two readings.
    pub fn processor_us(&self) -> Result<f64> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut nanoseconds = 0.0;
        for task in std::fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
            // A thread may end between being listed and being asked.
            let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            let first = text
                .split_whitespace()
                .next()
                .and_then(|first| first.parse().ok());
            nanoseconds += first.unwrap_or(0.0);
        }
        Ok(nanoseconds / 1000.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
