//! What MCP demands of content.

use serde_json::Value;

/// What the kinds of content that MCP knows must have. Other kinds go out as they are.
pub(crate) fn block_problems(block: &Value) -> Vec<String> {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
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

/// Standard base64 with padding, as MCP wants it.
pub(crate) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_recognised() {
        for good in ["", "QQ==", "QUI=", "QUJD", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["Q", "QQ=", "Q===", "QQ ==", "Qä==", "QUJ-"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
