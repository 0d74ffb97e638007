//! Which arguments of which tool headers repeat (`Mcp-Param-…`), as the listings told.

use std::collections::BTreeMap;

use super::headers::{ParamHeader, encode, param_headers};
use serde_json::Value;

/// Tools whose headers are kept; a list beyond that has other troubles.
const MOST_TOOLS: usize = 10_000;

/// The tools that say something about headers; the others are not kept.
#[derive(Debug, Default)]
pub struct ToolHeaders(BTreeMap<String, Result<Vec<ParamHeader>, String>>);

impl ToolHeaders {
    /// Takes in a listing in place of what was known. Gives the tools whose annotations break the
    /// rules, with the reason.
    pub fn learn(&mut self, tools: &[Value]) -> Vec<(String, String)> {
        self.0.clear();
        self.learn_more(tools)
    }

    /// Takes in a further page of a listing.
    pub fn learn_more(&mut self, tools: &[Value]) -> Vec<(String, String)> {
        let mut broken = Vec::new();
        let room = MOST_TOOLS.saturating_sub(self.0.len());
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
                Err(why) => broken.push((name.to_owned(), why.clone())),
            }
            self.0.insert(name.to_owned(), found);
        }
        broken
    }

    /// Whether the tool says something about headers.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// Why the tool must not be called.
    #[must_use]
    pub fn unusable(&self, tool: &str) -> Option<String> {
        self.0.get(tool)?.as_ref().err().cloned()
    }

    /// The headers for a call.
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
        let said = headers.iter().filter_map(|header| {
            Some((header.name().to_owned(), encode(&header.value(arguments)?)))
        });
        said.collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listing_tells_what_headers_a_call_has() {
        let mut known = ToolHeaders::default();
        let tool = |name: &str, header: &str| json!({"name": name, "inputSchema": {"properties": {"a": {"type": "string", "x-mcp-header": header}}}});
        let broken = known.learn(&[
            tool("good", "A"),
            tool("bad", ""),
            json!({"name": "plain", "inputSchema": {}}),
            json!(3),
        ]);
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].0, "bad");
        assert!(known.unusable("bad").is_some() && known.unusable("good").is_none());
        assert!(known.has("good") && !known.has("plain"));
        let call = json!({"name": "good", "arguments": {"a": " x", "b": "y"}});
        assert_eq!(
            known.of_call(&call),
            [("Mcp-Param-A".to_owned(), "=?base64?IHg=?=".to_owned())]
        );
        assert_eq!(known.of_call(&json!({"name": "good"})), []);
        known.learn_more(&[tool("later", "L")]);
        assert!(known.has("good") && known.has("later"));
        // The newest listing is what counts.
        known.learn(&[]);
        assert!(!known.has("good"));
    }
}
