//! Strings that match a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The longest string that is made.
const MAX_BYTES: usize = 512;

/// Characters that are preferred where a class allows several.
const PREFERRED: &str = "abcABC123-_. /";

/// A short string that matches a pattern, with at least `repeats` repetitions where it allows
/// them. Patterns that Rust's syntax does not know give nothing.
pub(super) fn matching(pattern: &str, repeats: usize) -> Option<String> {
    if pattern.len() > 1024 {
        return None;
    }
    let hir = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut out = String::new();
    write(&hir, repeats, &mut out)?;
    Some(out)
}

fn write(hir: &Hir, repeats: usize, out: &mut String) -> Option<()> {
    if out.len() > MAX_BYTES {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(()),
        HirKind::Literal(literal) => {
            out.push_str(std::str::from_utf8(&literal.0).ok()?);
            Some(())
        }
        HirKind::Class(class) => {
            out.push(character(class)?);
            Some(())
        }
        HirKind::Repetition(repetition) => {
            let least = usize::try_from(repetition.min).ok()?;
            let most = repetition
                .max
                .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
            for _ in 0..least.max(repeats).min(most) {
                write(&repetition.sub, repeats, out)?;
            }
            Some(())
        }
        HirKind::Capture(capture) => write(&capture.sub, repeats, out),
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, repeats, out)),
        HirKind::Alternation(parts) => {
            // A part that cannot be made leaves the others.
            for part in parts {
                let before = out.len();
                if write(part, repeats, out).is_some() {
                    return Some(());
                }
                out.truncate(before);
            }
            None
        }
    }
}

fn character(class: &Class) -> Option<char> {
    match class {
        Class::Unicode(class) => {
            let has = |c: &char| {
                class
                    .ranges()
                    .iter()
                    .any(|range| (range.start()..=range.end()).contains(c))
            };
            let preferred = PREFERRED.chars().find(has);
            preferred.or_else(|| class.ranges().first().map(|range| range.start()))
        }
        Class::Bytes(class) => {
            let first = class.ranges().first()?.start();
            first.is_ascii().then(|| char::from(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn strings_match_their_patterns() {
        for pattern in [
            "^[A-Z]{3}-[0-9]{4}$",
            "^(draft|final)$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^https?://[^\s/]+/.+$",
            "^[a-z][a-z0-9_-]*$",
            r"^\+?[1-9]\d{1,14}$",
            "^$",
            "[^a-zA-Z0-9]",
            r"^projects/\w+/locations/\w+$",
            "(?i)^abc$",
            r"^\/x$",
            "[äö]+",
        ] {
            for repeats in [0, 1, 5] {
                let text = matching(pattern, repeats);
                let text = text.unwrap_or_else(|| panic!("{pattern}"));
                assert!(
                    Regex::new(pattern).unwrap().is_match(&text),
                    "{pattern}: {text}"
                );
            }
        }
        assert_eq!(matching("^[a-z]*$", 3).as_deref(), Some("aaa"));
    }

    #[test]
    fn hostile_patterns_give_nothing() {
        for pattern in ["(?=x)y", "(", "a{1000}{1000}", r"(\w)\1"] {
            assert_eq!(matching(pattern, 1), None, "{pattern}");
        }
        assert_eq!(matching(&"a".repeat(5000), 1), None);
    }
}
