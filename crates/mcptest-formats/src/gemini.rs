//! Gemini's contents: `--format gemini`.
//!
//! Written for the Gemini API v1beta (`generateContent`), as REST bodies (camel case) and as the
//! `google-genai` 3.x package for Python dumps its types (snake case).
//!
//! A call is a `functionCall` part of the model; a result is a `functionResponse` part, joined by
//! `id` where the parts have one, else by name in order. `response.error` marks a failed call and
//! `response.output` a successful one; otherwise it is unknown. `promptTokenCount` includes cached
//! tokens; output is `candidatesTokenCount` and `thoughtsTokenCount`.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string, tool};
use crate::error::FormatError;
use crate::exchange::{self, Dialect};
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Gemini contents.
pub(crate) struct Gemini;

static FORMAT: Format = Format {
    name: "gemini",
    reads: "a list of contents, request bodies (`contents`), response bodies (`candidates`), pairs \
            of both (`request`, `response`); JSON, arrays, JSON Lines, also one content per line; \
            camel case and snake case",
    versions: "Gemini API v1beta, and `google-genai` 3.x for Python",
    unknown: "if a call failed, unless its response has `error` or `output`; tokens, unless \
              responses are recorded",
};

impl Reader for Gemini {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        exchange::detect::<Contents>(input)
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        exchange::grouping::<Contents>(input)
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        exchange::read::<Contents>(input)
    }
}

/// Contents.
pub(crate) struct Contents;

/// The value of a key in camel case or snake case.
fn either<'v>(value: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    let present = |key: &str| value.get(key).filter(|value| !value.is_null());
    present(camel).or_else(|| present(snake))
}

fn function_call(part: &Value) -> Option<&Value> {
    either(part, "functionCall", "function_call")
}

fn function_response(part: &Value) -> Option<&Value> {
    either(part, "functionResponse", "function_response")
}

fn parts(content: &Value) -> &[Value] {
    content
        .get("parts")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

impl Dialect for Contents {
    const NAME: &'static str = "gemini";
    const LIST: &'static str = "contents";

    fn is_message(value: &Value) -> bool {
        value.get("parts").is_some_and(Value::is_array)
            && value.get("author").is_none()
            && value.get("id").is_none()
    }

    fn message(content: &Value) -> Detection {
        let role = match content.get("role") {
            None | Some(Value::Null) => None,
            Some(role) => role.as_str(),
        };
        if !matches!(role, None | Some("user" | "model" | "function" | "tool")) {
            return Detection::No;
        }
        let Some(parts) = content.get("parts").and_then(Value::as_array) else {
            return Detection::close("a content has no list `parts`");
        };
        if parts
            .iter()
            .any(|part| !part.is_object() || part.get("type").is_some())
        {
            return Detection::No;
        }
        let called = |part: &Value| function_call(part).or(function_response(part)).is_some();
        if role == Some("model") || parts.iter().any(called) {
            Detection::Match
        } else {
            Detection::Possible
        }
    }

    fn request(_: &Value) -> Detection {
        // No other format has `contents`.
        Detection::Match
    }

    fn response(response: &Value) -> Detection {
        match response.get("candidates") {
            Some(Value::Array(candidates)) => {
                let bare = |one: &Value| {
                    one.get("content").is_none()
                        && either(one, "finishReason", "finish_reason").is_none()
                };
                if candidates.iter().any(bare) {
                    Detection::close("an entry of `candidates` has no `content`")
                } else {
                    Detection::Match
                }
            }
            Some(_) => Detection::close("`candidates` is not an array"),
            None if either(response, "usageMetadata", "usage_metadata").is_some()
                && either(response, "promptFeedback", "prompt_feedback").is_some() =>
            {
                Detection::Match
            }
            None => Detection::No,
        }
    }

    fn messages(request: &Value) -> Option<Vec<(&Value, String)>> {
        match request.get("contents")? {
            one @ (Value::Object(_) | Value::String(_)) => Some(vec![(one, "/contents".into())]),
            Value::Array(contents) => {
                let place = |(at, content)| (content, format!("/contents/{at}"));
                Some(contents.iter().enumerate().map(place).collect())
            }
            _ => None,
        }
    }

    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>> {
        let candidates = response.get("candidates").and_then(Value::as_array);
        let candidates = candidates.into_iter().flatten().enumerate();
        candidates
            .map(
                |(at, one)| match one.get("content").filter(|content| content.is_object()) {
                    Some(content) => vec![(content, format!("/candidates/{at}/content"))],
                    // A filter withheld the answer.
                    None => Vec::new(),
                },
            )
            .collect()
    }

    fn core(content: &Value) -> Value {
        let part = |part: &Value| match (function_call(part), function_response(part)) {
            (Some(call), _) => json!([call.get("name"), call.get("args"), call.get("id")]),
            (_, Some(response)) => json!([response.get("name"), response.get("id")]),
            _ => json!(part.get("text")),
        };
        json!([
            content.get("role"),
            parts(content).iter().map(part).collect::<Vec<_>>()
        ])
    }

    fn add(builder: &mut TraceBuilder, content: &Value, source: &str) {
        add_content(builder, content, source);
    }

    fn offer(builder: &mut TraceBuilder, request: &Value) {
        // The Python package has tools in `config`.
        let tools = request
            .get("tools")
            .or_else(|| request.pointer("/config/tools"));
        let Some(tools) = tools.and_then(Value::as_array) else {
            return;
        };
        builder.tools_known();
        for group in tools {
            let declared = either(group, "functionDeclarations", "function_declarations");
            for one in declared.and_then(Value::as_array).into_iter().flatten() {
                let schema = either(one, "parametersJsonSchema", "parameters_json_schema")
                    .or_else(|| one.get("parameters"));
                if let Some(name) = one.get("name") {
                    builder.tool(tool(None, name, one.get("description"), schema));
                }
            }
        }
    }

    fn model(body: &Value) -> Option<&str> {
        let model = either(body, "modelVersion", "model_version").or_else(|| body.get("model"));
        let model = model?.as_str()?;
        Some(model.strip_prefix("models/").unwrap_or(model))
    }

    fn usage(response: &Value) -> Option<Usage> {
        usage(either(response, "usageMetadata", "usage_metadata")?)
    }

    fn stop_reason(response: &Value) -> Option<&'static str> {
        let candidate = response.pointer("/candidates/0")?;
        let calls = candidate.get("content").map_or(&[][..], parts);
        match either(candidate, "finishReason", "finish_reason")?.as_str()? {
            "STOP" if calls.iter().all(|part| function_call(part).is_none()) => Some("end"),
            "MAX_TOKENS" => Some("max_tokens"),
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => Some("malformed_call"),
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "MODEL_ARMOR" => Some("withheld"),
            _ => None,
        }
    }
}

