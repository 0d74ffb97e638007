//! The bundled tools.

use std::sync::OnceLock;

use serde_json::Value;

use mcptest_trace::catalog::Tool;

/// One tool of the bundled set.
#[derive(Debug)]
pub struct Bundled {
    /// Its domain, such as `travel`.
    pub domain: String,
    /// The tool as a server would list it.
    pub tool: Tool,
}

/// The bundled set, in the order of its file. It is read on first use.
#[must_use]
pub fn bundled() -> &'static [Bundled] {
    static TOOLS: OnceLock<Vec<Bundled>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        // The file is part of the program, and a test reads it: a tool that cannot be read would be
        // missing there.
        let listed: Vec<Value> =
            serde_json::from_str(include_str!("catalog.json")).unwrap_or_default();
        listed
            .into_iter()
            .filter_map(|mut tool| {
                let domain = tool.as_object_mut()?.shift_remove("domain")?;
                Some(Bundled {
                    domain: domain.as_str()?.to_owned(),
                    tool: Tool::from_listing(None, &tool)?,
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_bundled_set_is_complete_and_well_made() {
        let tools = bundled();
        assert!(tools.len() >= 64, "{}", tools.len());
        let domains: BTreeSet<_> = tools
            .iter()
            .map(|bundled| bundled.domain.as_str())
            .collect();
        assert!(domains.len() >= 20, "{domains:?}");
        let listed: Vec<Value> = serde_json::from_str(include_str!("catalog.json")).unwrap();
        assert_eq!(listed.len(), tools.len());
        let names: BTreeSet<_> = tools.iter().map(|bundled| bundled.tool.name()).collect();
        assert_eq!(names.len(), tools.len());
        for Bundled { tool, .. } in tools {
            let name = tool.name();
            assert!(
                name.len() <= 40 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'),
                "{name}"
            );
            let description = tool.description().unwrap();
            assert!(
                (40..=300).contains(&description.len()) && description.contains("Returns "),
                "{name}"
            );
            assert!(
                tool.raw()["annotations"]["readOnlyHint"].is_boolean(),
                "{name}"
            );
            assert!(!tool.raw().contains_key("domain"), "{name}");
            let schema = tool.input_schema().unwrap();
            assert!(jsonschema::validator_for(schema).is_ok(), "{name}");
            assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
            check_object(name, description, schema);
        }
    }

    fn check_object(name: &str, description: &str, schema: &Value) {
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let properties = schema["properties"].as_object().unwrap();
        for required in schema["required"].as_array().unwrap() {
            assert!(
                properties.contains_key(required.as_str().unwrap()),
                "{name}: {required}"
            );
        }
        for (key, property) in properties {
            let at = format!("{name}.{key}");
            let text = property["description"].as_str().unwrap();
            assert!(!text.is_empty() && text.len() <= description.len(), "{at}");
            let bounded = |keys: &[&str]| keys.iter().any(|key| property.get(*key).is_some());
            match property["type"].as_str().unwrap() {
                "string" => assert!(bounded(&["maxLength", "enum", "format", "pattern"]), "{at}"),
                "array" => {
                    assert!(bounded(&["maxItems"]) && bounded(&["items"]), "{at}");
                    if property["items"]["type"] == "object" {
                        check_object(&at, description, &property["items"]);
                    }
                }
                "integer" | "number" | "boolean" => {}
                other => panic!("{at}: {other}"),
            }
            for value in property
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                assert!(text.contains(value.as_str().unwrap()), "{at}: {value}");
            }
            // What the schema shows as an example or a default must be allowed by it.
            let shown = property
                .get("examples")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for value in shown.chain(property.get("default")) {
                assert!(jsonschema::is_valid(property, value), "{at}: {value}");
            }
        }
    }
}
