//! DESC-009: a tool with a non-trivial input schema provides no usage examples.

use serde_json::Value;

use super::{Hit, Rule, Severity, Smell, schema};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-009",
    severity: Severity::Warning,
    title: "a tool with a non-trivial input schema provides no usage examples",
    why: "Examples show what a schema cannot: formats, idioms, which optional arguments go together. Published guidance reports 72 % to 90 % accuracy on complex parameters after adding them. A schema is non-trivial with more than one property, or with one that is required or not a plain string. An `examples` array of the tool or its schema counts, and so does any argument with `examples`, `example` or `default`.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::MissingExamples),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let arguments = schema::properties(root);
    let required = schema::required(root);
    let trivial = match arguments.as_slice() {
        [] => true,
        [(name, property)] => {
            !required.contains(name) && property.get("type").is_some_and(|kind| kind == "string")
        }
        _ => false,
    };
    let listed = |value: Option<&Value>| {
        value
            .and_then(|value| value.get("examples"))
            .is_some_and(Value::is_array)
    };
    let shown = tool.raw().get("examples").is_some_and(Value::is_array)
        || listed(tool.input_schema())
        || arguments.iter().any(|(_, property)| {
            ["examples", "example", "default"]
                .iter()
                .any(|key| property.get(key).is_some())
        });
    if trivial || shown {
        return Vec::new();
    }
    vec![
        Hit::new(
            format!("{} arguments and no example", arguments.len())
                .replace("1 arguments", "1 argument"),
            "give at least one argument `examples`, or the tool an `examples` array",
        )
        .at("/inputSchema"),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fires(schema: Value) -> bool {
        !check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap()).is_empty()
    }

    #[test]
    fn examples_are_required_for_non_trivial_schemas() {
        assert!(!fires(json!({"properties": {}})));
        assert!(!fires(json!({"properties": {"q": {"type": "string"}}})));
        assert!(fires(
            json!({"properties": {"q": {"type": "string"}}, "required": ["q"]})
        ));
        assert!(fires(json!({"properties": {"q": {"type": "integer"}}})));
        assert!(fires(
            json!({"properties": {"q": {"type": "string"}, "r": {"type": "string"}}})
        ));
        for key in ["examples", "example", "default"] {
            assert!(!fires(
                json!({"properties": {"q": {"type": "integer", key: 1}, "r": {}}})
            ));
        }
    }
}
