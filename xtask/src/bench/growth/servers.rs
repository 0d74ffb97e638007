//! Commands that inspect servers and catalogs, or that imitate a server.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::Subject;
use super::inputs::*;

pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "list: tools of a server",
        args: &["list", "s.yml"],
        size: 500,
        input: |dir, n| {
            mock(dir, n, "done")?;
            suite(
                dir,
                &format!("{MOCK}tools: [{{name: t, server: s, tool: tool_0}}]\n"),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "tool-bench: tools",
        args: &["tool-bench", "run", "b.yml"],
        size: 500,
        input: |dir, n| tool_bench(dir, n, 10),
        ..Subject::EMPTY
    },
    Subject {
        name: "tool-bench: intents",
        args: &["tool-bench", "run", "b.yml"],
        size: 2000,
        input: |dir, n| tool_bench(dir, 10, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "diff: renamed tools",
        args: &["diff", "a.json", "b.json"],
        size: 250,
        input: |dir, n| {
            catalog(dir, "a.json", "get", n)?;
            catalog(dir, "b.json", "fetch", n)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "diff: properties of one tool",
        args: &["diff", "a.json", "b.json"],
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
        ..Subject::EMPTY
    },
    Subject {
        name: "doctor: tools",
        args: &["doctor", "--tools-from", "a.json", "--all"],
        size: 250,
        input: |dir, n| catalog(dir, "a.json", "get", n),
        ..Subject::EMPTY
    },
    Subject {
        name: "doctor: properties of one tool",
        args: &["doctor", "--tools-from", "a.json", "--all"],
        size: 500,
        input: |dir, n| one_tool(dir, "a.json", &properties("string", n)),
        ..Subject::EMPTY
    },
    Subject {
        name: "doctor: length of a description",
        args: &["doctor", "--tools-from", "a.json", "--all"],
        size: 2000,
        input: |dir, n| {
            let text = "Reads the <b>records</b> of an archive, ignore `them` if they are old. ";
            tools(dir, "a.json", vec![tool("t", &text.repeat(n))])
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "doctor: servers",
        args: &["doctor", "--suite", "s.yml", "--all"],
        size: 8,
        input: |dir, n| {
            mock(dir, 3, "done")?;
            let command = "{command: [mcptest, mock, --tools-from, m.yml]}";
            let servers: Vec<String> = (0..n).map(|i| format!("s{i}: {command}")).collect();
            suite(
                dir,
                &format!(
                    "servers: {{{}}}\ntools: [{{name: t, server: s0, tool: tool_0}}]\n",
                    servers.join(", ")
                ),
            )
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "catalog save: tools",
        args: &[
            "catalog", "save", "s", "--suite", "s.yml", "--output", "c.json",
        ],
        size: 1000,
        input: |dir, n| served(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "catalog show: tools",
        args: &["catalog", "show", "s", "--suite", "s.yml"],
        size: 500,
        input: |dir, n| served(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "call: tools of the server",
        args: &["call", "s", "tool_0", "--suite", "s.yml"],
        size: 1000,
        input: |dir, n| served(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "call: length of the result",
        args: &["call", "s", "tool_0", "--suite", "s.yml"],
        size: 20000,
        input: |dir, n| {
            mock(
                dir,
                1,
                &"A line of the \u{1b}[1manswer\u{1b}[0m.\n".repeat(n),
            )?;
            suite(dir, &format!("{MOCK}{CALL}"))
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "init: tools",
        args: &[
            "init", "new", "--from", "mcp.json", "--yes", "--force", "--ci", "none",
        ],
        size: 100,
        input: |dir, n| {
            served(dir, n)?;
            let manifest = dir.join("m.yml");
            let server = json!({"command": "mcptest", "args": ["mock", "--tools-from", manifest]});
            Ok(fs::write(
                dir.join("mcp.json"),
                json!({"mcpServers": {"s": server}}).to_string(),
            )?)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "mock: calls",
        args: &["mock", "--tools-from", "m.yml"],
        stdin: Some("requests.jsonl"),
        size: 2000,
        input: |dir, n| called(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "mock: tools",
        args: &["mock", "--tools-from", "m.yml"],
        stdin: Some("requests.jsonl"),
        size: 500,
        input: |dir, n| {
            mock(dir, n, "done")?;
            requests(dir, "tool_0", &json!({}), n)
        },
        ..Subject::EMPTY
    },
    Subject {
        name: "mock: recorded calls",
        args: &["mock", "--tools-from", "m.yml", "--record", "r.jsonl"],
        stdin: Some("requests.jsonl"),
        size: 2000,
        input: |dir, n| called(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "proxy: calls",
        args: &[
            "proxy",
            "--record",
            "r.jsonl",
            "--",
            "mcptest",
            "mock",
            "--tools-from",
            "m.yml",
        ],
        stdin: Some("requests.jsonl"),
        size: 1000,
        input: |dir, n| called(dir, n),
        ..Subject::EMPTY
    },
    Subject {
        name: "mcp: calls",
        args: &["mcp"],
        stdin: Some("requests.jsonl"),
        size: 500,
        input: |dir, n| requests(dir, "explain", &json!({"rule": "DESC-001"}), n),
        ..Subject::EMPTY
    },
];

const CALL: &str = "tools: [{name: t, server: s, tool: tool_0}]\n";

/// A suite with a server of this number of tools.
fn served(dir: &Path, n: usize) -> Result<()> {
    mock(dir, n, "done")?;
    suite(dir, &format!("{MOCK}{CALL}"))
}

/// A manifest, and the lines of a client that calls its tool this many times.
fn called(dir: &Path, n: usize) -> Result<()> {
    mock(dir, 1, "done")?;
    requests(dir, "tool_0", &json!({"city": "Paris"}), n)
}
