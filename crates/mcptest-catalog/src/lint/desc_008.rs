//! DESC-008: an argument description is longer than the tool description.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, Smell, chars, description, schema, snippet, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-008",
    severity: Severity::Warning,
    title: "an argument description is longer than the tool description",
    why: "Where an argument needs more words than the tool, the tool is not explained, or the argument explains the tool. Lengths are in characters, without surrounding whitespace.",
    bad: r#"{"name": "get_weather", "description": "Get the weather. Returns text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "The city for which temperature and sky are wanted", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Verbose),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let tool_length = chars(description(tool));
    let mut hits = Vec::new();
    for (name, property) in schema::properties(root) {
        let own = property
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("")
            .trim();
        let length = chars(own);
        if length > tool_length {
            hits.push(
                Hit::new(
                    format!("the description of `{name}` has {length} characters, that of the tool {tool_length}"),
                    "explain the tool first; keep the argument short",
                )
                .at(mcptest_json::pointer_join("/inputSchema/properties", name))
                .fix(fix(tool, name, own, tool_length))
                .weight(length)
                .minor_if(length <= LONG),
            );
        }
    }
    hits
}

/// From this number of characters on, an argument's description costs more than it explains.
const LONG: usize = 500;

/// The first sentences of the argument if they are shorter than the tool's description, else a
/// longer description of the tool.
fn fix(tool: &Tool, name: &str, own: &str, tool_length: usize) -> String {
    let short = wording::lead(own, tool_length.max(200));
    if chars(own) > LONG && chars(&short) < chars(own) {
        let shorter = serde_json::json!({ "description": short });
        return snippet::member(name, &shorter);
    }
    let text = wording::with_sentence(tool, "<When to use it, and what it returns.>");
    snippet::member("description", &text.trim().into())
}
