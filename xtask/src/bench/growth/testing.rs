//! Commands that run or check suites.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::Subject;
use super::inputs::*;

const RECORD: &[&str] = &["run", "s.yml", "--no-history", "--record"];

pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "validate: unknown keys of a test",
        args: &["validate", "s.yml"],
        rejected: true,
        size: 1000,
        input: |dir, n| {
            let keys = (0..n).map(|i| format!("    unknown_{i}: 1\n"));
            suite(
                dir,
                &format!("agents:\n  - name: a\n{}", keys.collect::<String>()),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: errors in one line",
        args: &["validate", "s.yml", "--format", "json"],
        rejected: true,
        size: 1500,
        input: |dir, n| {
            let tests: Vec<String> = (0..n).map(|i| format!("{{name: a{i}, bad: ä}}")).collect();
            suite(dir, &format!("agents: [{}]\n", tests.join(", ")))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: unknown names in `inject:`",
        args: &["validate", "s.yml"],
        rejected: true,
        size: 500,
        input: |dir, n| {
            let names: Vec<String> = (0..n).map(|i| format!("unknown {i}")).collect();
            let faults: String = (0..n)
                .map(|i| format!("  - {{name: fault {i}, kind: hang, target: {{tool: t}}}}\n"))
                .collect();
            let test = test("a", &format!("inject: {}", json!(names)));
            suite(
                dir,
                &format!("{SERVER}faults:\n{faults}agents:\n  - {test}\n"),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "run: tests of a scripted model",
        args: &["run", "s.yml", "--no-history"],
        size: 250,
        input: |dir, n| mocked_tests(dir, n, "expect: [{final_response: y}]"),
        ..Subject::EMPTY
    },
    Subject {
        name: "run: direct calls",
        args: &["run", "s.yml", "--no-history"],
        size: 500,
        input: |dir, n| {
            mock(dir, 1, "done")?;
            let tests: String = (0..n)
                .map(|i| format!("  - {{name: t{i}, server: s, tool: tool_0}}\n"))
                .collect();
            suite(dir, &format!("{MOCK}tools:\n{tests}"))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "mutate: traces",
        args: &["mutate", "s.yml", "--trace", "t.jsonl"],
        size: 250,
        input: |dir, n| {
            let block = "equal_function_sets: {classes: [{name: c, members: [s.a]}]}";
            suite(dir, &format!("{SERVER}agents:\n  - {}\n", test("t", block)))?;
            let call = json!({"id": "1", "name": "a", "server": "s", "args": {"i": 1}});
            let trace = json!({"test": "t", "tool_calls": [call]});
            traces(dir, (0..n).map(|_| trace.clone()))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: tests",
        args: &["validate", "s.yml"],
        size: 500,
        input: |dir, n| many_tests(dir, n, "y"),
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: assertions of a test",
        args: &["validate", "s.yml"],
        size: 4000,
        input: |dir, n| {
            let all: Vec<String> = (0..n)
                .map(|i| format!("{{tool_calls: {{length: {i}}}}}"))
                .collect();
            one_test(dir, &format!("expect: [{}]", all.join(", ")))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: members of a class",
        args: &["validate", "s.yml"],
        size: 4000,
        input: |dir, n| {
            let members: Vec<String> = (0..n).map(|i| format!("s.tool_{i}")).collect();
            let block = format!("[{{name: c, members: [{}]}}]", members.join(", "));
            one_test(dir, &format!("equal_function_sets: {{classes: {block}}}"))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: wrong names beside a known catalog",
        args: &["validate", "s.yml"],
        size: 500,
        input: |dir, n| wrong_names(dir, n, 100),
        ..Subject::EMPTY
    },
    Subject {
        name: "validate: tools of a known catalog",
        args: &["validate", "s.yml"],
        size: 500,
        input: |dir, n| wrong_names(dir, 20, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "run: turns of a scripted model",
        args: &["run", "s.yml", "--no-history"],
        size: 250,
        input: |dir, n| {
            mock(dir, 1, "done")?;
            let call = "{calls: [{tool: tool_0, args: {}}]}, ".repeat(n);
            suite(
                dir,
                &format!(
                    "{MOCK}agents:\n  - {{name: t, model: builtin/scripted, servers: [s], prompt: x, max_turns: {}, script: [[{call}{{say: y}}]]}}\n",
                    n + 1
                ),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "run: runs of a test",
        args: &["run", "s.yml", "--no-history"],
        size: 250,
        input: |dir, n| {
            mock(dir, 1, "done")?;
            suite(
                dir,
                &format!("{MOCK}agents:\n  - {}\n", test("t", &format!("runs: {n}"))),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "run: recorded runs of a test",
        args: &["run", "s.yml", "--no-history", "--replay-only"],
        size: 250,
        input: |dir, n| {
            mock(dir, 1, "done")?;
            suite(
                dir,
                &format!("{MOCK}agents:\n  - {}\n", test("t", &format!("runs: {n}"))),
            )?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "run: recorded tests",
        args: &["run", "s.yml", "--no-history", "--replay-only"],
        size: 250,
        input: |dir, n| {
            mocked_tests(dir, n, "runs: 1")?;
            dir.mcptest(RECORD)
        },
        ..Subject::EMPTY
    },
];

/// A suite with this number of tests that name tools which their server, with this number of tools,
/// does not have.
fn wrong_names(dir: &Path, tests: usize, tools: usize) -> Result<()> {
    mock(dir, tools, "done")?;
    let block = |i| format!("tool_selection: {{expected_tool: tol_{i}, min_selection_rate: 0.5}}");
    let tests: String = (0..tests)
        .map(|i| format!("  - {}\n", test(&format!("t{i}"), &block(i))))
        .collect();
    suite(dir, &format!("{MOCK}agents:\n{tests}"))
}
