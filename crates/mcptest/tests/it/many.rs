//! Running many: shards, the end after a failure, what failed before, watching.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{folder, mcptest, ran, run};

const MANIFEST: &str = "
mock_server:
  name: s
  tools:
    - {name: fetch, description: fetch one page, input_schema: {type: object}, response: page}
";

const HEAD: &str = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools:\n";

fn calls(tests: &[(&str, bool)]) -> String {
    let mut suite = HEAD.to_owned();
    for (name, good) in tests {
        let tool = if *good { "fetch" } else { "nope" };
        suite.push_str(&format!("  - {{name: {name}, server: s, tool: {tool}}}\n"));
    }
    suite
}

fn names(report: &Value) -> Vec<&str> {
    let tests = report["tests"].as_array().unwrap().iter();
    tests.filter_map(|test| test["name"].as_str()).collect()
}

#[test]
fn the_first_failure_ends_it() {
    let dir = folder(&[
        ("1.yml", &calls(&[("a", true), ("b", false), ("c", true)])),
        ("2.yml", &calls(&[("d", true)])),
        ("m.yml", MANIFEST),
    ]);
    let ran = run(
        dir.path(),
        &["run", ".", "-j", "1", "--fail-fast", "--reporter", "json"],
    );
    let report = ran.json();
    assert_eq!(ran.code, 1);
    assert_eq!(names(&report), ["a", "b"]);
    assert_eq!(
        report["not_run"],
        json!([{"suite": "1.yml", "name": "c"}, {"suite": "2.yml", "name": "d"}])
    );
    let told = run(
        dir.path(),
        &["run", ".", "-j", "1", "--fail-fast", "--no-timing"],
    )
    .stdout;
    assert!(
        told.ends_with(
            "\nnot run\n  1.yml: c\n  2.yml: d\n\n2 tests: 1 passed, 1 failed, 2 not run\n"
        ),
        "{told}"
    );
    let all = run(dir.path(), &["run", ".", "--reporter", "json"]).json();
    assert_eq!(names(&all), ["a", "b", "c", "d"]);
    assert!(all.get("not_run").is_none());
}

#[test]
fn a_test_that_has_begun_is_carried_through() {
    // The second run fails the test; its third is made nevertheless, and the gate sees all three.
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: begun
    model: builtin/scripted
    servers: [s]
    prompt: p
    runs: 3
    script: [[{calls: [{tool: fetch}]}, {say: ok}], [{say: no}], [{calls: [{tool: fetch}]}, {say: ok}]]
    tool_selection: {expected_tool: fetch, min_selection_rate: 0.9}
    expect: [{tool_calls: {length: 1}}]
  - {name: later, model: builtin/lexical, servers: [s], prompt: fetch, expect: [{tool_calls: {length: 1}}]}
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let report = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "-j",
            "1",
            "--fail-fast",
            "--reporter",
            "json",
        ],
    )
    .json();
    assert_eq!(names(&report), ["begun"]);
    assert_eq!(report["tests"][0]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(report["tool_selection"][0]["runs"], 3);
    assert_eq!(report["not_run"][0]["name"], "later");
}

#[test]
fn a_gate_can_be_the_first_failure() {
    let suite = "
servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: judged together
    model: builtin/scripted
    servers: [s]
    prompt: p
    runs: 2
    script: [[{say: no}]]
    tool_selection: {expected_tool: fetch, min_selection_rate: 0.9}
  - {name: later, model: builtin/lexical, servers: [s], prompt: fetch, expect: [{tool_calls: {length: 1}}]}
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let report = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "-j",
            "1",
            "--fail-fast",
            "--reporter",
            "json",
        ],
    )
    .json();
    assert_eq!(names(&report), ["judged together"]);
}

