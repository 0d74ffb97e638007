//! DESC-002: the description is over 500 characters.

use super::wording::MAX_DESCRIPTION;
use super::{Check, Hit, Rule, Severity, Smell, chars, description, snippet, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-002",
    severity: Severity::Warning,
    title: "the description is over 500 characters",
    why: "Every description is paid for in tokens on every call, and a long one buries what tells tools apart. Most of what makes it long belongs in the input schema: types, limits, enums, descriptions of arguments. Surrounding whitespace does not count.",
    bad: r#"{"name": "get_weather", "description": "Get the weather. Returns text. The city must be a name of at most eighty characters without digits. The unit must be celsius or fahrenheit. If the unit is absent then celsius is used. If the city is not known then an error is returned. Do not pass a country. Do not pass a postal code. Do not pass coordinates. Do not pass more than one city. The city must be a name of at most eighty characters without digits. The unit must be celsius or fahrenheit. If the unit is absent then celsius is used. If the city is not known then an error comes.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Verbose),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let length = chars(description(tool));
    if length <= MAX_DESCRIPTION {
        return Vec::new();
    }
    let message = format!("the description has {length} characters");
    let suggestion = format!(
        "keep the first sentences, at most {MAX_DESCRIPTION} characters, and move types, limits and values into the input schema"
    );
    let text = wording::lead(description(tool), MAX_DESCRIPTION);
    vec![
        Hit::new(message, suggestion)
            .at("/description")
            .fix(snippet::member("description", &text.into()))
            .weight(length)
            .minor_if(length <= 2 * MAX_DESCRIPTION),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exactly_500_is_not_over() {
        let fires = |text: &str| {
            !check(&Tool::from_listing(None, &json!({"description": text})).unwrap()).is_empty()
        };
        assert!(!fires(&"ä".repeat(500)));
        assert!(fires(&"ä".repeat(501)));
        assert!(!fires(&format!(" {}\n", "x".repeat(500))));
    }
}
