//! The headers of revision 2026-07-28: they repeat what a message says, so that a gateway need not
//! read bodies.
//!
//! `Mcp-Method` is the method, `Mcp-Name` the tool, prompt, resource or task that it is about. A
//! tool may name further arguments that headers repeat: a property of its input schema with
//! `"x-mcp-header": "Region"` goes as `Mcp-Param-Region`.

use serde_json::Value;

use super::base64;

/// How far down in a schema annotations are looked for.
const MOST_LEVELS: usize = 64;

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// What `Mcp-Name` repeats, for a method that has it.
#[must_use]
pub fn name_of<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.get(key)?.as_str()
}

/// A value as a header can carry it: text that would not survive goes as Base64.
#[must_use]
pub fn encode(value: &str) -> String {
    let blank = |c: Option<char>| c.is_some_and(|c| matches!(c, ' ' | '\t'));
    let unsafe_value = blank(value.chars().next())
        || blank(value.chars().next_back())
        || value.chars().any(|c| !(' '..='~').contains(&c))
        || (value.starts_with(OPEN) && value.ends_with(CLOSE));
    if unsafe_value {
        format!("{OPEN}{}{CLOSE}", base64::encode(value.as_bytes()))
    } else {
        value.to_owned()
    }
}

/// Whether a header has this value, as it is or encoded.
#[must_use]
pub fn says(header: &str, value: &str) -> bool {
    match header
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        Some(body) => base64::decode(body).is_some_and(|decoded| decoded == value.as_bytes()),
        None => header == value,
    }
}

/// An argument that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The names of the properties that lead to it.
    path: Vec<String>,
    /// The header's name.
    name: String,
}

impl ParamHeader {
    /// The header's name, `Mcp-Param-…`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it must say for these arguments; nothing where the argument is absent, null, or no
    /// plain value.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// The arguments of a tool that headers repeat.
///
/// # Errors
/// An annotation that breaks the rules, with the property; such a tool must not be called.
pub fn param_headers(input_schema: &Value) -> Result<Vec<ParamHeader>, String> {
    let mut found = Vec::new();
    collect(input_schema, &mut Vec::new(), Place::Root, 0, &mut found)?;
    Ok(found)
}

/// Where a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Reached from the root by `properties` alone.
    Property,
    /// Anywhere else: whether it applies depends on the instance.
    Elsewhere,
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    place: Place,
    level: usize,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Some(object) = schema.as_object() else {
        return Ok(());
    };
    if level > MOST_LEVELS {
        return Err(format!(
            "the input schema has more than {MOST_LEVELS} levels"
        ));
    }
    if let Some(written) = object.get("x-mcp-header") {
        found.push(annotation(written, schema, path, place, found)?);
    }
    for (key, value) in object {
        match key.as_str() {
            "properties" => {
                let below = match place {
                    Place::Root | Place::Property => Place::Property,
                    Place::Elsewhere => Place::Elsewhere,
                };
                for (name, property) in value.as_object().into_iter().flatten() {
                    path.push(name.clone());
                    collect(property, path, below, level + 1, found)?;
                    path.pop();
                }
            }
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for below in value.as_object().into_iter().flat_map(|map| map.values()) {
                    collect(below, path, Place::Elsewhere, level + 1, found)?;
                }
            }
            // Values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => {
                let items = value
                    .as_array()
                    .map_or(std::slice::from_ref(value), Vec::as_slice);
                for below in items {
                    collect(below, path, Place::Elsewhere, level + 1, found)?;
                }
            }
        }
    }
    Ok(())
}

