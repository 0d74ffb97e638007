//! `mcptest score`.

use serde_json::{Value, json};

use crate::support::{Ran, folder, mcptest, ran, run};

const DOCUMENT: &str = "
tests:
  - name: research-agent picks search then fetch
    type: agent
    agent: researcher
    runs: 1
    equal_function_sets:
      classes:
        - name: search
          members: [brave.web_search, google.search]
        - name: fetch
          members: [http.get]
      expect:
        - tool_selection.f1: { \">=\": 80 }
";

fn score_with(suite: &str, traces: &str, more: &[&str]) -> Ran {
    let dir = folder(&[("s.yml", suite), ("t.json", traces)]);
    let output = mcptest(dir.path())
        .args(["score", "s.yml", "--trace", "t.json", "--reporter", "json"])
        .args(more)
        .output()
        .unwrap();
    ran(&output)
}

fn values(report: &Value) -> (u64, u64, u64) {
    let values = &report["tests"][0]["gates"][0]["values"];
    let get = |name: &str| values[format!("tool_selection.{name}")].as_u64().unwrap();
    (get("precision"), get("recall"), get("f1"))
}

#[test]
fn the_worked_examples_of_the_documents() {
    let good = score_with(
        DOCUMENT,
        r#"{"tool_calls": [{"name": "web_search", "server": "brave"}, {"name": "get", "server": "http"}]}"#,
        &[],
    );
    assert_eq!(good.code, 0, "{}", good.stderr);
    assert_eq!(values(&good.json()), (100, 100, 100));
    let half = score_with(
        DOCUMENT,
        r#"{"tool_calls": [{"name": "search", "server": "google"}, {"name": "exec", "server": "shell"}]}"#,
        &[],
    );
    assert_eq!(half.code, 1);
    let report = half.json();
    assert_eq!(values(&report), (50, 50, 50));
    let detail = &report["tests"][0]["gates"][0]["detail"];
    assert_eq!(detail["missed"], json!(["fetch"]));
    assert_eq!(detail["unexpected"], json!(["shell.exec"]));
    assert_eq!(report["verdict"], "fail");
    assert_eq!(report["exit_code"], 1);
}

#[test]
fn several_traces_are_runs_and_are_pooled() {
    let traces = r#"{"tool_calls": [{"name": "web_search", "server": "brave"}, {"name": "get", "server": "http"}]}
{"tool_calls": [{"name": "search", "server": "google"}, {"name": "exec", "server": "shell"}]}"#;
    let ran = score_with(DOCUMENT, traces, &[]);
    // 3 true positives, 1 false positive, 1 false negative.
    assert_eq!(values(&ran.json()), (75, 75, 75));
    assert_eq!(
        ran.json()["tests"][0]["runs"][1]["name"],
        "research-agent picks search then fetch #2"
    );
}

#[test]
fn models_fan_out_and_are_judged_apart() {
    let traces = r#"[{"model": "a", "tool_calls": [{"name": "web_search", "server": "brave"}, {"name": "get", "server": "http"}]}, {"model": "b", "tool_calls": []}]"#;
    let ran = score_with(DOCUMENT, traces, &[]);
    assert_eq!(ran.code, 1);
    let report = ran.json();
    let verdicts: Vec<_> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| (test["label"].clone(), test["verdict"].clone()))
        .collect();
    assert_eq!(
        json!(verdicts),
        json!([
            ["research-agent picks search then fetch [a]", "pass"],
            ["research-agent picks search then fetch [b]", "fail"]
        ])
    );
}

#[test]
fn no_trace_is_no_evidence_unless_the_suite_accepts_it() {
    let ran = score_with(DOCUMENT, "", &[]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.json()["verdict"], "no_evidence");
    let accepting = format!("{DOCUMENT}\nrun_options: {{ no_evidence: pass }}\n");
    assert_eq!(score_with(&accepting, "", &[]).code, 0);
    let refusing = format!("{DOCUMENT}\nrun_options: {{ no_evidence: fail }}\n");
    assert_eq!(score_with(&refusing, "", &[]).code, 1);
}

