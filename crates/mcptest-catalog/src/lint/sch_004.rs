//! SCH-004: a string or array has no upper bound.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "SCH-004",
    severity: Severity::Warning,
    title: "a string or array has no upper bound",
    why: "A model that loops can fill an unbounded argument with megabytes, and a server that trusts its schema accepts them. A string is bounded by `maxLength`, `enum`, `const`, `format` or `pattern`, an array by `maxItems`. Nested ones count.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check: Check::Tool(check),
};

const BOUNDS: [&str; 5] = ["maxLength", "enum", "const", "format", "pattern"];

fn check(tool: &Tool) -> Vec<Hit> {
    let mut hits = Vec::new();
    schema::walk(
        tool.input_schema().unwrap_or(&Value::Null),
        &mut |path, inner| {
            let open_string = schema::is_type(inner, "string")
                && !BOUNDS.iter().any(|key| inner.get(key).is_some());
            let open_array = schema::is_type(inner, "array") && inner.get("maxItems").is_none();
            // One finding per place, whatever is unbounded.
            let (what, cure) = match (open_string, open_array) {
                (true, true) => (
                    "a string or an array of any length",
                    "add `maxItems`, and `maxLength`, `enum`, `format` or `pattern`",
                ),
                (true, false) => (
                    "a string of any length",
                    "add `maxLength`, `enum`, `format` or `pattern`",
                ),
                (false, true) => ("an array of any length", "add `maxItems`"),
                (false, false) => return,
            };
            let mut added = Vec::new();
            if open_array {
                added.push(("maxItems", snippet::number("most elements")));
            }
            if open_string {
                added.push(("maxLength", snippet::number("most characters")));
            }
            hits.push(
                Hit::new(format!("{} is {what}", schema::place(path)), cure)
                    .at(path)
                    .fix(snippet::place(path, inner, &added))
                    .weight(usize::from(open_array)),
            );
        },
    );
    hits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_and_arrays_anywhere() {
        let count = |schema: Value| {
            check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap()).len()
        };
        assert_eq!(
            count(json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}})),
            2
        );
        assert_eq!(
            count(json!({"properties": {"a": {"type": ["string", "null"]}}})),
            1
        );
        for key in BOUNDS {
            assert_eq!(
                count(json!({"properties": {"a": {"type": "string", key: 1}}})),
                0,
                "{key}"
            );
        }
        assert_eq!(
            count(json!({"properties": {"a": {"type": "array", "maxItems": 3}}})),
            0
        );
        // A place is reported once, and one bound of two is not enough.
        let either = json!(["string", "array"]);
        assert_eq!(count(json!({"properties": {"a": {"type": either}}})), 1);
        assert_eq!(
            count(json!({"properties": {"a": {"type": either, "maxItems": 3}}})),
            1
        );
        assert_eq!(
            count(json!({"properties": {"a": {"type": either, "maxLength": 3}}})),
            1
        );
        assert_eq!(
            count(json!({"properties": {"a": {"type": either, "maxItems": 3, "maxLength": 3}}})),
            0
        );
    }
}
