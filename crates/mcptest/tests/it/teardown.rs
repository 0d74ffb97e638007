//! Teardown of direct tool tests that are interrupted: by the user, by the clock, beside a failure.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Ran, mcptest, ran, run};
use crate::tools::{asked, notes};

/// Interrupts a run once the server was asked for a tool.
fn interrupted(dir: &Path, tool: &str) -> Ran {
    let mut child = mcptest(dir)
        .args(["run", "s.yml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !asked(dir).iter().any(|call| call.starts_with(tool)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::yield_now();
    }
    let sent = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    ran(&child.wait_with_output().unwrap())
}

#[test]
fn teardown_runs_after_an_interrupt() {
    let dir = notes(
        "  - {name: hangs, server: s, tool: hang, teardown: [{tool: delete, args: {id: z}}]}\n",
    );
    let ran = interrupted(dir.path(), "hang");
    assert_eq!(ran.code, 130, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(asked(dir.path()), ["hang {}", r#"delete {"id":"z"}"#]);
}

#[test]
fn what_a_call_under_way_makes_is_removed() {
    let dir = notes(
        "  - name: t
    server: s
    setup: [{tool: late, save: {id: result.structuredContent.id}}]
    tool: read
    teardown: [{tool: delete, args: {id: '${saved.id}'}}]
",
    );
    let ran = interrupted(dir.path(), "late");
    assert_eq!(ran.code, 130, "{}{}", ran.stdout, ran.stderr);
    // The test's own call is no longer made.
    assert_eq!(asked(dir.path()), ["late {}", r#"delete {"id":"n-late"}"#]);
}

#[test]
fn teardown_runs_when_the_time_is_over() {
    let dir = notes(
        "  - {name: hangs, server: s, tool: hang, teardown: [{tool: delete, args: {id: z}}]}
  - {name: waits, server: s, tool: read, teardown: [{tool: delete, args: {id: never}}]}
",
    );
    let ran = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--max-duration",
            "700ms",
            "--reporter",
            "json",
        ],
    );
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert_eq!(asked(dir.path()), ["hang {}", r#"delete {"id":"z"}"#]);
    let report = ran.json();
    let errors: Vec<_> = (0..2)
        .map(|test| &report["tests"][test]["runs"][0]["error"])
        .collect();
    assert_eq!(
        errors,
        [
            &json!({"kind": "budget", "message": "stopped: the time of this invocation (700ms) is over"}),
            &json!({"kind": "budget", "message": "never started: the time of this invocation (700ms) is over"}),
        ]
    );
}

#[test]
fn teardown_that_hangs_is_given_up_when_the_time_is_over() {
    let dir = notes(
        "  - {name: t, server: s, tool: read, timeout: 60s, teardown: [{tool: hang, timeout: 60s}]}\n",
    );
    let ran = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--max-duration",
            "700ms",
            "--reporter",
            "json",
        ],
    );
    // The test itself was through in time; what is left behind is reported.
    let report = ran.json();
    assert_eq!(report["tests"][0]["verdict"], "error", "{}", ran.stderr);
    let error = &report["tests"][0]["runs"][0]["error"];
    assert_eq!(error["kind"], "fixture");
    let words = error["message"].as_str().unwrap();
    assert!(
        words.starts_with("teardown did not finish within"),
        "{words}"
    );
}

#[test]
fn teardown_runs_after_the_first_failure() {
    let dir = notes(
        "  - {name: slow, server: s, serial: false, tool: late, teardown: [{tool: delete, args: {id: z}}]}
  - {name: wrong, server: s, tool: refuse}
  - {name: after, server: s, serial: true, tool: read, teardown: [{tool: delete, args: {id: never}}]}
",
    );
    let ran = run(
        dir.path(),
        &["run", "s.yml", "--fail-fast", "--reporter", "json"],
    );
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let calls = asked(dir.path());
    assert_eq!(
        calls.last().map(String::as_str),
        Some(r#"delete {"id":"z"}"#),
        "{calls:?}"
    );
    assert_eq!(ran.json()["not_run"][0]["name"], "after");
}
