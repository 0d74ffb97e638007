//! A gate that cannot fail does not exist: every target of every gate is given a bound that nothing
//! can meet, in `run` and in `score`.

use mcptest_gates::{GATES, GateInfo};
use serde_json::{Value, json};

use crate::support::{folder, run};

const MANIFEST: &str = "mock_server: {name: s, tools: [{name: t, description: search, response: ok}, {name: u, description: fetch, response: ok}]}\n";

/// A block that passes by itself on a run that calls `t`, then `u`, for each gate.
pub fn block(gate: &GateInfo) -> Value {
    match gate.block {
        "equal_function_sets" => json!({"classes": [{"name": "c", "members": ["s.t", "u"]}]}),
        "tool_selection" => {
            json!({"expected_tool": "t", "min_selection_rate": 0.5, "max_total_tokens": 100})
        }
        "trajectory" => {
            json!({"calls": [{"name": "t"}, {"name": "u", "args": {"exact": {"q": 1}}}]})
        }
        "trajectory_axes" => {
            json!({"dependencies": [{"producer": "t", "consumer": "u"}], "order": [{"first": "t", "second": "u"}]})
        }
        "golden_path" => json!({"calls": ["t", "u"]}),
        "tool_edges" => {
            json!({"allowed": ["t", "u"], "restricted": ["drop"], "delegation": [{"from": "t", "to": "u"}]})
        }
        "distractors" => {
            json!({"count": 2, "source": {"from": "catalog"}, "correct": ["s.t", "u"]})
        }
        "orchestration" => json!({}),
        "token_efficiency" => json!({"classes": [{"name": "c", "members": ["s.t", "u"]}]}),
        "stability" => json!({}),
        "reliability" => json!({}),
        "recovery" => json!({"max_detection_ms": 1000}),
        "injection" => json!({"baseline": true, "task": [{"tool_names": {"contains": "t"}}]}),
        "narrative" => json!({}),
        other => panic!("give `{other}` a block here"),
    }
}

/// Three runs that call `t`, then `u`; a gate that needs more of its test gets it.
fn suite(gate: &GateInfo, expect: &Value) -> Value {
    let mut written = block(gate);
    written["expect"] = expect.clone();
    let usage = json!({"input": 1, "output": 1});
    let turns = json!([
        {"calls": [{"tool": "t", "args": {"q": 0}}], "usage": usage},
        {"calls": [{"tool": "u", "args": {"q": 1}}], "usage": usage},
        {"say": "Done.", "usage": usage},
    ]);
    let mut suite = json!({
        "servers": {"s": {"command": ["mcptest", "mock", "--tools-from", "m.yml"]}},
        "prices": {"builtin/scripted": {"input_per_mtok": 1, "output_per_mtok": 1}},
        "agents": [{
            "name": "a", "model": "builtin/scripted", "servers": ["s"], "prompt": "p", "runs": 3, "script": [turns],
            gate.block: written,
        }],
    });
    match gate.block {
        "orchestration" => {
            suite["agents"][0]["equal_function_sets"] =
                json!({"classes": [{"name": "c", "members": ["s.t", "u"]}]})
        }
        // Two calls of two tools are as thrashing as can be.
        "stability" => {
            suite["agents"][0]["script"][0][0]["calls"] =
                json!([{"tool": "t", "args": {"q": 0}}, {"tool": "t", "args": {"q": 1}}])
        }
        "recovery" => {
            suite["faults"] = json!([{"name": "hung", "target": {"tool": "t"}, "kind": "hang"}]);
            suite["agents"][0]["inject"] = json!(["hung"]);
        }
        "injection" => {
            let goal = json!({"call": {"tool": "u", "args": {"q": {"contains": "${canary}"}}}});
            suite["attacks"] = json!([{
                "name": "a", "target": {"tool": "t"}, "payload": "plain-ask", "goal": goal
            }]);
            suite["agents"][0]["inject"] = json!(["a"]);
            let calls = json!([{"tool": "u", "args": {"q": "${canary}"}}]);
            suite["agents"][0]["script"][0][1]["calls"] = calls;
        }
        _ => {}
    }
    suite
}

#[test]
fn an_impossible_bound_on_any_target_fails() {
    for gate in GATES {
        for target in gate.targets {
            let expect = json!([{target.name: {"type": "string"}}]);
            // JSON is YAML.
            let dir = folder(&[
                ("s.yml", &suite(gate, &expect).to_string()),
                ("m.yml", MANIFEST),
            ]);
            let live = run(
                dir.path(),
                &["run", "s.yml", "--reporter", "json", "--traces", "t.jsonl"],
            );
            assert_eq!(
                live.code, 1,
                "run {}\n{}\n{}",
                target.name, live.stdout, live.stderr
            );
            let scored = run(
                dir.path(),
                &["score", "s.yml", "--trace", "t.jsonl", "--reporter", "json"],
            );
            assert_eq!(scored.code, 1, "score {}\n{}", target.name, scored.stderr);
            for report in [live.json(), scored.json()] {
                let gates = report["tests"][0]["gates"].as_array().unwrap();
                let gate_report = gates.iter().find(|one| one["block"] == gate.block).unwrap();
                assert!(
                    gate_report["values"].get(target.name).is_some(),
                    "{} is not reported",
                    target.name
                );
                let failed: Vec<_> = gate_report["assertions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|one| one["passed"] == false)
                    .collect();
                assert_eq!(failed.len(), 1, "{}", target.name);
                assert_eq!(failed[0]["target"], target.name);
            }
        }
    }
}

#[test]
fn the_same_block_without_it_passes() {
    for gate in GATES {
        // The agent of this suite obeys, which the default forbids.
        let expect = match gate.block {
            "injection" => json!([{"injection.delivered": {">=": 1}}]),
            _ => json!([]),
        };
        let dir = folder(&[
            ("s.yml", &suite(gate, &expect).to_string()),
            ("m.yml", MANIFEST),
        ]);
        let ran = run(dir.path(), &["run", "s.yml"]);
        assert_eq!(ran.code, 0, "{}\n{}{}", gate.block, ran.stdout, ran.stderr);
    }
}

#[test]
fn an_impossible_assertion_on_a_run_fails_and_hides_no_other() {
    let mut suite = suite(&GATES[0], &json!([]));
    let targets = [
        "tool_calls[0].name",
        "tool_calls[0].server",
        "tool_calls[0].args",
        "tool_calls[0].caller",
        "tool_names",
        "tool_results[0].is_error",
        "tool_results[0].content",
        "final_response",
        "conversation.tokens.total",
        "conversation.turns",
    ];
    suite["agents"][0]["expect"] = targets
        .iter()
        .map(|target| json!({*target: {"exact": "never this"}}))
        .collect();
    let dir = folder(&[("s.yml", &suite.to_string()), ("m.yml", MANIFEST)]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 1);
    for run in ran.json()["tests"][0]["runs"].as_array().unwrap() {
        let failed: Vec<&str> = run["assertions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["passed"] == false)
            .filter_map(|one| one["target"].as_str())
            .collect();
        assert_eq!(failed, targets);
    }
}
