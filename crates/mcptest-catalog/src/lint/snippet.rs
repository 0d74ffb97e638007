//! JSON fragments for fixes, ready to paste.

use std::io;

use serde::Serialize as _;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value, json};

use super::schema;

/// The longest fragment that repeats the whole property. A longer one has only the new keys.
const MAX_LENGTH: usize = 240;

/// A placeholder for a number, without quotes: `<limit>`.
pub(super) fn number(what: &str) -> Value {
    Value::String(format!("<#{what}#>"))
}

/// One key and its value: `"required": []`.
pub(super) fn member(key: &str, value: &Value) -> String {
    format!("{}: {}", text(&json!(key)), text(value))
}

/// A property with further keys: `"city": {"type": "string", "maxLength": <limit>}`.
pub(super) fn property(name: &str, current: &Value, added: &[(&str, Value)]) -> String {
    let mut whole = current.as_object().cloned().unwrap_or_default();
    let mut only = Map::new();
    for (key, value) in added {
        whole.insert((*key).to_owned(), value.clone());
        only.insert((*key).to_owned(), value.clone());
    }
    let whole = member(name, &Value::Object(whole));
    if whole.chars().count() <= MAX_LENGTH {
        whole
    } else {
        member(name, &Value::Object(only))
    }
}

/// The schema at a JSON pointer with further keys. One without a name, such as an
/// alternative, is an object without a key.
pub(super) fn place(path: &str, current: &Value, added: &[(&str, Value)]) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let name = name.replace("~1", "/").replace("~0", "~");
    let fragment = property(&name, current, added);
    let is_alternative = ["anyOf", "oneOf", "allOf", "prefixItems", "items"]
        .iter()
        .any(|key| path.strip_suffix(&format!("/{key}/{name}")).is_some());
    if is_alternative {
        return fragment
            .split_once(": ")
            .map_or(fragment.clone(), |(_, schema)| schema.to_owned());
    }
    fragment
}

/// An example of a value that a schema accepts. Strings and numbers that the schema does not name
/// are placeholders.
pub(super) fn example(root: &Value, name: &str, property: &Value, depth: usize) -> Value {
    let inner = schema::resolve(root, property);
    if let Some(first) = schema::enumerated(root, inner).first() {
        return (*first).clone();
    }
    if schema::is_type(inner, "boolean") {
        return Value::Bool(true);
    }
    if schema::is_type(inner, "number") || schema::is_type(inner, "integer") {
        return number(&format!("a typical {name}"));
    }
    if schema::is_type(inner, "array") && depth > 0 {
        let items = inner.get("items").unwrap_or(&Value::Null);
        return json!([example(root, name, items, depth - 1)]);
    }
    if schema::has_properties(inner) && depth > 0 {
        let required = schema::required(inner);
        let all = schema::properties(inner);
        let chosen = all
            .iter()
            .filter(|(name, _)| required.is_empty() || required.contains(name))
            .take(3);
        return chosen
            .map(|(name, inner)| ((*name).to_owned(), example(root, name, inner, depth - 1)))
            .collect::<Map<_, _>>()
            .into();
    }
    json!(format!("<a typical {name}>"))
}

/// JSON on one line, with a space after each colon and comma.
pub(super) fn text(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, Spaced);
    // Writing to memory cannot fail.
    let _ = value.serialize(&mut serializer);
    String::from_utf8_lossy(&out)
        .replace("\"<#", "<")
        .replace("#>\"", ">")
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_can_be_pasted() {
        let city = json!({"type": "string"});
        assert_eq!(
            property("city", &city, &[("maxLength", number("limit"))]),
            r#""city": {"type": "string", "maxLength": <limit>}"#
        );
        let long = json!({"description": "x".repeat(300)});
        assert_eq!(
            property("c\"ity", &long, &[("type", json!("string"))]),
            r#""c\"ity": {"type": "string"}"#
        );
        assert_eq!(
            member("required", &json!(["a", "b"])),
            r#""required": ["a", "b"]"#
        );
    }

    #[test]
    fn examples_come_from_the_schema() {
        let root = json!({"$defs": {"sort": {"enum": ["asc", "desc"]}}});
        let nested = json!({"type": "array", "items": {"type": "object", "required": ["by"], "properties": {
            "by": {"$ref": "#/$defs/sort"}, "other": {"type": "string"}
        }}});
        assert_eq!(example(&root, "order", &nested, 3), json!([{"by": "asc"}]));
        assert_eq!(
            text(&example(&root, "age", &json!({"type": "integer"}), 3)),
            "<a typical age>"
        );
        let circular = json!({"$ref": "#"});
        let root = json!({"type": "array", "items": {"$ref": "#"}});
        assert!(example(&root, "x", &circular, 3).is_array());
    }
}
