//! The entries of a mapping while it is read.

use std::collections::HashMap;

use crate::document::Entry;

/// Up to this number of keys, comparing with each of them is faster than hashing.
const MAX_COMPARED: usize = 16;

/// The places of the keys of a mapping.
///
/// Every key of a file is searched for, so the search must not compare it with all others: a file
/// within the limits may have a mapping of hundreds of thousands of keys.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex(
    /// The place of every key, once there are more than [`MAX_COMPARED`].
    HashMap<Box<str>, usize>,
);

impl KeyIndex {
    /// The place of the entry with this key among those of its mapping.
    pub(crate) fn find(&self, entries: &[Entry], key: &str) -> Option<usize> {
        if self.0.is_empty() {
            return entries.iter().position(|entry| {
                count_comparison();
                entry.key == key
            });
        }
        count_comparison();
        self.0.get(key).copied()
    }

    /// Adds a key that is not here, before its entry is added to those of its mapping.
    pub(crate) fn add(&mut self, entries: &[Entry], key: &str) {
        if entries.len() < MAX_COMPARED {
            return;
        }
        if entries.len() == MAX_COMPARED {
            let known = entries.iter().enumerate();
            self.0 = known
                .map(|(place, entry)| (entry.key.as_str().into(), place))
                .collect();
        }
        self.0.insert(key.into(), entries.len());
    }
}

/// Entries with different keys, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    list: Vec<Entry>,
    index: KeyIndex,
}

impl Entries {
    /// The entry with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.list.get(self.index.find(&self.list, key)?)
    }

    /// Adds an entry whose key is not here.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.index.add(&self.list, &entry.key);
        self.list.push(entry);
    }

    pub(crate) fn into_vec(self) -> Vec<Entry> {
        self.list
    }
}

#[cfg(test)]
thread_local! {
    static COMPARISONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts the comparisons of keys, for the test of their growth.
fn count_comparison() {
    #[cfg(test)]
    COMPARISONS.set(COMPARISONS.get() + 1);
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::{Document, DocumentLimits};

    /// A mapping with this many keys, in block style or as JSON.
    fn keys(count: usize, is_json: bool) -> String {
        let mut text = String::new();
        for at in 0..count {
            if is_json {
                let comma = if at == 0 { "{" } else { "," };
                write!(text, "{comma}\"key {at}\": {at}\n ").unwrap();
            } else {
                writeln!(text, "key{at}: {at}").unwrap();
            }
        }
        text + if is_json { "}" } else { "" }
    }

    #[test]
    fn issue_10_the_search_for_duplicate_keys_is_linear() {
        let limits = DocumentLimits::default();
        for is_json in [false, true] {
            for in_full in [false, true] {
                let comparisons = |count: usize| {
                    let text = keys(count, is_json);
                    COMPARISONS.set(0);
                    let document = if in_full {
                        Document::parse_in_full("t.yml", text.as_bytes(), &limits)
                    } else {
                        Document::parse("t.yml", text.as_bytes(), &limits)
                    };
                    assert_eq!(
                        document
                            .unwrap()
                            .root()
                            .to_json()
                            .as_object()
                            .unwrap()
                            .len(),
                        count
                    );
                    COMPARISONS.get()
                };
                let (few, many) = (comparisons(1_000), comparisons(8_000));
                // Every key is searched for, so a count that does not grow would be a defect too.
                let growth = many as f64 / few as f64;
                assert!(
                    (7.0..9.0).contains(&growth),
                    "{few} {many} {is_json} {in_full}"
                );
            }
        }
    }

    #[test]
    fn duplicates_are_found_among_few_and_many_keys() {
        for count in [2, MAX_COMPARED - 1, MAX_COMPARED, MAX_COMPARED + 1, 100] {
            for first in [0, count / 2, count - 1] {
                let text = format!("{}key{first}: again\n", keys(count, false));
                let error = Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default());
                let shown = error.unwrap_err().render(false);
                assert!(
                    shown.contains(&format!("duplicate key `key{first}`"))
                        && shown.contains(&format!("first set on line {}", first + 1)),
                    "{count} {first}: {shown}"
                );
            }
        }
    }

    #[test]
    fn merged_mappings_add_only_new_keys() {
        let text = format!(
            "base: &base\n{}more:\n  <<: *base\n  key3: own\n",
            keys(40, false).replace("key", "  key")
        );
        let document = Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default());
        let more = document.unwrap().root().to_json()["more"].clone();
        assert_eq!(more.as_object().unwrap().len(), 40);
        assert_eq!((&more["key3"], &more["key4"]), (&"own".into(), &4.into()));
    }
}
