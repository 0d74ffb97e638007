//! Stand-ins for model providers, which other people made: started when first needed, on loopback,
//! and ended with the checks.

use std::cell::OnceCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::testbed::Testbed;
use crate::workspace;

/// Nothing here takes nearly as long to start on a slow machine.
const LIMIT: Duration = Duration::from_secs(180);

/// litellm takes no client without it.
pub const KEY: &str = "sk-e2e-0123456789abcdef0123456789abcdef";

/// A process that answers HTTP; ended when dropped.
pub struct StandIn {
    child: Child,
    pub url: String,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl StandIn {
    /// One that prints its address in its first line of output.
    pub fn with_printed_address(command: &mut Command) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let child = child.spawn().context("cannot start a stand-in")?;
        let mut this = Self {
            child,
            url: String::new(),
        };
        let stdout = this.child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let url = line.trim().strip_prefix("listening on ");
        this.url = url
            .with_context(|| format!("a stand-in says: {line:?}"))?
            .to_owned();
        Ok(this)
    }

    /// A stand-in with a given port, ready when one of its paths answers.
    fn on_port(
        testbed: &Testbed,
        name: &str,
        ready: &str,
        command: impl FnOnce(u16) -> Command,
    ) -> Result<Self> {
        Self::when(testbed, name, |this| this.get(ready).is_ok(), command)
    }

    /// A stand-in with a given port, ready when it accepts connections.
    pub fn that_listens(
        testbed: &Testbed,
        name: &str,
        command: impl FnOnce(u16) -> Command,
    ) -> Result<Self> {
        Self::when(
            testbed,
            name,
            |this| TcpStream::connect(this.host()).is_ok(),
            command,
        )
    }

    fn when(
        testbed: &Testbed,
        name: &str,
        ready: impl Fn(&Self) -> bool,
        command: impl FnOnce(u16) -> Command,
    ) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(testbed.scratch("stand-ins")?.join(name))?;
        let mut command = command(port);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let mut this = Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        };
        let began = Instant::now();
        while !ready(&this) {
            if let Some(status) = this.child.try_wait()? {
                bail!("{name} ended while it started ({status})");
            }
            ensure!(
                began.elapsed() < LIMIT,
                "{name} is not ready after {} s",
                LIMIT.as_secs()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(this)
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    pub fn get(&self, path: &str) -> Result<Value> {
        Ok(self.exchange("GET", path, "")?.1)
    }

    /// The total number of entries in a list of the stand-in.
    pub fn total(&self, path: &str) -> Result<usize> {
        let (head, _) = self.exchange("GET", path, "")?;
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        let total = lines
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("x-total-count"));
        total
            .context("no x-total-count")?
            .1
            .trim()
            .parse()
            .context("x-total-count is not a number")
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.exchange("POST", path, &body.to_string())?.1)
    }

    /// In HTTP/1.0, so that the end of the connection is the end of the answer.
    fn exchange(&self, method: &str, path: &str, body: &str) -> Result<(String, Value)> {
        let host = self.host();
        let mut stream = TcpStream::connect(host)?;
        stream.set_read_timeout(Some(LIMIT))?;
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .context("no head in an answer")?;
        let succeeded = head
            .split(' ')
            .nth(1)
            .is_some_and(|status| status.starts_with('2'));
        ensure!(succeeded, "{method} {path}: {answer}");
        Ok((
            head.to_owned(),
            serde_json::from_str(body).unwrap_or_else(|_| body.into()),
        ))
    }
}

/// All of them, each started when first asked for.
pub struct StandIns<'a> {
    testbed: &'a Testbed,
    aimock: OnceCell<StandIn>,
    oracle: OnceCell<StandIn>,
    llmock: OnceCell<StandIn>,
    litellm: OnceCell<StandIn>,
    small_model: OnceCell<StandIn>,
}

fn started(cell: &OnceCell<StandIn>, start: impl FnOnce() -> Result<StandIn>) -> Result<&StandIn> {
    if cell.get().is_none() {
        let _ = cell.set(start()?);
    }
    cell.get().context("a stand-in that is not there")
}

fn file(path: &str) -> std::path::PathBuf {
    workspace::root().join(path)
}

impl<'a> StandIns<'a> {
    pub fn new(testbed: &'a Testbed) -> Self {
        Self {
            testbed,
            aimock: OnceCell::new(),
            oracle: OnceCell::new(),
            llmock: OnceCell::new(),
            litellm: OnceCell::new(),
            small_model: OnceCell::new(),
        }
    }

    /// Every dialect on one port, with answers from our file and a journal of what it was asked.
    pub fn aimock(&self) -> Result<&StandIn> {
        started(&self.aimock, || {
            let program = self.testbed.parts.aimock_bin()?.join("llmock");
            StandIn::on_port(
                self.testbed,
                "aimock",
                "/__aimock/journal?limit=1",
                |port| {
                    let mut command = Command::new(program);
                    command
                        .args([
                            "--strict",
                            "--log-level",
                            "warn",
                            "--journal-max",
                            "10000",
                            "-p",
                            &port.to_string(),
                            "-f",
                        ])
                        .arg(file("tests/e2e/providers/aimock.json"));
                    command
                },
            )
        })
    }

    /// Before aimock: holds what we send to the types of the official SDKs.
    pub fn oracle(&self) -> Result<&StandIn> {
        started(&self.oracle, || {
            let mut command = python(&self.testbed.parts.sdk_python()?, "provider_oracle.py");
            StandIn::with_printed_address(command.arg(&self.aimock()?.url))
        })
    }

    /// Every dialect, faults on demand, and a verdict on how its client took them. The pause
    /// between chunks is for that verdict: llmock takes a stream as accepted once it has written
    /// all of it, whether or not the client is still there.
    pub fn llmock(&self) -> Result<&StandIn> {
        started(&self.llmock, || {
            let program = self.testbed.parts.llmock_bin()?.join("llmock");
            StandIn::on_port(self.testbed, "llmock", "/health", |port| {
                let mut command = Command::new(program);
                command
                    .args([
                        "serve",
                        "--log-level",
                        "warning",
                        "--stream-chunk-delay-ms",
                        "50",
                        "--port",
                    ])
                    .arg(port.to_string());
                command
            })
        })
    }

    /// A gateway in front of aimock that translates every dialect into OpenAI's.
    pub fn litellm(&self) -> Result<&StandIn> {
        let upstream = format!("{}/v1", self.aimock()?.url);
        started(&self.litellm, || {
            let program = self.testbed.parts.litellm_bin()?.join("litellm");
            StandIn::on_port(self.testbed, "litellm", "/health/liveliness", |port| {
                let mut command = Command::new(program);
                command
                    .args([
                        "--host",
                        "127.0.0.1",
                        "--telemetry",
                        "False",
                        "--port",
                        &port.to_string(),
                        "--config",
                    ])
                    .arg(file("tests/e2e/providers/litellm.yml"))
                    .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                    .env("LITELLM_MASTER_KEY", KEY)
                    .env("E2E_UPSTREAM", upstream);
                command
            })
        })
    }

    /// A real language model, small and often wrong.
    pub fn small_model(&self) -> Result<&StandIn> {
        started(&self.small_model, || {
            StandIn::with_printed_address(&mut python(
                &self.testbed.parts.smollm2_python()?,
                "smollm2_server.py",
            ))
        })
    }
}

fn python(interpreter: &Path, script: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(file(&format!("xtask/src/e2e/{script}")));
    command
}
