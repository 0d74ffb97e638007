//! DESC-006: a required argument has no description.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Check, Finding, Hit, Rule, Severity, Smell, description, schema, snippet, wording};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-006",
    severity: Severity::Warning,
    title: "a required argument has no description",
    why: "A model must fill a required argument on every call. Its name alone rarely shows which of two ids is meant, or in what format. A description in the definition that the argument refers to counts; a required name that the schema does not declare has none.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::Underspecified),
    check: Check::Tool(check),
};

fn check(tool: &Tool) -> Vec<Hit> {
    let root = tool.input_schema().unwrap_or(&Value::Null);
    let arguments = schema::properties(root);
    let mut hits = Vec::new();
    for name in schema::required(root) {
        let known = arguments.iter().find(|(argument, _)| *argument == name);
        if known.is_some_and(|(_, property)| schema::describes(root, property)) {
            continue;
        }
        let path = mcptest_json::pointer_join("/inputSchema/properties", name);
        let property = known.map_or(&Value::Null, |(_, property)| *property);
        let in_text = described_in_text(description(tool), name);
        let (suggestion, text) = match in_text {
            Some(text) => (
                format!("move what the tool's description has on `{name}` to the argument"),
                text.to_owned(),
            ),
            None => (
                format!("describe what `{name}` is and in what format"),
                wording::argument(name, property),
            ),
        };
        hits.push(
            Hit::new(
                format!("the required argument `{name}` has no description"),
                suggestion,
            )
            .at(path)
            .fix(fragment(name, property, &text))
            // A model reads it nevertheless.
            .minor_if(in_text.is_some() || is_described_inside(root, property)),
        );
    }
    hits
}

fn fragment(name: &str, property: &Value, text: &str) -> String {
    snippet::property(name, property, &[("description", json!(text))])
}

/// Returns true for an object, or a list of objects, all of whose properties have descriptions.
fn is_described_inside(root: &Value, property: &Value) -> bool {
    let inner = schema::resolve(root, property);
    let inner = inner
        .get("items")
        .map_or(inner, |items| schema::resolve(root, items));
    let inside = schema::properties(inner);
    !inside.is_empty() && inside.iter().all(|(_, one)| schema::describes(root, one))
}

/// The text on an argument in a list of arguments: `- city: Name of the city`.
fn described_in_text<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let marks = ['-', '*', '•', '`', '"', '\'', ' ', '\t'];
        let rest = line.trim_start_matches(marks).strip_prefix(name)?;
        let rest = rest.trim_start_matches(['`', '"', '\'', '*', ' ']);
        let rest = match rest.strip_prefix('(') {
            Some(kind) => kind.split_once(')')?.1.trim_start_matches(['`', '*', ' ']),
            None => rest,
        };
        let text = rest
            .strip_prefix(':')
            .or_else(|| rest.strip_prefix("- "))
            .or_else(|| rest.strip_prefix("– "))
            .or_else(|| rest.strip_prefix("— "))?;
        Some(text.trim_start_matches(['*', ' ']).trim()).filter(|text| !text.is_empty())
    })
}

/// The longest description that is borrowed.
const MAX_BORROWED: usize = 300;

/// Replaces the fixes for arguments that other tools of the catalog describe. At least two tools
/// must, all in the same words: words that only one tool has may be about that tool.
pub(super) fn borrow_descriptions(listed: &[Value], findings: &mut [Finding]) {
    let mut known: BTreeMap<(&str, String), Vec<(&str, &str)>> = BTreeMap::new();
    for entry in listed {
        let Some(name) = entry.get("name").and_then(Value::as_str) else {
            continue;
        };
        let root = entry.get("inputSchema").unwrap_or(&Value::Null);
        for (argument, property) in schema::properties(root) {
            let text = schema::describe(root, property);
            if !text.is_empty() && text.chars().count() <= MAX_BORROWED {
                let texts = known.entry((argument, kind(property))).or_default();
                texts.push((name, text));
            }
        }
    }
    let agreed = |texts: &Vec<(&str, &str)>| {
        texts.len() >= 2 && texts.windows(2).all(|pair| pair[0].1 == pair[1].1)
    };
    known.retain(|_, texts| agreed(texts));
    for finding in findings
        .iter_mut()
        .filter(|finding| finding.rule.as_deref() == Some(RULE.id) && !finding.minor)
    {
        let entry = listed.get(finding.index).unwrap_or(&Value::Null);
        let Some(path) = finding.path.as_deref() else {
            continue;
        };
        let Some((name, property)) =
            schema::properties(entry.get("inputSchema").unwrap_or(&Value::Null))
                .into_iter()
                .find(|(name, _)| {
                    mcptest_json::pointer_join("/inputSchema/properties", name) == path
                })
        else {
            continue;
        };
        let texts = known.get(&(name, kind(property)));
        if let Some((tool, text)) = texts.and_then(|texts| texts.first()) {
            finding.suggestion = Some(format!(
                "`{tool}` describes it; check that it is the same here"
            ));
            finding.fix = Some(fragment(name, property, text));
        }
    }
}

fn kind(property: &Value) -> String {
    property
        .get("type")
        .map(Value::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_found_where_the_author_wrote_it() {
        for (line, wanted) in [
            (
                "Args:\n    city: Name of the city",
                Some("Name of the city"),
            ),
            ("- `city` (string): Name", Some("Name")),
            ("* **city**: Name", Some("Name")),
            ("city - Name", Some("Name")),
            ("city of birth", None),
            ("citynames: all", None),
            ("", None),
        ] {
            assert_eq!(described_in_text(line, "city"), wanted, "{line}");
        }
    }

    #[test]
    fn another_tool_may_describe_the_argument() {
        let tool = |name: &str, owner: Value| {
            json!({"name": name, "description": "Get an issue of a repository.",
                "inputSchema": {"type": "object", "properties": {"owner": owner}, "required": ["owner"]}})
        };
        let fix = |listed: &[Value]| {
            let findings = super::super::lint(None, listed);
            let found = findings
                .into_iter()
                .find(|finding| finding.rule.as_deref() == Some("DESC-006"));
            found.and_then(|finding| finding.fix).unwrap_or_default()
        };
        let plain = tool("a", json!({"type": "string"}));
        let told = tool(
            "b",
            json!({"type": "string", "description": "User or organization"}),
        );
        let number = tool("b", json!({"type": "number", "description": "User id"}));
        assert_eq!(
            fix(&[plain.clone(), told.clone(), told.clone()]),
            r#""owner": {"type": "string", "description": "User or organization"}"#
        );
        let own =
            r#""owner": {"type": "string", "description": "Owner: <of what, in what format>."}"#;
        assert_eq!(fix(&[plain.clone(), number.clone(), number]), own);
        // One tool may mean something of its own.
        assert_eq!(fix(&[plain.clone(), told.clone()]), own);
        let other = tool(
            "c",
            json!({"type": "string", "description": "Owner of the key"}),
        );
        assert_eq!(fix(&[plain, told.clone(), told, other]), own);
    }
}
