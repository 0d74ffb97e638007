//! TOOL-002: inputSchema is not an object schema.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "TOOL-002",
    severity: Severity::Critical,
    title: "inputSchema is not an object schema",
    why: "The protocol requires an input schema of type object for every tool, even without arguments. Strict clients drop the tool, or the whole list.",
    bad: r#"{"name": "now", "description": "Get the current time. Returns an RFC 3339 text.", "annotations": {}}"#,
    good: r#"{"name": "now", "description": "Get the current time. Returns an RFC 3339 text.", "inputSchema": {"type": "object"}, "annotations": {}}"#,
    smell: None,
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let message = match tool.input_schema() {
        None => "there is no `inputSchema`",
        Some(Value::Object(schema)) => match schema.get("type") {
            Some(Value::String(kind)) if kind == "object" => return Vec::new(),
            None => "`inputSchema` has no `type`",
            Some(_) => "the `type` of `inputSchema` is not `object`",
        },
        Some(_) => "`inputSchema` is not an object",
    };
    vec![
        Hit::new(
            message,
            "write `\"inputSchema\": {\"type\": \"object\"}` for a tool without arguments",
        )
        .at("/inputSchema")
        .fix(fix(tool)),
    ]
}

fn fix(tool: &Tool) -> String {
    match tool.input_schema() {
        Some(schema @ Value::Object(_)) => {
            snippet::property("inputSchema", schema, &[("type", "object".into())])
        }
        _ => r#""inputSchema": {"type": "object"}"#.to_owned(),
    }
}
