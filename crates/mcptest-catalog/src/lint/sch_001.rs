//! SCH-001: an object schema has properties but no required list.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "SCH-001",
    severity: Severity::Warning,
    title: "an object schema has properties but no required list",
    why: "Without the list it is unclear if every argument is optional or the author forgot it. An empty list makes all optional. Nested objects count; an object without properties has nothing to require.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80}}, "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let mut hits = Vec::new();
    schema::walk(
        tool.input_schema().unwrap_or(&Value::Null),
        &mut |path, inner| {
            if schema::has_properties(inner) && !inner.get("required").is_some_and(Value::is_array)
            {
                hits.push(
                    Hit::new(
                        format!(
                            "{} has properties but no `required` list",
                            schema::place(path)
                        ),
                        "list the required properties; `\"required\": []` if there are none",
                    )
                    .at(path)
                    .fix(snippet::place(
                        path,
                        inner,
                        &[("required", Value::Array(Vec::new()))],
                    )),
                );
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
    fn an_empty_list_is_a_list_and_nested_objects_count() {
        let count = |schema: Value| {
            check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap()).len()
        };
        let inner = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(count(inner.clone()), 1);
        assert_eq!(count(json!({"type": "object"})), 0);
        assert_eq!(count(json!({"type": "object", "properties": {}})), 0);
        assert_eq!(
            count(json!({"properties": {"a": inner}, "required": []})),
            1
        );
        assert_eq!(
            count(json!({"properties": {"a": {"type": "array", "items": inner}}})),
            2
        );
        assert_eq!(
            count(
                json!({"properties": {"a": {"anyOf": [inner, {"type": "null"}]}}, "required": []})
            ),
            1
        );
        assert_eq!(
            count(json!({"properties": {"a": {"not": inner}}, "required": []})),
            0
        );
    }
}
