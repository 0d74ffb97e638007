//! Allowed values that stand in a sentence instead of in an `enum`.

use std::sync::LazyLock;

use regex::Regex;

/// Words that announce a closed set. "Valid values include" announces an open one.
static CLOSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:one of(?: the following(?: values)?)?|(?:allowed|valid|possible|accepted|supported|permitted) (?:values|options)(?: are)?)\s*:?\s*",
    )
    .ok()
});
/// Words that announce one only if the values are quoted: "must be positive or zero" names no
/// values.
static LOOSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:must be|can be|either|options(?: are)?|values(?: are)?)\s*:?\s*").ok()
});
/// What in front of them says that they announce none: examples, or a choice of several.
static OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:at least|examples?|sample|common|typical|usual|popular|frequent|some|other|default)\s+$").ok()
});
/// One value: quoted, or a bare word.
static QUOTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^(?:"([^"\n]{1,60})"|'([^'\n]{1,60})'|`([^`\n]{1,60})`|“([^”\n]{1,60})”)"#).ok()
});
static BARE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z0-9_][A-Za-z0-9_+-]{0,59}").ok());
/// What stands between two values, after an explanation in parentheses.
static BETWEEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^(?: ?\([^)\n]{0,80}\))?(?:\s*[,|/]\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+)").ok()
});
/// What may stand behind the last.
static END: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?: ?\([^)\n]{0,80}\))?\s*(?:$|[.;)\]\n])").ok());
/// `open|closed|all`, by itself: `/(file|design)/` is part of something else.
static PIPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s:])[(\[]?([A-Za-z0-9_-]+(?:\|[A-Za-z0-9_-]+)+)[)\]]?(?:$|[\s).,;])").ok()
});

/// The allowed values that a description spells out, in its order. Nothing if it names none, or
/// only examples.
pub(super) fn allowed_values(description: &str) -> Option<Vec<String>> {
    announced(&CLOSED, description, true)
        .or_else(|| announced(&LOOSE, description, false))
        .or_else(|| {
            let pipes = PIPES.as_ref()?.captures(description)?.get(1)?.as_str();
            settle(pipes.split('|').map(str::to_owned).collect())
        })
}

fn announced(
    words: &LazyLock<Option<Regex>>,
    description: &str,
    bare: bool,
) -> Option<Vec<String>> {
    let (words, open) = (words.as_ref()?, OPEN.as_ref()?);
    words
        .find_iter(description)
        .filter(|announcement| !open.is_match(&description[..announcement.start()]))
        .find_map(|announcement| list(&description[announcement.end()..], bare))
}

fn list(mut text: &str, bare: bool) -> Option<Vec<String>> {
    let mut values = Vec::new();
    loop {
        let (value, rest) = value(text, bare)?;
        values.push(value);
        match BETWEEN.as_ref()?.find(rest) {
            Some(between) => text = &rest[between.end()..],
            None if END.as_ref()?.is_match(rest) => return settle(values),
            None => return None,
        }
    }
}

fn value(text: &str, bare: bool) -> Option<(String, &str)> {
    if let Some(found) = QUOTED.as_ref()?.captures(text) {
        let whole = found.get(0)?;
        let inner = found.iter().skip(1).flatten().next()?;
        return Some((inner.as_str().to_owned(), &text[whole.end()..]));
    }
    let found = BARE.as_ref()?.find(text).filter(|_| bare)?;
    Some((found.as_str().to_owned(), &text[found.end()..]))
}

/// Two different values at least, and none of the words that leave a list open.
fn settle(values: Vec<String>) -> Option<Vec<String>> {
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
            // What real servers say.
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
