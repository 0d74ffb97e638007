//! DESC-001: the description is empty or under 20 characters.

use super::{Check, Hit, Rule, Severity, Smell, chars, description, snippet, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-001",
    severity: Severity::Critical,
    title: "the description is empty or under 20 characters",
    why: "A model chooses by the description. With a word or two there is nothing to choose by, and the tool is picked for its name or not at all. Surrounding whitespace does not count; a description that is not a string counts as missing.",
    bad: r#"{"name": "get_weather", "description": "Weather.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Underspecified),
    check: Check::Tool(check),
};

const MIN_LENGTH: usize = 20;

fn check(tool: &Tool) -> Vec<Hit> {
    let length = chars(description(tool));
    if length >= MIN_LENGTH {
        return Vec::new();
    }
    let message = match (tool.raw().get("description"), length) {
        (None | Some(serde_json::Value::Null), _) => "there is no description".to_owned(),
        (Some(serde_json::Value::String(_)), 0) => "the description is empty".to_owned(),
        (Some(serde_json::Value::String(_)), _) => {
            format!("the description has {length} characters")
        }
        _ => "the description is not a string".to_owned(),
    };
    let suggestion = format!(
        "describe in at least {MIN_LENGTH} characters what the tool does, when to use it and what it \
         returns"
    );
    // A description that only repeats the name adds nothing to build on.
    let own = Some(description(tool)).filter(|_| !super::repeats_name(tool));
    let text = wording::whole_description(tool, own);
    vec![
        Hit::new(message, suggestion)
            .at("/description")
            .fix(snippet::member("description", &text.into())),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn characters_count_and_surrounding_whitespace_does_not() {
        let fires = |text: &str| {
            !check(&Tool::from_listing(None, &json!({"name": "x", "description": text})).unwrap())
                .is_empty()
        };
        assert!(fires(&"ä".repeat(19)));
        assert!(!fires(&"ä".repeat(20)));
        assert!(fires(&format!("  {}  ", "x".repeat(19))));
    }
}
