//! Safe fixes, which cannot break a caller that follows the current schema: strictness where the
//! schema is silent, and an `enum` where the description lists the values.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{label, prose, schema};
use mcptest_json::pointer_join;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The tool.
    pub tool: String,
    /// The rule that it fixes.
    pub rule: &'static str,
    /// The place in the tool, as a JSON pointer.
    pub path: String,
    /// The change.
    pub change: String,
}

/// Applies every safe fix. Entries and keys keep their order; new keys are added at the end of
/// their object.
#[must_use]
pub fn fix(listed: &[Value]) -> (Vec<Value>, Vec<Change>) {
    let mut fixed = listed.to_vec();
    let mut changes = Vec::new();
    for (index, entry) in fixed.iter_mut().enumerate() {
        let tool = label(index, entry);
        if let Some(root) = entry.get_mut("inputSchema") {
            let mut add = |rule, path: &str, change: String| {
                changes.push(Change {
                    tool: tool.clone(),
                    rule,
                    path: path.to_owned(),
                    change,
                });
            };
            enums(root, &mut add);
            strict("/inputSchema", root, 0, false, &mut add);
        }
    }
    (fixed, changes)
}

type Add<'a> = dyn FnMut(&'static str, &str, String) + 'a;

/// DESC-013 for plain strings whose other keywords agree with the values.
fn enums(root: &mut Value, add: &mut Add<'_>) {
    let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else {
            continue;
        };
        let plain = property.get("type") == Some(&json!("string"))
            && [
                "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "pattern", "format",
            ]
            .iter()
            .all(|key| !property.contains_key(*key));
        let values = property
            .get("description")
            .and_then(Value::as_str)
            .and_then(prose::allowed_values);
        let Some(values) = values.filter(|values| plain && agrees(property, values)) else {
            continue;
        };
        let path = pointer_join("/inputSchema/properties", name);
        add("DESC-013", &path, format!("enum {}", json!(values)));
        property.insert("enum".to_owned(), json!(values));
    }
}

/// Returns true if default and examples are among the values.
fn agrees(property: &Map<String, Value>, values: &[String]) -> bool {
    let among = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| values.iter().any(|known| known == text))
    };
    let examples = property.get("examples").and_then(Value::as_array);
    property.get("default").is_none_or(among)
        && property.get("example").is_none_or(among)
        && examples.is_none_or(|examples| examples.iter().all(among))
}

/// SCH-001 and SCH-002 where the schema is silent. Objects that are combined with others are
/// skipped: `additionalProperties: false` in one part would reject the properties of the other.
fn strict(path: &str, node: &mut Value, depth: usize, combined: bool, add: &mut Add<'_>) {
    if depth > 60 {
        return;
    }
    let has_properties = schema::has_properties(node);
    let Some(map) = node.as_object_mut() else {
        return;
    };
    let combined = combined
        || [
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "$ref",
            "patternProperties",
            "unevaluatedProperties",
            "dependentSchemas",
        ]
        .iter()
        .any(|key| map.contains_key(*key));
    if has_properties && !map.contains_key("required") {
        map.insert("required".to_owned(), json!([]));
        add(
            "SCH-001",
            path,
            "an empty required list: nothing was required before".to_owned(),
        );
    }
    if has_properties && !combined && !map.contains_key("additionalProperties") {
        map.insert("additionalProperties".to_owned(), json!(false));
        add("SCH-002", path, "additionalProperties false".to_owned());
    }
    for (key, value) in map {
        let at = pointer_join(path, key);
        match key.as_str() {
            // A definition may be combined with something where it is used.
            "$defs" | "definitions" => each(&at, value, depth, true, add),
            "properties" | "patternProperties" => each(&at, value, depth, false, add),
            "items" | "additionalProperties" if value.is_object() => {
                strict(&at, value, depth + 1, false, add)
            }
            "items" | "prefixItems" | "oneOf" | "anyOf" => list(&at, value, depth, false, add),
            "allOf" => list(&at, value, depth, true, add),
            _ => {}
        }
    }
}

fn each(path: &str, value: &mut Value, depth: usize, combined: bool, add: &mut Add<'_>) {
    for (name, inner) in value.as_object_mut().into_iter().flatten() {
        strict(&pointer_join(path, name), inner, depth + 1, combined, add);
    }
}

fn list(path: &str, value: &mut Value, depth: usize, combined: bool, add: &mut Add<'_>) {
    for (index, inner) in value.as_array_mut().into_iter().flatten().enumerate() {
        strict(&format!("{path}/{index}"), inner, depth + 1, combined, add);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Finding, lint};
    use super::*;

    fn schema(schema: Value) -> Value {
        let (fixed, _) = fix(&[json!({"name": "x", "inputSchema": schema})]);
        fixed[0]["inputSchema"].clone()
    }

    #[test]
    fn the_default_strictness() {
        assert_eq!(
            schema(json!({"type": "object", "properties": {"a": {"type": "string"}}})),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": [], "additionalProperties": false})
        );
        // Explicit values stay, even if a rule flags them.
        let open = json!({"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": true});
        assert_eq!(schema(open.clone()), open);
    }

    #[test]
    fn combined_objects_stay_open() {
        let part = json!({"properties": {"a": {"type": "string"}}, "required": []});
        let combined =
            json!({"allOf": [part, {"properties": {"b": {"type": "string"}}, "required": []}]});
        assert_eq!(schema(combined.clone()), combined);
    }

    #[test]
    fn an_enum_from_prose() {
        let property = json!({"type": "string", "description": "One of: open, closed."});
        let fixed = schema(json!({"properties": {"state": property}}));
        assert_eq!(
            fixed["properties"]["state"]["enum"],
            json!(["open", "closed"])
        );
        let default =
            json!({"type": "string", "description": "One of: open, closed.", "default": "all"});
        let fixed = schema(json!({"properties": {"state": default}}));
        assert_eq!(fixed["properties"]["state"].get("enum"), None);
    }

    #[test]
    fn each_change_answers_findings_and_a_second_time_changes_nothing() {
        let listed = [
            json!({"name": "x", "description": "Get things", "inputSchema": {"type": "object", "properties": {
                "state": {"type": "string", "description": "One of: open, closed."},
                "filter": {"type": "object", "properties": {"a": {"type": "integer"}}}
            }}}),
        ];
        let (fixed, changes) = fix(&listed);
        let rules: Vec<_> = changes.iter().map(|change| change.rule).collect();
        assert_eq!(
            rules,
            ["DESC-013", "SCH-001", "SCH-002", "SCH-001", "SCH-002"]
        );
        assert_eq!(fix(&fixed), (fixed.clone(), Vec::new()));
        let left = |findings: Vec<Finding>| {
            findings
                .iter()
                .filter(|finding| {
                    ["DESC-013", "SCH-001", "SCH-002"]
                        .contains(&finding.rule.as_deref().unwrap_or(""))
                })
                .count()
        };
        assert_eq!(left(lint(None, &fixed)), 0);
        assert_eq!(left(lint(None, &listed)), 5);
    }
}
