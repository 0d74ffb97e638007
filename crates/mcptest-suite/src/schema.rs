//! The JSON Schema of suite files, for editors and for loading.

use mcptest_gate_api::GateInfo;
use mcptest_json::schema::join_description_lines;
use mcptest_trace::matcher::other_spelling;
use mcptest_yaml::{Diagnostic, Document};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::file::SuiteFile;
use crate::schema_table::SUITE_SCHEMA;

/// The schema, generated from the types that suites are decoded into and from the gates.
#[must_use]
pub fn suite_schema(gates: &[GateInfo]) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut schema = generator.root_schema_for::<SuiteFile>().to_value();
    let blocks: Vec<(&str, Value)> = gates
        .iter()
        .map(|gate| (gate.block, (gate.schema)(&mut generator).to_value()))
        .collect();
    let mut definitions = generator.definitions().clone();
    for (gate, (_, block)) in gates.iter().zip(&blocks) {
        describe_targets(gate, block, &mut definitions);
    }
    add_gates(&mut schema, &blocks, &definitions);
    join_description_lines(&mut schema);
    schema["title"] = json!("mcptest suite");
    schema["$id"] = json!("https://mcptest.sh/schema/v1.json");
    schema
}

/// Lists the targets of a gate, with their units and ranges, in the description of its `expect:`.
fn describe_targets(gate: &GateInfo, block: &Value, definitions: &mut Map<String, Value>) {
    let name = block["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    let expect = name
        .and_then(|name| definitions.get_mut(name))
        .and_then(|definition| definition.pointer_mut("/properties/expect"));
    let Some(Value::Object(expect)) = expect else {
        return;
    };
    let targets: Vec<String> = gate
        .targets
        .iter()
        .map(|target| format!("`{}` ({})", target.name, target.unit.describe()))
        .collect();
    let written = expect.get("description").and_then(Value::as_str);
    let text = format!(
        "{} Targets: {}.",
        written.unwrap_or_default(),
        targets.join(", ")
    );
    expect.insert("description".to_owned(), text.trim_start().into());
}

/// Adds the blocks of gates to the entries, and their definitions behind those of an agent's own
/// fields.
fn add_gates(schema: &mut Value, blocks: &[(&str, Value)], all: &Map<String, Value>) {
    let Some(Value::Object(definitions)) = schema.get_mut("$defs") else {
        return;
    };
    for entry in ["Agent", "Test"] {
        let properties = definitions
            .get_mut(entry)
            .and_then(|entry| entry.get_mut("properties"));
        if let Some(Value::Object(properties)) = properties {
            for (block, block_schema) in blocks {
                properties.insert((*block).to_owned(), block_schema.clone());
            }
        }
    }
    let added = all
        .iter()
        .filter(|(name, _)| !definitions.contains_key(*name))
        .map(|(name, definition)| (name.clone(), definition.clone()));
    let added: Vec<_> = added.collect();
    let mut rest = Map::new();
    let mut ordered = Map::new();
    for (name, definition) in std::mem::take(definitions) {
        let behind = name == "Test" || !rest.is_empty();
        if behind { &mut rest } else { &mut ordered }.insert(name, definition);
    }
    ordered.extend(added);
    ordered.extend(rest);
    *definitions = ordered;
}

/// Every difference between a document and the schema.
///
/// The compiled schema is a table in the program. Compiling the published schema at first use costs
/// 1.0 ms per invocation (3.8 instead of 2.9 ms of CPU time for `mcptest validate` of 200 tests,
/// 6.9 instead of 6.1 ms for `mcptest run` of them).
pub(crate) fn problems(document: &Document) -> Vec<Diagnostic> {
    SUITE_SCHEMA.problems_with(document, other_spelling)
}

#[cfg(test)]
mod tests {
    use mcptest_gates::GATES;
    use mcptest_yaml::CompiledSchema;

    use super::*;
    use crate::schema_table::GATE_BLOCKS;

    #[test]
    fn the_schema_is_valid_and_closed() {
        let schema = suite_schema(GATES);
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
        let published = include_str!("../../../schema/suite.schema.json");
        let published: Value = serde_json::from_str(published).unwrap();
        assert_eq!(published, suite_schema(GATES), "run `cargo xtask generate`");
    }

    #[test]
    fn the_table_is_up_to_date() {
        assert_eq!(
            SUITE_SCHEMA,
            CompiledSchema::compile(&suite_schema(GATES)).deduplicated(),
            "run `cargo xtask generate`"
        );
        let blocks: Vec<&str> = GATES.iter().map(|gate| gate.block).collect();
        assert_eq!(GATE_BLOCKS, blocks, "run `cargo xtask generate`");
    }

    #[test]
    fn every_gate_is_a_property_of_a_test() {
        let schema = suite_schema(GATES);
        for gate in GATES {
            assert!(
                schema["$defs"]["Test"]["properties"]
                    .get(gate.block)
                    .is_some(),
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
                    let described = ["description", "$ref", "x-mcptest-alias-of", "not"]
                        .iter()
                        .any(|key| property.get(key).is_some());
                    if !described && property != &json!(false) && !path.contains("Matcher") {
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
        walk(&suite_schema(GATES), "", &mut bare);
        assert_eq!(bare, Vec::<String>::new());
    }
}
