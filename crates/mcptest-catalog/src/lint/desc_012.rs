//! DESC-012: the tool declares no annotations object.

use serde_json::Value;

use super::wording::{self, Action};
use super::{Check, Hit, Rule, Severity, Smell};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-012",
    severity: Severity::Warning,
    title: "the tool declares no annotations object",
    why: "Without annotations a client does not know if a call only reads, is destructive or can be repeated, and has to assume the worst. An empty `annotations` object is enough for this rule.",
    bad: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}}"#,
    good: r#"{"name": "delete_page", "description": "Delete a page for good. Returns nothing.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}"#,
    smell: Some(Smell::MissingAnnotations),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    if tool.raw().get("annotations").is_some_and(Value::is_object) {
        return Vec::new();
    }
    // A client that assumes the worst is right for a tool that deletes, and a nuisance for others.
    let weight = match wording::action(tool) {
        Action::Delete => 4,
        Action::List | Action::Read => 3,
        Action::Change => 2,
        Action::Create => 1,
        Action::Other => 0,
    };
    vec![
        Hit::new(
            "there is no `annotations` object",
            "add `annotations` with `readOnlyHint`, `destructiveHint`, `idempotentHint` and `openWorldHint` as they apply",
        )
        .fix(wording::annotations(tool))
        .weight(weight),
    ]
}
