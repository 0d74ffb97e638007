//! DESC-008: an argument description is longer than the tool description.

use serde_json::Value;

use super::{Hit, Rule, Severity, Smell, chars, description, schema};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-008",
    severity: Severity::Warning,
    title: "an argument description is longer than the tool description",
    why: "Where an argument needs more words than the tool, the tool is not explained, or the argument explains the tool. Lengths are in characters, without surrounding whitespace.",
    bad: r#"{"name": "get_weather", "description": "Get the weather. Returns text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "The city for which temperature and sky are wanted", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Verbose),
    check,
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
                .at(mcptest_json::pointer_join("/inputSchema/properties", name)),
            );
        }
    }
    hits
}
