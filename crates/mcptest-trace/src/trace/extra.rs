//! Recorded keys that this version gives no meaning.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Index;

use serde_json::{Map, Value};

use super::raw::Raw;

/// Up to this number of keys are compared one by one; more need a table.
const FEW: usize = 16;

/// The other keys of a recorded object, in order. A key that is there twice has its last value at
/// its first place, as in [`serde_json::Map`].
///
/// Most objects have none, which takes one word.
#[derive(Clone, Default)]
pub struct Extra<'a>(Option<Box<Entries<'a>>>);

/// Keys and values. There is at least one.
type Entries<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

impl<'a> Extra<'a> {
    fn entries(&self) -> &[(Cow<'a, str>, Raw<'a>)] {
        self.0.as_ref().map_or(&[], |entries| entries.as_slice())
    }

    /// Returns true if there is no key.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.raw(key).map(Raw::value)
    }

    /// The value of a key, not parsed.
    #[must_use]
    pub fn raw(&self, key: &str) -> Option<&Raw<'a>> {
        let entry = self.entries().iter().find(|(name, _)| name == key);
        entry.map(|(_, raw)| raw)
    }

    /// Sets a key: in its place where it is there, else at the end.
    pub fn insert(&mut self, key: impl Into<Cow<'a, str>>, value: impl Into<Value>) {
        let (key, value) = (key.into(), Raw::from(value.into()));
        let entries = self.0.get_or_insert_default();
        match entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, raw)) => *raw = value,
            None => entries.push((key, value)),
        }
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let entries = self.0.as_mut()?;
        let at = entries.iter().position(|(name, _)| name == key)?;
        let (_, raw) = entries.remove(at);
        if entries.is_empty() {
            self.0 = None;
        }
        Some(raw.into_value())
    }

    /// The keys with their values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Raw<'a>)> {
        self.entries().iter().map(|(key, raw)| (key.as_ref(), raw))
    }

    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.entries().iter().map(|(_, raw)| raw.value())
    }

    /// The whole as an object.
    #[must_use]
    pub fn to_map(&self) -> Map<String, Value> {
        self.iter()
            .map(|(key, raw)| (key.to_owned(), raw.value().clone()))
            .collect()
    }

    /// Detaches all keys from the text that they were read from.
    #[must_use]
    pub fn into_owned(self) -> Extra<'static> {
        let owned =
            |(key, raw): (Cow<'a, str>, Raw<'a>)| (Cow::Owned(key.into_owned()), raw.into_owned());
        let entries = self
            .0
            .map(|entries| entries.into_iter().map(owned).collect());
        Extra(entries.map(Box::new))
    }

    /// Takes entries as they were read: a key may be among them twice.
    #[inline]
    pub(super) fn from_entries(entries: Vec<(Cow<'a, str>, Raw<'a>)>) -> Self {
        match entries.is_empty() {
            true => Self(None),
            false => Self(Some(Box::new(Self::without_repeats(entries)))),
        }
    }

    fn without_repeats(entries: Entries<'a>) -> Entries<'a> {
        let repeated = |entries: &[(Cow<'a, str>, Raw<'a>)]| {
            let before = |at: usize| entries[..at].iter().any(|(key, _)| *key == entries[at].0);
            (1..entries.len()).any(before)
        };
        if entries.len() <= FEW && !repeated(&entries) {
            return entries;
        }
        let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
        let mut kept: Vec<(Cow<'a, str>, Raw<'a>)> = Vec::new();
        for (key, raw) in entries {
            match places.get(&key) {
                Some(place) => kept[*place].1 = raw,
                None => {
                    places.insert(key.clone(), kept.len());
                    kept.push((key, raw));
                }
            }
        }
        kept
    }
}

impl std::fmt::Debug for Extra<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Extra<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }
}

impl Index<&str> for Extra<'_> {
    type Output = Value;

    /// The value of a key; `null` where there is none, as with [`Value`].
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Extra<'_> {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Cow::Owned(key.into()), Raw::from(value)));
        Self::from_entries(entries.collect())
    }
}

impl From<Map<String, Value>> for Extra<'_> {
    fn from(map: Map<String, Value>) -> Self {
        map.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_value_of_a_key_counts_and_takes_the_first_place() {
        for others in [0, 40] {
            let mut entries = vec![("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))];
            entries.extend((0..others).map(|at| (format!("k{at}"), json!(at))));
            entries.push(("a".to_owned(), json!(3)));
            let reference: Map<String, Value> = entries.iter().cloned().collect();
            let extra: Extra<'_> = entries.into_iter().collect();
            assert_eq!(extra.len(), 2 + others);
            assert_eq!(
                serde_json::to_string(&extra.to_map()).unwrap(),
                serde_json::to_string(&reference).unwrap()
            );
        }
    }

    #[test]
    fn keys_are_set_read_and_removed() {
        let mut extra = Extra::default();
        extra.insert("a", json!(1));
        extra.insert("b", json!(2));
        extra.insert("a", json!(3));
        assert_eq!(extra["a"], json!(3));
        assert_eq!(extra["none"], Value::Null);
        assert_eq!(extra.get("none"), None);
        assert_eq!(extra.remove("a"), Some(json!(3)));
        assert_eq!(extra.values().collect::<Vec<_>>(), [&json!(2)]);
    }
}
