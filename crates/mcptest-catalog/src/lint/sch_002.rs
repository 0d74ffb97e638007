//! SCH-002: additionalProperties is not false.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "SCH-002",
    severity: Severity::Warning,
    title: "additionalProperties is not false",
    why: "An object that accepts any property also accepts misspelt ones: the model believes that it set an argument, and the server never sees it. Nested objects count; objects without properties are skipped.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80}}, "required": []}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: None,
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let mut hits = Vec::new();
    schema::walk(
        tool.input_schema().unwrap_or(&Value::Null),
        &mut |path, inner| {
            if schema::has_properties(inner)
                && inner.get("additionalProperties") != Some(&Value::Bool(false))
            {
                hits.push(
                    Hit::new(
                        format!(
                            "{} accepts properties that it does not declare",
                            schema::place(path)
                        ),
                        "add `\"additionalProperties\": false`",
                    )
                    .at(path)
                    .fix(snippet::place(
                        path,
                        inner,
                        &[("additionalProperties", Value::Bool(false))],
                    )),
                );
            }
        },
    );
    hits
}
