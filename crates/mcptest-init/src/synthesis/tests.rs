use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn made(schema: Value) -> Value {
    match object(Some(&schema)) {
        Ok(made) => {
            let made = Value::Object(made);
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(validator.is_valid(&made), "{schema}: {made}");
            made
        }
        Err(reason) => panic!("{schema}: {reason}"),
    }
}

fn properties(properties: Value) -> Value {
    let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "required": required, "properties": properties})
}

#[test]
fn required_properties_are_filled_and_others_are_not() {
    assert_eq!(object(None), Ok(Map::new()));
    assert_eq!(made(json!({"type": "object"})), json!({}));
    assert_eq!(
        made(json!({"$schema": "http://json-schema.org/draft-07/schema#"})),
        json!({})
    );
    let schema = json!({"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string"}, "units": {"type": "string"}
    }});
    assert_eq!(made(schema), json!({"city": "Paris"}));
}

#[test]
fn values_come_from_the_schema_then_from_names() {
    for (schema, expected) in [
        (json!({"a": {"const": 5}}), json!({"a": 5})),
        (json!({"a": {"enum": [null, "x", "y"]}}), json!({"a": "x"})),
        (
            json!({"a": {"type": "string", "examples": ["one", "two"]}}),
            json!({"a": "one"}),
        ),
        (
            json!({"a": {"type": "integer", "default": 7}}),
            json!({"a": 7}),
        ),
        (
            json!({"a": {"type": "string", "default": ""}}),
            json!({"a": "example"}),
        ),
        (
            json!({"timezone": {"type": "string", "description": "IANA name (e.g., 'America/New_York')"}}),
            json!({"timezone": "America/New_York"}),
        ),
        (
            json!({"a": {"type": "number"}, "b": {"type": "integer"}}),
            json!({"a": 2, "b": 3}),
        ),
        (
            json!({"flag": {"type": "boolean"}, "dry_run": {"type": "boolean"}}),
            json!({"flag": false, "dry_run": true}),
        ),
        (
            json!({"tags": {"type": "array", "items": {"type": "string"}}}),
            json!({"tags": ["example"]}),
        ),
        (
            json!({"x": {"type": ["null", "integer"], "minimum": 5}}),
            json!({"x": 5}),
        ),
        (
            json!({"when": {"type": "string", "format": "date-time"}}),
            json!({"when": "2026-01-15T12:00:00Z"}),
        ),
        (json!({"anything": {}}), json!({"anything": "example"})),
        (json!({"anything": true}), json!({"anything": {}})),
    ] {
        assert_eq!(made(properties(schema)), expected);
    }
}

