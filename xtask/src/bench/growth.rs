//! Growth: the time of each command over each dimension of its input, at n, 2n, 4n and 8n.
//!
//! The exponent of the growth does not depend on the machine, and hardly on its load: it follows
//! from the time on all cores, the least of several runs, and the larger sizes, where the start of
//! the process does not matter. The build is the one that tests use, because an exponent is the
//! same in every build.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::figures::{cpu_ms_of, silent};
use crate::workspace::{self, Profile};

/// An exponent above this fails.
const MAX_EXPONENT: f64 = 1.3;
/// The number of runs for each size; the fastest one counts.
const RUNS: usize = 3;
/// The multiples of a subject's size that are measured.
const MULTIPLES: [usize; 4] = [1, 2, 4, 8];

/// A command and a dimension of its input.
struct Subject {
    name: &'static str,
    args: &'static [&'static str],
    exit_code: i32,
    /// The smallest size.
    size: usize,
    /// Writes the input of a size into a folder.
    input: fn(&Path, usize) -> Result<()>,
}

const SCORE: &[&str] = &["score", "s.yml", "--trace", "t.jsonl"];

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "validate: unknown keys of a test",
        args: &["validate", "s.yml"],
        exit_code: 2,
        size: 1000,
        input: |dir, n| {
            let keys = (0..n).map(|i| format!("    unknown_{i}: 1\n"));
            suite(
                dir,
                &format!("agents:\n  - name: a\n{}", keys.collect::<String>()),
            )
        },
    },
    Subject {
        name: "validate: errors in one line",
        args: &["validate", "s.yml", "--format", "json"],
        exit_code: 2,
        size: 1500,
        input: |dir, n| {
            let tests: Vec<String> = (0..n).map(|i| format!("{{name: a{i}, bad: ä}}")).collect();
            suite(dir, &format!("agents: [{}]\n", tests.join(", ")))
        },
    },
    Subject {
        name: "validate: unknown names in `inject:`",
        args: &["validate", "s.yml"],
        exit_code: 2,
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
    },
    Subject {
        name: "run: tests of a scripted model",
        args: &["run", "s.yml", "--no-history"],
        exit_code: 0,
        size: 250,
        input: |dir, n| {
            mock(dir, 1)?;
            let tests: String = (0..n)
                .map(|i| {
                    format!(
                        "  - {}\n",
                        test(&format!("t{i}"), "expect: [{final_response: y}]")
                    )
                })
                .collect();
            suite(dir, &format!("{MOCK}agents:\n{tests}"))
        },
    },
    Subject {
        name: "run: direct calls",
        args: &["run", "s.yml", "--no-history"],
        exit_code: 0,
        size: 500,
        input: |dir, n| {
            mock(dir, 1)?;
            let tests: String = (0..n)
                .map(|i| format!("  - {{name: t{i}, server: s, tool: tool_0}}\n"))
                .collect();
            suite(dir, &format!("{MOCK}tools:\n{tests}"))
        },
    },
    Subject {
        name: "list: tools of a server",
        args: &["list", "s.yml"],
        exit_code: 0,
        size: 500,
        input: |dir, n| {
            mock(dir, n)?;
            suite(
                dir,
                &format!("{MOCK}tools: [{{name: t, server: s, tool: tool_0}}]\n"),
            )
        },
    },
    Subject {
        name: "tool-bench: tools",
        args: &["tool-bench", "run", "b.yml"],
        exit_code: 0,
        size: 500,
        input: |dir, n| tool_bench(dir, n, 10),
    },
    Subject {
        name: "tool-bench: intents",
        args: &["tool-bench", "run", "b.yml"],
        exit_code: 0,
        size: 500,
        input: |dir, n| tool_bench(dir, 10, n),
    },
    Subject {
        name: "mutate: traces",
        args: &["mutate", "s.yml", "--trace", "t.jsonl"],
        exit_code: 0,
        size: 100,
        input: |dir, n| {
            let block = "equal_function_sets: {classes: [{name: c, members: [s.a]}]}";
            suite(dir, &format!("{SERVER}agents:\n  - {}\n", test("t", block)))?;
            let call = json!({"id": "1", "name": "a", "server": "s", "args": {"i": 1}});
            let trace = json!({"test": "t", "tool_calls": [call]});
            traces(dir, (0..n).map(|_| trace.clone()))
        },
    },
    Subject {
        name: "trace convert: traces",
        args: &[
            "trace", "convert", "t.jsonl", "--to", "otlp", "--out", "o.json",
        ],
        exit_code: 0,
        size: 2000,
        input: many_tests,
    },
    Subject {
        name: "trace show: calls",
        args: &["trace", "show", "t.jsonl"],
        exit_code: 0,
        size: 1000,
        input: many_calls,
    },
    Subject {
        name: "trace infer: traces",
        args: &["trace", "infer", "t.jsonl"],
        exit_code: 0,
        size: 250,
        input: |dir, n| {
            let call = json!({"id": "1", "name": "a", "server": "s", "args": {}});
            let trace = json!({"test": "t", "tool_calls": [call], "final_response": "y"});
            traces(dir, (0..n).map(|_| trace.clone()))
        },
    },
    Subject {
        name: "trace anonymise: calls",
        args: &["trace", "anonymise", "t.jsonl", "--out", "o.jsonl"],
        exit_code: 0,
        size: 500,
        input: many_calls,
    },
    Subject {
        name: "score: tests by name, JSON",
        args: &["score", "s.yml", "--trace", "t.jsonl", "--reporter", "json"],
        exit_code: 0,
        size: 2000,
        input: many_tests,
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
        exit_code: 0,
        size: 2000,
        input: many_tests,
    },
    Subject {
        name: "score: runs of one test",
        args: SCORE,
        exit_code: 0,
        size: 2000,
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
    },
    Subject {
        name: "score: calls and sentences of narrative",
        args: SCORE,
        exit_code: 0,
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
    },
    Subject {
        name: "diff: renamed tools",
        args: &["diff", "a.json", "b.json"],
        exit_code: 1,
        size: 250,
        input: |dir, n| {
            catalog(dir, "a.json", "get", n)?;
            catalog(dir, "b.json", "fetch", n)
        },
    },
    Subject {
        name: "diff: properties of one tool",
        args: &["diff", "a.json", "b.json"],
        exit_code: 1,
        size: 1000,
        input: |dir, n| {
            for (file, kind) in [("a.json", "string"), ("b.json", "integer")] {
                let properties: serde_json::Map<String, Value> = (0..n)
                    .map(|i| (format!("p{i}"), json!({"type": kind})))
                    .collect();
                let tools =
                    json!({"tools": [{"name": "t", "inputSchema": {"properties": properties}}]});
                fs::write(dir.join(file), tools.to_string())?;
            }
            Ok(())
        },
    },
    Subject {
        name: "doctor: tools",
        args: &["doctor", "--tools-from", "a.json", "--all"],
        exit_code: 0,
        size: 250,
        input: |dir, n| catalog(dir, "a.json", "get", n),
    },
    Subject {
        name: "trace stats: traces",
        args: &["trace", "stats", "t.jsonl"],
        exit_code: 0,
        size: 2000,
        input: many_tests,
    },
];

