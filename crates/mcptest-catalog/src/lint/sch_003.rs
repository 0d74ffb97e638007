//! SCH-003: a property has neither type, enum, const, $ref nor a combinator.

use serde_json::Value;

use super::{Hit, Rule, Severity, schema};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "SCH-003",
    severity: Severity::Critical,
    title: "a property has neither type, enum, const, $ref nor a combinator",
    why: "Such a property allows everything, so a model has to guess what it is, and no client can check a call before it is made. Nested properties count.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"description": "Name of the city", "example": "Lima"}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check,
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
                        .at(at),
                    );
                }
            }
        },
    );
    hits
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
}