fn annotation(
    written: &Value,
    schema: &Value,
    path: &[String],
    place: Place,
    others: &[ParamHeader],
) -> Result<ParamHeader, String> {
    let at = match place {
        Place::Root => {
            return Err(
                "`x-mcp-header` stands on the whole input schema, not on a property".to_owned(),
            );
        }
        _ => format!("`x-mcp-header` of property `{}`", path.join(".")),
    };
    if place == Place::Elsewhere {
        return Err(format!("{at} cannot be reached by `properties` alone"));
    }
    let Some(suffix) = written.as_str() else {
        return Err(format!("{at} is not a string"));
    };
    if suffix.is_empty() {
        return Err(format!("{at} is empty"));
    }
    // RFC 9110, section 5.6.2: what a header's name is made of.
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if !suffix.chars().all(token) {
        return Err(format!(
            "{at} has characters that no header's name can have"
        ));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => {}
        _ => return Err(format!("{at} needs the type string, integer or boolean")),
    }
    let name = format!("Mcp-Param-{suffix}");
    if others
        .iter()
        .any(|other| other.name.eq_ignore_ascii_case(&name))
    {
        return Err(format!(
            "{at} names a header that another property has already"
        ));
    }
    Ok(ParamHeader {
        path: path.to_vec(),
        name,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_needs_it_is_encoded() {
        assert_eq!(encode("get-weather"), "get-weather");
        assert_eq!(encode("a b"), "a b");
        assert_eq!(encode(""), "");
        assert_eq!(encode(" a"), "=?base64?IGE=?=");
        assert_eq!(encode("ä"), "=?base64?w6Q=?=");
        assert_eq!(encode("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
        assert_eq!(encode("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }

    #[test]
    fn encoded_values_are_read() {
        assert!(says("=?base64?SGVsbG8=?=", "Hello"));
        assert!(says("=?base64?w7bDpA==?=", "öä"));
        assert!(says("Hello", "Hello"));
        // Without both ends it is a text like any other.
        assert!(says("=?base64?SGVsbG8=", "=?base64?SGVsbG8="));
        for wrong in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "SGVsbG8="] {
            assert!(!says(wrong, "Hello"), "{wrong}");
        }
    }

    #[test]
    fn annotated_arguments_at_any_depth_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "plain": {"type": "string"},
            "where": {"type": "object", "properties": {"row": {"type": "integer", "x-mcp-header": "Row"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        }});
        let headers = param_headers(&schema).expect("good annotations");
        let names: Vec<&str> = headers.iter().map(ParamHeader::name).collect();
        assert_eq!(
            names,
            ["Mcp-Param-Region", "Mcp-Param-Row", "Mcp-Param-Dry"]
        );
        let values = |arguments: Value| -> Vec<Option<String>> {
            headers
                .iter()
                .map(|header| header.value(&arguments))
                .collect()
        };
        assert_eq!(
            values(json!({"region": "", "where": {"row": 7}, "dry": false})),
            [
                Some(String::new()),
                Some("7".to_owned()),
                Some("false".to_owned())
            ]
        );
        assert_eq!(
            values(json!({"region": null, "where": [], "dry": {}})),
            [None, None, None]
        );
        assert_eq!(values(Value::Null), [None, None, None]);
    }

    #[test]
    fn annotations_that_break_the_rules() {
        let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
        let text = |name: &str| property(json!({"type": "string", "x-mcp-header": name}));
        for (schema, part) in [
            (text(""), "is empty"),
            (text("My Region"), "characters"),
            (text("Region:1"), "characters"),
            (text("Région"), "characters"),
            (text("Region\t1"), "characters"),
            (
                property(json!({"type": "string", "x-mcp-header": 1})),
                "not a string",
            ),
            (
                property(json!({"type": "object", "x-mcp-header": "A"})),
                "needs the type",
            ),
            (
                property(json!({"type": "number", "x-mcp-header": "A"})),
                "needs the type",
            ),
            (property(json!({"x-mcp-header": "A"})), "needs the type"),
            (
                property(
                    json!({"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
                ),
                "cannot be reached",
            ),
            (
                json!({"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
                "cannot be reached",
            ),
            (
                json!({"type": "string", "x-mcp-header": "A"}),
                "whole input schema",
            ),
            (
                json!({"properties": {
                    "a": {"type": "string", "x-mcp-header": "Same"},
                    "b": {"type": "string", "x-mcp-header": "same"},
                }}),
                "another property",
            ),
        ] {
            let refused = param_headers(&schema).expect_err("refused");
            assert!(refused.contains(part), "{schema}: {refused}");
        }
        // Data is not a schema.
        let data = property(json!({"type": "string", "default": {"x-mcp-header": ""}}));
        assert_eq!(param_headers(&data), Ok(Vec::new()));
    }

    #[test]
    fn a_bottomless_schema_is_refused() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"properties": {"a": schema}});
        }
        assert!(param_headers(&schema).is_err());
    }

    proptest! {
        #[test]
        fn what_is_encoded_says_what_it_was(value in ".*") {
            let header = encode(&value);
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert!(says(&header, &value));
        }
    }
}