const SERVER: &str = "servers: {s: {command: [x]}}\n";

fn test(name: &str, block: &str) -> String {
    format!(
        "{{name: {name}, model: builtin/scripted, servers: [s], prompt: x, script: [[{{say: y}}]], {block}}}"
    )
}

fn suite(dir: &Path, text: &str) -> Result<()> {
    Ok(fs::write(dir.join("s.yml"), text)?)
}

fn traces(dir: &Path, traces: impl Iterator<Item = Value>) -> Result<()> {
    let lines: String = traces.map(|trace| format!("{trace}\n")).collect();
    Ok(fs::write(dir.join("t.jsonl"), lines)?)
}

fn many_tests(dir: &Path, n: usize) -> Result<()> {
    let mut text = format!("{SERVER}agents:\n");
    for i in 0..n {
        let test = test(&format!("t{i}"), "expect: [{final_response: {exact: y}}]");
        writeln!(text, "  - {test}")?;
    }
    suite(dir, &text)?;
    let trace = |i| json!({"test": format!("t{i}"), "tool_calls": [], "final_response": "y"});
    traces(dir, (0..n).map(trace))
}

fn many_calls(dir: &Path, n: usize) -> Result<()> {
    let call = |i: usize| json!({"id": i.to_string(), "name": "a", "server": "s", "args": {"to": format!("user{i}@example.com")}});
    let trace = json!({"test": "t", "tool_calls": (0..n).map(call).collect::<Vec<_>>()});
    traces(dir, [trace].into_iter())
}

