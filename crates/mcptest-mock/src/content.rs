//! The rules of MCP for content.

use serde_json::Value;

/// The missing members of a content block. Unknown types are sent as they are.
pub(crate) fn block_problems(block: &Value) -> Vec<String> {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let required: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource" => &["resource"],
        "resource_link" => &["uri", "name"],
        _ => &[],
    };
    required
        .iter()
        .filter(|member| block.get(member).is_none())
        .map(|member| format!("a block of type `{kind}` needs `{member}`"))
        .collect()
}
