//! Lists of words, and words that follow each other at a bounded distance.
//!
//! A list is one regular expression without long repetitions, and gaps are measured between its
//! matches. So the time is linear, also on a line of a megabyte that repeats the words of a rule.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

/// The largest distance between two words of a phrase, in characters.
pub(crate) const GAP: usize = 110;

/// The characters before a match in which a negation takes it back.
const NEGATION: usize = 25;

/// A list of words or short phrases.
#[derive(Debug)]
pub(crate) struct Words {
    pattern: &'static str,
    whole: bool,
    regex: OnceLock<Regex>,
}

impl Words {
    /// Alternatives that are whole words.
    pub(crate) const fn new(pattern: &'static str) -> Self {
        Self {
            pattern,
            whole: true,
            regex: OnceLock::new(),
        }
    }

    /// A pattern that has its own boundaries.
    pub(crate) const fn pattern(pattern: &'static str) -> Self {
        Self {
            pattern,
            whole: false,
            regex: OnceLock::new(),
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants, and a test below compiles all of them"
    )]
    pub(crate) fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            let pattern = if self.whole {
                format!(r"(?-u:\b)(?:{})(?-u:\b)", self.pattern)
            } else {
                self.pattern.to_owned()
            };
            Regex::new(&pattern).expect("a valid pattern")
        })
    }

    /// All matches, in order.
    pub(crate) fn spans(&self, text: &str) -> Vec<Range<usize>> {
        self.regex()
            .find_iter(text)
            .map(|found| found.range())
            .collect()
    }

    /// The first match.
    pub(crate) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.regex().find(text).map(|found| found.range())
    }

    /// Returns true if there is a match.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.regex().is_match(text)
    }
}

/// All places where matches follow each other, each at most this number of characters after the
/// one before. A place reaches from the latest possible start to the end of the last match.
pub(crate) fn chains(text: &str, first: &Words, rest: &[(usize, &Words)]) -> Vec<Range<usize>> {
    let mut reached = first.spans(text);
    for (gap, words) in rest {
        if reached.is_empty() {
            return reached;
        }
        let mut before = reached.iter().peekable();
        let mut latest: Option<&Range<usize>> = None;
        let mut next = Vec::new();
        for span in words.spans(text) {
            while let Some(one) = before.next_if(|one| one.end <= span.start) {
                latest = Some(one);
            }
            if let Some(one) = latest
                && within(text, one.end..span.start, *gap)
            {
                next.push(one.start..span.end);
            }
        }
        reached = next;
    }
    reached
}

/// The first of [`chains`].
pub(crate) fn chain(text: &str, first: &Words, rest: &[(usize, &Words)]) -> Option<Range<usize>> {
    chains(text, first, rest).into_iter().next()
}

/// Returns true if a range has at most this number of characters.
fn within(text: &str, range: Range<usize>, characters: usize) -> bool {
    range.len() <= characters
        || (range.len() <= 4 * characters
            && text
                .get(range)
                .is_some_and(|text| text.chars().count() <= characters))
}

/// The text before a position, at most this number of characters.
pub(crate) fn before(text: &str, at: usize, characters: usize) -> &str {
    let text = text.get(..at).unwrap_or_default();
    let start = text
        .char_indices()
        .rev()
        .take(characters)
        .last()
        .map_or(text.len(), |(start, _)| start);
    &text[start..]
}

/// The text after a position, at most this number of characters.
pub(crate) fn after(text: &str, at: usize, characters: usize) -> &str {
    let text = text.get(at..).unwrap_or_default();
    let end = text
        .char_indices()
        .nth(characters)
        .map_or(text.len(), |(end, _)| end);
    &text[..end]
}

static NEGATIONS: Words = Words::new(
    r"not|never|no|nor|neither|without|cannot|\w+n['’]t|avoid|refuses?|refrain|nothing|forbidden|prohibited|excludes?|excluding|except|nie|nicht|kein\w*|ne|pas|jamais|nunca|não|sin|sem|non|mai",
);
/// Negations of scripts without spaces, and of Cyrillic, which has no ASCII boundaries.
static FOREIGN_NEGATIONS: Words =
    Words::pattern(r"(?u:\b)(?:нельзя|никогда|не)(?u:\b)|不|勿|别|禁止|無|无|ない|ません|않|금지");

/// Returns true if a negation is shortly before a match.
pub(crate) fn is_negated(text: &str, at: usize) -> bool {
    let before = before(text, at, NEGATION);
    NEGATIONS.is_in(before) || FOREIGN_NEGATIONS.is_in(before)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A pattern is compiled when a rule first needs it, so all of them are compiled here: every
    /// raw string of the rules, and what `concat!` makes of several.
    #[test]
    fn every_pattern_of_the_rules_compiles() {
        let lint = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lint");
        let own = std::fs::read_dir(lint.join("security")).unwrap();
        let rules = std::fs::read_dir(&lint).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("sec_")
        });
        let literal = Regex::new(r##"(?s)\br(?:"([^"]*)"|#"(.*?)"#)"##).unwrap();
        let joined = Regex::new(r"(?s)concat!\((.*?)\)\);").unwrap();
        let pieces = |code: &str| -> Vec<String> {
            let found = literal.captures_iter(code);
            let found =
                found.filter_map(|found| Some(found.get(1).or(found.get(2))?.as_str().to_owned()));
            // The examples of a rule are tools as JSON.
            found
                .filter(|pattern| !pattern.starts_with("{\""))
                .collect()
        };
        let mut compiled = 0;
        for entry in own.chain(rules) {
            let path = entry.unwrap().path();
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            // `x` is where a macro has another pattern.
            let mut patterns: Vec<String> = joined
                .captures_iter(code)
                .map(|found| pieces(&found[1]).join("x"))
                .collect();
            patterns.extend(pieces(&joined.replace_all(code, "")));
            for pattern in patterns {
                let regex = Regex::new(&pattern.replace("{}", "x"));
                assert!(regex.is_ok(), "{}: {regex:?}", path.display());
                compiled += 1;
            }
        }
        assert!(compiled > 50, "{compiled} patterns were found");
    }

    #[test]
    fn gaps_are_bounded_and_the_latest_start_counts() {
        static A: Words = Words::new("send");
        static B: Words = Words::new("key");
        let near = format!("send it; send {}key", "x ".repeat(20));
        assert_eq!(chain(&near, &A, &[(GAP, &B)]), Some(9..near.len()));
        let far = format!("send {}key", "x ".repeat(60));
        assert_eq!(chain(&far, &A, &[(GAP, &B)]), None);
        let wide = format!("send {}key", "ж".repeat(100));
        assert!(chain(&wide, &A, &[(GAP, &B)]).is_some());
        assert_eq!(chain("key send", &A, &[(GAP, &B)]), None);
        assert_eq!(chain("sender keys", &A, &[(GAP, &B)]), None);
    }

    #[test]
    fn a_negation_must_be_near() {
        let text = "it never reads keys, and this sentence is long enough to read keys";
        assert!(is_negated(text, 9));
        assert!(!is_negated(text, text.len() - 4));
        assert!(is_negated("don't read", 6));
        assert!(!is_negated("note: read", 6));
    }
}
