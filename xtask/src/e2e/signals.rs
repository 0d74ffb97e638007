//! A run that is interrupted: what was finished is reported, and nothing is left behind, whatever
//! stands between us and the server.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::process::Signal;

use super::Checks;
use super::testbed::{Testbed, expect, report};

/// Ending a server has its own limits; a person at a terminal waits no longer than this.
const MAX_WAIT: Duration = Duration::from_secs(10);

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for (name, signal) in [
        ("SIGINT", Signal::INT),
        ("SIGTERM", Signal::TERM),
        ("SIGHUP", Signal::HUP),
    ] {
        checks.check(
            &format!("{name} in a long call: exit code 130, a report, no process is left"),
            || interrupted(testbed, name, signal),
        );
    }
}

fn interrupted(testbed: &Testbed, name: &str, signal: Signal) -> Result<()> {
    let log = testbed.folder.join(format!("wire-{name}.log"));
    let mut command = testbed.mcptest(&[
        "run",
        "tests/e2e/failing/interrupted.yml",
        "--reporter=json",
    ])?;
    let mut running = testbed.start(command.env("E2E_WIRE_LOG", &log))?;
    running.wait_until("the long call", || {
        std::fs::read_to_string(&log)
            .is_ok_and(|wire| wire.contains("trigger-long-running-operation"))
    })?;
    let descendants = running.descendants();
    ensure!(
        descendants.len() >= 3,
        "shell, tee and server should be there, but only these are: {descendants:?}"
    );
    let sent = Instant::now();
    running.signal(signal)?;
    let finished = running.wait()?;
    ensure!(
        sent.elapsed() < MAX_WAIT,
        "it took {} s to end",
        sent.elapsed().as_secs()
    );
    finished.expect_code(130)?;
    let report = report(&finished)?;
    expect(&report, "/exit_code", 130)?;
    expect(&report, "/interrupted", true)?;
    expect(&report, "/tests/0/name", "quick")?;
    expect(&report, "/tests/0/verdict", "pass")?;
    // The other one was started and did not finish: it is neither a pass nor missing.
    expect(&report, "/tests/1/interrupted", true)?;
    expect(&report, "/tests/1/verdict", "no_evidence")?;
    ensure!(
        report["tests"][1]["runs"]
            .as_array()
            .is_some_and(Vec::is_empty),
        "only what was finished is a run: {}",
        finished.stdout
    );
    Ok(())
}
