//! Tools as a server lists them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One offered tool: the JSON object as the server sent it, keys in its order, with the server's
/// name inserted.
///
/// It stays raw on purpose. A tool without a schema or with a hint of the wrong type is evidence
/// about its server; a typed struct would have to drop or reject it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Tool(Map<String, Value>);

impl Tool {
    /// Wraps an entry of `tools/list`. Anything but an object is not a tool.
    #[must_use]
    pub fn from_listing(server: Option<&str>, listed: &Value) -> Option<Self> {
        let listed = listed.as_object()?;
        let mut map = Map::new();
        if let Some(server) = server {
            map.insert("server".into(), server.into());
        }
        map.extend(
            listed
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        Some(Self(map))
    }

    /// The server's name in the suite.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.0.get("server").and_then(Value::as_str)
    }

    /// The tool's name; empty where the server gave none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or("")
    }

    /// The description, if it is a string.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.0.get("description").and_then(Value::as_str)
    }

    /// The input schema, if there is one.
    #[must_use]
    pub fn input_schema(&self) -> Option<&Value> {
        self.0.get("inputSchema")
    }

    /// Everything, as sent.
    #[must_use]
    pub fn raw(&self) -> &Map<String, Value> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_malformed_tool_is_kept_as_it_is() {
        let tool = Tool::from_listing(
            Some("s"),
            &json!({"name": 3, "annotations": {"readOnlyHint": "yes"}}),
        )
        .unwrap();
        assert_eq!(tool.name(), "");
        assert_eq!(tool.server(), Some("s"));
        assert_eq!(tool.description(), None);
        assert_eq!(
            serde_json::to_string(&tool).unwrap(),
            r#"{"server":"s","name":3,"annotations":{"readOnlyHint":"yes"}}"#
        );
        assert!(Tool::from_listing(None, &json!("x")).is_none());
    }
}