#[test]
fn a_floor_under_a_cap_without_token_counts_is_no_evidence() {
    let suite = "agents: [{name: w, tool_selection: {expected_tool: get_weather, min_selection_rate: 0.5, max_total_tokens: 10}}]";
    let ran = score_with(suite, r#"{"tool_calls": [{"name": "get_weather"}]}"#, &[]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let floor = &ran.json()["tool_selection"][0];
    assert_eq!(floor["test"], "w");
    assert_eq!(floor["passed"], Value::Null);
    assert_eq!(floor["per_run"][0]["within_budget"], Value::Null);
    assert!(
        ran.stderr
            .contains("tool-selection floor [NO EVIDENCE] w: selection 1/1 (100%)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_run_that_broke_is_an_error_and_not_the_agents_failure() {
    let traces = r#"[{"tool_calls": [], "error": {"kind": "rate_limit", "message": "429"}}, {"tool_calls": [{"name": "search", "server": "google"}, {"name": "get", "server": "http"}]}]"#;
    let ran = score_with(DOCUMENT, traces, &[]);
    assert_eq!(ran.code, 2);
    let report = ran.json();
    assert_eq!(report["tests"][0]["verdict"], "error");
    assert_eq!(report["tests"][0]["gates"][0]["verdict"], "pass");
    assert_eq!(report["tests"][0]["runs"][0]["error"]["kind"], "rate_limit");
}

#[test]
fn expectations_apply_to_each_run_wildcards_and_callers_included() {
    let suite = "
agents:
  - name: invoice lookup stays read-only
    expect:
      - target: tool_calls[0].name
        matcher: { exact: get_invoice }
      - target: tool_results[0].is_error
        matcher: { exact: false }
      - target: tool_calls[*].name
        matcher: { not: { contains: refund } }
      - tool_calls[*].caller: { none: { exists: true, type: object } }
";
    let good = r#"{"tool_calls": [{"id": "1", "name": "get_invoice"}], "tool_results": [{"call_id": "1", "is_error": false}], "final_response": "done, I issued the refund"}"#;
    assert_eq!(score_with(suite, good, &[]).code, 0);
    let hidden = r#"{"tool_calls": [{"name": "get_invoice"}, {"name": "refund", "caller": {"type": "code_execution_20250825"}}], "tool_results": [{"is_error": false}, {"is_error": false}]}"#;
    let ran = score_with(suite, hidden, &[]);
    assert_eq!(ran.code, 1);
    let assertions = ran.json()["tests"][0]["runs"][0]["assertions"].clone();
    let passed: Vec<_> = assertions
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["passed"].as_bool().unwrap())
        .collect();
    assert_eq!(passed, [true, true, false, false]);
}

#[test]
fn traces_find_their_test_by_name() {
    let suite = "agents: [{name: a, equal_function_sets: {classes: [{name: c, members: [x]}]}}, {name: b, equal_function_sets: {classes: [{name: c, members: [y]}]}}]";
    let traces = r#"{"test": "b", "tool_calls": [{"name": "y"}]} {"test": "a", "tool_calls": [{"name": "x"}]}"#;
    assert_eq!(score_with(suite, traces, &[]).code, 0);
    let unmatched = score_with(suite, r#"{"tool_calls": []}"#, &[]);
    assert_eq!(unmatched.code, 2);
    assert!(
        unmatched
            .stderr
            .contains("trace 1 names no test; the suite has `a`, `b`"),
        "{}",
        unmatched.stderr
    );
    assert_eq!(
        score_with(
            suite,
            r#"{"tool_calls": [{"name": "x"}]}"#,
            &["--test", "a"]
        )
        .code,
        0
    );
    let unknown = score_with(suite, traces, &["--test", "zz"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("no agent test is called `zz`"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn servers_named_in_the_suite_decide_what_a_dot_means() {
    let suite = "agents: [{name: a, servers: [s, http], equal_function_sets: {classes: [{name: c, members: [http.get]}], expect: [{tool_selection.f1: 100}]}}]";
    assert_eq!(
        score_with(
            suite,
            r#"{"tool_calls": [{"name": "get", "server": "http"}]}"#,
            &[]
        )
        .code,
        0
    );
    assert_eq!(
        score_with(
            suite,
            r#"{"tool_calls": [{"name": "http.get", "server": "s"}]}"#,
            &[]
        )
        .code,
        1
    );
    assert_eq!(
        score_with(suite, r#"{"tool_calls": [{"name": "http__get"}]}"#, &[]).code,
        0
    );
    let bare = suite.replace("[s, http]", "[s]");
    assert_eq!(
        score_with(
            &bare,
            r#"{"tool_calls": [{"name": "http.get", "server": "s"}]}"#,
            &[]
        )
        .code,
        0
    );
}

#[test]
fn bad_traces_have_a_place() {
    for (traces, place) in [
        ("nonsense", "t.json:1:"),
        ("{\"tool_calls\": [{\"turn\": \"x\"}]}", "t.json:1:"),
        ("[{\"tool_calls\": []}", "t.json:1:"),
    ] {
        let ran = score_with(DOCUMENT, traces, &[]);
        assert_eq!(ran.code, 2, "{traces}");
        assert!(ran.stderr.contains(place), "{}", ran.stderr);
    }
    let second = "{\"tool_calls\": []}\n{\"tool_cals\": []}";
    let ran = score_with(DOCUMENT, second, &["--strict"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("t.json:2:"), "{}", ran.stderr);
    let deep = format!(
        "{{\"tool_calls\": [{{\"args\": {}1{}}}]}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert_eq!(score_with(DOCUMENT, &deep, &[]).code, 2);
}

#[test]
fn hostile_text_in_a_trace_reaches_no_terminal() {
    let dir = folder(&[
        ("s.yml", DOCUMENT),
        (
            "t.json",
            "{\"tool_calls\": [{\"name\": \"evil\\u001b[2J\\u202e\"}]}",
        ),
    ]);
    let output = mcptest(dir.path())
        .args(["score", "s.yml", "--trace", "t.json", "--color", "never"])
        .output()
        .unwrap();
    let ran = ran(&output);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'));
    assert!(ran.stdout.contains("evil\\u{1b}[2J"), "{}", ran.stdout);
}

#[test]
fn a_report_through_a_link_leaves_the_link() {
    let suite = "agents: [{name: w, tool_selection: {expected_tool: t, min_selection_rate: 1}}]";
    let dir = folder(&[
        ("s.yml", suite),
        ("t.json", r#"{"tool_calls": [{"name": "t"}]}"#),
        ("old.json", "old"),
    ]);
    let link = dir.path().join("link.json");
    std::os::unix::fs::symlink("old.json", &link).unwrap();
    let ran = ran(&mcptest(dir.path())
        .args([
            "score",
            "s.yml",
            "--trace",
            "t.json",
            "--reporter",
            "json=link.json",
        ])
        .output()
        .unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let written = std::fs::read_to_string(dir.path().join("old.json")).unwrap();
    assert!(written.contains("schema_version"), "{written}");
}

#[test]
fn a_failed_run_fails_the_test_unless_reliability_is_to_decide() {
    let suite = |tolerate: bool| {
        format!(
            "agents: [{{name: a, expect: [{{tool_names: {{contains: x}}}}], reliability: {{tolerate_failed_runs: {tolerate}, expect: [{{reliability.passhat_k: {{\">=\": 30}}}}]}}}}]"
        )
    };
    let good = r#"{"tool_calls": [{"name": "x"}]}"#;
    let traces = format!("{good}{good}{good}{{\"tool_calls\": []}}");
    let strict = score_with(&suite(false), &traces, &[]);
    assert_eq!(strict.code, 1, "{}", strict.stderr);
    assert_eq!(strict.json()["tests"][0]["gates"][0]["verdict"], "pass");
    let tolerant = score_with(&suite(true), &traces, &[]);
    assert_eq!(tolerant.code, 0);
    assert_eq!(
        tolerant.json()["tests"][0]["gates"][0]["values"]["reliability.decay"],
        json!([100, 100, 100, 31])
    );
    assert_eq!(tolerant.json()["tests"][0]["runs"][3]["verdict"], "fail");
}

#[test]
fn issue_10_a_recording_without_a_list_of_tools_is_no_evidence() {
    let suite = "\
agents:
  - name: looks
    expect:
      - tool_calls: { exact: [] }
    trajectory: { mode: subset, calls: [{name: a}] }
    equal_function_sets: { classes: [{name: c, members: [a]}] }
";
    let marked = r#"{"test": "looks", "tool_calls": [], "tools_listed": false}"#;
    let other = r#"{"test": "looks", "tool_calls": []}"#;
    let dir = folder(&[
        ("s.yml", suite),
        ("marked.json", marked),
        ("other.json", other),
    ]);
    let scored = run(dir.path(), &["score", "s.yml", "--trace", "marked.json"]);
    assert_eq!(scored.code, 3, "{} {}", scored.stdout, scored.stderr);
    let why = "in 1 of 1 runs the client never listed the tools";
    assert!(scored.stdout.contains(why), "{}", scored.stdout);
    // Without the mark, a trace without calls is evidence against the agent.
    let scored = run(dir.path(), &["score", "s.yml", "--trace", "other.json"]);
    assert_eq!(scored.code, 1, "{} {}", scored.stdout, scored.stderr);
}
