//! TOOL-001: an entry of the list is not an object with a name.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "TOOL-001",
    severity: Severity::Critical,
    title: "an entry of the list is not an object with a name",
    why: "A client cannot call a tool without a name, and strict clients reject the whole list for one such entry.",
    bad: r#"{"description": "Get the current weather of a city. Returns text.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    if !tool.name().trim().is_empty() {
        return Vec::new();
    }
    let message = match tool.raw().get("name") {
        None => "the tool has no name".to_owned(),
        Some(Value::String(_)) => "the tool's name is empty".to_owned(),
        Some(other) => format!(
            "the tool's name is not a string but {}",
            mcptest_json::text::shorten(&other.to_string(), 60)
        ),
    };
    vec![
        Hit::new(message, "give every tool a name")
            .at("/name")
            .fix(r#""name": "<verb_object, unique in the list>""#),
    ]
}

/// The hit for an entry that is not an object.
pub(super) fn not_an_object(entry: &Value) -> Hit {
    let shown = mcptest_json::text::shorten(&entry.to_string(), 60);
    Hit::new(
        format!("the entry is not an object but {shown}"),
        "list tools as objects with a name",
    )
    .fix(r#"{"name": "<verb_object>", "description": "<what it does>", "inputSchema": {"type": "object"}}"#)
}
