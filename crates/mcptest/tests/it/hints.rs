//! Hints in messages about suites, and warnings that can be denied.

use crate::support::{folder, run};

const MANIFEST: &str = "mock_server: {name: s, tools: [{name: search}]}";

fn suite(expect: &str, rest: &str) -> String {
    format!(
        "servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml]}}}}
tools: [{{name: t, server: s, tool: search, expect: [{expect}]}}]
{rest}"
    )
}

#[test]
fn keys_of_other_tools_lead_to_the_spelling_here() {
    for (key, spelling) in [
        ("equals", "write `exact: …`"),
        ("matches", "write `regex: …`"),
        ("gte", "write `\">=\": …`"),
        ("not_contains", "write `not: {contains: …}`"),
    ] {
        let expect = format!("{{target: result.text, matcher: {{{key}: x}}}}");
        let dir = folder(&[("s.yml", &suite(&expect, "")), ("m.yml", MANIFEST)]);
        let ran = run(dir.path(), &["validate", "s.yml"]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(spelling), "{key}: {}", ran.stderr);
    }
}

#[test]
fn a_member_without_its_root_leads_to_the_whole_target() {
    for (target, whole) in [
        ("is_error", "result.is_error"),
        ("\"content[0].text\"", "result.content[0].text"),
        ("structuredContent.a", "result.structuredContent.a"),
    ] {
        let dir = folder(&[
            ("s.yml", &suite(&format!("{{{target}: x}}"), "")),
            ("m.yml", MANIFEST),
        ]);
        let ran = run(dir.path(), &["validate", "s.yml"]);
        let hint = format!("did you mean `{whole}`?");
        assert!(ran.stderr.contains(&hint), "{target}: {}", ran.stderr);
    }
}

#[test]
fn an_invalid_fault_is_one_error() {
    let rest = "faults: [{name: f, target: {server: s, tool: search}, kind: slow}]
agents: [{name: a, model: builtin/lexical, servers: [s], prompt: p, inject: [f], recovery: {max_detection_ms: 9}}]
";
    let dir = folder(&[
        ("s.yml", &suite("{error: null}", rest)),
        ("m.yml", MANIFEST),
    ]);
    let ran = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stderr.matches("error:").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("needs `delay_ms`"), "{}", ran.stderr);
}

#[test]
fn a_bound_on_the_wrong_scale_is_a_warning_that_can_be_denied() {
    let rest = "agents:
  - name: a
    model: builtin/lexical
    servers: [s]
    prompt: search
    equal_function_sets: {classes: [{name: c, members: [search]}], expect: [{tool_selection.f1: {'>=': 0.9}}]}
";
    let dir = folder(&[
        ("s.yml", &suite("{error: null}", rest)),
        ("m.yml", MANIFEST),
    ]);
    for command in ["validate", "run"] {
        let warned = run(dir.path(), &[command, "s.yml"]);
        assert_eq!(warned.code, 0, "{}", warned.stderr);
        assert!(
            warned.stderr.contains("did you mean `90`?"),
            "{}",
            warned.stderr
        );
        let denied = run(dir.path(), &[command, "s.yml", "--deny-warnings"]);
        assert_eq!(denied.code, 2);
        assert!(
            denied.stderr.starts_with("error: this only"),
            "{}",
            denied.stderr
        );
        assert!(!denied.stderr.contains("valid, "), "{}", denied.stderr);
    }
}

#[test]
fn a_suite_without_tests_is_named() {
    let dir = folder(&[("empty.yml", "name: x\n")]);
    let ran = run(dir.path(), &["run", "empty.yml"]);
    assert_eq!(ran.code, 2);
    let expected = "`empty.yml` has no tests; write some under `tools:`";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn a_port_is_only_a_number() {
    for words in [
        ["mock", "--http", "127.0.0.1:80"],
        ["report", "--no-timing", "--serve=localhost"],
    ] {
        let dir = folder(&[]);
        let ran = run(dir.path(), &words);
        assert_eq!(ran.code, 2);
        let expected = "expected a port only, a number from 0 (a free one) to 65535";
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn an_error_instead_of_a_result_is_one_finding() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}
tools: [{name: t, server: s, tool: serch}]
";
    let dir = folder(&[("s.yml", suite), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("expected ").count(), 1, "{}", ran.stdout);
    let because = "because   server `s` lists no tool `serch`; did you mean `search`?";
    assert!(ran.stdout.contains(because), "{}", ran.stdout);
}
