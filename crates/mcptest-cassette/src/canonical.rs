//! The canonical form of a request, which must stay the same from release to release.

use mcptest_agent::{Message, OfferedTool, Request, ToolReply};
use mcptest_json::canonical;
use serde_json::{Map, Value, json};

use crate::digest::digest;

/// Returns the offered tools as the model sees them.
pub(crate) fn tools(offered: &[OfferedTool]) -> Value {
    let one = |tool: &OfferedTool| {
        let mut entry: Map<String, Value> = tool.tool.raw().clone();
        entry.shift_remove("server");
        entry.insert("name".to_owned(), tool.wire_name.as_str().into());
        Value::Object(entry)
    };
    offered.iter().map(one).collect()
}

/// Returns the first message, if it is a prompt.
pub(crate) fn prompt<'a>(request: &Request<'a>) -> Option<&'a str> {
    match request.messages.first() {
        Some(Message::User(text)) => Some(text),
        _ => None,
    }
}

/// Returns the conversation after the prompt.
pub(crate) fn conversation(messages: &[Message]) -> Value {
    let one = |message: &Message| match message {
        Message::User(text) => json!({"user": text}),
        Message::Assistant(turn) => {
            let calls = turn
                .calls
                .iter()
                .map(|call| json!([call.wire_name, call.args]));
            json!({"said": turn.text, "called": calls.collect::<Vec<_>>()})
        }
        Message::Results(results) => {
            let replies = results.iter().map(|(_, result)| reply(result));
            json!({"came_back": replies.collect::<Vec<_>>()})
        }
    };
    messages.iter().skip(1).map(one).collect()
}

/// Returns the part of a reply that the model sees.
pub(crate) fn reply(reply: &ToolReply) -> Value {
    json!({
        "is_error": reply.is_error,
        "content": reply.content,
        "structured": reply.structured,
        "error": reply.error,
    })
}

/// Returns the digest of a value in canonical form.
pub(crate) fn digest_of(value: &Value) -> String {
    digest(&canonical(value))
}

/// Returns the digest of the whole request.
pub(crate) fn request_digest(
    request: &Request<'_>,
    prompt: &str,
    system: Option<&str>,
    tools: &str,
    conversation: &Value,
) -> String {
    digest_of(&json!({
        "system": system,
        "prompt": prompt,
        "max_tokens": request.max_tokens,
        "tools": tools,
        "conversation": conversation,
    }))
}
