//! Commands that read reports and recordings.

use std::fs;

use anyhow::Result;
use serde_json::json;

use super::inputs::*;
use super::{Folder, Subject};

const REPORT: &[&str] = &[
    "score",
    "s.yml",
    "--trace",
    "t.jsonl",
    "--reporter",
    "json=r.json",
];
const RECORD: &[&str] = &[
    "run",
    "s.yml",
    "--no-history",
    "--record",
    "--cassettes",
    "c",
];
const ALL_REPORTERS: &[&str] = &[
    "report",
    "r.json",
    "--reporter",
    "pretty=o.pretty",
    "--reporter",
    "json=o.json",
    "--reporter",
    "junit=o.junit",
    "--reporter",
    "markdown=o.markdown",
    "--reporter",
    "html=o.html",
    "--reporter",
    "github=o.github",
    "--reporter",
    "sarif=o.sarif",
    "--reporter",
    "tap=o.tap",
    "--reporter",
    "ndjson=o.ndjson",
    "--reporter",
    "gitlab=o.gitlab",
    "--reporter",
    "ctrf=o.ctrf",
    "--reporter",
    "openmetrics=o.openmetrics",
    "--reporter",
    "agent=o.agent",
    "--reporter",
    "pr=o.pr",
    "--reporter",
    "allure=o.allure",
];

pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "report: failed tests, all reporters",
        args: ALL_REPORTERS,
        size: 250,
        input: |dir, n| {
            many_tests(dir, n, "n")?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report: runs of a test, all reporters",
        args: ALL_REPORTERS,
        size: 500,
        input: |dir, n| {
            one_test(dir, "expect: [{final_response: {exact: n}}]")?;
            traces(dir, (0..n).map(|_| run_with_calls(2)))?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report: calls of a run, all reporters",
        args: ALL_REPORTERS,
        size: 500,
        input: |dir, n| {
            one_test(dir, "expect: [{final_response: {exact: n}}]")?;
            traces(dir, [run_with_calls(n)].into_iter())?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report: length of an answer, all reporters",
        args: ALL_REPORTERS,
        size: 5000,
        input: |dir, n| {
            one_test(dir, "expect: [{final_response: {exact: n}}]")?;
            let answer = "An <answer> of @several `words` & www.example.com\n".repeat(n);
            let run = json!({"test": "t", "tool_calls": [], "final_response": answer});
            traces(dir, [run].into_iter())?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report: compared tests",
        args: &["report", "r.json", "--compare", "r.json"],
        size: 500,
        input: |dir, n| {
            many_tests(dir, n, "n")?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report: compared runs of a test",
        args: &["report", "r.json", "--compare", "r.json"],
        size: 500,
        input: |dir, n| {
            one_test(dir, "expect: [{final_response: {exact: n}}]")?;
            traces(dir, (0..n).map(|_| run_with_calls(2)))?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report merge: tests of partial results",
        args: &["report", "merge", "p.part", "--output", "o.json"],
        size: 1000,
        input: |dir, n| {
            many_tests(dir, n, "y")?;
            dir.mcptest(&[
                "score",
                "s.yml",
                "--trace",
                "t.jsonl",
                "--partial",
                "p.part",
            ])
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report merge: shards",
        args: &["report", "merge", "r-*.json", "--output", "o.json"],
        size: 50,
        input: |dir, n| {
            mocked_tests(dir, 2 * n, "runs: 1")?;
            for i in 1..=n {
                let (part, report) = (format!("{i}/{n}"), format!("json=r-{i:03}.json"));
                dir.mcptest(&[
                    "run",
                    "s.yml",
                    "--no-history",
                    "--shard",
                    &part,
                    "--reporter",
                    &report,
                ])?;
            }
            Ok(())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report trend: reports",
        args: &["report", "trend", "r-*.json"],
        size: 200,
        input: |dir, n| {
            many_tests(dir, 2, "y")?;
            dir.mcptest(REPORT)?;
            for i in 0..n {
                fs::copy(dir.join("r.json"), dir.join(format!("r-{i:03}.json")))?;
            }
            Ok(())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "report trend: tests",
        args: &["report", "trend", "r.json", "r.json"],
        size: 500,
        input: |dir, n| {
            many_tests(dir, n, "y")?;
            dir.mcptest(REPORT)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "cassette show: runs",
        args: &["cassette", "show", "c/s.yml/t.json"],
        size: 2000,
        input: |dir, n| {
            recorded_runs(dir, n)?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "cassette verify: runs",
        args: &["cassette", "verify", "c"],
        size: 250,
        input: |dir, n| {
            recorded_runs(dir, n)?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "cassette merge: runs",
        args: &[
            "cassette",
            "merge",
            "c/s.yml/t.json",
            "c/s.yml/t.json",
            "--output",
            "m.json",
        ],
        size: 1000,
        input: |dir, n| {
            recorded_runs(dir, n)?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "cassette diff: runs",
        args: &["cassette", "diff", "c/s.yml/t.json", "c/s.yml/t.json"],
        size: 2000,
        input: |dir, n| {
            recorded_runs(dir, n)?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "cassette prune: cassettes",
        args: &[
            "cassette",
            "prune",
            "s.yml",
            "--cassettes",
            "c",
            "--dry-run",
        ],
        size: 500,
        input: |dir, n| {
            mocked_tests(dir, n, "runs: 1")?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
];

/// A suite whose test has this number of runs.
fn recorded_runs(dir: &Folder, n: usize) -> Result<()> {
    mock(dir, 1, "done")?;
    let runs = test("t", &format!("runs: {n}"));
    suite(dir, &format!("{MOCK}agents:\n  - {runs}\n"))
}
