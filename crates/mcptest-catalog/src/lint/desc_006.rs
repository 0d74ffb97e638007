//! DESC-006: a required argument has no description.

use serde_json::Value;

use super::{Hit, Rule, Severity, Smell, schema};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-006",
    severity: Severity::Warning,
    title: "a required argument has no description",
    why: "A model must fill a required argument on every call. Its name alone rarely shows which of two ids is meant, or in what format. A description in the definition that the argument refers to counts; a required name that the schema does not declare has none.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Underspecified),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let arguments = schema::properties(root);
    let mut hits = Vec::new();
    for name in schema::required(root) {
        let known = arguments.iter().find(|(argument, _)| *argument == name);
        if known.is_some_and(|(_, property)| schema::describes(root, property)) {
            continue;
        }
        let path = mcptest_json::pointer_join("/inputSchema/properties", name);
        hits.push(
            Hit::new(
                format!("the required argument `{name}` has no description"),
                format!("describe what `{name}` is and in what format"),
            )
            .at(path),
        );
    }
    hits
}
