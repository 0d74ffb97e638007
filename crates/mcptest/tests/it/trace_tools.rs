//! `trace`: convert, show, stats, infer, anonymise.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{root, run};

const TRACES: &str = "examples/traces/offline-trace-validation.jsonl";

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn native_traces_are_converted_to_themselves_and_to_spans() {
    let native = run(&root(), &["trace", "convert", TRACES]);
    assert_eq!(native.code, 0, "{}", native.stderr);
    let written = std::fs::read_to_string(root().join(TRACES)).unwrap();
    assert_eq!(lines(&native.stdout), lines(&written));
    let dir = tempfile::tempdir().unwrap();
    let spans = dir.path().join("spans.jsonl");
    let to = [
        "trace",
        "convert",
        TRACES,
        "--to",
        "otlp",
        "--out",
        spans.to_str().unwrap(),
    ];
    let ran = run(&root(), &to);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let spans = lines(&std::fs::read_to_string(spans).unwrap());
    assert_eq!(spans.len(), 3);
    assert!(spans.iter().all(|one| one["resourceSpans"].is_array()));
}

#[test]
fn an_inferred_suite_passes_on_its_traces() {
    let dir = tempfile::tempdir().unwrap();
    let suite = dir.path().join("mcptest.yml");
    let suite = suite.to_str().unwrap();
    for traces in [TRACES, "examples/quickstart/traces.jsonl"] {
        let inferred = run(&root(), &["trace", "infer", traces, "--out", suite]);
        assert_eq!(inferred.code, 0, "{}", inferred.stderr);
        let valid = run(&root(), &["validate", "--for", "score", suite]);
        assert_eq!(valid.code, 0, "{}", valid.stderr);
        let scored = run(&root(), &["score", suite, "--trace", traces]);
        assert_eq!(scored.code, 0, "{}{}", scored.stdout, scored.stderr);
    }
}

#[test]
fn an_inferred_suite_fails_on_other_behaviour() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write(
        "good.jsonl",
        r#"{"test":"t","tool_calls":[{"name":"find","args":{"q":"x"}},{"name":"buy","args":{}}]}"#,
    );
    let bad = write(
        "bad.jsonl",
        r#"{"test":"t","tool_calls":[{"name":"buy","args":{}},{"name":"find","args":{"q":"y"}}]}"#,
    );
    let suite = dir.path().join("mcptest.yml");
    let suite = suite.to_str().unwrap();
    assert_eq!(
        run(&root(), &["trace", "infer", &good, "--out", suite]).code,
        0
    );
    assert_eq!(run(&root(), &["score", suite, "--trace", &good]).code, 0);
    assert_eq!(run(&root(), &["score", suite, "--trace", &bad]).code, 1);
}

fn broken(dir: &Path) -> String {
    let path = dir.join("broken.jsonl");
    std::fs::write(&path, "{\"tool_calls\":[]}\n{oops\n{\"tool_calls\":[]}\n").unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_broken_line_is_reported_and_never_exit_0() {
    let dir = tempfile::tempdir().unwrap();
    let file = broken(dir.path());
    let stats = run(&root(), &["trace", "stats", "--json", &file]);
    assert_eq!(stats.code, 3, "{}", stats.stderr);
    assert!(
        stats.stderr.contains("broken.jsonl:2: skipped"),
        "{}",
        stats.stderr
    );
    assert_eq!(stats.json()["traces"], 2);
    let strict = run(&root(), &["trace", "stats", "--strict", &file]);
    assert_eq!(strict.code, 2);
    assert!(
        strict.stderr.contains("broken.jsonl:2"),
        "{}",
        strict.stderr
    );
}

#[test]
fn mistakes_are_explained() {
    for (args, expected) in [
        (&["trace", "show", "no-such.jsonl"][..], "no such file"),
        (
            &["trace", "show", TRACES, "--run", "99"][..],
            "no trace to show",
        ),
        (
            &["trace", "infer", TRACES, "--min-support", "0"][..],
            "1..=100",
        ),
        (
            &["trace", "convert", TRACES, "--to", "xml"][..],
            "native, otlp",
        ),
    ] {
        let ran = run(&root(), args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn secrets_of_the_environment_leave_no_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.jsonl");
    let secret = "tok-4f9a7c21e8";
    let trace =
        json!({"tool_calls": [{"name": "get", "args": {"q": secret}}], "final_response": secret});
    std::fs::write(&path, trace.to_string()).unwrap();
    let path = path.to_str().unwrap();
    for args in [
        &["convert"][..],
        &["convert", "--to", "otlp"],
        &["show"],
        &["stats", "--json"],
        &["infer"],
        &["anonymise"],
    ] {
        let mut command = crate::support::mcptest(&root());
        command
            .arg("trace")
            .args(args)
            .arg(path)
            .env("DEPLOY_TOKEN", secret);
        let ran = crate::support::ran(&command.output().unwrap());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        assert!(!ran.stdout.contains(secret), "{args:?}: {}", ran.stdout);
    }
}
