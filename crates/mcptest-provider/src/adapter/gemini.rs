//! Google's Gemini API (`generateContent`, v1beta).

mod stream;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, ToolReply, TurnEnd, Usage};
use serde_json::{Map, Value, json};

use super::conversation::{self, Said, count};
use super::names::{NameRule, Names};
use super::{Adapter, Ask, Assembler, Failure, FailureKind, failure, results};

/// The documentation allows 128; older models take half of it.
const NAMES: NameRule = NameRule {
    most: 64,
    also: &['-', '.', ':'],
    begins_with_letter: true,
};

/// The dialect of the Gemini API.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

impl Adapter for Gemini {
    fn path(&self, model: &str, stream: bool) -> String {
        let method = if stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let model = escaped(model);
        // A tuned model, or one written as the API lists it, has its collection in front.
        let collection = if model.contains('/') { "" } else { "models/" };
        format!("/v1beta/{collection}{model}:{method}")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned()))
            .into_iter()
            .collect()
    }

    fn body(&self, ask: &Ask<'_>) -> Value {
        let request = ask.request;
        let names = Names::new(NAMES, request.tools);
        let contents: Vec<Value> = request
            .messages
            .iter()
            .filter_map(|message| written(message, &names))
            .collect();
        let mut body = json!({"contents": contents});
        if let Some(system) = request.system.filter(|system| !system.trim().is_empty()) {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        if let Some(most) = request.max_tokens {
            body["generationConfig"] = json!({"maxOutputTokens": most});
        }
        if !request.tools.is_empty() {
            let declarations: Vec<Value> = names
                .tools()
                .map(|(name, tool)| declared(name, tool))
                .collect();
            body["tools"] = json!([{"functionDeclarations": declarations}]);
        }
        conversation::body(ask, body)
    }

    fn turn(&self, ask: &Ask<'_>, answer: &Value) -> Result<AssistantTurn, Failure> {
        if let Some(failure) = failure::inside(answer) {
            return Err(failure);
        }
        let Some(candidate) = answer
            .get("candidates")
            .and_then(|candidates| candidates.get(0))
        else {
            return Err(no_candidate(answer));
        };
        let reason = conversation::own_id(candidate, "finishReason");
        let end = end(reason.as_deref())?;
        let names = Names::new(NAMES, ask.request.tools);
        let content = candidate.get("content");
        let mut said = Said::default();
        let mut calls = Vec::new();
        let parts = content.and_then(|content| content.get("parts")?.as_array());
        for part in parts.into_iter().flatten() {
            let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
            match (
                part.get("text").and_then(Value::as_str),
                part.get("functionCall"),
            ) {
                (_, Some(call)) => {
                    said.interrupt();
                    calls.push(called(call, &names)?);
                }
                (Some(text), None) if !thought => said.say(text),
                _ => said.interrupt(),
            }
        }
        Ok(AssistantTurn {
            text: said.into_text(),
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

    fn failure(&self, status: u16, body: &[u8]) -> Failure {
        failure::from_status(status, body)
    }
}

/// Of what the provider does not explain nobody knows whether it is the model's doing, so it is not
/// taken for an answer.
fn end(reason: Option<&str>) -> Result<TurnEnd, Failure> {
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
            Err(Failure::broken_off("finishReason", reason))
        }
        Some("MISSING_THOUGHT_SIGNATURE") => Err(Failure::new(
            FailureKind::Refused,
            "the request lacks a signature of hidden reasoning (finishReason `MISSING_THOUGHT_SIGNATURE`)",
        )),
        _ => Ok(TurnEnd::Finished),
    }
}

/// A model's name as part of a path.
fn escaped(model: &str) -> String {
    let mut out = String::with_capacity(model.len());
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn declared(name: &str, tool: &OfferedTool) -> Value {
    let mut declared = json!({"name": name});
    if let Some(description) = tool.tool.description() {
        declared["description"] = description.into();
    }
    let mut schema = conversation::schema(tool);
    if let Some(schema) = schema.as_object_mut() {
        // The one keyword that names a dialect of JSON Schema, and that the API does not take.
        schema.shift_remove("$schema");
    }
    declared["parametersJsonSchema"] = schema;
    declared
}

/// A blocked prompt has no candidate: nothing was answered, so there is no turn.
fn no_candidate(answer: &Value) -> Failure {
    let blocked = answer
        .get("promptFeedback")
        .and_then(|feedback| conversation::own_id(feedback, "blockReason"));
    match blocked {
        Some(reason) => Failure::new(
            FailureKind::Refused,
            format!("the prompt was blocked: {reason}"),
        ),
        None => Failure::malformed(format!("an answer without `candidates[0]`: {answer}")),
    }
}

fn called(call: &Value, names: &Names<'_>) -> Result<ModelCall, Failure> {
    let Some(name) = call.get("name").and_then(Value::as_str) else {
        return Err(Failure::malformed(format!(
            "a `functionCall` without a name: {call}"
        )));
    };
    Ok(ModelCall {
        id: conversation::own_id(call, "id"),
        wire_name: names.back(name),
        args: Some(
            call.get("args")
                .filter(|args| !args.is_null())
                .cloned()
                .unwrap_or_else(|| json!({})),
        ),
        caller: None,
    })
}

/// The API leaves counts of zero out, but never the one of the prompt.
fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, &["promptTokenCount"])?;
    let from_tools = count(usage, &["toolUsePromptTokenCount"]).unwrap_or(0);
    let reasoning = count(usage, &["thoughtsTokenCount"]);
    let written = count(usage, &["candidatesTokenCount"]).unwrap_or(0);
    conversation::counted(Usage {
        input: input.saturating_add(from_tools),
        output: written.saturating_add(reasoning.unwrap_or(0)),
        cached_input: count(usage, &["cachedContentTokenCount"]),
        reasoning,
    })
}

