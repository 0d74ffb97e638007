//! Google's Gemini API (`generateContent`, v1beta).

mod stream;
#[cfg(test)]
mod tests;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, ToolReply, TurnEnd, Usage};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::api_error::{self, ApiError, ApiErrorKind};
use super::conversation::{self, TextBlocks, count};
use super::names::{NameRule, ToolNames};
use super::results;
use super::traits::{Adapter, Assembler, ProviderRequest};

/// The documentation allows 128 characters; older models accept 64.
const NAMES: NameRule = NameRule {
    max_length: 64,
    extra_characters: &['-', '.', ':'],
    starts_with_letter: true,
};

/// The characters of a model's id that are escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'@');

/// The adapter of the Gemini API.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Adapter for Gemini {
    fn path(&self, model: &str, stream: bool) -> String {
        let method = if stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let model = utf8_percent_encode(model, ESCAPED).to_string();
        // Tuned models, and ids as the API lists them, already name their collection.
        let collection = if model.contains('/') { "" } else { "models/" };
        format!("/v1beta/{collection}{model}:{method}")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned()))
            .into_iter()
            .collect()
    }

    fn body(&self, request: &ProviderRequest<'_>) -> Value {
        let turn = request.turn;
        let names = ToolNames::new(NAMES, turn.tools);
        let contents: Vec<Value> = turn
            .messages
            .iter()
            .filter_map(|message| written(message, &names))
            .collect();
        let mut body = json!({"contents": contents});
        if let Some(system) = turn.system.filter(|system| !system.trim().is_empty()) {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        if let Some(most) = turn.max_tokens {
            body["generationConfig"] = json!({"maxOutputTokens": most});
        }
        if !turn.tools.is_empty() {
            let declarations: Vec<Value> = names
                .tools()
                .map(|(name, tool)| declared(name, tool))
                .collect();
            body["tools"] = json!([{"functionDeclarations": declarations}]);
        }
        conversation::body(request, body)
    }

    fn turn(
        &self,
        request: &ProviderRequest<'_>,
        answer: &Value,
    ) -> Result<AssistantTurn, ApiError> {
        if let Some(error) = api_error::inside(answer) {
            return Err(error);
        }
        let Some(candidate) = answer
            .get("candidates")
            .and_then(|candidates| candidates.get(0))
        else {
            return Err(no_candidate(answer));
        };
        let reason = conversation::non_empty(candidate, "finishReason");
        let end = end(reason.as_deref())?;
        let names = ToolNames::new(NAMES, request.turn.tools);
        let content = candidate.get("content");
        let mut text = TextBlocks::default();
        let mut calls = Vec::new();
        let parts = content.and_then(|content| content.get("parts")?.as_array());
        for part in parts.into_iter().flatten() {
            let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
            match (
                part.get("text").and_then(Value::as_str),
                part.get("functionCall"),
            ) {
                (_, Some(call)) => {
                    text.separate();
                    calls.push(called(call, &names)?);
                }
                (Some(more), None) if !thought => text.push(more),
                _ => text.separate(),
            }
        }
        Ok(AssistantTurn {
            text: text.into_text(),
            calls,
            usage: answer.get("usageMetadata").and_then(usage),
            end,
            stop_reason: reason,
            native: content.cloned(),
        })
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        Box::new(stream::Parts::default())
    }
}

/// Maps `finishReason`. Unexplained reasons are errors: they may not be the model's fault.
fn end(reason: Option<&str>) -> Result<TurnEnd, ApiError> {
    match reason {
        Some("MAX_TOKENS") => Ok(TurnEnd::OutOfTokens),
        Some(
            "MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS",
        ) => Ok(TurnEnd::MalformedCall),
        Some(
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII",
        ) => Ok(TurnEnd::Withheld),
        Some(reason) if reason.starts_with("IMAGE_") => Ok(TurnEnd::Withheld),
        Some(reason @ ("OTHER" | "FINISH_REASON_UNSPECIFIED")) => {
            Err(ApiError::aborted("finishReason", reason))
        }
        Some("MISSING_THOUGHT_SIGNATURE") => Err(ApiError::new(
            ApiErrorKind::Refused,
            "the request lacks a signature of hidden reasoning (finishReason \
             `MISSING_THOUGHT_SIGNATURE`)",
        )),
        _ => Ok(TurnEnd::Finished),
    }
}

fn declared(name: &str, tool: &OfferedTool) -> Value {
    let mut declared = json!({"name": name});
    if let Some(description) = tool.tool.description() {
        declared["description"] = description.into();
    }
    let mut schema = conversation::schema(tool);
    if let Some(schema) = schema.as_object_mut() {
        // The API rejects this keyword, which only names the version of JSON Schema.
        schema.shift_remove("$schema");
    }
    declared["parametersJsonSchema"] = schema;
    declared
}

