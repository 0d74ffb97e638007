//! Changes of JSON, by value and in text.
//!
//! A proxy passes on what it receives byte by byte. So a change of a message is a change of its
//! text that leaves every other byte as it is ([`apply_to_text`]). Elsewhere the same
//! changes apply to a value ([`apply`]).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A key of an object.
    Name(Cow<'static, str>),
    /// An index of a list.
    Index(usize),
}

impl From<&'static str> for Key {
    fn from(name: &'static str) -> Self {
        Self::Name(Cow::Borrowed(name))
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::Name(Cow::Owned(name))
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The path of the changed value.
    pub path: Vec<Key>,
    /// The change.
    pub change: Change,
}

/// The kinds of changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Replaces a value.
    Set(Value),
    /// Appends an element to a list.
    Push(Value),
    /// Adds a key to an object that does not have it.
    Insert(String, Value),
}

impl Edit {
    /// The same change below a key.
    #[must_use]
    pub fn below(mut self, key: &'static str) -> Self {
        self.path.insert(0, key.into());
        self
    }
}

/// The value at a path.
#[must_use]
pub fn get<'v>(value: &'v Value, path: &[Key]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Name(name) => value.get(name.as_ref()),
        Key::Index(index) => value.get(*index),
    })
}

/// Changes a value. Returns false, with nothing changed, if the path does not exist.
pub fn apply(value: &mut Value, edit: &Edit) -> bool {
    let found = edit.path.iter().try_fold(value, |value, key| match key {
        Key::Name(name) => value.get_mut(name.as_ref()),
        Key::Index(index) => value.get_mut(*index),
    });
    match (found, &edit.change) {
        (Some(found), Change::Set(new)) => *found = new.clone(),
        (Some(Value::Array(items)), Change::Push(item)) => items.push(item.clone()),
        (Some(Value::Object(map)), Change::Insert(key, new)) if !map.contains_key(key) => {
            map.insert(key.clone(), new.clone());
        }
        _ => return false,
    }
    true
}

/// Changes a JSON text. Every byte outside of the changed value stays. `None` if the path does not
/// exist.
#[must_use]
pub fn apply_to_text(text: &str, edit: &Edit) -> Option<String> {
    let slice = find(text.trim(), &edit.path)?;
    let start = (slice.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + slice.len();
    let (from, new) = match &edit.change {
        Change::Set(value) => (start, value.to_string()),
        Change::Push(item) => (end - 1, joined(slice, b'[', &item.to_string())?),
        Change::Insert(key, value) => {
            let map: Map<String, Value> = serde_json::from_str(slice).ok()?;
            if map.contains_key(key) {
                return None;
            }
            let entry = format!("{}:{value}", Value::from(key.as_str()));
            (end - 1, joined(slice, b'{', &entry)?)
        }
    };
    let to = match &edit.change {
        Change::Set(_) => end,
        Change::Push(_) | Change::Insert(..) => from,
    };
    Some(format!("{}{new}{}", text.get(..from)?, text.get(to..)?))
}

/// An element with the comma that it needs at the end of a list or an object.
fn joined(slice: &str, open: u8, element: &str) -> Option<String> {
    let inner = slice.as_bytes();
    if inner.first() != Some(&open) {
        return None;
    }
    let is_empty = slice.get(1..slice.len() - 1)?.trim().is_empty();
    Some(if is_empty {
        element.to_owned()
    } else {
        format!(",{element}")
    })
}

/// The text of the value at a path.
fn find<'t>(text: &'t str, path: &[Key]) -> Option<&'t str> {
    let Some((key, rest)) = path.split_first() else {
        return Some(text);
    };
    let inner = match key {
        Key::Name(name) => {
            let map: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            map.get(name.as_ref())?.get()
        }
        Key::Index(index) => {
            let list: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            list.get(*index)?.get()
        }
    };
    find(inner, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edit(path: Vec<Key>, change: Change) -> Edit {
        Edit { path, change }
    }

    #[test]
    fn every_other_byte_stays() {
        let text = "{ \"id\":1.50, \"result\" : {\"content\":[ {\"type\":\"text\", \"text\":\"a\\u0062\"} ]}}\r\n";
        let path = vec!["result".into(), "content".into(), 0.into(), "text".into()];
        let set = edit(path, Change::Set("x\ny".into()));
        assert_eq!(
            apply_to_text(text, &set).unwrap(),
            "{ \"id\":1.50, \"result\" : {\"content\":[ {\"type\":\"text\", \"text\":\"x\\ny\"} ]}}\r\n"
        );
        let push = edit(
            vec!["result".into(), "content".into()],
            Change::Push(json!(1)),
        );
        assert!(
            apply_to_text(text, &push)
                .unwrap()
                .contains("\"} ,1]}}\r\n")
        );
        let empty = edit(Vec::new(), Change::Push(json!("a")));
        assert_eq!(apply_to_text("[ ]", &empty).unwrap(), "[ \"a\"]");
        let insert = edit(Vec::new(), Change::Insert("k".into(), json!(null)));
        assert_eq!(apply_to_text("{}", &insert).unwrap(), "{\"k\":null}");
        assert_eq!(apply_to_text("{\"k\":1}", &insert), None);
        assert_eq!(apply_to_text("[1]", &insert), None);
        assert_eq!(apply_to_text("no JSON", &set), None);
    }

    proptest! {
        #[test]
        fn text_and_value_change_alike(texts in prop::collection::vec(".{0,8}", 0..4), at in 0..5_usize, new in ".{0,8}") {
            let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            let value = json!({"result": {"content": blocks}});
            for (path, change) in [
                (vec!["result".into(), "content".into(), at.into(), "text".into()], Change::Set(new.as_str().into())),
                (vec!["result".into(), "content".into()], Change::Push(new.as_str().into())),
                (vec!["result".into()], Change::Insert(new.clone(), json!(1))),
            ] {
                let edit = edit(path, change);
                let mut changed = value.clone();
                let applied = apply(&mut changed, &edit);
                let text = apply_to_text(&value.to_string(), &edit);
                prop_assert_eq!(applied, text.is_some());
                if let Some(text) = text {
                    prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), changed);
                }
            }
        }
    }
}