#[test]
fn only_what_failed_is_run_again() {
    let dir = folder(&[
        ("s.yml", &calls(&[("a", true), ("b", false), ("c", false)])),
        ("m.yml", MANIFEST),
    ]);
    run(dir.path(), &["run", "s.yml", "--reporter", "json=r.json"]);
    let again = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--rerun-failed=r.json",
            "--reporter",
            "json",
        ],
    );
    assert_eq!(again.code, 1);
    assert_eq!(names(&again.json()), ["b", "c"]);
    assert_eq!(
        again.stderr,
        "running again 2 tests that did not pass the last time\n"
    );
    let unknown = run(dir.path(), &["run", "s.yml", "--rerun-failed=none.json"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("cannot read `none.json`"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn the_last_run_is_remembered() {
    let dir = folder(&[
        ("s.yml", &calls(&[("a", true), ("b", true)])),
        ("m.yml", MANIFEST),
    ]);
    let without_ci = |args: &[&str]| {
        let mut command = mcptest(dir.path());
        ran(&command.env_remove("CI").args(args).output().unwrap())
    };
    let nothing = without_ci(&["run", "s.yml", "--rerun-failed"]);
    assert_eq!(nothing.code, 2);
    assert!(
        nothing.stderr.contains("no failed run is remembered here"),
        "{}",
        nothing.stderr
    );
    assert_eq!(without_ci(&["run", "s.yml"]).code, 0);

    let write =
        |tests: &[(&str, bool)]| std::fs::write(dir.path().join("s.yml"), calls(tests)).unwrap();
    write(&[("a", false), ("b", false), ("c", true)]);
    assert_eq!(without_ci(&["run", "s.yml"]).code, 1);
    assert_eq!(
        std::fs::read_to_string(dir.path().join(".mcptest/.gitignore")).unwrap(),
        "*\n"
    );
    // One is fixed; a run without the other keeps its result.
    write(&[("a", true), ("b", false), ("c", true)]);
    assert_eq!(without_ci(&["run", "s.yml", "--filter", "a"]).code, 0);
    let again = without_ci(&["run", "s.yml", "--rerun-failed", "--reporter", "json"]);
    assert_eq!(names(&again.json()), ["b"]);
    write(&[("a", true), ("b", true), ("c", true)]);
    assert_eq!(without_ci(&["run", "s.yml", "--rerun-failed"]).code, 0);
    let green = without_ci(&["run", "s.yml", "--rerun-failed"]);
    assert_eq!(green.code, 0);
    assert_eq!(
        green.stderr,
        "nothing to run again: none of these tests failed the last time\n"
    );
    let newest = crate::support::files(&dir.path().join(".mcptest/history"), "jsonl");
    std::fs::write(newest.last().unwrap(), "{broken\n{}\n").unwrap();
    let broken = without_ci(&["run", "s.yml", "--rerun-failed"]);
    assert_eq!(broken.code, 2);
    assert!(broken.stderr.contains("line 1"), "{}", broken.stderr);
}

/// The names of the tests of a shard.
fn shard_of(dir: &Path, shard: &str, more: &[&str]) -> Vec<String> {
    let args = [
        &["run", "s.yml", "--shard", shard, "--reporter", "json"],
        more,
    ]
    .concat();
    let ran = run(dir, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    names(&ran.json()).iter().map(ToString::to_string).collect()
}

#[test]
fn shards_are_balanced_by_what_cassettes_recorded() {
    let test = |name: &str| {
        format!(
            "  - {{name: {name}, model: builtin/scripted, servers: [s], prompt: p, script: [[{{say: ok}}]], expect: [{{final_response: ok}}]}}\n"
        )
    };
    let suite = format!(
        "servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml]}}}}\nagents:\n{}tools:\n  - {{name: t, server: s, tool: fetch}}\n",
        ["a", "b", "c", "d"].map(test).concat()
    );
    let dir = folder(&[("s.yml", &suite), ("m.yml", MANIFEST)]);
    assert_eq!(run(dir.path(), &["run", "s.yml", "--record"]).code, 0);
    for (name, took) in [("a", 100), ("b", 200), ("c", 900), ("d", 700)] {
        let file = dir.path().join(format!("cassettes/s.yml/{name}.json"));
        let mut cassette: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        cassette["volatile"][0]["duration_ms"] = took.into();
        std::fs::write(&file, cassette.to_string()).unwrap();
    }
    // 900 + 100 against 700 + 200 + 10 for the direct call.
    for more in [&[][..], &["--replay-only"], &["--live"]] {
        assert_eq!(shard_of(dir.path(), "1/2", more), ["a", "c"]);
        assert_eq!(shard_of(dir.path(), "2/2", more), ["b", "d", "t"]);
    }
    // A report comes first.
    let all = run(dir.path(), &["run", "s.yml", "--reporter", "json=t.json"]);
    assert_eq!(all.code, 0);
    let mut report: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("t.json")).unwrap()).unwrap();
    for (at, took) in [1000, 10, 10, 10, 10].into_iter().enumerate() {
        report["timing"]["runs"][at]["duration_ms"] = took.into();
    }
    std::fs::write(dir.path().join("t.json"), report.to_string()).unwrap();
    assert_eq!(shard_of(dir.path(), "1/2", &["--timings", "t.json"]), ["a"]);
    // What is being recorded does not move the cut: all count alike, and the names decide.
    let before = shard_of(dir.path(), "1/2", &["--record"]);
    assert_eq!(before, ["a", "c", "t"]);
    assert_eq!(shard_of(dir.path(), "2/2", &["--record"]), ["b", "d"]);
    // A cassette that cannot be read has no times, on every machine.
    std::fs::write(dir.path().join("cassettes/s.yml/a.json"), "{").unwrap();
    let broken = run(dir.path(), &["run", "s.yml", "--shard", "1/2"]);
    assert_ne!(broken.code, 101, "{}", broken.stderr);
}

#[test]
fn shards_are_refused_where_they_make_no_sense() {
    let dir = folder(&[
        ("s.yml", &calls(&[("a", true)])),
        ("m.yml", MANIFEST),
        ("t.json", "{}"),
    ]);
    for (args, words) in [
        (vec!["--shard", "3/2"], "for example 2/5"),
        (vec!["--shard", "two"], "for example 2/5"),
        (vec!["--timings", "t.json"], "--shard"),
        (
            vec!["--shard", "1/2", "--timings", "t.json"],
            "t.json:1:2: not a report",
        ),
    ] {
        let mut all = vec!["run", "s.yml"];
        all.extend(&args);
        let ran = run(dir.path(), &all);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--no-timing",
            "--reporter",
            "json=untimed.json",
        ],
    );
    let untimed = run(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--shard",
            "1/2",
            "--timings",
            "untimed.json",
        ],
    );
    assert_eq!(untimed.code, 2);
    assert!(
        untimed.stderr.contains("`untimed.json` has no times"),
        "{}",
        untimed.stderr
    );
}

