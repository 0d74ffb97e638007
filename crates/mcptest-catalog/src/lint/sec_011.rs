//! SEC-011: a name or word mixes scripts, or a name looks like another tool's.

use super::security::{Context, Role, Text, scripts};
use super::{Check, Hit, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    id: "SEC-011",
    severity: Severity::Critical,
    title: "a name or word mixes scripts, or a name looks like another tool's name",
    why: "A letter of another script in a Latin word makes two names look equal, and hides words from reviewers and filters. Also found are names of two tools, on any of the inspected servers, that differ only by look-alikes (send_email, send_emai1). Units such as µs, and words of one script each, are accepted.",
    bad: r#"{"name": "get_tide", "description": "Get the tide of a h\u0430rbour. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_tide", "description": "Get the tide of a harbour (in \u00b5m). Returns the height.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: None,
    check: Check::Text(check),
};

fn check(text: &Text<'_>, _: &Context<'_>) -> Option<Hit> {
    if text.raw.is_ascii() {
        return None;
    }
    let is_name = matches!(text.role, Role::Name | Role::Property);
    let words = text
        .normal
        .split(|one: char| !one.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut mixed = words
        .filter(|word| scripts::is_mixed(word) || (is_name && is_imitation(&text.normal, word)));
    let word = mixed.next()?;
    // One letter of another keyboard in a long text is more often a slip than a disguise; the words
    // that it may hide are read nevertheless.
    let is_slip = !is_name && !mixed.any(|other| other != word);
    let letters: Vec<String> = word
        .chars()
        .filter(|one| scripts::looks_like(*one).is_some() && !one.is_ascii())
        .map(|one| format!("{one} (U+{:04X})", u32::from(one)))
        .collect();
    let hit = Hit::new(
        format!(
            "\"{word}\" mixes scripts: {} among Latin letters",
            letters.join(", ")
        ),
        "write it with the letters of one script",
    );
    Some(match is_slip {
        true => hit.severity(Severity::Warning),
        false => hit,
    })
}

/// Returns true for a part of a Latin name that is written with look-alikes only.
fn is_imitation(name: &str, word: &str) -> bool {
    let is_latin = |text: &str| text.chars().any(|one| one.is_ascii_alphabetic());
    is_latin(name)
        && !is_latin(word)
        && !word.is_ascii()
        && word
            .chars()
            .all(|one| scripts::looks_like(one).is_some() || one.is_ascii())
}
