//! A real language model, small and often wrong: measured live, recorded, and replayed.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Checks;
use super::processes::Finished;
use super::stand_ins::StandIns;
use super::testbed::{Testbed, report};

const SUITE: &str = "tests/e2e/providers/small-model.yml";

/// The suite.
const RUNS: usize = 6;

/// Nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

pub fn run(testbed: &Testbed, stand_ins: &StandIns<'_>, checks: &mut Checks<'_>) {
    checks.check(
        "small model: six live runs, recorded; replayed without it to the same bytes",
        || {
            let cassettes = testbed
                .scratch("small-model-cassettes")?
                .display()
                .to_string();
            let arguments = ["--no-timing", "--reporter=json", "--cassettes", &cassettes];
            let run =
                |url: &str, how: &str| run_suite(testbed, url, &[&arguments[..], &[how]].concat());
            let live = run(&stand_ins.small_model()?.url, "--record")?;
            judged(&live)?;
            for how in ["--replay-only", "--jobs=1", "--replay=model"] {
                let replayed = run(NOWHERE, how)?;
                ensure!(
                    (replayed.code, &replayed.stdout) == (live.code, &live.stdout),
                    "{how}: the reports differ\nlive: {}\nreplayed: {}\n{}",
                    live.stdout,
                    replayed.stdout,
                    replayed.stderr
                );
            }
            Ok(())
        },
    );
}

fn run_suite(testbed: &Testbed, url: &str, arguments: &[&str]) -> Result<Finished> {
    let mut command = testbed.mcptest(&["run", SUITE])?;
    command
        .args(arguments)
        .env("E2E_SMALL_MODEL_URL", format!("{url}/v1"));
    testbed.finish(&mut command)
}

/// The model may fail its test, and often does; what must not happen is an error, a lost run, or a
/// call without its result.
fn judged(finished: &Finished) -> Result<()> {
    let report = report(finished)?;
    let verdict = report["verdict"].as_str().unwrap_or_default();
    ensure!(
        matches!(verdict, "pass" | "fail"),
        "the verdict is {verdict}\n{}",
        finished.stdout
    );
    let runs = report
        .pointer("/tests/0/runs")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    ensure!(runs.len() == RUNS, "{} runs instead of {RUNS}", runs.len());
    for run in &runs {
        let trace = &run["trace"];
        let count = |key: &str| trace[key].as_array().map_or(0, Vec::len);
        ensure!(
            count("tool_calls") == 1 && count("tool_results") == 1,
            "not one call with its result: {trace}"
        );
        ensure!(
            trace["conversation"]["tokens"]["total"]
                .as_u64()
                .is_some_and(|total| total > 50),
            "tokens: {trace}"
        );
    }
    let gates = report
        .pointer("/tests/0/gates")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    ensure!(gates == 3, "{gates} gates instead of 3");
    Ok(())
}