#[test]
fn a_change_runs_it_again_until_ctrl_c() {
    let dir = folder(&[("s.yml", &calls(&[("a", false)])), ("m.yml", MANIFEST)]);
    let mut child = mcptest(dir.path())
        .args([
            "run",
            "s.yml",
            "--watch",
            "--reporter",
            "pretty",
            "--reporter",
            "json=r.json",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut until = |words: &str| {
        let line = talk.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        line.unwrap_or_else(|| panic!("it ended without `{words}`"))
            .unwrap()
    };
    until("watching 2 files");
    std::fs::write(dir.path().join("s.yml"), calls(&[("a", true), ("b", true)])).unwrap();
    until("s.yml changed: running again");
    until("watching 2 files");
    // A suite that is invalid for a while is reported, and does not end it.
    std::fs::write(dir.path().join("s.yml"), "tools: [").unwrap();
    until("running again");
    until("error");
    until("watching 2 files");
    std::fs::write(
        dir.path().join("s.yml"),
        calls(&[("a", true), ("b", false)]),
    )
    .unwrap();
    until("running again");
    until("watching 2 files");
    // A file beside the suite counts too.
    std::fs::write(
        dir.path().join("m.yml"),
        MANIFEST.replace("fetch,", "nope,"),
    )
    .unwrap();
    until("m.yml changed: running again");
    until("watching 2 files");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("r.json")).unwrap()).unwrap();
    let verdicts: Vec<&Value> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| &test["verdict"])
        .collect();
    assert_eq!(verdicts, ["fail", "pass"]);
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    assert_eq!(
        child.wait().unwrap().code(),
        Some(1),
        "the code of the last run"
    );
}