/// Returns the error of an answer without a candidate, such as for a blocked prompt.
fn no_candidate(answer: &Value) -> ApiError {
    let blocked = answer
        .get("promptFeedback")
        .and_then(|feedback| conversation::non_empty(feedback, "blockReason"));
    match blocked {
        Some(reason) => ApiError::new(
            ApiErrorKind::Refused,
            format!("the prompt was blocked: {reason}"),
        ),
        None => ApiError::malformed(format!("an answer without `candidates[0]`: {answer}")),
    }
}

fn called(call: &Value, names: &ToolNames<'_>) -> Result<ModelCall, ApiError> {
    let Some(name) = call.get("name").and_then(Value::as_str) else {
        return Err(ApiError::malformed(format!(
            "a `functionCall` without a name: {call}"
        )));
    };
    Ok(ModelCall {
        id: conversation::non_empty(call, "id"),
        wire_name: names.own_name(name),
        args: Some(
            call.get("args")
                .filter(|args| !args.is_null())
                .cloned()
                .unwrap_or_else(|| json!({})),
        ),
        caller: None,
    })
}

/// Reads the usage. The API omits counts of zero, but never that of the prompt.
fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, &["promptTokenCount"])?;
    let from_tools = count(usage, &["toolUsePromptTokenCount"]).unwrap_or(0);
    let reasoning = count(usage, &["thoughtsTokenCount"]);
    let visible = count(usage, &["candidatesTokenCount"]).unwrap_or(0);
    conversation::known_usage(Usage {
        input: input.saturating_add(from_tools),
        output: visible.saturating_add(reasoning.unwrap_or(0)),
        cached_input: count(usage, &["cachedContentTokenCount"]),
        reasoning,
    })
}

/// Converts a message. An empty turn gives none: the API rejects it.
fn written(message: &Message, names: &ToolNames<'_>) -> Option<Value> {
    match message {
        Message::User(text) => Some(json!({"role": "user", "parts": [{"text": text}]})),
        Message::Assistant(turn) => {
            let native = turn.native.as_ref().and_then(Value::as_object);
            let parts = match native.and_then(|native| native.get("parts")?.as_array()) {
                Some(parts) => sent_back(parts, turn, names),
                None => built(turn, names),
            };
            let mut content: Map<String, Value> = native.cloned().unwrap_or_default();
            content.insert("role".to_owned(), "model".into());
            let empty = parts.is_empty();
            content.insert("parts".to_owned(), parts.into());
            (!empty).then(|| content.into())
        }
        Message::Results(results) => {
            let parts: Vec<Value> = results
                .iter()
                .map(|(call, reply)| result(call, reply, names))
                .collect();
            (!parts.is_empty()).then(|| json!({"role": "user", "parts": parts}))
        }
    }
}

/// Returns the provider's own parts with only the changes that it requires: no empty texts without
/// other fields, arguments as objects, valid names.
fn sent_back(parts: &[Value], turn: &AssistantTurn, names: &ToolNames<'_>) -> Vec<Value> {
    let mut calls = turn.calls.iter();
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|part| !is_empty_part(part)) {
        let mut part = part.clone();
        if let Some(block) = part.get_mut("functionCall").and_then(Value::as_object_mut)
            && let Some(call) = calls.next()
        {
            if block.get("args").is_some_and(|args| !args.is_object()) {
                block.insert("args".to_owned(), conversation::object(call.args.as_ref()));
            }
            if !block
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.is_valid(name))
            {
                block.insert("name".to_owned(), names.sent_name(&call.wire_name).into());
            }
        }
        kept.push(part);
    }
    kept
}

/// Returns true if a part is empty. An empty text may still have a signature of hidden reasoning.
fn is_empty_part(part: &Value) -> bool {
    let Some(part) = part.as_object() else {
        return true;
    };
    part.iter().all(|(key, value)| match key.as_str() {
        "text" => value.as_str().is_none_or(str::is_empty),
        "thought" => true,
        _ => false,
    })
}

fn built(turn: &AssistantTurn, names: &ToolNames<'_>) -> Vec<Value> {
    let text = (!turn.text.is_empty()).then(|| json!({"text": turn.text}));
    let calls = turn.calls.iter().map(|call| {
        let mut block = json!({
            "name": names.sent_name(&call.wire_name),
            "args": conversation::object(call.args.as_ref()),
        });
        if let Some(id) = &call.id {
            block["id"] = id.as_str().into();
        }
        json!({"functionCall": block})
    });
    text.into_iter().chain(calls).collect()
}

/// Converts a result. The API connects it with its call by id, or else by name and order.
fn result(call: &ModelCall, reply: &ToolReply, names: &ToolNames<'_>) -> Value {
    let text = results::text(reply);
    let response = if reply.is_error {
        json!({"error": if text.is_empty() { "Error" } else { &text }})
    } else {
        json!({"output": text})
    };
    let mut result = json!({"name": names.sent_name(&call.wire_name), "response": response});
    if let Some(id) = &call.id {
        result["id"] = id.as_str().into();
    }
    json!({"functionResponse": result})
}
