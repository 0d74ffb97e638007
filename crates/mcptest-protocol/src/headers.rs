//! The headers of revision 2026-07-28, which repeat parts of a message so that a gateway need not
//! read bodies.
//!
//! `Mcp-Method` is the method, `Mcp-Name` the tool, prompt, resource or task that it is about. A
//! tool can name further arguments to repeat: a property of its input schema with
//! `"x-mcp-header": "Region"` is sent as `Mcp-Param-Region`.

use serde_json::Value;

use crate::base64;

/// The deepest level of a schema that is searched for annotations.
const MAX_DEPTH: usize = 64;

const ENCODED_PREFIX: &str = "=?base64?";
const ENCODED_SUFFIX: &str = "?=";

/// The value of `Mcp-Name`, for a method that has it.
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

/// Encodes a value for a header: a string that a header cannot carry becomes Base64.
#[must_use]
pub fn encode(value: &str) -> String {
    let is_space = |c: Option<char>| c.is_some_and(|c| matches!(c, ' ' | '\t'));
    let needs_encoding = is_space(value.chars().next())
        || is_space(value.chars().next_back())
        || value.chars().any(|c| !(' '..='~').contains(&c))
        || (value.starts_with(ENCODED_PREFIX) && value.ends_with(ENCODED_SUFFIX));
    if needs_encoding {
        let encoded = base64::encode(value.as_bytes());
        format!("{ENCODED_PREFIX}{encoded}{ENCODED_SUFFIX}")
    } else {
        value.to_owned()
    }
}