const MOCK: &str = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\n";

/// A manifest with this number of tools.
fn mock(dir: &Path, tools: usize) -> Result<()> {
    let tool = |i: usize| {
        json!({"name": format!("tool_{i}"), "description": format!("Does {i}."),
               "input_schema": {"type": "object"}, "response": "done"})
    };
    let tools: Vec<Value> = (0..tools).map(tool).collect();
    let manifest = json!({"mock_server": {"name": "s", "tools": tools}});
    Ok(fs::write(dir.join("m.yml"), manifest.to_string())?)
}

fn catalog(dir: &Path, file: &str, verb: &str, n: usize) -> Result<()> {
    let tool = |i: usize| {
        json!({
            "name": format!("{verb}_record_{i}"),
            "description": format!("Reads record {i} of the archive."),
            "inputSchema": {"type": "object"},
        })
    };
    let tools = json!({"tools": (0..n).map(tool).collect::<Vec<_>>()});
    Ok(fs::write(dir.join(file), tools.to_string())?)
}

/// A spec with this number of tools and of intents.
fn tool_bench(dir: &Path, tools: usize, intents: usize) -> Result<()> {
    catalog(dir, "a.json", "get", tools)?;
    let intent = |i: usize| {
        let i = i % tools;
        json!({"query": format!("get record {i}"), "gold": [format!("get_record_{i}")]})
    };
    let intents: Vec<Value> = (0..intents).map(intent).collect();
    let spec = json!({"catalog_path": "a.json", "intents": intents});
    Ok(fs::write(dir.join("b.yml"), spec.to_string())?)
}

/// Measures and prints. True if no time grows faster than the bound.
pub fn run() -> Result<bool> {
    let program = workspace::build(Profile::Dev)?;
    let mut within = true;
    println!(
        "{:45} {:>8} {:>32} {:>9}",
        "", "n", "ms at n, 2n, 4n, 8n", "exponent"
    );
    for subject in SUBJECTS {
        let mut times = Vec::new();
        for multiple in MULTIPLES {
            times.push(time(&program, subject, subject.size * multiple)?);
        }
        // From 2n to 8n, which is a factor of 4.
        let exponent = (times[3] / times[1]).log(4.0);
        within &= exponent <= MAX_EXPONENT;
        let shown: Vec<String> = times.iter().map(|time| format!("{time:.0}")).collect();
        let mark = if exponent > MAX_EXPONENT {
            "  OVER"
        } else {
            ""
        };
        println!(
            "{:45} {:>8} {:>32} {exponent:>9.2}{mark}",
            subject.name,
            subject.size,
            shown.join(", ")
        );
    }
    Ok(within)
}

/// The least time of several runs, in milliseconds.
fn time(program: &Path, subject: &Subject, size: usize) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    (subject.input)(dir.path(), size)?;
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let mut command = silent(&[program]);
        command.args(subject.args).current_dir(dir.path());
        let (taken, status) = cpu_ms_of(&mut command)?;
        let code = status.code().context("it was killed")?;
        ensure!(
            code == subject.exit_code,
            "{}: exit code {code} instead of {}",
            subject.name,
            subject.exit_code
        );
        least = least.min(taken);
    }
    // Times are counted in hundredths of a second.
    Ok(least.max(10.0))
}
