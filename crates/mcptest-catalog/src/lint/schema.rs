//! Access to input schemas, which may be any JSON.

use serde_json::Value;

use mcptest_json::pointer_join;

/// The maximum nesting: a server's schema must not exhaust the stack.
const MAX_DEPTH: usize = 100;

/// The arguments of a tool: the properties of its schema's root, in the server's order.
pub(super) fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.as_str(), property))
        .collect()
}

/// The names in the `required` list of a schema.
pub(super) fn required(schema: &Value) -> Vec<&str> {
    let list = schema.get("required").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns true if a schema's `type` is this one, or a list with it.
pub(super) fn is_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == wanted,
        Some(Value::Array(many)) => many.iter().any(|one| one == wanted),
        _ => false,
    }
}

/// A property, or the target of its local `$ref`.
pub(super) fn resolve<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let mut found = property;
    // A chain of references is short, unless it is circular.
    for _ in 0..8 {
        let target = found
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => found = target,
            None => break,
        }
    }
    found
}

/// An argument's own description, else that of its definition; without surrounding whitespace.
pub(super) fn describe<'a>(root: &'a Value, property: &'a Value) -> &'a str {
    let own = |schema: &'a Value| {
        schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("")
            .trim()
    };
    match own(property) {
        "" => own(resolve(root, property)),
        text => text,
    }
}

/// Returns true if an argument has a description.
pub(super) fn describes(root: &Value, property: &Value) -> bool {
    !describe(root, property).is_empty()
}

/// The allowed values of an argument: its `enum`, or those of its alternatives. Empty if there is
/// no such limit.
pub(super) fn enumerated<'a>(root: &'a Value, property: &'a Value) -> Vec<&'a Value> {
    let mut values = Vec::new();
    gather(root, property, 0, &mut values);
    values
}

fn gather<'a>(root: &'a Value, schema: &'a Value, depth: usize, values: &mut Vec<&'a Value>) {
    let schema = resolve(root, schema);
    values.extend(
        schema
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten(),
    );
    values.extend(schema.get("const"));
    if depth < 4 {
        for key in ["anyOf", "oneOf", "allOf"] {
            for inner in schema
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                gather(root, inner, depth + 1, values);
            }
        }
    }
}

/// Visits a schema and everything in it that describes a value: properties, items, alternatives,
/// definitions. Schemas below `not` and `if` only test a value, and are skipped. Paths are JSON
/// pointers from the tool.
pub(super) fn walk<'a>(schema: &'a Value, visit: &mut dyn FnMut(&str, &'a Value)) {
    step("/inputSchema", schema, 0, visit);
}

fn step<'a>(path: &str, schema: &'a Value, depth: usize, visit: &mut dyn FnMut(&str, &'a Value)) {
    visit(path, schema);
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
        return;
    };
    for (key, value) in map {
        let at = pointer_join(path, key);
        match key.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    step(&pointer_join(&at, name), inner, depth + 1, visit);
                }
            }
            "additionalProperties" | "items" if value.is_object() => {
                step(&at, value, depth + 1, visit)
            }
            "items" | "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
                    step(&format!("{at}/{index}"), inner, depth + 1, visit);
                }
            }
            _ => {}
        }
    }
}

/// Returns true if a schema describes an object with its own properties.
pub(super) fn has_properties(schema: &Value) -> bool {
    !properties(schema).is_empty()
}

/// The name of a place in messages: `filter.tags[]` for
/// `/inputSchema/properties/filter/properties/tags/items`.
pub(super) fn place(path: &str) -> String {
    let mut out = String::new();
    let mut steps = path.split('/').skip(2).peekable();
    while let Some(step) = steps.next() {
        match step {
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                let name = steps
                    .next()
                    .unwrap_or_default()
                    .replace("~1", "/")
                    .replace("~0", "~");
                if !out.is_empty() {
                    out.push('.');
                }
                if step.contains("ef") {
                    out.push_str("$defs.");
                }
                out.push_str(&name);
            }
            "items" | "prefixItems" => out.push_str("[]"),
            "additionalProperties" => out.push_str(".*"),
            // The number of the alternative is not shown.
            _ => {}
        }
    }
    if out.is_empty() {
        "the schema".to_owned()
    } else {
        format!("`{out}`")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_read_like_paths() {
        assert_eq!(place("/inputSchema"), "the schema");
        assert_eq!(
            place("/inputSchema/properties/filter/properties/tags/items"),
            "`filter.tags[]`"
        );
        assert_eq!(
            place("/inputSchema/$defs/a~1b/properties/x"),
            "`$defs.a/b.x`"
        );
    }

    #[test]
    fn circular_references_end() {
        let root = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let property = json!({"$ref": "#/$defs/a"});
        assert_eq!(describe(&root, &property), "");
        assert!(enumerated(&root, &property).is_empty());
    }

    #[test]
    fn a_definition_can_describe_an_argument() {
        let root = json!({"$defs": {"city": {"description": " A city. "}}});
        assert_eq!(describe(&root, &json!({"$ref": "#/$defs/city"})), "A city.");
        assert_eq!(
            describe(
                &root,
                &json!({"$ref": "#/$defs/city", "description": "Where."})
            ),
            "Where."
        );
    }
}
