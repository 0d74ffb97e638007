//! Tool results in the form that providers accept.

use std::borrow::Cow;

use mcptest_agent::ToolReply;
use serde_json::Value;

/// One part of a result.
#[derive(Debug, PartialEq)]
pub(super) enum ContentPart<'a> {
    Text(Cow<'a, str>),
    Image { mime: &'a str, data: &'a str },
}

impl ContentPart<'_> {
    /// Returns the part as text, for APIs without images.
    pub(super) fn as_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image { mime, .. } => Cow::Owned(omitted("image", mime)),
        }
    }
}

/// Returns the parts of a result, in order. Content that no API accepts becomes a string that names
/// it.
pub(super) fn content_parts(reply: &ToolReply) -> Vec<ContentPart<'_>> {
    let mut parts: Vec<ContentPart<'_>> = match &reply.content {
        Value::String(text) => vec![ContentPart::Text(text.into())],
        content => content
            .as_array()
            .into_iter()
            .flatten()
            .map(content_part)
            .collect(),
    };
    parts.retain(|part| !matches!(part, ContentPart::Text(text) if text.trim().is_empty()));
    if let (true, Some(structured)) = (parts.is_empty(), &reply.structured) {
        parts.push(ContentPart::Text(structured.to_string().into()));
    }
    parts
}

fn content_part(block: &Value) -> ContentPart<'_> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let mime = text("mimeType").unwrap_or("of unknown type");
    match text("type") {
        Some("image") if text("data").is_some() => ContentPart::Image {
            mime,
            data: text("data").unwrap_or_default(),
        },
        Some("resource") => resource(block.get("resource").unwrap_or(&Value::Null)),
        Some("resource_link") => {
            let uri = text("uri").unwrap_or("without address");
            ContentPart::Text(
                format!("[link to {}: {uri}]", text("name").unwrap_or("a resource")).into(),
            )
        }
        Some("audio") => ContentPart::Text(omitted("audio", mime).into()),
        kind => match text("text") {
            Some(text) => ContentPart::Text(text.into()),
            None => ContentPart::Text(omitted("content", kind.unwrap_or("of unknown type")).into()),
        },
    }
}

fn resource(resource: &Value) -> ContentPart<'_> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let mime = text("mimeType").unwrap_or("of unknown type");
    match (text("text"), text("blob")) {
        (Some(text), _) => ContentPart::Text(text.into()),
        (None, Some(data)) if mime.starts_with("image/") => ContentPart::Image { mime, data },
        _ => ContentPart::Text(
            omitted(
                &format!("resource {}", text("uri").unwrap_or("without address")),
                mime,
            )
            .into(),
        ),
    }
}

fn omitted(what: &str, kind: &str) -> String {
    format!("[{what} {kind}: left out]")
}

/// Returns a result as text.
pub(super) fn text(reply: &ToolReply) -> String {
    let parts = content_parts(reply);
    let texts: Vec<Cow<'_, str>> = parts.iter().map(ContentPart::as_text).collect();
    texts.join("\n")
}

/// Returns a result as text, with a prefix for errors, for APIs without a flag for them.
pub(super) fn text_with_error_prefix(reply: &ToolReply) -> String {
    let text = text(reply);
    let has_prefix = text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("error"));
    match (reply.is_error, text.is_empty()) {
        (true, true) => "Error".to_owned(),
        (true, false) if !has_prefix => format!("Error: {text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(content: Value) -> ToolReply {
        ToolReply {
            content,
            ..ToolReply::default()
        }
    }

    #[test]
    fn every_kind_of_content_is_kept_or_named() {
        let reply = reply(json!([
            {"type": "text", "text": "hello"},
            {"type": "text", "text": "  "},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {
                "type": "resource",
                "resource": {"uri": "a://c", "blob": "aGk=", "mimeType": "image/gif"},
            },
            {
                "type": "resource",
                "resource": {"uri": "a://d", "blob": "aGk=", "mimeType": "application/zip"},
            },
            {"type": "resource_link", "uri": "a://e", "name": "e"},
            {"type": "hologram", "data": 1},
            7
        ]));
        assert_eq!(
            text(&reply),
            "hello\n[image image/png: left out]\n[audio audio/wav: left out]\ninside\n\
             [image image/gif: left out]\n[resource a://d application/zip: left out]\n\
             [link to e: a://e]\n[content hologram: left out]\n\
             [content of unknown type: left out]"
        );
        assert_eq!(
            content_parts(&reply)[1],
            ContentPart::Image {
                mime: "image/png",
                data: "aGk="
            }
        );
    }

    #[test]
    fn structured_content_is_used_without_other_content() {
        let mut only = reply(json!([]));
        only.structured = Some(json!({"b": 1, "a": 2}));
        assert_eq!(text(&only), r#"{"b":1,"a":2}"#);
        only.content = json!([{"type": "text", "text": "two"}]);
        assert_eq!(text(&only), "two");
        assert_eq!(text(&reply(Value::Null)), "");
        assert_eq!(text(&reply(json!("plain"))), "plain");
    }

    #[test]
    fn an_error_has_one_prefix() {
        let error = |text: &str| text_with_error_prefix(&ToolReply::refusal(text));
        assert_eq!(error("no such city"), "Error: no such city");
        assert_eq!(error("ERROR -32602: bad"), "ERROR -32602: bad");
        assert_eq!(error(""), "Error");
        assert_eq!(error("äöüß"), "Error: äöüß");
        assert_eq!(
            text_with_error_prefix(&reply(json!([{"type": "text", "text": "fine"}]))),
            "fine"
        );
    }
}
