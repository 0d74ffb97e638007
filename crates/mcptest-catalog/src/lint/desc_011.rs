//! DESC-011: an annotation hint holds a value that is not a boolean.

use serde_json::Value;

use super::{ANNOTATION_HINTS, Hit, Rule, Severity, Smell};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-011",
    severity: Severity::Warning,
    title: "an annotation hint holds a value that is not a boolean",
    why: "Clients ask before a destructive call and skip the question for a read-only one. A hint of the wrong type is ignored by some and makes others refuse the whole list. `null` is not a boolean either: omit the hint.",
    bad: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": "yes"}}"#,
    good: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}"#,
    smell: Some(Smell::InvalidAnnotation),
    check,
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
                .at(format!("/annotations/{hint}")),
            );
        }
    }
    hits
}
