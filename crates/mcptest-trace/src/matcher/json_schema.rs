//! A JSON Schema that is checked when it is read and compiled when it is first applied.
//!
//! Compiling one costs milliseconds, since the meta-schemas come with it; most suites hold a few
//! bounds such as `{ minimum: 80 }`, and most invocations never apply them all. So a schema that is
//! made of well-known keywords is checked here; any other goes through the compiler when it is
//! read.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::Problem;

/// A schema, as written and, once it was needed, compiled.
#[derive(Debug, Clone)]
pub struct JsonSchema {
    written: Value,
    compiled: OnceLock<Result<Arc<jsonschema::Validator>, String>>,
}

impl JsonSchema {
    /// Checks a schema.
    ///
    /// # Errors
    /// The problem with the schema, with a pointer from `at`.
    pub fn new(written: &Value, at: &str) -> Result<Self, Vec<Problem>> {
        if !matches!(written, Value::Object(_) | Value::Bool(_)) {
            return Err(vec![Problem::new(at, "a JSON Schema is a mapping")]);
        }
        let compiled = OnceLock::new();
        if !is_plainly_valid(written, 0) {
            let validator = jsonschema::validator_for(written).map_err(|error| {
                // The error is at the place in the schema that is wrong.
                let place = format!("{at}{}", error.instance_path());
                vec![Problem::new(
                    place,
                    format!("not a valid JSON Schema: {error}"),
                )]
            })?;
            // The lock is new, so nothing is in it.
            let _ = compiled.set(Ok(Arc::new(validator)));
        }
        Ok(Self {
            written: written.clone(),
            compiled,
        })
    }

    /// As written.
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// The compiled schema.
    ///
    /// # Errors
    /// Only if the quick check accepted an invalid schema: then nothing matches, and this is the
    /// reason.
    pub fn validator(&self) -> Result<&jsonschema::Validator, &str> {
        self.compiled
            .get_or_init(|| {
                jsonschema::validator_for(&self.written)
                    .map(Arc::new)
                    .map_err(|error| error.to_string())
            })
            .as_deref()
            .map_err(String::as_str)
    }
}

/// Deep enough for anything written by hand.
const MAX_DEPTH: usize = 16;

/// Returns true if a schema has only keywords whose values can be checked here, all of them valid.
fn is_plainly_valid(schema: &Value, depth: usize) -> bool {
    let map = match schema {
        Value::Bool(_) => return true,
        Value::Object(map) if depth < MAX_DEPTH => map,
        _ => return false,
    };
    let plain = |schema: &Value| is_plainly_valid(schema, depth + 1);
    map.iter().all(|(keyword, value)| match keyword.as_str() {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "type" => value
            .as_str()
            .is_some_and(|name| super::TypeName::parse(name).is_some()),
        "const" | "default" => true,
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "uniqueItems" => value.is_boolean(),
        "title" | "description" => value.is_string(),
        "required" => value.as_array().is_some_and(|names| {
            names
                .iter()
                .enumerate()
                .all(|(index, name)| name.is_string() && !names[..index].contains(name))
        }),
        "properties" => value
            .as_object()
            .is_some_and(|properties| properties.values().all(plain)),
        "items" | "not" | "contains" | "additionalProperties" => plain(value),
        "anyOf" | "oneOf" | "allOf" => value
            .as_array()
            .is_some_and(|all| !all.is_empty() && all.iter().all(plain)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_wait_for_their_first_use_and_other_schemas_do_not() {
        assert!(
            JsonSchema::new(&json!({"minimum": 80}), "")
                .unwrap()
                .compiled
                .get()
                .is_none()
        );
        assert!(
            JsonSchema::new(&json!({"pattern": "^a"}), "")
                .unwrap()
                .compiled
                .get()
                .is_some()
        );
        for broken in [
            json!({"type": "strin"}),
            json!({"minimum": "80"}),
            json!({"required": "a"}),
            json!({"items": 3}),
            json!({"anyOf": []}),
            json!(5),
        ] {
            assert!(JsonSchema::new(&broken, "").is_err(), "{broken}");
        }
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let value = prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            (-3_i64..5).prop_map(Value::from),
            Just(json!(1.5)),
            "[a-c]{0,2}".prop_map(Value::from),
            Just(json!([])),
            Just(json!(["a", "a"])),
            Just(json!(["a"]))
        ];
        let keyword = prop::sample::select(vec![
            "minimum",
            "minLength",
            "type",
            "enum",
            "const",
            "required",
            "uniqueItems",
            "items",
            "properties",
            "anyOf",
            "not",
            "title",
            "additionalProperties",
        ]);
        let leaf = prop_oneof![
            Just(json!(true)),
            Just(json!({"type": "string"})),
            prop::collection::vec((keyword.clone(), value), 0..3).prop_map(|pairs| pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<serde_json::Map<_, _>>()
                .into())
        ];
        leaf.prop_recursive(3, 12, 3, move |inner| {
            prop_oneof![
                (keyword.clone(), inner.clone()).prop_map(|(key, inner)| json!({key: inner})),
                (keyword.clone(), prop::collection::vec(inner.clone(), 0..3))
                    .prop_map(|(key, inner)| json!({key: inner})),
                ("[a-c]", inner).prop_map(|(name, inner)| json!({"properties": {name: inner}})),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_plainly_valid_compiles(schema in any_schema()) {
            if is_plainly_valid(&schema, 0) {
                prop_assert!(jsonschema::validator_for(&schema).is_ok(), "{schema}");
            }
        }
    }
}