#[test]
fn bounds_are_kept() {
    for schema in [
        json!({"a": {"type": "string", "minLength": 20, "maxLength": 22}}),
        json!({"city": {"type": "string", "maxLength": 2}}),
        json!({"a": {"type": "integer", "exclusiveMinimum": 10, "multipleOf": 7}}),
        json!({"a": {"type": "number", "minimum": 0.2, "maximum": 0.3}}),
        json!({"a": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}),
        json!({"a": {"type": "integer", "maximum": -5}}),
        json!({"a": {"type": "array", "minItems": 3, "uniqueItems": true, "items": {"enum": ["x", "y", "z"]}}}),
        json!({"a": {"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "integer"}}}),
        json!({"a": {"type": "array", "maxItems": 0}}),
        json!({"a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "items": false}}),
        json!({"a": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}}),
        json!({"a": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[A-Z]{3}$"}}}),
        json!({"a": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$", "description": "e.g. nonsense"}}),
        json!({"a": {"type": "string", "pattern": "^[a-z]+$", "minLength": 12}}),
        json!({"a": {"type": "string", "format": "uuid"}}),
        json!({"a": {"type": "string", "default": 5}}),
    ] {
        made(properties(schema));
    }
}

#[test]
fn references_and_combinations_are_resolved() {
    for schema in [
        json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"type": "integer"}}}),
        json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
            "a": {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer", "minimum": 3}}},
            "b": {"type": "object", "required": ["y"], "properties": {"y": {"type": "string"}, "x": {"maximum": 4}}}
        }}),
        json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        json!({"type": "object", "required": ["v"], "properties": {"v": {"oneOf": [{"type": "null"}, {"type": "object", "required": ["k"], "properties": {"k": {"const": "x"}}}]}}}),
        json!({"type": "object", "required": ["v"], "properties": {"v": {"anyOf": [{"type": "string", "pattern": "(?=x)y"}, {"type": "integer"}]}}}),
        json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}}, "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["extra"]}}),
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "dependentRequired": {"a": ["b"]}}),
        // A tree whose children are optional.
        json!({"type": "object", "required": ["root"], "properties": {"root": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "object", "required": ["name", "children"], "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}),
    ] {
        made(schema);
    }
}

#[test]
fn what_cannot_be_made_is_given_up() {
    for (schema, expected) in [
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": false}}),
            "no value fits",
        ),
        (
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "required": ["n"], "properties": {"n": {"$ref": "#/$defs/n"}}}}}),
            "no value fits",
        ),
        (json!({"$ref": "#"}), ""),
        (json!({"type": 7}), "cannot be used"),
        (
            json!({"$ref": "https://example.com/x.json"}),
            "cannot be used",
        ),
        (json!({"type": "array"}), "no value fits"),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "not": {}}}}),
            "no value fits",
        ),
        (
            json!({"type": "object", "required": ["a"], "additionalProperties": false}),
            "no value fits",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 100_000_000}}}),
            "no value fits",
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 1_000_000}}}),
            "no value fits",
        ),
    ] {
        match object(Some(&schema)) {
            Ok(_) => assert_eq!(expected, "", "{schema}"),
            Err(reason) => assert!(reason.to_string().contains(expected), "{schema}: {reason}"),
        }
    }
}

#[test]
fn alternatives_of_alternatives_are_bounded() {
    let mut schema = json!({"type": "string", "pattern": "(?=x)"});
    for _ in 0..20 {
        schema = json!({"anyOf": [schema.clone(), schema]});
        if schema.to_string().len() > 200_000 {
            break;
        }
    }
    let _ = object(Some(&properties(json!({ "a": schema }))));
    let many = |count: usize| -> Value {
        let all: Vec<Value> = (0..count)
            .map(|index| json!({"anyOf": [{"required": [format!("a{index}")]}, {"required": [format!("b{index}")]}]}))
            .collect();
        json!({"type": "object", "allOf": all})
    };
    made(many(12));
    let _ = object(Some(&many(48)));
    assert!(object(Some(&many(1000))).is_err());
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        (0i64..50, 0i64..50)
            .prop_map(|(a, b)| json!({"type": "integer", "minimum": a, "maximum": a + b})),
        (0u64..9, 0u64..9)
            .prop_map(|(a, b)| json!({"type": "string", "minLength": a, "maxLength": a + b})),
        prop::sample::select(vec!["date", "email", "uri", "uuid", "ipv4"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        "[a-z]{1,4}".prop_map(|text| json!({"enum": [text, 1]})),
        "\\^\\[a-c\\]\\{[1-3]\\}x\\?\\$"
            .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), 0u64..3).prop_map(
                |(item, least)| json!({"type": "array", "items": item, "minItems": least})
            ),
            prop::collection::btree_map("[a-z]{1,4}", inner.clone(), 0..3)
                .prop_map(|all| { properties(Value::Object(all.into_iter().collect())) }),
            prop::collection::vec(inner, 1..3).prop_map(|all| json!({ "anyOf": all })),
        ]
    })
}

proptest! {
    #[test]
    fn satisfiable_schemas_get_valid_values(all in prop::collection::btree_map("[a-z]{1,5}", schemas(), 0..4)) {
        made(properties(Value::Object(all.into_iter().collect())));
    }

    #[test]
    fn any_schema_is_answered(text in "[{}\\[\\]\":,a-z$#/0-9]{0,60}") {
        if let Ok(schema) = serde_json::from_str::<Value>(&text) {
            let _ = object(Some(&schema));
        }
    }
}
