//! What a tool came back with, as a model can be told.

use std::borrow::Cow;

use mcptest_agent::ToolReply;
use serde_json::Value;

/// One part of a result.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    Image { mime: &'a str, data: &'a str },
}

impl Piece<'_> {
    /// As text, for who cannot see.
    pub(super) fn in_words(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Image { mime, .. } => Cow::Owned(left_out("image", mime)),
        }
    }
}

/// The parts of a result, in order. What no provider takes in a result is named in its place.
pub(super) fn pieces(reply: &ToolReply) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = match &reply.content {
        Value::String(text) => vec![Piece::Text(text.into())],
        content => content
            .as_array()
            .into_iter()
            .flatten()
            .map(piece)
            .collect(),
    };
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.trim().is_empty()));
    if let (true, Some(structured)) = (pieces.is_empty(), &reply.structured) {
        pieces.push(Piece::Text(structured.to_string().into()));
    }
    pieces
}

fn piece(block: &Value) -> Piece<'_> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let mime = text("mimeType").unwrap_or("of unknown type");
    match text("type") {
        Some("image") if text("data").is_some() => Piece::Image {
            mime,
            data: text("data").unwrap_or_default(),
        },
        Some("resource") => resource(block.get("resource").unwrap_or(&Value::Null)),
        Some("resource_link") => {
            let uri = text("uri").unwrap_or("without address");
            Piece::Text(format!("[link to {}: {uri}]", text("name").unwrap_or("a resource")).into())
        }
        Some("audio") => Piece::Text(left_out("audio", mime).into()),
        kind => match text("text") {
            Some(text) => Piece::Text(text.into()),
            None => Piece::Text(left_out("content", kind.unwrap_or("of unknown type")).into()),
        },
    }
}

fn resource(resource: &Value) -> Piece<'_> {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let mime = text("mimeType").unwrap_or("of unknown type");
    match (text("text"), text("blob")) {
        (Some(text), _) => Piece::Text(text.into()),
        (None, Some(data)) if mime.starts_with("image/") => Piece::Image { mime, data },
        _ => Piece::Text(
            left_out(
                &format!("resource {}", text("uri").unwrap_or("without address")),
                mime,
            )
            .into(),
        ),
    }
}

fn left_out(what: &str, kind: &str) -> String {
    format!("[{what} {kind}: left out]")
}

/// A result in words alone.
pub(super) fn text(reply: &ToolReply) -> String {
    let pieces = pieces(reply);
    let words: Vec<Cow<'_, str>> = pieces.iter().map(Piece::in_words).collect();
    words.join("\n")
}

/// A result in words alone, for a dialect that has no other way to tell an error than to say so.
pub(super) fn text_that_tells_errors(reply: &ToolReply) -> String {
    let text = text(reply);
    let told = text
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("error"));
    match (reply.is_error, text.is_empty()) {
        (true, true) => "Error".to_owned(),
        (true, false) if !told => format!("Error: {text}"),
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
    fn every_kind_of_content_is_told_or_named() {
        let reply = reply(json!([
            {"type": "text", "text": "hello"},
            {"type": "text", "text": "  "},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a://c", "blob": "aGk=", "mimeType": "image/gif"}},
            {"type": "resource", "resource": {"uri": "a://d", "blob": "aGk=", "mimeType": "application/zip"}},
            {"type": "resource_link", "uri": "a://e", "name": "e"},
            {"type": "hologram", "data": 1},
            7
        ]));
        assert_eq!(
            text(&reply),
            "hello\n[image image/png: left out]\n[audio audio/wav: left out]\ninside\n[image image/gif: left out]\n\
             [resource a://d application/zip: left out]\n[link to e: a://e]\n[content hologram: left out]\n[content of unknown type: left out]"
        );
        assert_eq!(
            pieces(&reply)[1],
            Piece::Image {
                mime: "image/png",
                data: "aGk="
            }
        );
    }

    #[test]
    fn structured_content_speaks_where_there_is_no_other() {
        let mut only = reply(json!([]));
        only.structured = Some(json!({"b": 1, "a": 2}));
        assert_eq!(text(&only), r#"{"b":1,"a":2}"#);
        only.content = json!([{"type": "text", "text": "two"}]);
        assert_eq!(text(&only), "two");
        assert_eq!(text(&reply(Value::Null)), "");
        assert_eq!(text(&reply(json!("plain"))), "plain");
    }

    #[test]
    fn an_error_says_so_once() {
        let told = |text: &str| text_that_tells_errors(&ToolReply::refusal(text));
        assert_eq!(told("no such city"), "Error: no such city");
        assert_eq!(told("ERROR -32602: bad"), "ERROR -32602: bad");
        assert_eq!(told(""), "Error");
        assert_eq!(told("äöüß"), "Error: äöüß");
        assert_eq!(
            text_that_tells_errors(&reply(json!([{"type": "text", "text": "fine"}]))),
            "fine"
        );
    }
}
