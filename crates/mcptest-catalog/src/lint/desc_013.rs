//! DESC-013: a string argument lists its allowed values in the description but declares no enum.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, Smell, prose, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-013",
    severity: Severity::Warning,
    title: "a string argument lists its allowed values in the description but declares no enum",
    why: "A model can misread a sentence, and the server then rejects the call. An `enum` makes the wrong value impossible where the client checks, and visible where it does not. It is the inverse of DESC-007.",
    bad: r#"{"name": "set_status", "description": "Set the status of an issue. Returns the issue as it is then.", "inputSchema": {"type": "object", "properties": {"status": {"type": "string", "description": "The new status, one of open, closed, or pending", "default": "open", "maxLength": 9}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "set_status", "description": "Set the status of an issue. Returns the issue as it is then.", "inputSchema": {"type": "object", "properties": {"status": {"type": "string", "description": "The new status, one of open, closed, or pending", "enum": ["open", "closed", "pending"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    smell: Some(Smell::Underspecified),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let mut hits = Vec::new();
    for (name, property) in schema::properties(root) {
        if !allows_string(root, property, MAX_DEPTH)
            || !schema::enumerated(root, property).is_empty()
        {
            continue;
        }
        if let Some(values) = prose::allowed_values(schema::describe(root, property)) {
            let list = serde_json::to_string(&values).unwrap_or_default();
            hits.push(
                Hit::new(
                    format!("`{name}` lists its allowed values only in its description"),
                    format!("add \"enum\": {list}"),
                )
                .at(mcptest_json::pointer_join("/inputSchema/properties", name))
                .fix(snippet::property(
                    name,
                    property,
                    &[("enum", values.into())],
                )),
            );
        }
    }
    hits
}

/// The maximum nesting of alternatives: a schema may refer to itself.
const MAX_DEPTH: usize = 8;

/// Returns true if a schema allows a string, as far as it declares types.
fn allows_string(root: &Value, property: &Value, depth: usize) -> bool {
    let inner = schema::resolve(root, property);
    if inner.get("type").is_some() {
        return schema::is_type(inner, "string");
    }
    let alternatives =
        ["anyOf", "oneOf", "allOf"].map(|key| inner.get(key).and_then(Value::as_array));
    let mut alternatives = alternatives.into_iter().flatten().flatten().peekable();
    depth == 0
        || alternatives.peek().is_none()
        || alternatives.any(|alternative| allows_string(root, alternative, depth - 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_arguments_that_can_be_strings_are_checked() {
        let fires = |mut property: Value| {
            property["description"] = json!("One of: a1, b1");
            let schema = json!({"properties": {"x": property}, "$defs": {"loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}});
            !check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap()).is_empty()
        };
        assert!(fires(json!({})));
        assert!(fires(json!({"type": "string"})));
        assert!(fires(json!({"type": ["string", "null"]})));
        assert!(fires(
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]})
        ));
        assert!(fires(json!({"anyOf": [{"$ref": "#/$defs/loop"}]})));
        assert!(!fires(json!({"type": "integer"})));
        assert!(!fires(json!({"allOf": [{"type": "object"}]})));
        assert!(!fires(
            json!({"anyOf": [{"type": "array"}, {"type": "null"}]})
        ));
        assert!(!fires(json!({"type": "string", "enum": ["a1"]})));
        assert!(!fires(
            json!({"anyOf": [{"enum": ["a1", "b1"]}, {"type": "null"}]})
        ));
    }
}
