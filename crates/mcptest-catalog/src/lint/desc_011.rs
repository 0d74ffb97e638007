//! DESC-011: an annotation hint holds a value that is not a boolean.

use serde_json::Value;

use super::{ANNOTATION_HINTS, Check, Hit, Rule, Severity, Smell, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-011",
    severity: Severity::Warning,
    title: "an annotation hint holds a value that is not a boolean",
    why: "Clients ask before a destructive call and skip the question for a read-only one. A hint of the wrong type is ignored by some and makes others refuse the whole list. `null` is not a boolean either: omit the hint.",
    bad: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": "yes"}}"#,
    good: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}"#,
    smell: Some(Smell::InvalidAnnotation),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let annotations = tool.raw().get("annotations").and_then(Value::as_object);
    let mut hits = Vec::new();
    for hint in ANNOTATION_HINTS {
        let Some(value) = annotations.and_then(|annotations| annotations.get(hint)) else {
            continue;
        };
        if !value.is_boolean() {
            let shown = mcptest_json::text::shorten(&value.to_string(), 60);
            hits.push(
                Hit::new(
                    format!("`{hint}` is {shown}, not a boolean"),
                    "write `true` or `false`, or omit it",
                )
                .at(format!("/annotations/{hint}"))
                .fix(snippet::member(hint, &meant(value))),
            );
        }
    }
    hits
}

/// The boolean that a value means, or a placeholder.
fn meant(value: &Value) -> Value {
    let text = value.as_str().map(str::to_lowercase);
    match (text.as_deref(), value.as_i64()) {
        (Some("true" | "yes" | "1"), _) | (_, Some(1)) => Value::Bool(true),
        (Some("false" | "no" | "0"), _) | (_, Some(0)) => Value::Bool(false),
        _ => snippet::number("true or false"),
    }
}
