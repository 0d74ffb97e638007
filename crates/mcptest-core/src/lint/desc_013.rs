//! DESC-013: a string argument lists its allowed values in the description but declares no enum.

use serde_json::Value;

use super::{Hit, Rule, Severity, Smell, prose, schema};
use crate::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-013",
    severity: Severity::Warning,
    title: "a string argument lists its allowed values in the description but declares no enum",
    why: "A model can misread a sentence, and a server then refuses the call. An `enum` makes the wrong value impossible where the client checks, and visible where it does not. It is the inverse of DESC-007.",
    bad: r#"{"name": "set_status", "description": "Set the status of an issue. Returns the issue as it is then.", "inputSchema": {"type": "object", "properties": {"status": {"type": "string", "description": "The new status, one of open, closed, or pending", "default": "open", "maxLength": 9}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "set_status", "description": "Set the status of an issue. Returns the issue as it is then.", "inputSchema": {"type": "object", "properties": {"status": {"type": "string", "description": "The new status, one of open, closed, or pending", "enum": ["open", "closed", "pending"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    smell: Some(Smell::Underspecified),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let mut hits = Vec::new();
    for (name, property) in schema::properties(root) {
        let inner = schema::resolve(root, property);
        let textual = inner.get("type").is_none() || schema::is_type(inner, "string");
        if !textual || !schema::enumerated(root, property).is_empty() {
            continue;
        }
        if let Some(values) = prose::allowed_values(schema::describe(root, property)) {
            let list = serde_json::to_string(&values).unwrap_or_default();
            hits.push(
                Hit::new(
                    format!("`{name}` names its allowed values in words only"),
                    format!("add \"enum\": {list}"),
                )
                .at(crate::json::pointer_join("/inputSchema/properties", name)),
            );
        }
    }
    hits
}