/// Returns true if a header has this value, plain or encoded.
#[must_use]
pub fn has_value(header: &str, value: &str) -> bool {
    match header
        .strip_prefix(ENCODED_PREFIX)
        .and_then(|rest| rest.strip_suffix(ENCODED_SUFFIX))
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

    /// The header's value for these arguments; `None` if the argument is absent, null, an array or
    /// an object.
    #[must_use]
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self
            .path
            .iter()
            .try_fold(arguments, |value, key| value.get(key))?;
        match value {
            Value::String(string) => Some(string.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// An `x-mcp-header` annotation that violates the protocol; the tool must not be called over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnnotationError {
    /// The schema is nested too deeply to be searched.
    #[error("the input schema has more than {MAX_DEPTH} levels")]
    TooDeep,
    /// The annotation is on the schema itself.
    #[error("`x-mcp-header` is on the whole input schema, not on a property")]
    OnRoot,
    /// The annotation is in a subschema that applies to some instances only.
    #[error("`x-mcp-header` of property `{0}` cannot be reached by `properties` alone")]
    Unreachable(String),
    /// The annotation is not a string.
    #[error("`x-mcp-header` of property `{0}` is not a string")]
    NotAString(String),
    /// The annotation is the empty string.
    #[error("`x-mcp-header` of property `{0}` is empty")]
    Empty(String),
    /// The annotation has characters that a header name cannot have.
    #[error("`x-mcp-header` of property `{0}` has characters that a header name cannot have")]
    InvalidName(String),
    /// The property's type has no header form.
    #[error("`x-mcp-header` of property `{0}` needs the type string, integer or boolean")]
    UnsupportedType(String),
    /// Two properties name the same header.
    #[error("`x-mcp-header` of property `{0}` names a header that another property names too")]
    Duplicate(String),
}

/// Collects the arguments of a tool that headers repeat.
///
/// # Errors
/// The first annotation that violates the protocol.
pub fn param_headers(input_schema: &Value) -> Result<Vec<ParamHeader>, AnnotationError> {
    let mut found = Vec::new();
    collect(input_schema, &mut Vec::new(), Scope::Root, 0, &mut found)?;
    Ok(found)
}

/// The position of a subschema, as far as it matters for annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Root,
    /// Reached from the root by `properties` alone.
    Property,
    /// Anywhere else: the instance decides whether it applies.
    Conditional,
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    scope: Scope,
    depth: usize,
    found: &mut Vec<ParamHeader>,
) -> Result<(), AnnotationError> {
    let Some(object) = schema.as_object() else {
        return Ok(());
    };
    if depth > MAX_DEPTH {
        return Err(AnnotationError::TooDeep);
    }
    if let Some(annotation) = object.get("x-mcp-header") {
        found.push(param_header(annotation, schema, path, scope, found)?);
    }
    for (key, value) in object {
        match key.as_str() {
            "properties" => {
                let inner = match scope {
                    Scope::Root | Scope::Property => Scope::Property,
                    Scope::Conditional => Scope::Conditional,
                };
                for (name, property) in value.as_object().into_iter().flatten() {
                    path.push(name.clone());
                    collect(property, path, inner, depth + 1, found)?;
                    path.pop();
                }
            }
            "$defs" | "definitions" | "dependentSchemas" | "patternProperties" => {
                for subschema in value.as_object().into_iter().flat_map(|map| map.values()) {
                    collect(subschema, path, Scope::Conditional, depth + 1, found)?;
                }
            }
            // Values, not schemas.
            "default" | "const" | "enum" | "examples" => {}
            _ => {
                let items = value
                    .as_array()
                    .map_or(std::slice::from_ref(value), Vec::as_slice);
                for subschema in items {
                    collect(subschema, path, Scope::Conditional, depth + 1, found)?;
                }
            }
        }
    }
    Ok(())
}

fn param_header(
    annotation: &Value,
    schema: &Value,
    path: &[String],
    scope: Scope,
    others: &[ParamHeader],
) -> Result<ParamHeader, AnnotationError> {
    let property = path.join(".");
    match scope {
        Scope::Root => return Err(AnnotationError::OnRoot),
        Scope::Conditional => return Err(AnnotationError::Unreachable(property)),
        Scope::Property => {}
    }
    let Some(suffix) = annotation.as_str() else {
        return Err(AnnotationError::NotAString(property));
    };
    if suffix.is_empty() {
        return Err(AnnotationError::Empty(property));
    }
    // RFC 9110, section 5.6.2: the characters of a header name.
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if !suffix.chars().all(is_token) {
        return Err(AnnotationError::InvalidName(property));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => {}
        _ => return Err(AnnotationError::UnsupportedType(property)),
    }
    let name = format!("Mcp-Param-{suffix}");
    if others
        .iter()
        .any(|other| other.name.eq_ignore_ascii_case(&name))
    {
        return Err(AnnotationError::Duplicate(property));
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
    fn only_unsafe_values_are_encoded() {
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
        assert!(has_value("=?base64?SGVsbG8=?=", "Hello"));
        assert!(has_value("=?base64?w7bDpA==?=", "öä"));
        assert!(has_value("Hello", "Hello"));
        // Without both delimiters it is a plain value.
        assert!(has_value("=?base64?SGVsbG8=", "=?base64?SGVsbG8="));
        for wrong in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "SGVsbG8="] {
            assert!(!has_value(wrong, "Hello"), "{wrong}");
        }
    }

    #[test]
    fn annotated_arguments_at_any_depth_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "plain": {"type": "string"},
            "where": {"type": "object", "properties": {
                "row": {"type": "integer", "x-mcp-header": "Row"},
            }},
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
    fn invalid_annotations_are_rejected() {
        let property = |property: Value| json!({"type": "object", "properties": {"a": property}});
        let string = |name: &str| property(json!({"type": "string", "x-mcp-header": name}));
        for (schema, part) in [
            (string(""), "is empty"),
            (string("My Region"), "characters"),
            (string("Region:1"), "characters"),
            (string("Région"), "characters"),
            (string("Region\t1"), "characters"),
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
            let error = param_headers(&schema).expect_err("rejected").to_string();
            assert!(error.contains(part), "{schema}: {error}");
        }
        // Data is not a schema.
        let data = property(json!({"type": "string", "default": {"x-mcp-header": ""}}));
        assert_eq!(param_headers(&data), Ok(Vec::new()));
    }

    #[test]
    fn a_schema_that_is_nested_too_deeply_is_rejected() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"properties": {"a": schema}});
        }
        assert_eq!(param_headers(&schema), Err(AnnotationError::TooDeep));
    }

    proptest! {
        #[test]
        fn an_encoded_header_has_its_value(value in ".*") {
            let header = encode(&value);
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert!(has_value(&header, &value));
        }
    }
}
