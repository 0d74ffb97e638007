//! Panics of mcptest itself. Only debug builds can be made to panic.
#![cfg(debug_assertions)]

use crate::servers::assert_none_left;
use crate::support::{Ran, folder, mark, mcptest, ran};

const MOCK: &str =
    "mock_server: {name: m, tools: [{name: t, input_schema: {type: object}, response: ok}]}\n";

/// Three tests one after the other, whose server's command line carries a mark, and a run that
/// panics at a place.
fn panic_at(mark: &str, place: &str) -> Ran {
    let suite = format!(
        "servers:
  s: {{command: [sh, -c, ': {mark}; sleep 600 & exec mcptest mock --tools-from mock.yml']}}
run_options: {{jobs: 1}}
tools:
  - {{name: first, server: s, tool: t}}
  - {{name: second, server: s, tool: t}}
  - {{name: third, server: s, tool: t}}
"
    );
    let suite = suite.replace(
        "exec mcptest",
        &format!("exec {}", env!("CARGO_BIN_EXE_mcptest")),
    );
    let dir = folder(&[("s.yml", &suite), ("mock.yml", MOCK)]);
    let output = mcptest(dir.path())
        .env("MCPTEST_PANIC_AT", place)
        .args(["run", "s.yml", "--reporter", "json"])
        .output()
        .unwrap();
    ran(&output)
}

#[test]
fn finished_work_is_reported_and_no_server_stays() {
    let ran = panic_at(&mark("panic-second"), "second");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("provoked at `second`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("this is a bug"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["tests"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["tests"][0]["name"], "first");
    assert_eq!(report["tests"][0]["verdict"], "pass");
    assert_eq!(report["interrupted"], true);
    assert_eq!(report["exit_code"], 2);
    let not_run = report["not_run"].to_string();
    assert!(
        not_run.contains("second") && not_run.contains("third"),
        "{not_run}"
    );
    assert_none_left(&mark("panic-second"));
}

#[test]
fn a_fall_outside_of_the_runs_has_an_exit_code_of_the_table() {
    let ran = panic_at(&mark("panic-planning"), "planning");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("this is a bug"), "{}", ran.stderr);
}

#[test]
fn a_place_that_is_never_reached_changes_nothing() {
    let ran = panic_at(&mark("panic-nowhere"), "nowhere");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_none_left(&mark("panic-nowhere"));
}
