//! Commands that read traces: every gate over calls and runs, and the formats of other tools.

use serde_json::{Value, json};

use super::Subject;
use super::inputs::*;

const SCORE: &[&str] = &["score", "s.yml", "--trace", "t.jsonl"];

pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "trace convert: traces",
        args: &[
            "trace", "convert", "t.jsonl", "--to", "otlp", "--out", "o.json",
        ],
        size: 2000,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "trace show: calls",
        args: &["trace", "show", "t.jsonl"],
        size: 1000,
        input: |dir, n| traces(dir, [run_with_calls(n)].into_iter()),
        ..Subject::EMPTY
    },
    Subject {
        name: "trace infer: traces",
        args: &["trace", "infer", "t.jsonl"],
        size: 1000,
        input: |dir, n| {
            let call = json!({"id": "1", "name": "a", "server": "s", "args": {}});
            let trace = json!({"test": "t", "tool_calls": [call], "final_response": "y"});
            traces(dir, (0..n).map(|_| trace.clone()))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace anonymise: calls",
        args: &["trace", "anonymise", "t.jsonl", "--out", "o.jsonl"],
        size: 500,
        input: |dir, n| traces(dir, [run_with_calls(n)].into_iter()),
        ..Subject::EMPTY
    },
    Subject {
        name: "score: tests by name, JSON",
        args: &["score", "s.yml", "--trace", "t.jsonl", "--reporter", "json"],
        size: 2000,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "score: tests by name, Markdown",
        args: &[
            "score",
            "s.yml",
            "--trace",
            "t.jsonl",
            "--reporter",
            "markdown",
        ],
        size: 2000,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "score: runs of one test",
        args: SCORE,
        size: 8000,
        input: |dir, n| {
            suite(
                dir,
                &format!(
                    "{SERVER}agents:\n  - {}\n",
                    test("t", "expect: [{final_response: {exact: y}}]")
                ),
            )?;
            traces(
                dir,
                (0..n).map(|_| json!({"test": "t", "tool_calls": [], "final_response": "y"})),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls and sentences of narrative",
        args: SCORE,
        size: 400,
        input: |dir, n| {
            suite(
                dir,
                &format!("{SERVER}agents:\n  - {}\n", test("t", "narrative: {}")),
            )?;
            let call = |i: usize| json!({"id": i.to_string(), "name": "create_issue", "server": "s", "args": {"title": format!("thing {i}")}});
            let result =
                |i: usize| json!({"call_id": i.to_string(), "is_error": false, "content": []});
            let said: Vec<String> = (0..n)
                .map(|i| format!("I created the issue thing {i}."))
                .collect();
            let trace = json!({
                "test": "t",
                "tool_calls": (0..n).map(call).collect::<Vec<_>>(),
                "tool_results": (0..n).map(result).collect::<Vec<_>>(),
                "final_response": said.join(" "),
            });
            traces(dir, [trace].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace stats: traces",
        args: &["trace", "stats", "t.jsonl"],
        size: 8000,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of tool_selection",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "tool_selection: {expected_tool: a, min_selection_rate: 0.5}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of equal_function_sets",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "equal_function_sets: {classes: [{name: c, members: [s.a, s.b]}]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of token_efficiency",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "token_efficiency: {classes: [{name: c, members: [s.a, s.b]}]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of trajectory",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "trajectory: {mode: unordered, calls: [{name: a}, {name: b}]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of trajectory_axes",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "trajectory_axes: {dependencies: [{producer: a, consumer: b}], order: [{first: a, second: b}]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of golden_path",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(dir, "golden_path: {calls: [a, b]}")?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of tool_edges",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "tool_edges: {allowed: [s.a], restricted: [s.b], delegation: [{from: s.a, to: s.b}]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of orchestration",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "equal_function_sets: {classes: [{name: c, members: [s.a]}]}, orchestration: {}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of recovery",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(dir, "recovery: {max_detection_ms: 10}")?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of stability",
        args: SCORE,
        size: 1000,
        input: |dir, n| {
            one_test(dir, "stability: {}")?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: calls of distractors",
        args: SCORE,
        size: 2000,
        input: |dir, n| {
            one_test(
                dir,
                "distractors: {counts: [2], source: {from: catalog}, correct: [s.a]}",
            )?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: different runs of stability",
        args: SCORE,
        size: 1000,
        input: |dir, n| {
            one_test(dir, "stability: {}")?;
            let run = |i: usize| {
                let call = json!({"id": "1", "name": "a", "server": "s", "args": {"i": i}});
                json!({"test": "t", "tool_calls": [call]})
            };
            traces(dir, (0..n).map(run))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: steps of a golden path",
        args: SCORE,
        size: 1000,
        input: |dir, n| {
            let steps: Vec<&str> = (0..n).map(|i| ["a", "c", "b"][i % 3]).collect();
            one_test(dir, &format!("golden_path: {}", json!({"calls": steps})))?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: steps of a trajectory, any order",
        args: SCORE,
        size: 25,
        input: |dir, n| {
            let step = |i: usize| json!({"name": "a", "args": {"subset": {"to": format!("user{}@example.com", 3 * i)}}});
            let steps: Vec<Value> = (0..n).rev().map(step).collect();
            one_test(
                dir,
                &format!(
                    "trajectory: {}",
                    json!({"mode": "superset", "calls": steps})
                ),
            )?;
            traces(dir, [run_with_calls(1200)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: attacks of a test",
        args: SCORE,
        size: 250,
        input: |dir, n| {
            let names: Vec<String> = (0..n).map(|i| format!("attack {i}")).collect();
            let attacks: String = names
                .iter()
                .map(|name| {
                    format!(
                        "  - {{name: {name}, target: {{tool: a}}, text: '{{do}}', goal: {{call: {{tool: b}}}}}}\n"
                    )
                })
                .collect();
            let block = format!("inject: {}, injection: {{}}", json!(names));
            suite(
                dir,
                &format!(
                    "{SERVER}attacks:\n{attacks}agents:\n  - {}\n",
                    test("t", &block)
                ),
            )?;
            traces(dir, [run_with_calls(250)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: assertions on the calls",
        args: SCORE,
        size: 1000,
        input: |dir, n| {
            let all: Vec<String> = (0..n)
                .map(|i| format!("{{\"tool_calls[{i}].server\": s}}"))
                .collect();
            one_test(dir, &format!("expect: [{}]", all.join(", ")))?;
            traces(dir, [run_with_calls(n)].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "score: a partial result",
        args: &[
            "score",
            "s.yml",
            "--trace",
            "t.jsonl",
            "--partial",
            "p.part",
        ],
        size: 2000,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "trace convert: calls of openai-chat",
        args: &[
            "trace",
            "convert",
            "t.jsonl",
            "--format",
            "openai-chat",
            "--out",
            "o.jsonl",
        ],
        size: 2000,
        input: |dir, n| {
            let call = |i: usize| {
                let function = json!({"name": "a", "arguments": "{}"});
                let calls =
                    json!([{"id": format!("c{i}"), "type": "function", "function": function}]);
                [
                    json!({"role": "assistant", "content": null, "tool_calls": calls}),
                    json!({"role": "tool", "tool_call_id": format!("c{i}"), "content": "done"}),
                ]
            };
            let messages: Vec<Value> = (0..n).flat_map(call).collect();
            traces(dir, [json!({"messages": messages})].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace convert: calls of anthropic",
        args: &[
            "trace",
            "convert",
            "t.jsonl",
            "--format",
            "anthropic",
            "--out",
            "o.jsonl",
        ],
        size: 2000,
        input: |dir, n| {
            let call = |i: usize| {
                let call =
                    json!({"type": "tool_use", "id": format!("c{i}"), "name": "a", "input": {}});
                let result = json!({"type": "tool_result", "tool_use_id": format!("c{i}"), "content": "done"});
                [
                    json!({"role": "assistant", "content": [call]}),
                    json!({"role": "user", "content": [result]}),
                ]
            };
            let messages: Vec<Value> = (0..n).flat_map(call).collect();
            traces(dir, [json!({"messages": messages})].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace convert: calls of otel",
        args: &[
            "trace", "convert", "t.jsonl", "--format", "otel", "--out", "o.jsonl",
        ],
        size: 2000,
        input: |dir, n| {
            let attribute =
                |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
            let span = |i: usize| {
                json!({
                    "traceId": "0af7651916cd43dd8448eb211c80319c",
                    "spanId": format!("{:016x}", i + 1), "name": "execute_tool a",
                    "startTimeUnixNano": format!("{}", 1_000 + i), "endTimeUnixNano": format!("{}", 1_001 + i),
                    "attributes": [
                        attribute("gen_ai.operation.name", "execute_tool"),
                        attribute("gen_ai.tool.name", "a"),
                        attribute("gen_ai.tool.call.id", &format!("c{i}")),
                    ],
                })
            };
            let spans: Vec<Value> = (0..n).map(span).collect();
            let scopes = json!([{"scope": {"name": "x"}, "spans": spans}]);
            traces(dir, [json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": scopes}]})].into_iter())
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace convert: calls of mcp-jsonrpc",
        args: &[
            "trace",
            "convert",
            "t.jsonl",
            "--format",
            "mcp-jsonrpc",
            "--out",
            "o.jsonl",
        ],
        size: 2000,
        input: |dir, n| {
            let call = |i: usize| {
                [
                    json!({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": "a", "arguments": {}}}),
                    json!({"jsonrpc": "2.0", "id": i, "result": {"content": []}}),
                ]
            };
            traces(dir, (0..n).flat_map(call))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "trace infer: calls",
        args: &["trace", "infer", "t.jsonl"],
        size: 250,
        input: |dir, n| traces(dir, [run_with_calls(n)].into_iter()),
        ..Subject::EMPTY
    },
];
