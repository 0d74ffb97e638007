//! DESC-003: the description equals the tool name.

use super::{Check, Hit, Rule, Severity, Smell, description, snippet, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-003",
    severity: Severity::Critical,
    title: "the description equals the tool name",
    why: "A description that repeats the name costs tokens and adds no information. Case does not matter, nor do spaces in place of underscores and hyphens.",
    bad: r#"{"name": "list_open_pull_requests", "description": "List open pull requests", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "list_open_pull_requests", "description": "List the pull requests of a repository that are neither merged nor closed. Returns number and title of each.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::Uninformative),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    if !repeats(tool) {
        return Vec::new();
    }
    vec![
        Hit::new(
            "the description only repeats the name",
            "describe what the name does not: what it works on, when to use it, what it returns",
        )
        .at("/description")
        .fix(snippet::member(
            "description",
            &wording::whole_description(tool, None).into(),
        )),
    ]
}

/// Returns true if the description only repeats the name.
pub(super) fn repeats(tool: &Tool) -> bool {
    let text = fold(description(tool));
    !text.is_empty() && text == fold(tool.name())
}

/// Converts to lowercase, with one space between words.
fn fold(text: &str) -> String {
    let text = text.trim().trim_end_matches('.').to_lowercase();
    let words: Vec<&str> = text
        .split(|character: char| character.is_whitespace() || character == '_' || character == '-')
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_up_to_case_and_separators() {
        let fires = |name: &str, text: &str| {
            !check(&Tool::from_listing(None, &json!({"name": name, "description": text})).unwrap())
                .is_empty()
        };
        assert!(fires("get_user", "get_user"));
        assert!(fires("get-user", " Get user. "));
        assert!(!fires("get_user", "Get a user"));
        assert!(!fires("", ""));
    }
}
