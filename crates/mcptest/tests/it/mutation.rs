//! `mcptest mutate`: gates must bite.

use serde_json::{Value, json};

use crate::support::{Ran, folder, run};

const TRACES: &str = r#"{"test": "a", "run": 1, "tool_calls": [{"id": "1", "name": "search", "server": "s", "args": {"q": "x"}}, {"id": "2", "name": "create_note", "server": "s", "args": {"text": "y"}}], "tool_results": [{"call_id": "1", "is_error": false}, {"call_id": "2", "is_error": false}], "conversation": {"tokens": {"input": 40, "output": 10, "total": 50}}, "final_response": "I created the note."}
{"test": "a", "run": 2, "tool_calls": [{"name": "search", "server": "s", "args": {"q": "x"}}, {"name": "create_note", "server": "s", "args": {"text": "y"}}], "tool_results": [{"is_error": false}, {"is_error": false}], "conversation": {"tokens": {"total": 60}}, "final_response": "The note was created."}
"#;

fn mutate(blocks: &Value, more: &[&str]) -> Ran {
    let mut agent = json!({"name": "a"});
    agent
        .as_object_mut()
        .unwrap()
        .extend(blocks.as_object().unwrap().clone());
    let dir = folder(&[
        ("s.yml", &json!({"agents": [agent]}).to_string()),
        ("t.jsonl", TRACES),
    ]);
    let mut args = vec!["mutate", "s.yml", "--trace", "t.jsonl"];
    args.extend(more);
    run(dir.path(), &args)
}

#[test]
fn a_suite_that_checks_everything_kills_everything() {
    let blocks = json!({
        "expect": [{"tool_results[*].is_error": {"every": {"exact": false}}}],
        "trajectory": {"calls": [{"name": "search", "args": {"exact": {"q": "x"}}}, {"name": "create_note", "args": {"exact": {"text": "y"}}}]},
        "tool_selection": {"expected_tool": "create_note", "min_selection_rate": 1, "max_total_tokens": 70},
        "narrative": {},
    });
    let ran = mutate(&blocks, &["--format", "json", "--min-score", "100"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    assert_eq!(report["score"], 100);
    let kinds: std::collections::BTreeSet<&str> = report["tests"][0]["details"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|mutant| mutant["kind"].as_str())
        .collect();
    let expected = [
        "add_claim",
        "change_argument",
        "double_tokens",
        "drop_call",
        "duplicate_call",
        "fail_result",
        "remove_argument",
        "replace_tool",
        "swap_calls",
    ];
    assert_eq!(kinds, expected.into_iter().collect());
    let killers = |kind: &str| -> Vec<Value> {
        report["tests"][0]["details"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|mutant| mutant["kind"] == kind)
            .map(|mutant| mutant["killed_by"].clone())
            .collect()
    };
    assert_eq!(killers("add_claim"), [json!(["narrative"])]);
    assert_eq!(killers("double_tokens"), [json!(["tool_selection"])]);
    assert_eq!(killers("swap_calls"), [json!(["trajectory"])]);
    assert_eq!(
        killers("fail_result"),
        [json!(["expect"]), json!(["expect"])]
    );
}

#[test]
fn a_suite_that_checks_nothing_much_shows_what_survives() {
    let blocks = json!({"expect": [{"tool_calls": {"type": "array"}}]});
    let ran = mutate(&blocks, &["--min-score", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("a: 0 of 15 mutants killed (0%)"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("SURVIVED: drop call 1 (search)\n    - s.search {\"q\":\"x\"} → ok\n"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .ends_with("mutation score 0% (0 of 15 mutants killed)\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn traces_that_fail_without_mutation_prove_nothing() {
    let ran = mutate(
        &json!({"expect": [{"tool_names": {"contains": "nope"}}]}),
        &[],
    );
    assert_eq!(ran.code, 3);
    assert!(
        ran.stdout
            .contains("not mutated, its traces do not pass as they are"),
        "{}",
        ran.stdout
    );
}
