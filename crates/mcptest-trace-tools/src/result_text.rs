//! The text of a result, for people and for searching.

use mcptest_trace::trace::ToolResultView;
use serde_json::Value;

/// The text blocks of a result, joined by line ends; other blocks and structured content as JSON.
pub(crate) fn result_text(result: &ToolResultView<'_>) -> String {
    let content = match result.content() {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<String> = blocks.iter().map(block_text).collect();
            texts.join("\n")
        }
        Some(other) => other.to_string(),
    };
    if content.is_empty() {
        let structured = result.extra("structured_content");
        return structured.map(Value::to_string).unwrap_or_default();
    }
    content
}

fn block_text(block: &Value) -> String {
    let text = block.as_str().or_else(|| block.get("text")?.as_str());
    match (text, block.get("type").and_then(Value::as_str)) {
        (Some(text), _) => text.to_owned(),
        // The data of an image would only fill the screen.
        (None, Some(kind)) if block.get("data").is_some() => format!("[{kind}]"),
        (None, _) => block.to_string(),
    }
}
