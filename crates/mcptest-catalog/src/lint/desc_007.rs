//! DESC-007: an enum-typed argument has a description that mentions none of the enum values.

use serde_json::Value;

use super::{Hit, Rule, Severity, Smell, schema};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-007",
    severity: Severity::Warning,
    title: "an enum-typed argument has a description that mentions none of the enum values",
    why: "The values are in the schema, but what they mean is not. A description that names them can explain when to use which. One mentioned value, in any case, is enough; a missing description is DESC-006.",
    bad: r#"{"name": "list_issues", "description": "List the issues of a project. Returns id and title of each.", "inputSchema": {"type": "object", "properties": {"state": {"type": "string", "description": "Which ones", "enum": ["open", "closed"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "list_issues", "description": "List the issues of a project. Returns id and title of each.", "inputSchema": {"type": "object", "properties": {"state": {"type": "string", "description": "`open` for issues to be done, `closed` for the others", "enum": ["open", "closed"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    smell: Some(Smell::Underspecified),
    check,
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let mut hits = Vec::new();
    for (name, property) in schema::properties(root) {
        let values: Vec<String> = schema::enumerated(root, property)
            .into_iter()
            .filter_map(shown)
            .collect();
        let text = schema::describe(root, property).to_lowercase();
        if values.is_empty()
            || text.is_empty()
            || values
                .iter()
                .any(|value| text.contains(&value.to_lowercase()))
        {
            continue;
        }
        let some = values
            .iter()
            .take(3)
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", ");
        hits.push(
            Hit::new(
                format!(
                    "the description of `{name}` mentions none of its {} values",
                    values.len()
                ),
                format!(
                    "describe the values: {some}{}",
                    if values.len() > 3 { " …" } else { "" }
                ),
            )
            .at(mcptest_json::pointer_join("/inputSchema/properties", name)),
        );
    }
    hits
}

/// A value as a description would write it. `null` and the empty string cannot be mentioned.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_mention_is_enough_and_no_description_is_another_rule() {
        let fires = |property: Value| {
            let tool = json!({"inputSchema": {"properties": {"x": property}}});
            !check(&Tool::from_listing(None, &tool).unwrap()).is_empty()
        };
        assert!(fires(
            json!({"enum": ["asc", "desc"], "description": "Order"})
        ));
        assert!(!fires(
            json!({"enum": ["asc", "desc"], "description": "ASC by default"})
        ));
        assert!(!fires(json!({"enum": ["asc", "desc"]})));
        assert!(fires(
            json!({"anyOf": [{"enum": ["a1", "b1"]}, {"type": "null"}], "description": "Order"})
        ));
        assert!(!fires(json!({"enum": [1, 2], "description": "1 or 2"})));
    }
}
