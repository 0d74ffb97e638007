//! A catalog as a file: everything that a server lists, as `mcptest catalog save` writes it and
//! every `--tools-from FILE` reads it.
//!
//! Entries stay as the server sent them, in its order. There is no date and no path in the file:
//! the same server gives the same bytes.

use serde_json::{Map, Value};

use crate::doctor::ServerReport;

/// The catalog of a server as JSON: a `tools/list` result with further keys.
#[must_use]
pub fn saved(report: &ServerReport) -> Value {
    let mut file = Map::new();
    let mut insert = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            file.insert(key.to_owned(), value);
        }
    };
    insert("serverInfo", report.server_info.clone());
    insert(
        "protocolVersion",
        report.revision.clone().map(Value::String),
    );
    insert("instructions", report.instructions.clone());
    insert("tools", Some(report.listed.clone().into()));
    let (templates, resources) = split_resources(&report.resources);
    let list = |entries: Vec<Value>| (!entries.is_empty()).then(|| Value::from(entries));
    insert("resources", list(resources));
    insert("resourceTemplates", list(templates));
    insert("prompts", list(report.prompts.clone()));
    Value::Object(file)
}

/// The templates among resources, and the others.
#[must_use]
pub fn split_resources(entries: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let is_template = |entry: &&Value| entry.get("uriTemplate").is_some();
    let (templates, resources): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(is_template);
    (
        templates.into_iter().cloned().collect(),
        resources.into_iter().cloned().collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_there_is_saved() {
        let mut report = ServerReport::new("x");
        report.listed = vec![
            json!({"name": "b", "zeta": 1, "alpha": 2}),
            json!({"name": "a"}),
        ];
        assert_eq!(
            saved(&report).to_string(),
            r#"{"tools":[{"name":"b","zeta":1,"alpha":2},{"name":"a"}]}"#
        );
        report.revision = Some("2025-11-25".to_owned());
        report.server_info = Some(json!({"name": "x", "version": "1"}));
        report.instructions = Some("Be kind.".into());
        report.resources = vec![json!({"uriTemplate": "a://{b}"}), json!({"uri": "a://c"})];
        report.prompts = vec![json!({"name": "p"})];
        let keys: Vec<String> = saved(&report)
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(
            keys,
            [
                "serverInfo",
                "protocolVersion",
                "instructions",
                "tools",
                "resources",
                "resourceTemplates",
                "prompts"
            ]
        );
    }
}
