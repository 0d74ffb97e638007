//! Allowed values that a description lists in a sentence instead of an `enum`.

use std::sync::OnceLock;

use regex::Regex;

/// A pattern of this module, compiled at first use.
struct Pattern {
    source: &'static str,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    const fn new(source: &'static str) -> Self {
        Self {
            source,
            compiled: OnceLock::new(),
        }
    }

    fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            #[expect(
                clippy::unwrap_used,
                reason = "a constant; the test `every_pattern_compiles` compiles all of them"
            )]
            Regex::new(self.source).unwrap()
        })
    }
}

/// Declares the patterns, and for the tests a list of all of them.
macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $source:literal;)*) => {
        $($(#[$doc])* static $name: Pattern = Pattern::new($source);)*
        #[cfg(test)]
        const ALL: &[&Pattern] = &[$(&$name),*];
    };
}

patterns! {
    /// Introduces a closed set. "Valid values include" introduces an open one.
    CLOSED = r"(?i)\b(?:one of(?: the following(?: values)?)?|(?:allowed|valid|possible|accepted|supported|permitted) (?:values|options)(?: are)?)\s*:?\s*";
    /// Introduces a closed set only if the values are quoted: "must be positive or zero" lists
    /// none.
    LOOSE = r"(?i)\b(?:must be|can be|either|options(?: are)?|values(?: are)?)\s*:?\s*";
    /// Before an introduction: the list is open after all (examples, or a choice of several).
    OPEN = r"(?i)\b(?:at least|examples?|sample|common|typical|usual|popular|frequent|some|other|default)\s+$";
    /// A quoted value.
    QUOTED = r#"^(?:"([^"\n]{1,60})"|'([^'\n]{1,60})'|`([^`\n]{1,60})`|“([^”\n]{1,60})”)"#;
    /// A value without quotes.
    BARE = r"^[A-Za-z0-9_][A-Za-z0-9_+-]{0,59}";
    /// The separator of two values, after an optional explanation in parentheses.
    BETWEEN = r"^(?: ?\([^)\n]{0,80}\))?(?:\s*[,|/]\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+)";
    /// The end of a list.
    END = r"^(?: ?\([^)\n]{0,80}\))?\s*(?:$|[.;)\]\n])";
    /// `open|closed|all` by itself: `/(file|design)/` is part of something else.
    PIPES = r"(?:^|[\s:])[(\[]?([A-Za-z0-9_-]+(?:\|[A-Za-z0-9_-]+)+)[)\]]?(?:$|[\s).,;])";
}

/// The allowed values that a description lists, in its order; none if it lists only examples.
pub(super) fn allowed_values(description: &str) -> Option<Vec<String>> {
    introduced_by(&CLOSED, description, true)
        .or_else(|| introduced_by(&LOOSE, description, false))
        .or_else(|| {
            let pipes = PIPES.regex().captures(description)?.get(1)?.as_str();
            closed_set(pipes.split('|').map(str::to_owned).collect())
        })
}

fn introduced_by(pattern: &Pattern, description: &str, bare: bool) -> Option<Vec<String>> {
    pattern
        .regex()
        .find_iter(description)
        .filter(|found| !OPEN.regex().is_match(&description[..found.start()]))
        .find_map(|found| list(&description[found.end()..], bare))
}

fn list(mut text: &str, bare: bool) -> Option<Vec<String>> {
    let mut values = Vec::new();
    loop {
        let (value, rest) = value(text, bare)?;
        values.push(value);
        match BETWEEN.regex().find(rest) {
            Some(between) => text = &rest[between.end()..],
            None if END.regex().is_match(rest) => return closed_set(values),
            None => return None,
        }
    }
}

fn value(text: &str, bare: bool) -> Option<(String, &str)> {
    if let Some(found) = QUOTED.regex().captures(text) {
        let whole = found.get(0)?;
        let inner = found.iter().skip(1).flatten().next()?;
        return Some((inner.as_str().to_owned(), &text[whole.end()..]));
    }
    let found = BARE.regex().find(text).filter(|_| bare)?;
    Some((found.as_str().to_owned(), &text[found.end()..]))
}

/// At least two different values, and none of the words that leave a list open.
fn closed_set(values: Vec<String>) -> Option<Vec<String>> {
    let open = |value: &String| {
        ["etc", "other", "others", "more", "a", "an", "the"]
            .contains(&value.to_lowercase().as_str())
    };
    let mut unique: Vec<String> = Vec::new();
    for value in &values {
        if !unique.contains(value) {
            unique.push(value.clone());
        }
    }
    (unique.len() >= 2 && !values.iter().any(open)).then_some(unique)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(!ALL.is_empty());
        for pattern in ALL {
            assert!(Regex::new(pattern.source).is_ok(), "{}", pattern.source);
        }
    }

    #[test]
    fn closed_sets_are_found() {
        for (text, wanted) in [
            (
                "the new status, one of open, closed, or pending",
                vec!["open", "closed", "pending"],
            ),
            ("One of: \"asc\", \"desc\".", vec!["asc", "desc"]),
            ("Sort order. Must be 'asc' or 'desc'", vec!["asc", "desc"]),
            (
                "Allowed values: low, medium, high. Default: low",
                vec!["low", "medium", "high"],
            ),
            ("State (open|closed|all)", vec!["open", "closed", "all"]),
            ("State: open|closed|all", vec!["open", "closed", "all"]),
            (
                "A layout. Options: 'wide' (960 px), 'default'.",
                vec!["wide", "default"],
            ),
            (
                "Possible values are `x` (default), `y` and `z`",
                vec!["x", "y", "z"],
            ),
        ] {
            assert_eq!(
                allowed_values(text).as_deref(),
                Some(
                    wanted
                        .iter()
                        .map(|v| (*v).to_owned())
                        .collect::<Vec<_>>()
                        .as_slice()
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn ordinary_sentences_are_not() {
        for text in [
            "",
            "One of your projects, or a team",
            "Must be positive or zero",
            "The name of one of the files",
            "A city, such as Paris or Rome",
            "One of red, green, etc.",
            "Either a path or a URL",
            "One of many",
            "The options object",
            // From real servers.
            "The transition to perform. Example values: '11', '21', '31'",
            "The operation to check. Common values: 'read', 'update'.",
            "Valid values include: companies, contacts, deals. For custom objects, list the schemas first.",
            "The updates to apply. You must pass at least one of the following: `info`, `auth`, or `events`.",
            "Often found in a URL like example.com/(file|design)/<key>/...",
        ] {
            assert_eq!(allowed_values(text), None, "{text}");
        }
    }
}
