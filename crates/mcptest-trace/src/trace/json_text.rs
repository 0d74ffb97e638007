//! Lookups in JSON text that was checked before and has no escapes: nothing is built.

use super::quick::skip;

/// The place after the white space at a place.
fn after_space(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// The string between the quotes, for the text of a string.
pub(super) fn as_str(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"')
}

/// The items of a list, or nothing for another value.
pub(super) fn items(text: &str) -> Option<impl Iterator<Item = &str>> {
    text.starts_with('[').then_some(Parts { text, at: 1 })
}

/// The keys of an object with the texts of their values, as they are written: a key may be there
/// twice. `None` for another value.
pub(super) fn entries(text: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let mut parts = Parts { text, at: 1 };
    text.starts_with('{').then_some(std::iter::from_fn(move || {
        let key = as_str(parts.next()?)?;
        Some((key, parts.next()?))
    }))
}

/// The text of a key's value: of the last one, if the key is there twice.
pub(super) fn child<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let found = entries(text)?.filter(|(name, _)| *name == key);
    found.last().map(|(_, value)| value)
}

/// The values of an object or a list, and the keys of an object, in order.
struct Parts<'t> {
    text: &'t str,
    /// The place after the bracket, comma or colon before the next one.
    at: usize,
}

impl<'t> Iterator for Parts<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let start = after_space(self.text, self.at);
        // The end of the text, or the bracket of an empty list or object.
        if matches!(self.text.as_bytes().get(start)?, b']' | b'}') {
            return None;
        }
        let (end, _) = skip::value(self.text.as_bytes(), start)?;
        let separator = after_space(self.text, end);
        self.at = match self.text.as_bytes().get(separator) {
            Some(b',' | b':') => separator + 1,
            // The end.
            _ => self.text.len(),
        };
        self.text.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn parts_are_found_and_the_last_of_two_keys_counts() {
        let text = r#"{ "a" : [1, {"b": "c"}, [] ], "d":{}, "a": "x, y" , "e" : -1.5 }"#;
        assert_eq!(child(text, "a"), Some(r#""x, y""#));
        assert_eq!(child(text, "d"), Some("{}"));
        assert_eq!(child(text, "e"), Some("-1.5"));
        assert_eq!(child(text, "b"), None);
        let list = r#"[ 1 ,{"b": "c"},[ ]]"#;
        let found: Vec<&str> = items(list).unwrap().collect();
        assert_eq!(found, ["1", r#"{"b": "c"}"#, "[ ]"]);
        assert_eq!(items("[ ]").unwrap().count(), 0);
        assert!(items("{}").is_none() && entries("[]").is_none() && child("7", "a").is_none());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c:,{}\\[\\] é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c]{0,2}", inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn text_and_value_have_the_same_parts(value in value(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let list = items(&text).map(|items| items.map(parse).collect::<Vec<_>>());
            prop_assert_eq!(list.as_ref(), value.as_array());
            let object = entries(&text).map(|all| all.map(|(key, text)| (key.to_owned(), parse(text))).collect());
            prop_assert_eq!(object.as_ref(), value.as_object());
            prop_assert_eq!(as_str(&text), value.as_str());
        }
    }
}
