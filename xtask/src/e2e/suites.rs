//! The suites of `tests/e2e` against real servers, on the passing and on the failing side.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Checks;
use super::testbed::{Testbed, expect, report};

/// Suites in which everything passes, with the number of their tests.
const PASSING: [(&str, usize); 5] = [
    ("everything.yml", 12),
    ("filesystem.yml", 7),
    ("time.yml", 6),
    ("fastmcp.yml", 11),
    ("two-servers.yml", 2),
];

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    for (suite, tests) in PASSING {
        checks.check(
            &format!("{suite}: {tests} tests pass, no process is left"),
            || passes(testbed, suite, tests).map(drop),
        );
    }
    checks.check("fastmcp.yml: the catalog of four pages is whole", || {
        catalog_is_whole(testbed)
    });
    checks.check(
        "two-servers.yml: scoring the recorded traces gives the verdict of the run",
        || scores_as_it_ran(testbed),
    );
    checks.check(
        "wrong expectations fail with exit code 1, each of them told",
        || wrong_expectations(testbed),
    );
    checks.check("a missing server is exit code 2, transport", || {
        broken(
            testbed,
            "missing-server.yml",
            "transport",
            "mcp-server-nowhere",
        )
    });
    checks.check(
        "a server without server/discover is exit code 2, protocol, where only that is allowed",
        || broken(testbed, "discover-only.yml", "protocol", "server/discover"),
    );
    checks.check("a call over its time is exit code 2, timeout", || {
        let finished = testbed.run(&[
            "run",
            "tests/e2e/failing/interrupted.yml",
            "--filter=long",
            "--timeout=2s",
            "--reporter=json",
        ]);
        let finished = finished?;
        finished.expect_code(2)?;
        expect(&report(&finished)?, "/tests/0/runs/0/error/kind", "timeout")
    });
}

pub fn passes(testbed: &Testbed, suite: &str, tests: usize) -> Result<Value> {
    passes_at(testbed, &format!("tests/e2e/{suite}"), tests)
}

/// Like [`passes`], for a suite anywhere.
pub fn passes_at(testbed: &Testbed, path: &str, tests: usize) -> Result<Value> {
    let finished = testbed.run(&["run", path, "--reporter=json"])?;
    let report = report(&finished)?;
    expect(&report, "/verdict", "pass")?;
    expect(&report, "/exit_code", 0)?;
    finished.expect_code(0)?;
    let found = report["tests"].as_array().map_or(0, Vec::len);
    ensure!(found == tests, "{found} tests instead of {tests}");
    Ok(report)
}

fn catalog_is_whole(testbed: &Testbed) -> Result<()> {
    let finished = testbed.run(&[
        "run",
        "tests/e2e/fastmcp.yml",
        "--filter=page",
        "--reporter=json",
    ])?;
    let report = report(&finished)?;
    expect(&report, "/verdict", "pass")?;
    for test in [0, 1] {
        let pointer = format!("/tests/{test}/runs/0/trace/catalog");
        let catalog = report.pointer(&pointer).and_then(Value::as_array);
        let names: Vec<&str> = catalog
            .with_context(|| format!("there is no {pointer} in the report"))?
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        ensure!(
            names.len() == 7 && names.last() == Some(&"close_library"),
            "the catalog is {names:?}"
        );
    }
    Ok(())
}

fn scores_as_it_ran(testbed: &Testbed) -> Result<()> {
    let suite = "tests/e2e/two-servers.yml";
    let traces = testbed.scratch("traces")?.join("traces.jsonl");
    let traces = traces.to_string_lossy();
    let ran = testbed.run(&[
        "run",
        suite,
        "--no-timing",
        "--reporter=json",
        "--traces",
        &traces,
    ])?;
    ran.expect_code(0)?;
    let scored = testbed.run(&[
        "score",
        suite,
        "--no-timing",
        "--reporter=json",
        "--trace",
        &traces,
    ])?;
    scored.expect_code(0)?;
    ensure!(
        report(&ran)? == report(&scored)?,
        "the reports differ\nrun: {}\nscore: {}",
        ran.stdout,
        scored.stdout
    );
    Ok(())
}

fn wrong_expectations(testbed: &Testbed) -> Result<()> {
    let suite = "tests/e2e/failing/wrong-expectation.yml";
    let finished = testbed.run(&["run", suite, "--reporter=json"])?;
    finished.expect_code(1)?;
    let report = report(&finished)?;
    expect(&report, "/verdict", "fail")?;
    expect(&report, "/exit_code", 1)?;
    for (test, verdict) in [(0, "pass"), (1, "fail"), (2, "fail")] {
        expect(&report, &format!("/tests/{test}/verdict"), verdict)?;
    }
    for (assertion, passed) in [(0, false), (1, true), (2, false)] {
        expect(
            &report,
            &format!("/tests/1/runs/0/assertions/{assertion}/passed"),
            passed,
        )?;
    }
    let pretty = testbed.run(&["run", suite])?;
    pretty.expect_code(1)?;
    for words in [
        "The sum of 2 and 2 is 4.",
        "result.structuredContent.sum",
        "tool_names",
    ] {
        ensure!(
            pretty.stdout.contains(words),
            "`{words}` is missing in\n{}",
            pretty.stdout
        );
    }
    Ok(())
}

fn broken(testbed: &Testbed, suite: &str, kind: &str, words: &str) -> Result<()> {
    let finished = testbed.run(&[
        "run",
        &format!("tests/e2e/failing/{suite}"),
        "--reporter=json",
    ])?;
    finished.expect_code(2)?;
    let report = report(&finished)?;
    expect(&report, "/verdict", "error")?;
    expect(&report, "/exit_code", 2)?;
    expect(&report, "/tests/0/runs/0/error/kind", kind)?;
    let message = report
        .pointer("/tests/0/runs/0/error/message")
        .and_then(Value::as_str);
    let message = message.unwrap_or_default();
    ensure!(
        message.contains(words),
        "`{words}` is missing in the message: {message}"
    );
    Ok(())
}
