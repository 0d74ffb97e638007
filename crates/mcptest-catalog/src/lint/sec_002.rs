//! SEC-002: a text contains controls of direction, of terminals, or others.

use super::security::{Context, Text, invisible};
use super::{Check, Hit, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    id: "SEC-002",
    severity: Severity::Critical,
    title: "a text contains control characters",
    why: "Controls of direction show text in another order than a model reads it; escape sequences erase or overwrite what a terminal shows. Other control characters are a warning. Marks and isolates are accepted in text that runs from right to left, tabs and line breaks everywhere.",
    bad: r#"{"name": "get_tide", "description": "Get the tide of a harbour\u202e. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_tide", "description": "Get the tide of a harbour. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: None,
    check: Check::Text(check),
};

fn check(text: &Text<'_>, _: &Context<'_>) -> Option<Hit> {
    let found = invisible::controls(text.raw);
    if found.is_empty() {
        return None;
    }
    let points = invisible::code_points(found.iter().copied());
    let plural = if found.len() == 1 { "" } else { "s" };
    let severity = match found.iter().any(|one| invisible::changes_display(*one)) {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    Some(
        Hit::new(
            format!("{} control character{plural} ({points})", found.len()),
            "remove them",
        )
        .weight(found.len())
        .severity(severity),
    )
}
