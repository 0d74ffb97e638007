//! Writing of compact JSON: the bytes of [`serde_json::to_writer`], in less time.
//!
//! Every event of a run is written as JSON, and most of its strings need no escapes. serde checks
//! each byte of a string, and of every key; here, strings are searched sixteen bytes at a time.

use serde_json::Value;

use crate::scan::plain_end;

/// Appends a string.
///
/// ```
/// let mut out = Vec::new();
/// mcptest_json::write::string("a \"b\"", &mut out);
/// assert_eq!(out, br#""a \"b\"""#);
/// ```
pub fn string(text: &str, out: &mut Vec<u8>) {
    if plain_end(text.as_bytes(), 0) == text.len() {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // A string can always be written to memory.
        let _ = serde_json::to_writer(out, text);
    }
}

/// Appends a number.
pub fn number(number: u64, out: &mut Vec<u8>) {
    // As above.
    let _ = serde_json::to_writer(out, &number);
}

/// Appends a value.
pub fn value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                self::value(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                self::value(item, out);
            }
            out.push(b'}');
        }
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => {
            // As above.
            let _ = serde_json::to_writer(out, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[a-z]{0,40}[\"\\\\\\x00-\\x1f\\x7f]?[a-z]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn escapes_are_those_of_serde() {
        let mut out = Vec::new();
        string("a\n\u{1}\"é", &mut out);
        assert_eq!(out, "\"a\\n\\u0001\\\"é\"".as_bytes());
        out.clear();
        value(&json!([1, 1.0, {"a": null}]), &mut out);
        assert_eq!(out, br#"[1,1.0,{"a":null}]"#);
    }

    proptest! {
        #[test]
        fn values_are_written_as_serde_writes_them(value in values()) {
            let mut out = b"before".to_vec();
            super::value(&value, &mut out);
            let expected = format!("before{value}");
            prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
