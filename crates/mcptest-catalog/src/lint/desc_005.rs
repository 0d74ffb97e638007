//! DESC-005: the description uses positional phrases that mean nothing in a flat catalog.

use super::{Hit, Rule, Severity, Smell, description};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-005",
    severity: Severity::Warning,
    title: "the description uses positional phrases that mean nothing in a flat catalog",
    why: "A client orders, filters and mixes the tools of many servers. Text that was above or before the description where it was written may be elsewhere, or missing.",
    bad: r#"{"name": "fetch_page", "description": "Fetch one more page, see above. Returns the items of the page.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "fetch_page", "description": "Fetch one more page of a list that search began. Returns the items of the page.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::Brittle),
    check,
};

const PHRASES: [&str; 30] = [
    "see above",
    "see below",
    "as above",
    "as below",
    "the above tool",
    "the tool above",
    "the tool below",
    "tools above",
    "tools below",
    "tool listed above",
    "mentioned above",
    "mentioned below",
    "described above",
    "described below",
    "listed above",
    "defined above",
    "explained above",
    "shown above",
    "discussed above",
    "noted above",
    "previous tool",
    "preceding tool",
    "next tool",
    "following tool",
    "last tool",
    "first tool",
    "earlier tool",
    "same as above",
    "aforementioned",
    "previously mentioned",
];

fn check(tool: &Tool) -> Vec<Hit> {
    let text = description(tool).to_lowercase();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(phrase) = PHRASES.into_iter().find(|phrase| has(&text, phrase)) else {
        return Vec::new();
    };
    vec![
        Hit::new(
            format!(
                "the description contains \"{phrase}\", which has no meaning in a list of tools"
            ),
            "name the tool, or repeat the information here",
        )
        .at("/description"),
    ]
}

/// Returns true if a text contains a phrase as whole words.
fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(start, found)| {
        let before = text[..start].chars().next_back();
        let after = text[start + found.len()..].chars().next();
        // "previous tools" is as meaningless as "previous tool".
        !before.is_some_and(char::is_alphanumeric)
            && !after.is_some_and(|c| c.is_alphanumeric() && c != 's')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_only() {
        assert!(has("like the previous tools do", "previous tool"));
        assert!(!has("a next toolbox", "next tool"));
        assert!(!has("oversee above all", "see above"));
    }
}
