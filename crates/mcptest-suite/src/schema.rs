//! The JSON Schema of suite files, for editors and for our own checks.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::file::SuiteFile;

/// The schema, generated from the types that suites are decoded into.
#[must_use]
pub fn suite_schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<SuiteFile>()
        .to_value();
    schema["title"] = json!("mcptest suite");
    schema["$id"] = json!("https://mcptest.sh/schema/v1.json");
    schema
}

/// The schema that files are checked against: the published one, which a test holds to be [`suite_schema`]. Reading it costs a tenth of
/// generating it, and every invocation that loads a suite needs it.
pub(crate) fn shared() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let published = include_str!("../../../schema/suite.schema.json");
        serde_json::from_str(published).unwrap_or_else(|_| suite_schema())
    });
    &SCHEMA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_itself_valid_and_closed() {
        let schema = suite_schema();
        assert!(jsonschema::meta::is_valid(&schema));
        assert_eq!(schema["additionalProperties"], json!(false));
        for definition in ["Agent", "Test", "ServerFile", "ToolTestFile", "Matcher"] {
            assert_eq!(
                schema["$defs"][definition]["additionalProperties"],
                json!(false),
                "{definition}"
            );
        }
    }

    #[test]
    fn the_published_schema_is_up_to_date() {
        assert_eq!(shared(), &suite_schema(), "run `cargo xtask generate`");
    }

    #[test]
    fn every_gate_is_a_property_of_a_test() {
        let schema = suite_schema();
        for gate in mcptest_core::eval::GATES {
            assert!(
                schema["$defs"]["Test"]["properties"].get(gate.block).is_some(),
                "{}",
                gate.block
            );
        }
    }

    #[test]
    fn every_key_is_described() {
        fn walk(value: &Value, path: &str, bare: &mut Vec<String>) {
            if let Some(properties) = value.get("properties").and_then(Value::as_object) {
                for (name, property) in properties {
                    let told = ["description", "$ref", "x-mcptest-alias-of", "not"]
                        .iter()
                        .any(|key| property.get(key).is_some());
                    if !told && property != &json!(false) && !path.contains("Matcher") {
                        bare.push(format!("{path}.{name}"));
                    }
                }
            }
            if let Some(definitions) = value.get("$defs").and_then(Value::as_object) {
                for (name, definition) in definitions {
                    walk(definition, name, bare);
                }
            }
        }
        let mut bare = Vec::new();
        walk(&suite_schema(), "", &mut bare);
        assert_eq!(bare, Vec::<String>::new());
    }
}
