//! Direct tool tests on real servers: fixtures and snapshots where there is state, and an address
//! where the server comes late.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Checks;
use super::testbed::{Testbed, expect, report};
use crate::workspace;

/// The delay of the server over HTTP.
const LATE: Duration = Duration::from_secs(2);

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check(
        "tool-tests.yml: fixtures run around the call, and a kept answer holds",
        || fixtures_and_snapshots(testbed),
    );
    checks.check(
        "over-http.yml: a server that comes two seconds late is waited for",
        || late_server(testbed),
    );
}

fn fixtures_and_snapshots(testbed: &Testbed) -> Result<()> {
    // Snapshots are next to the suite, so the suite gets a separate folder.
    let folder = testbed.scratch("tool-tests")?;
    let suite = folder.join("suite.yml");
    std::fs::copy(workspace::root().join("tests/e2e/tool-tests.yml"), &suite)
        .context("cannot copy the suite")?;
    let suite = suite.to_string_lossy();
    let kept = folder.join("snapshots/suite/what-was-written-is-read.json");

    let first = testbed.run(&["run", &suite, "--reporter=json"])?;
    first.expect_code(1)?;
    ensure!(
        !kept.exists(),
        "a run that was not asked to has written a snapshot"
    );
    let updating = ["run", &suite, "--update-snapshots", "--reporter=json"];
    testbed
        .finish(testbed.mcptest(&updating)?.env("CI", "true"))?
        .expect_code(2)?;
    // The server moves nothing onto a file that is there.
    let moved = testbed.scratch("scratch")?.join("moved-away.txt");
    std::fs::remove_file(&moved).context("teardown of the first run has not run")?;
    testbed
        .finish(testbed.mcptest(&updating)?.env_remove("CI"))?
        .expect_code(0)?;
    std::fs::remove_file(&moved).context("teardown of the second run has not run")?;
    let text = std::fs::read_to_string(&kept)
        .with_context(|| format!("there is no {}", kept.display()))?;
    ensure!(
        text == "{\n  \"content\": \"one\\ntwo\\n\"\n}\n",
        "the snapshot is {text}"
    );

    let again = testbed.run(&["run", &suite, "--reporter=json"])?;
    let seen = report(&again)?;
    expect(&seen, "/verdict", "pass")?;
    again.expect_code(0)?;
    let scratch = testbed.scratch("scratch")?;
    ensure!(
        !scratch.join("made-ready.txt").exists(),
        "teardown has not run"
    );
    let said = std::fs::read_to_string(scratch.join("what-it-said.txt"))
        .context("teardown has not run")?;
    ensure!(
        said.contains("made-ready.txt"),
        "the saved value is {said:?}"
    );
    Ok(())
}

fn late_server(testbed: &Testbed) -> Result<()> {
    // Free now; that nobody takes it in two seconds is hoped for.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = testbed.mcptest(&["run", "tests/e2e/over-http.yml", "--reporter=json"])?;
    command.env("E2E_ADDRESS", format!("http://127.0.0.1:{port}/mcp"));
    let running = testbed.start(&mut command)?;
    std::thread::sleep(LATE);
    let server = Server::start(testbed, port)?;
    let finished = running.wait();
    drop(server);
    let finished = finished?;
    let seen = report(&finished)?;
    expect(&seen, "/verdict", "pass")?;
    finished.expect_code(0)?;
    let waited = seen
        .pointer("/timing/duration_ms")
        .and_then(serde_json::Value::as_u64);
    ensure!(
        waited.is_some_and(|ms| u128::from(ms) >= LATE.as_millis()),
        "it cannot have waited: {waited:?} ms"
    );
    Ok(())
}

/// Ends with its scope.
struct Server(Child);

impl Server {
    fn start(testbed: &Testbed, port: u16) -> Result<Self> {
        Command::new(testbed.parts.npm_bin.join("mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .context("cannot start server-everything")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // What is gone already is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
