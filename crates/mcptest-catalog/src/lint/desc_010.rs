//! DESC-010: the description states an action but never says what the tool returns.

use super::{Hit, Rule, Severity, Smell, description, tells_return};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-010",
    severity: Severity::Warning,
    title: "the description states an action but never says what the tool returns",
    why: "A model plans the next step on what comes back. The rule is coarse: it looks for return, output or result in the description, in any form, and is content with an `outputSchema`. An empty description is DESC-001 alone.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather here. Returns temperature and sky as text.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::MissingReturnFormat),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    if description(tool).is_empty() || tells_return(tool) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description does not say what the tool returns",
            "add a sentence such as `Returns a list of orders, each with id, total and status.`, or an `outputSchema`",
        )
        .at("/description"),
    ]
}
