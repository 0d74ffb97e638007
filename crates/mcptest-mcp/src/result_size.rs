//! The bounds of results.

use serde::Serialize;

/// The largest structured result, in bytes of compact JSON. Its text form has the same size.
pub(crate) const MAX_RESULT: usize = 24 * 1024;

/// The longest text in a result, in bytes.
pub(crate) const MAX_TEXT: usize = 12 * 1024;

/// The longest string in an entry of a list, in characters.
pub(crate) const MAX_STRING: usize = 400;

/// The bytes reserved for the parts of a result that are not in lists.
const RESERVED_BYTES: usize = 1024;

/// The remaining size of a result.
#[derive(Debug)]
pub(crate) struct RemainingSize {
    left: usize,
    /// The number of entries that did not fit.
    pub omitted: u64,
}

impl RemainingSize {
    /// The size that remains after the given part.
    pub(crate) fn beside(part: &impl Serialize) -> Self {
        Self {
            left: MAX_RESULT.saturating_sub(RESERVED_BYTES + size(part)),
            omitted: 0,
        }
    }

    /// The first entries of a list, as many as fit. After the first that does not, all others are
    /// omitted: a list with gaps misleads.
    pub(crate) fn fit<T: Serialize>(&mut self, entries: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut kept = Vec::new();
        let before = self.omitted;
        for entry in entries {
            // The comma counts.
            let size = size(&entry) + 1;
            if self.omitted == before && size <= self.left {
                self.left -= size;
                kept.push(entry);
            } else {
                self.omitted += 1;
            }
        }
        kept
    }
}

fn size(part: &impl Serialize) -> usize {
    // A value that cannot be written does not fit.
    serde_json::to_string(part).map_or(MAX_RESULT, |text| text.len())
}

/// A string of at most [`MAX_TEXT`] bytes, and true if it is only the beginning.
pub(crate) fn text(whole: &str) -> (String, bool) {
    beginning(whole, MAX_TEXT)
}

/// The beginning of a string, up to the last whole line that fits.
pub(crate) fn beginning(whole: &str, max: usize) -> (String, bool) {
    if whole.len() <= max {
        return (whole.to_owned(), false);
    }
    let mut end = max;
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    let part = &whole[..end];
    let part = part.rfind('\n').map_or(part, |line| &part[..=line]);
    (part.to_owned(), true)
}

/// A string of an entry, shortened.
pub(crate) fn short(text: &str) -> String {
    mcptest_json::text::shorten(text, MAX_STRING)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn after_the_first_entry_that_does_not_fit_all_are_omitted() {
        let mut remaining = RemainingSize {
            left: 12,
            omitted: 0,
        };
        assert_eq!(remaining.fit(["abc", "much too long", "d"]), ["abc"]);
        assert_eq!(remaining.omitted, 2);
        // The next list has its own beginning.
        assert_eq!(remaining.fit(["e"]), ["e"]);
    }

    #[test]
    fn a_text_ends_with_a_whole_line() {
        assert_eq!(beginning("ab\ncd\nef", 7), ("ab\ncd\n".to_owned(), true));
        assert_eq!(beginning("ab", 2), ("ab".to_owned(), false));
    }

    proptest! {
        #[test]
        fn results_are_bounded(entries in proptest::collection::vec("\\PC{0,200}", 0..400)) {
            let mut remaining = RemainingSize::beside(&"");
            let count = entries.len() as u64;
            let kept = remaining.fit(entries);
            prop_assert!(serde_json::to_string(&kept).unwrap().len() <= MAX_RESULT);
            prop_assert_eq!(kept.len() as u64 + remaining.omitted, count);
        }

        #[test]
        fn texts_are_bounded(text in "\\PC{0,300}", max in 0_usize..300) {
            prop_assert!(beginning(&text, max).0.len() <= max);
        }
    }
}
