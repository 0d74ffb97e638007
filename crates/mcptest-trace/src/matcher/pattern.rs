//! Regular expressions: checked when a suite is loaded, built when they are first applied.
//!
//! Building one that has a Unicode class such as `\w` costs as much as reading a whole suite, and
//! `validate` never applies it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex::Regex;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Up to this weight (see [`weight`]) an expression stays far below the size at which building it
/// is refused.
const LIGHT: usize = 5_000;

/// A regular expression that can be built.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    written: String,
    /// `None` never happens: [`Pattern::new`] rejects every expression that cannot be built.
    built: Arc<OnceLock<Option<Regex>>>,
}

impl Pattern {
    /// # Errors
    /// The problem with the expression, as the `regex` crate reports it.
    pub(crate) fn new(written: &str) -> Result<Self, String> {
        let parsed = regex_syntax::parse(written).map_err(|error| error.to_string())?;
        let built = OnceLock::new();
        // Whether a heavy one is too large shows only in building it.
        if weight(&parsed) > LIGHT {
            let regex = Regex::new(written).map_err(|error| error.to_string())?;
            let _ = built.set(Some(regex));
        }
        Ok(Self {
            written: written.to_owned(),
            built: Arc::new(built),
        })
    }

    /// Returns true if the expression is found in the string.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let regex = self.built.get_or_init(|| Regex::new(&self.written).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// The amount to build: bytes of literals and ranges of classes, as often as they are
/// repeated.
fn weight(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().max(1),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().max(1),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min).max(1);
            let times = usize::try_from(most).unwrap_or(usize::MAX);
            weight(&repetition.sub)
                .saturating_mul(times)
                .saturating_add(1)
        }
        HirKind::Capture(capture) => weight(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts
            .iter()
            .fold(1, |sum: usize, part| sum.saturating_add(weight(part))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_what_can_be_built() {
        for written in [
            "",
            "a",
            "^get_",
            "(?i)\\bno alerts\\b",
            "\\w+\\s\\d{2,4}",
            "[^\\x00]*",
            "(a|b|\\p{Greek}){3}",
            "(?:x{0})*",
            "\\w{6}",
            "\\w{7}",
            "\\p{Any}{500}",
            "(?i)straße{1000}",
            "(|a)*{2}",
            "[[:alpha:]--z]",
        ] {
            let pattern = Pattern::new(written);
            let built = Regex::new(written);
            assert_eq!(pattern.is_ok(), built.is_ok(), "{written}");
            if let (Ok(pattern), Ok(built)) = (pattern, built) {
                for text in ["", "a", "get_x", "No alerts.", "wörds 2026", "xyz"] {
                    assert_eq!(
                        pattern.is_match(text),
                        built.is_match(text),
                        "{written} in {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused_in_the_same_words() {
        for written in [
            "(",
            "a**{",
            "[z-a]",
            "(?=x)",
            "\\1",
            "\\w{2000}",
            "(?:a{1000}){1000}",
            "\\xFF(?-u:\\xFF)",
        ] {
            let built = Regex::new(written)
                .map(drop)
                .map_err(|error| error.to_string());
            let ours = Pattern::new(written).map(drop);
            assert!(ours.is_err(), "{written}");
            assert_eq!(ours, built, "{written}");
        }
    }

    #[test]
    fn the_heaviest_that_is_left_for_later_can_be_built() {
        // Unicode classes have the most states for their weight.
        for class in [
            "\\w",
            "\\p{L}",
            "\\P{Greek}",
            "\\d",
            ".",
            "(?i:ſ)",
            "\\p{Emoji}",
        ] {
            let one = weight(&regex_syntax::parse(class).unwrap());
            let written = format!("(?:{class}){{{}}}", (LIGHT / one).min(1000));
            assert!(Regex::new(&written).is_ok(), "{written}");
        }
    }

    #[test]
    fn light_ones_are_built_late() {
        let light = Pattern::new("\\w+").unwrap();
        assert!(light.built.get().is_none());
        assert!(light.is_match("x"));
        assert!(light.built.get().is_some());
    }
}
