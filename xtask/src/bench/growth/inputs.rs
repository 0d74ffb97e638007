//! The inputs of the subjects: suites, traces, catalogs, manifests and requests of any size.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

/// A server that is never started.
pub const SERVER: &str = "servers: {s: {command: [x]}}\n";
/// The server of [`mock`].
pub const MOCK: &str = "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\n";

/// A test of a scripted model that says `y`, with one more key.
pub fn test(name: &str, block: &str) -> String {
    format!(
        "{{name: {name}, model: builtin/scripted, servers: [s], prompt: x, script: [[{{say: y}}]], {block}}}"
    )
}

/// Tests `t0`, `t1`, … of a scripted model, with one more key.
pub fn tests(n: usize, block: &str) -> String {
    (0..n)
        .map(|i| format!("  - {}\n", test(&format!("t{i}"), block)))
        .collect()
}

/// A suite with tests `t0`, `t1`, … of the server of [`mock`].
pub fn mocked_tests(dir: &Path, n: usize, block: &str) -> Result<()> {
    mock(dir, 1, "done")?;
    suite(dir, &format!("{MOCK}agents:\n{}", tests(n, block)))
}

pub fn suite(dir: &Path, text: &str) -> Result<()> {
    Ok(fs::write(dir.join("s.yml"), text)?)
}

/// A suite with one test `t`.
pub fn one_test(dir: &Path, block: &str) -> Result<()> {
    suite(dir, &format!("{SERVER}agents:\n  - {}\n", test("t", block)))
}

pub fn traces(dir: &Path, traces: impl Iterator<Item = Value>) -> Result<()> {
    let lines: String = traces.map(|trace| format!("{trace}\n")).collect();
    Ok(fs::write(dir.join("t.jsonl"), lines)?)
}

/// A run of the test `t` with calls of `a`, `b` and `c` in turn, each with its result.
pub fn run_with_calls(n: usize) -> Value {
    let call = |i: usize| {
        json!({"id": i.to_string(), "name": (["a", "b", "c"][i % 3]), "server": "s", "turn": i,
               "args": {"to": format!("user{i}@example.com")}})
    };
    let result = |i: usize| {
        json!({"call_id": i.to_string(), "is_error": i % 5 == 4,
               "content": [{"type": "text", "text": format!("user{}@example.com", i + 1)}]})
    };
    json!({
        "test": "t",
        "tool_calls": (0..n).map(call).collect::<Vec<_>>(),
        "tool_results": (0..n).map(result).collect::<Vec<_>>(),
        "final_response": "y",
        "tokens": {"input": 10, "output": 1},
    })
}

/// A suite with tests `t0`, `t1`, …, and a run of each that passes or fails.
pub fn many_tests(dir: &Path, n: usize, says: &str) -> Result<()> {
    let tests = tests(n, "expect: [{final_response: {exact: y}}]");
    suite(dir, &format!("{SERVER}agents:\n{tests}"))?;
    let trace = |i| json!({"test": format!("t{i}"), "tool_calls": [], "final_response": says});
    traces(dir, (0..n).map(trace))
}

pub fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// A captured `tools/list` response.
pub fn tools(dir: &Path, file: &str, tools: Vec<Value>) -> Result<()> {
    Ok(fs::write(
        dir.join(file),
        json!({"tools": tools}).to_string(),
    )?)
}

/// A captured `tools/list` response with tools `VERB_record_0`, ….
pub fn catalog(dir: &Path, file: &str, verb: &str, n: usize) -> Result<()> {
    let tool = |i: usize| {
        tool(
            &format!("{verb}_record_{i}"),
            &format!("Reads record {i} of the archive."),
        )
    };
    tools(dir, file, (0..n).map(tool).collect())
}

/// A tool with this schema of its arguments.
pub fn one_tool(dir: &Path, file: &str, schema: &Value) -> Result<()> {
    tools(
        dir,
        file,
        vec![json!({"name": "t", "description": "Does it.", "inputSchema": schema})],
    )
}

/// Properties `p0`, `p1`, … of a type.
pub fn properties(kind: &str, n: usize) -> Value {
    let properties: Map<String, Value> = (0..n)
        .map(|i| (format!("p{i}"), json!({"type": kind})))
        .collect();
    json!({"type": "object", "properties": properties})
}

/// A manifest with tools `tool_0`, …, each of which answers with this text.
pub fn mock(dir: &Path, tools: usize, response: &str) -> Result<()> {
    let tool = |i: usize| {
        json!({"name": format!("tool_{i}"), "description": format!("Does {i}."),
               "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": true},
               "response": response})
    };
    let tools: Vec<Value> = (0..tools).map(tool).collect();
    let manifest = json!({"mock_server": {"name": "s", "tools": tools}});
    Ok(fs::write(dir.join("m.yml"), manifest.to_string())?)
}

/// The lines of a client that calls a tool this many times.
pub fn requests(dir: &Path, tool: &str, arguments: &Value, n: usize) -> Result<()> {
    let start = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                       "clientInfo": {"name": "growth", "version": "1"}});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": "start", "method": "initialize", "params": start}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}),
    ];
    lines.extend((0..n).map(|i| {
        json!({"jsonrpc": "2.0", "id": i, "method": "tools/call",
               "params": {"name": tool, "arguments": arguments}})
    }));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Ok(fs::write(dir.join("requests.jsonl"), text)?)
}

/// A spec of `tool-bench` with this number of tools and of intents.
pub fn tool_bench(dir: &Path, tools: usize, intents: usize) -> Result<()> {
    catalog(dir, "a.json", "get", tools)?;
    let intent = |i: usize| {
        let i = i % tools;
        json!({"query": format!("get record {i}"), "gold": [format!("get_record_{i}")]})
    };
    let intents: Vec<Value> = (0..intents).map(intent).collect();
    let spec = json!({"catalog_path": "a.json", "intents": intents});
    Ok(fs::write(dir.join("b.yml"), spec.to_string())?)
}