/// A message in the dialect; none for a turn in which nothing was said, which the API refuses.
fn written(message: &Message, names: &Names<'_>) -> Option<Value> {
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

/// The provider's own parts, unchanged but for what it would not take back: empty texts that carry
/// nothing else, arguments that are no object, names out of its alphabet.
fn sent_back(parts: &[Value], turn: &AssistantTurn, names: &Names<'_>) -> Vec<Value> {
    let mut calls = turn.calls.iter();
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts.iter().filter(|part| !carries_nothing(part)) {
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
                .is_some_and(|name| names.fits(name))
            {
                block.insert("name".to_owned(), names.out(&call.wire_name).into());
            }
        }
        kept.push(part);
    }
    kept
}

/// An empty text may still carry a signature of hidden reasoning.
fn carries_nothing(part: &Value) -> bool {
    let Some(part) = part.as_object() else {
        return true;
    };
    part.iter().all(|(key, value)| match key.as_str() {
        "text" => value.as_str().is_none_or(str::is_empty),
        "thought" => true,
        _ => false,
    })
}

fn built(turn: &AssistantTurn, names: &Names<'_>) -> Vec<Value> {
    let text = (!turn.text.is_empty()).then(|| json!({"text": turn.text}));
    let calls = turn.calls.iter().map(|call| {
        let mut block = json!({"name": names.out(&call.wire_name), "args": conversation::object(call.args.as_ref())});
        if let Some(id) = &call.id {
            block["id"] = id.as_str().into();
        }
        json!({"functionCall": block})
    });
    text.into_iter().chain(calls).collect()
}

/// The API joins call and result by id where the model gave one, else by name and order.
fn result(call: &ModelCall, reply: &ToolReply, names: &Names<'_>) -> Value {
    let text = results::text(reply);
    let response = if reply.is_error {
        json!({"error": if text.is_empty() { "Error" } else { &text }})
    } else {
        json!({"output": text})
    };
    let mut result = json!({"name": names.out(&call.wire_name), "response": response});
    if let Some(id) = &call.id {
        result["id"] = id.as_str().into();
    }
    json!({"functionResponse": result})
}
