//! SEC-001: a text contains characters that nobody sees.

use super::security::{Context, Text, invisible};
use super::{Check, Hit, Rule, Severity};

pub(super) const RULE: Rule = Rule {
    id: "SEC-001",
    severity: Severity::Critical,
    title: "a text contains characters that nobody sees",
    why: "A model reads characters that no reviewer sees: tag characters, zero-width characters, fillers, soft hyphens, variation selectors. The finding prints what they spell. A few zero-width characters between words, as copying from a page leaves them, are a warning. Joiners in emoji and in scripts that need them, and flags, are accepted.",
    bad: r#"{"name": "get_tide", "description": "Get the ti\u200bde of a harbour. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    good: r#"{"name": "get_tide", "description": "Get the tide of a harbour. Returns the height in metres.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: None,
    check: Check::Text(check),
};

fn check(text: &Text<'_>, _: &Context<'_>) -> Option<Hit> {
    let found = invisible::invisible(text.raw);
    let first = found.first()?;
    let hidden: String = found.iter().map(|(_, one)| *one).collect();
    let spells = invisible::spelled(&hidden)
        .map_or_else(String::new, |words| format!(", which spell \"{words}\""));
    let points = invisible::code_points(found.iter().map(|(_, one)| *one));
    let plural = if found.len() == 1 { "" } else { "s" };
    let is_litter = found.len() <= MAX_COPIED_INVISIBLE
        && found
            .iter()
            .all(|(at, one)| invisible::is_between_words(text.raw, *at, *one));
    let severity = match is_litter {
        true => Severity::Warning,
        false => Severity::Critical,
    };
    Some(
        Hit::new(
            format!(
                "{} invisible character{plural} ({points}) from character {} on{spells}",
                found.len(),
                text.raw.get(..first.0).unwrap_or_default().chars().count() + 1,
            ),
            "remove them; a text needs nothing that its readers cannot see",
        )
        .weight(found.len())
        .severity(severity),
    )
}

/// The maximum number of invisible characters that copying leaves behind.
const MAX_COPIED_INVISIBLE: usize = 3;
