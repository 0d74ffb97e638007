//! DESC-010: the description states an action but never says what the tool returns.

use super::{Hit, Rule, Severity, Smell, describes_return, description};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-010",
    severity: Severity::Warning,
    title: "the description states an action but never says what the tool returns",
    why: "A model plans the next step based on the result. The rule is coarse: it searches the description for return, output or result, in any form, and accepts an `outputSchema`. An empty description is DESC-001 alone.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather here. Returns temperature and sky as text.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::MissingReturnFormat),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    if description(tool).is_empty() || describes_return(tool) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description does not mention what the tool returns",
            "add a sentence such as `Returns a list of orders, each with id, total and status.`, or an `outputSchema`",
        )
        .at("/description"),
    ]
}
