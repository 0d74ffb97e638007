//! SCH-003: a property has neither type, enum, const, $ref nor a combinator.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, mentions, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "SCH-003",
    severity: Severity::Critical,
    title: "a property has neither type, enum, const, $ref nor a combinator",
    why: "Such a property allows everything, so a model has to guess what it is, and no client can check a call before it is made. Nested properties count.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"description": "Name of the city", "example": "Lima"}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check: Check::Tool(check),
};

/// Keywords that define a value; one of them is enough.
const KINDS: [&str; 8] = [
    "type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "not",
];

fn check(tool: &Tool) -> Vec<Hit> {
    let mut hits = Vec::new();
    schema::walk(
        tool.input_schema().unwrap_or(&Value::Null),
        &mut |path, inner| {
            for (name, property) in schema::properties(inner) {
                let has_kind = KINDS.iter().any(|key| property.get(key).is_some());
                // `false` forbids the property, which is strict enough.
                if !has_kind && property != &Value::Bool(false) {
                    let at = mcptest_json::pointer_join(&format!("{path}/properties"), name);
                    hits.push(
                        Hit::new(
                            format!("{} has no type", schema::place(&at)),
                            "add a `type`, an `enum`, or a `$ref` to a definition that has one",
                        )
                        .fix(snippet::property(
                            name,
                            property,
                            &[("type", evident_type(property).into())],
                        ))
                        .at(at),
                    );
                }
            }
        },
    );
    hits
}

/// The type that the other keywords imply, or a placeholder with the choices.
fn evident_type(property: &Value) -> &'static str {
    let has = |keys: &[&str]| keys.iter().any(|key| property.get(key).is_some());
    let samples = property.get("examples").and_then(Value::as_array);
    let sample = property
        .get("default")
        .or_else(|| property.get("example"))
        .or_else(|| samples.and_then(|samples| samples.first()));
    if has(&["properties", "additionalProperties", "patternProperties"]) {
        "object"
    } else if has(&[
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
    ]) {
        "array"
    } else if has(&["minLength", "maxLength", "pattern", "format"]) {
        "string"
    } else if has(&["minimum", "maximum", "multipleOf"]) {
        "number"
    } else {
        match sample {
            Some(Value::String(_)) => "string",
            Some(Value::Bool(_)) => "boolean",
            Some(Value::Number(number)) if number.is_f64() => "number",
            Some(Value::Number(_)) => "integer",
            Some(Value::Array(_)) => "array",
            Some(Value::Object(_)) => "object",
            Some(Value::Null) | None => described_type(property)
                .unwrap_or("<string, number, integer, boolean, array or object>"),
        }
    }
}

/// The only type that the description names.
fn described_type(property: &Value) -> Option<&'static str> {
    let text = property.get("description").and_then(Value::as_str)?;
    let named: Vec<&str> = ["string", "number", "integer", "boolean", "array", "object"]
        .into_iter()
        .filter(|kind| mentions(text, kind))
        .collect();
    match named.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_is_enough() {
        let fires = |property: Value| {
            let tool = json!({"inputSchema": {"properties": {"x": property}}});
            !check(&Tool::from_listing(None, &tool).unwrap()).is_empty()
        };
        for key in KINDS {
            assert!(!fires(json!({key: []})), "{key}");
        }
        assert!(fires(json!({"description": "anything"})));
        assert!(fires(json!(true)));
        assert!(fires(json!(null)));
        assert!(!fires(json!(false)));
    }

    #[test]
    fn the_fix_has_the_type_that_the_schema_implies() {
        for (property, wanted) in [
            (
                json!({"default": 3}),
                r#""x": {"default": 3, "type": "integer"}"#,
            ),
            (
                json!({"items": {}}),
                r#""x": {"items": {}, "type": "array"}"#,
            ),
            (
                json!({"description": "Must be a string"}),
                r#""x": {"description": "Must be a string", "type": "string"}"#,
            ),
            (
                json!({}),
                r#""x": {"type": "<string, number, integer, boolean, array or object>"}"#,
            ),
        ] {
            let tool = json!({"inputSchema": {"properties": {"x": property}}});
            let hits = check(&Tool::from_listing(None, &tool).unwrap());
            assert_eq!(hits[0].fix.as_deref(), Some(wanted));
        }
    }
}