/// Adds a content with its parts.
pub(crate) fn add_content(builder: &mut TraceBuilder, content: &Value, source: &str) {
    if let Value::String(text) = content {
        return builder.turn("user", Some(text.as_str().into()));
    }
    let parts = parts(content);
    let shown = |part: &&Value| part.get("thought").and_then(Value::as_bool) != Some(true);
    let texts: Vec<&str> = parts
        .iter()
        .filter(shown)
        .filter_map(|part| string(part, "text"))
        .collect();
    let text = (!texts.is_empty()).then(|| Value::from(texts.concat()));
    match string(content, "role") {
        Some("model") => builder.turn("assistant", text),
        role if text.is_some() => builder.turn(role.unwrap_or("user"), text),
        _ => {}
    }
    for (at, part) in parts.iter().enumerate() {
        if let Some(call) = function_call(part) {
            builder.call(Call {
                id: id(call, "id").cloned(),
                name: call.get("name").cloned().unwrap_or_default(),
                args: call.get("args").cloned(),
                source: Some(format!("{source}/parts/{at}")),
                ..Call::default()
            });
        } else if let Some(response) = function_response(part) {
            add_response(builder, response);
        }
    }
}

/// Adds a result: by id, else by name.
pub(crate) fn add_response(builder: &mut TraceBuilder, response: &Value) {
    let call_id = match id(response, "id").filter(|id| builder.has_call(id)) {
        Some(id) => Some(id.clone()),
        None => string(response, "name").and_then(|name| builder.answer_by_name(name)),
    };
    let content = response.get("response");
    let has = |key: &str| content.and_then(|content| content.get(key)).is_some();
    let is_error = match (has("error"), has("output")) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    builder.result(Reply {
        call_id: call_id.or_else(|| id(response, "id").cloned()),
        is_error,
        content: content.cloned(),
        ..Reply::default()
    });
}

/// Reads a `usageMetadata` object. Counts of zero are left out by the API, except the prompt's.
pub(crate) fn usage(usage: &Value) -> Option<Usage> {
    let figure =
        |camel: &str, snake: &str| count(usage, &[camel]).or_else(|| count(usage, &[snake]));
    let input = figure("promptTokenCount", "prompt_token_count")?;
    let tools = figure("toolUsePromptTokenCount", "tool_use_prompt_token_count");
    let visible = figure("candidatesTokenCount", "candidates_token_count");
    let reasoning = figure("thoughtsTokenCount", "thoughts_token_count");
    Some(Usage {
        input: Some(input.saturating_add(tools.unwrap_or(0))),
        output: Some(visible.unwrap_or(0).saturating_add(reasoning.unwrap_or(0))),
        total: figure("totalTokenCount", "total_token_count"),
        cached_input: figure("cachedContentTokenCount", "cached_content_token_count"),
        cache_write: None,
        reasoning,
    })
}

#[cfg(test)]
mod tests;
