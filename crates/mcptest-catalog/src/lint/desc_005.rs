//! DESC-005: the description uses positional phrases that mean nothing in a flat catalog.

use super::{Check, Hit, Rule, Severity, Smell, description};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-005",
    severity: Severity::Warning,
    title: "the description uses positional phrases that mean nothing in a flat catalog",
    why: "A client orders, filters and mixes the tools of many servers. Text that was above or before the description where it was written may be elsewhere, or missing.",
    bad: r#"{"name": "fetch_page", "description": "Fetch one more page, see above. Returns the items of the page.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "fetch_page", "description": "Fetch one more page of a list that search began. Returns the items of the page.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: Some(Smell::Brittle),
    check: Check::Tool(check),
};

const PHRASES: [&str; 27] = [
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
    "following tool",
    "earlier tool",
    "same as above",
    "aforementioned",
    "previously mentioned",
];

fn check(tool: &Tool) -> Vec<Hit> {
    let written = description(tool)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    // Keeps the positions of bytes.
    let text = written.to_ascii_lowercase();
    let found = PHRASES.into_iter().find_map(|phrase| {
        let at = position(&text, phrase)?;
        (!explains_itself(&text, phrase, at)).then_some((phrase, at))
    });
    let Some((phrase, at)) = found else {
        return Vec::new();
    };
    let start = written[..at].rfind(". ").map_or(0, |stop| stop + 2);
    let after = at + phrase.len();
    let end = written[after..]
        .find(". ")
        .map_or(written.len(), |stop| after + stop + 1);
    let verb = if phrase.starts_with("see ") {
        "see "
    } else {
        ""
    };
    let fix = format!(
        "{}{verb}<name of the tool, or the information itself>{}",
        &written[start..at],
        &written[after..end]
    );
    vec![
        Hit::new(
            format!(
                "the description contains \"{phrase}\", which has no meaning in a list of tools"
            ),
            "name the tool, or repeat the information here",
        )
        .at("/description")
        .fix(fix),
    ]
}

/// Returns true if the phrase points to a place in this very description: "the following tools:
/// a, b", or "see below" with a text below it.
fn explains_itself(text: &str, phrase: &str, at: usize) -> bool {
    let rest = &text[at + phrase.len()..];
    let list = phrase == "following tool" && rest.trim_start_matches('s').starts_with(':');
    let below = phrase.ends_with("below")
        && rest
            .split_once(['.', ':', ')'])
            .is_some_and(|(_, below)| below.trim().len() >= MIN_TEXT_BELOW);
    list || below
}

/// The length of a passage that "below" can refer to.
const MIN_TEXT_BELOW: usize = 40;

/// The position of a phrase as whole words.
fn position(text: &str, phrase: &str) -> Option<usize> {
    text.match_indices(phrase)
        .find(|(start, found)| {
            let before = text[..*start].chars().next_back();
            let after = text[start + found.len()..].chars().next();
            // "previous tools" is as meaningless as "previous tool".
            !before.is_some_and(char::is_alphanumeric)
                && !after.is_some_and(|c| c.is_alphanumeric() && c != 's')
        })
        .map(|(start, _)| start)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_words_only() {
        assert!(position("like the previous tools do", "previous tool").is_some());
        assert!(position("a next toolbox", "next tool").is_none());
        assert!(position("oversee above all", "see above").is_none());
    }

    #[test]
    fn a_place_in_the_same_description_is_no_finding() {
        let hits = |text: &str| {
            check(&Tool::from_listing(None, &json!({"name": "x", "description": text})).unwrap())
        };
        let below = "Run a query, see below. Operators: `$gt` is greater than, `$lt` is less than.";
        assert!(hits(below).is_empty());
        assert!(hits("Use the following tools: get_a, get_b.").is_empty());
        assert!(hits("Always the first tool to call in a session.").is_empty());
        assert_eq!(hits("Use the following tool after it.").len(), 1);
        let found = hits("Get a page. Needs an id, See Above, of a book. Returns text.");
        assert_eq!(
            found[0].fix.as_deref(),
            Some("Needs an id, see <name of the tool, or the information itself>, of a book.")
        );
    }
}
