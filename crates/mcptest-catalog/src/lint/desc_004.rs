//! DESC-004: the description contains no common verb.

use super::{Check, Hit, Rule, Severity, Smell, description, snippet, verbs, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-004",
    severity: Severity::Warning,
    title: "the description contains no common verb",
    why: "A verb names what the tool does: read, change, search, send. Without one a model cannot categorise the tool. The rule knows some three hundred verbs and their usual forms. A word that is also a noun counts only where a verb can be: \"List files\" has a verb, \"A list of files\" has none. Descriptions in another alphabet are skipped; an empty description is DESC-001 alone.",
    bad: r#"{"name": "weather", "description": "Current temperature and sky conditions for a city.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Uninformative),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let text = description(tool);
    if text.is_empty() || verbs::has_verb(text) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description has no common verb",
            "start with a verb: `Get …`, `Create …`, `Search …`",
        )
        .at("/description")
        .fix(snippet::member("description", &with_verb(tool).into())),
    ]
}

/// The description after a verb, from the tool's name if that has one.
fn with_verb(tool: &Tool) -> String {
    let text = wording::repeatable(tool);
    let mut characters = text.chars();
    let first = characters.next();
    // An abbreviation keeps its capital letters.
    let is_word = characters
        .clone()
        .next()
        .is_some_and(|next| !next.is_uppercase());
    let rest = match first {
        Some(first) if is_word => first.to_lowercase().chain(characters).collect(),
        _ => text.into_owned(),
    };
    format!("{} {rest}", wording::verb(tool))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fix_does_not_repeat_a_very_long_description() {
        let text = format!("Weather of a city. {}", "Clouds and rain. ".repeat(1000));
        let tool = json!({"name": "get_weather", "description": text});
        let hits = check(&Tool::from_listing(None, &tool).unwrap());
        let fix = hits[0].fix.as_deref().unwrap();
        let start = "\"description\": \"Get weather of a city. Clouds and rain. ";
        assert!(fix.starts_with(start), "{fix}");
        assert!(fix.len() < 600, "{}", fix.len());
    }

    #[test]
    fn a_noun_that_is_also_a_verb_is_none() {
        let hits = |name: &str, text: &str| {
            check(&Tool::from_listing(None, &json!({"name": name, "description": text})).unwrap())
        };
        assert!(hits("list_files", "List files of a folder").is_empty());
        assert!(hits("x", "").is_empty());
        let found = hits("get_files", "A list of files in a folder");
        assert_eq!(
            found[0].fix.as_deref(),
            Some(r#""description": "Get a list of files in a folder""#)
        );
        let found = hits("weather", "API of the weather service");
        assert_eq!(
            found[0].fix.as_deref(),
            Some(r#""description": "<Verb> API of the weather service""#)
        );
    }
}
