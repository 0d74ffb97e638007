//! Servers on HTTP, each ended with the check that started it.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::testbed::Testbed;
use crate::workspace;

/// Far above what any of them takes to start.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Serving {
    child: Child,
    port: u16,
    pub url: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    /// Starts a server on a free port. Our client waits until it listens.
    pub fn start(command: impl FnOnce(u16) -> Command) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = command(port)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the server")?;
        let url = format!("http://127.0.0.1:{port}/mcp");
        Ok(Self { child, port, url })
    }

    /// The address of a server over HTTP+SSE.
    pub fn sse_url(&self) -> String {
        self.url.replace("/mcp", "/sse")
    }

    /// Waits until it listens, for clients that do not.
    pub fn ready(mut self) -> Result<Self> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended ({status}) before it listened");
            }
            ensure!(began.elapsed() < LIMIT, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self)
    }
}

/// The official server of everything: its command for stdio, and one on HTTP.
pub fn everything(testbed: &Testbed) -> Result<(Vec<String>, Serving)> {
    let program = testbed.parts.npm_bin.join("mcp-server-everything");
    let serving = Serving::start(|port| {
        let mut command = Command::new(&program);
        command.arg("streamableHttp").env("PORT", port.to_string());
        command
    })?;
    Ok((vec![program.to_string_lossy().into_owned()], serving))
}

/// The official server of everything on HTTP+SSE.
pub fn everything_sse(testbed: &Testbed) -> Result<Serving> {
    let program = testbed.parts.npm_bin.join("mcp-server-everything");
    Serving::start(|port| {
        let mut command = Command::new(&program);
        command.arg("sse").env("PORT", port.to_string());
        command
    })
}

/// Our library on FastMCP: its command for stdio, and one on HTTP.
pub fn fastmcp(testbed: &Testbed) -> Result<(Vec<String>, Serving)> {
    let python = &testbed.parts.fastmcp_python;
    let script = workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    let serving = Serving::start(|port| {
        let mut command = Command::new(python);
        command.arg(&script).arg(port.to_string());
        command
    })?;
    let command = [python, &script].map(|word| word.to_string_lossy().into_owned());
    Ok((command.to_vec(), serving))
}

/// Our mock of a manifest of ours on HTTP.
pub fn mock(testbed: &Testbed, manifest: &str) -> Result<Serving> {
    Serving::start(|port| {
        let mut command = Command::new(&testbed.program);
        command.current_dir(workspace::root()).args([
            "mock",
            "--http",
            &port.to_string(),
            "--tools-from",
            manifest,
        ]);
        command
    })
}
