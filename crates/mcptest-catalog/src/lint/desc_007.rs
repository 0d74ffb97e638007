//! DESC-007: an enum-typed argument has a description that mentions none of the enum values.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, Smell, mentions, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-007",
    severity: Severity::Warning,
    title: "an enum-typed argument has a description that mentions none of the enum values",
    why: "The values are in the schema, but what they mean is not. A description that names them can explain when to use which. One mentioned value, as a whole word in any case, is enough; a missing description is DESC-006.",
    bad: r#"{"name": "list_issues", "description": "List the issues of a project. Returns id and title of each.", "inputSchema": {"type": "object", "properties": {"state": {"type": "string", "description": "Which ones", "enum": ["open", "closed"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "list_issues", "description": "List the issues of a project. Returns id and title of each.", "inputSchema": {"type": "object", "properties": {"state": {"type": "string", "description": "`open` for issues to be done, `closed` for the others", "enum": ["open", "closed"], "default": "open"}}, "required": [], "additionalProperties": false}, "annotations": {}}"#,
    smell: Some(Smell::Underspecified),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let mut hits = Vec::new();
    for (name, property) in schema::properties(root) {
        let values: Vec<String> = schema::enumerated(root, property)
            .into_iter()
            .filter_map(shown)
            .collect();
        let text = schema::describe(root, property);
        if values.is_empty() || text.is_empty() || values.iter().any(|value| mentions(text, value))
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
            .at(mcptest_json::pointer_join("/inputSchema/properties", name))
            .fix(snippet::property(
                name,
                property,
                &[("description", explained(text, &values).into())],
            ))
            .minor_if(!is_cryptic(&values)),
        );
    }
    hits
}

/// The number of values that a fix lists.
const MAX_EXPLAINED: usize = 12;

/// The description with a place for the meaning of each value.
fn explained(text: &str, values: &[String]) -> String {
    let mut each: Vec<String> = values
        .iter()
        .take(MAX_EXPLAINED)
        .map(|value| format!("`{value}`: <when>"))
        .collect();
    if values.len() > MAX_EXPLAINED {
        each.push("<the others>".to_owned());
    }
    let stop = if text.ends_with(['.', '!', '?', ':']) {
        ""
    } else {
        "."
    };
    format!("{text}{stop} {}.", each.join(", "))
}

/// Returns true if the values do not explain themselves: numbers, or codes of one or two
/// characters. A long list of codes is a standard that a model knows.
fn is_cryptic(values: &[String]) -> bool {
    let short = |value: &String| value.chars().count() <= 2 || value.parse::<f64>().is_ok();
    let cryptic = values.iter().filter(|value| short(value)).count();
    (2..=MAX_EXPLAINED).contains(&values.len()) && cryptic * 2 >= values.len()
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
        // Whole words only.
        assert!(fires(
            json!({"enum": ["asc", "desc"], "description": "A description of the order"})
        ));
        assert!(fires(json!({"enum": ["a", "b"], "description": "Grade"})));
        assert!(!fires(
            json!({"enum": ["a", "b"], "description": "Grade, (A)"})
        ));
        assert!(!fires(json!({"enum": ["<=", ">"], "description": "x<=y"})));
    }
}
