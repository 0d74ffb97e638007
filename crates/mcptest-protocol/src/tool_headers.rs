//! The arguments of each listed tool that headers repeat (`Mcp-Param-…`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::headers::{AnnotationError, ParamHeader, encode, param_headers};

/// Tools whose headers are kept; further ones of a longer list are ignored.
const MAX_TOOLS: usize = 10_000;

/// The tools that have header annotations; other tools are not kept.
#[derive(Debug, Default)]
pub struct ToolHeaders(BTreeMap<String, Result<Vec<ParamHeader>, AnnotationError>>);

impl ToolHeaders {
    /// Replaces the known tools by a listing. Returns the tools with invalid annotations.
    pub fn learn(&mut self, tools: &[Value]) -> Vec<(String, AnnotationError)> {
        self.0.clear();
        self.learn_more(tools)
    }

    /// Adds a further page of a listing. Returns the tools with invalid annotations.
    pub fn learn_more(&mut self, tools: &[Value]) -> Vec<(String, AnnotationError)> {
        let mut invalid = Vec::new();
        let room = MAX_TOOLS.saturating_sub(self.0.len());
        for tool in tools.iter().take(room) {
            let (Some(name), Some(schema)) = (
                tool.get("name").and_then(Value::as_str),
                tool.get("inputSchema"),
            ) else {
                continue;
            };
            let found = param_headers(schema);
            match &found {
                Ok(headers) if headers.is_empty() => continue,
                Ok(_) => {}
                Err(error) => invalid.push((name.to_owned(), error.clone())),
            }
            self.0.insert(name.to_owned(), found);
        }
        invalid
    }

    /// Returns true if the tool has header annotations, valid or not.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// The reason why the tool must not be called, if there is one.
    #[must_use]
    pub fn error_of(&self, tool: &str) -> Option<&AnnotationError> {
        self.0.get(tool)?.as_ref().err()
    }

    /// The headers for a call, as names and values.
    #[must_use]
    pub fn of_call(&self, params: &Value) -> Vec<(String, String)> {
        let (Some(Ok(headers)), Some(arguments)) = (
            params
                .get("name")
                .and_then(Value::as_str)
                .and_then(|name| self.0.get(name)),
            params.get("arguments"),
        ) else {
            return Vec::new();
        };
        headers
            .iter()
            .filter_map(|header| {
                Some((header.name().to_owned(), encode(&header.value(arguments)?)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listing_gives_the_headers_of_a_call() {
        let mut known = ToolHeaders::default();
        let tool = |name: &str, header: &str| {
            json!({"name": name, "inputSchema": {"properties": {
                "a": {"type": "string", "x-mcp-header": header},
            }}})
        };
        let invalid = known.learn(&[
            tool("good", "A"),
            tool("bad", ""),
            json!({"name": "plain", "inputSchema": {}}),
            json!(3),
        ]);
        let empty = AnnotationError::Empty("a".to_owned());
        assert_eq!(invalid, [("bad".to_owned(), empty.clone())]);
        assert_eq!(known.error_of("bad"), Some(&empty));
        assert_eq!(known.error_of("good"), None);
        assert!(known.has("good") && !known.has("plain"));
        let call = json!({"name": "good", "arguments": {"a": " x", "b": "y"}});
        assert_eq!(
            known.of_call(&call),
            [("Mcp-Param-A".to_owned(), "=?base64?IHg=?=".to_owned())]
        );
        assert_eq!(known.of_call(&json!({"name": "good"})), []);
        known.learn_more(&[tool("later", "L")]);
        assert!(known.has("good") && known.has("later"));
        // A new listing replaces the old one.
        known.learn(&[]);
        assert!(!known.has("good"));
    }
}
