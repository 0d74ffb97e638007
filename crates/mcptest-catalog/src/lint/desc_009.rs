//! DESC-009: a tool with a non-trivial input schema provides no usage examples.

use serde_json::Value;

use super::{Check, Hit, Rule, Severity, Smell, description, schema, snippet};
use mcptest_trace::catalog::Tool;

pub(super) const RULE: Rule = Rule {
    id: "DESC-009",
    severity: Severity::Warning,
    title: "a tool with a non-trivial input schema provides no usage examples",
    why: "Examples show what a schema cannot: formats, idioms, which optional arguments go together. Published guidance reports 72 % to 90 % accuracy on complex parameters after adding them. A schema is non-trivial with more than one property, or with one that is required or not a plain string. An `examples` array of the tool or its schema counts, and so does any argument with `examples`, `example` or `default`.",
    bad: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80}}, "required": ["city"], "additionalProperties": false}, "annotations": {}}"#,
    good: r#"{"name": "get_weather", "description": "Get the current weather of a city. Returns temperature and sky as text.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Name of the city", "maxLength": 80, "examples": ["Lima"]}}, "required": ["city"], "additionalProperties": false}, "annotations": {"readOnlyHint": true}}"#,
    smell: Some(Smell::MissingExamples),
    check: Check::Tool(check),
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
        .at("/inputSchema")
        .fix(example(root, &arguments, &required))
        .weight(complexity(root, &arguments))
        .minor_if(complexity(root, &arguments) < COMPLEX || has_prose_example(tool, &arguments)),
    ]
}

/// Returns true if a description gives an example in a sentence: a model reads that too.
fn has_prose_example(tool: &Tool, arguments: &[(&str, &Value)]) -> bool {
    let texts = arguments
        .iter()
        .filter_map(|(_, property)| property.get("description")?.as_str());
    texts.chain([description(tool)]).any(|text| {
        let text = text.to_lowercase();
        ["e.g.", "example", "for instance", "such as"]
            .iter()
            .any(|sign| text.contains(sign))
    })
}

/// From this complexity on, a missing example is more than a detail.
const COMPLEX: usize = 8;

/// The number of arguments, and seven more for each argument with structure.
fn complexity(root: &Value, arguments: &[(&str, &Value)]) -> usize {
    let nested = arguments
        .iter()
        .filter(|(_, property)| is_nested(root, property))
        .count();
    arguments.len() + 7 * nested
}

/// Returns true for an object with properties, and for a list of them.
fn is_nested(root: &Value, property: &Value) -> bool {
    let inner = schema::resolve(root, property);
    let items = inner.get("items").map(|items| schema::resolve(root, items));
    schema::has_properties(inner) || items.is_some_and(schema::has_properties)
}

/// `examples` for the argument that needs them most: one with structure, else a required one,
/// else the first.
fn example(root: &Value, arguments: &[(&str, &Value)], required: &[&str]) -> String {
    let plain = |property: &Value| {
        schema::is_type(property, "boolean") || !schema::enumerated(root, property).is_empty()
    };
    let chosen = arguments
        .iter()
        .find(|(_, property)| is_nested(root, property))
        .or_else(|| {
            arguments
                .iter()
                .find(|(name, property)| required.contains(name) && !plain(property))
        })
        .or_else(|| arguments.iter().find(|(_, property)| !plain(property)))
        .or(arguments.first());
    let Some((name, property)) = chosen else {
        return snippet::member("examples", &serde_json::json!(["<a typical call>"]));
    };
    let value = snippet::example(root, name, property, 3);
    snippet::member(name, &serde_json::json!({ "examples": [value] }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fires(schema: Value) -> bool {
        !check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap()).is_empty()
    }

    #[test]
    fn an_example_in_a_sentence_makes_it_minor() {
        let hits = |text: &str| {
            let items = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let data = json!({"type": "array", "items": items, "description": text});
            let schema = json!({"properties": {"data": data}, "required": ["data"]});
            check(&Tool::from_listing(None, &json!({"inputSchema": schema})).unwrap())
        };
        let [plain, prose] = ["Rows", "Rows, e.g. [{a: 1}]"].map(|text| hits(text)[0].minor);
        assert_eq!((plain, prose), (false, true));
        assert_eq!(
            hits("Rows")[0].fix.as_deref(),
            Some(r#""data": {"examples": [[{"a": "<a typical a>"}]]}"#)
        );
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
