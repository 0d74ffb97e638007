//! OpenAI's chat messages: `--format openai-chat`.
//!
//! Written for the Chat Completions API as of the `openai` Python package 3.x (types
//! `ChatCompletionMessageParam` and `ChatCompletion`), which most compatible servers follow. The
//! older `function_call` with role `function` is read too.
//!
//! A call is an entry of an assistant message's `tool_calls`; `function.arguments` is JSON text
//! that may be invalid. A result is a message of role `tool`, joined by `tool_call_id`. There is no
//! error flag, so it stays unknown whether a call failed. Usage is that of responses:
//! `prompt_tokens` includes cached tokens.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string, text, tool};
use crate::error::FormatError;
use crate::exchange::{self, Dialect};
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of OpenAI chat messages.
pub(crate) struct OpenAiChat;

static FORMAT: Format = Format {
    name: "openai-chat",
    reads: "a list of chat messages, request bodies (`messages`), response bodies (`choices`), \
            pairs of both (`request`, `response`), batch results; JSON, arrays, JSON Lines, also \
            one message per line",
    versions: "OpenAI Chat Completions as of `openai` 3.x for Python, and the older \
               `function_call`",
    unknown: "if a call failed; tokens, unless responses are recorded",
};

impl Reader for OpenAiChat {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        exchange::detect::<Chat>(input)
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        exchange::grouping::<Chat>(input)
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        exchange::read::<Chat>(input)
    }
}

/// Chat messages.
pub(crate) struct Chat;

impl Dialect for Chat {
    const NAME: &'static str = "openai-chat";
    const LIST: &'static str = "messages";

    fn message(message: &Value) -> Detection {
        let Some(role) = string(message, "role") else {
            return Detection::No;
        };
        if message.get("parts").is_some() {
            return Detection::No;
        }
        if let Some(parts) = message.get("content").and_then(Value::as_array)
            && !parts.iter().all(is_part)
        {
            return Detection::No;
        }
        if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
            let calls = calls.as_array().map_or(&[][..], Vec::as_slice);
            let is_call = |call: &Value| {
                call.get("function")
                    .or(call.get("custom"))
                    .is_some_and(Value::is_object)
            };
            if !calls.iter().all(is_call) {
                return Detection::close("an entry of `tool_calls` has no object `function`");
            }
            if !calls.is_empty() {
                return Detection::Match;
            }
        }
        match role {
            "tool" if message.get("tool_call_id").is_some() => Detection::Match,
            "tool" => Detection::close("a message of role `tool` has no `tool_call_id`"),
            "function" => Detection::Match,
            "assistant" if message.get("function_call").is_some_and(Value::is_object) => {
                Detection::Match
            }
            "system" | "developer" | "user" | "assistant" => Detection::Possible,
            _ => Detection::No,
        }
    }

    fn request(request: &Value) -> Detection {
        let offers_functions = request
            .get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| tools.iter().any(|tool| tool.get("function").is_some()));
        let own = ["functions", "max_completion_tokens", "response_format"];
        if offers_functions || own.iter().any(|key| request.get(key).is_some()) {
            Detection::Match
        } else {
            Detection::Possible
        }
    }

    fn response(response: &Value) -> Detection {
        match response.get("choices").and_then(Value::as_array) {
            Some(choices) if choices.iter().all(|one| one.get("message").is_some()) => {
                Detection::Match
            }
            Some(_) => Detection::close("an entry of `choices` has no `message`"),
            None => Detection::No,
        }
    }

    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>> {
        let choices = response.get("choices").and_then(Value::as_array);
        let choices = choices.into_iter().flatten().enumerate();
        choices
            .filter_map(|(at, choice)| {
                Some(vec![(
                    choice.get("message")?,
                    format!("/choices/{at}/message"),
                )])
            })
            .collect()
    }

    fn core(message: &Value) -> Value {
        let calls: Vec<Value> = calls(message)
            .map(|(_, call)| json!([call.get("id"), call.pointer("/function/name")]))
            .collect();
        json!([
            message.get("role"),
            message.get("content").and_then(text).unwrap_or_default(),
            calls,
            message.get("tool_call_id"),
        ])
    }

    fn add(builder: &mut TraceBuilder, message: &Value, source: &str) {
        add_message(builder, message, source, |_| None);
    }

    fn offer(builder: &mut TraceBuilder, request: &Value) {
        if let Some(tools) = request.get("tools").and_then(Value::as_array) {
            builder.tools_known();
            for tool in tools {
                offer_tool(builder, tool);
            }
        }
        for function in request
            .get("functions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            offer_function(builder, function);
        }
    }

    fn usage(response: &Value) -> Option<Usage> {
        usage(response.get("usage")?)
    }

    fn stop_reason(response: &Value) -> Option<&'static str> {
        match response.pointer("/choices/0/finish_reason")?.as_str()? {
            "stop" => Some("end"),
            "length" => Some("max_tokens"),
            "content_filter" => Some("withheld"),
            _ => None,
        }
    }
}

/// Returns true for a content part that is not a block of another format. Compatible servers have
/// types of their own.
fn is_part(part: &Value) -> bool {
    string(part, "type").is_some_and(|kind| {
        !(kind.ends_with("tool_use")
            || kind.ends_with("tool_result")
            || matches!(kind, "input_text" | "output_text"))
    })
}

fn calls(message: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten().enumerate()
}

/// Adds an entry of `tools`.
pub(crate) fn offer_tool(builder: &mut TraceBuilder, tool: &Value) {
    if let Some(function) = tool.get("function").or(tool.get("custom")) {
        offer_function(builder, function);
    }
}

fn offer_function(builder: &mut TraceBuilder, function: &Value) {
    if let Some(name) = function.get("name") {
        builder.tool(tool(
            None,
            name,
            function.get("description"),
            function.get("parameters"),
        ));
    }
}

/// Adds a chat message. `is_error` decides about the content of a result, for formats that have a
/// rule for it.
pub(crate) fn add_message(
    builder: &mut TraceBuilder,
    message: &Value,
    source: &str,
    is_error: impl Fn(&Value) -> Option<bool>,
) {
    let role = string(message, "role").unwrap_or_default();
    let content = message.get("content").filter(|content| !content.is_null());
    match role {
        "tool" => builder.result(Reply {
            call_id: id(message, "tool_call_id").cloned(),
            is_error: content.and_then(is_error),
            content: content.cloned(),
            ..Reply::default()
        }),
        // The form before `tool_calls`: results are joined by name.
        "function" => {
            let call_id = string(message, "name").and_then(|name| builder.answer_by_name(name));
            builder.result(Reply {
                call_id,
                is_error: content.and_then(is_error),
                content: content.cloned(),
                ..Reply::default()
            });
        }
        _ => {
            let text = content.and_then(text);
            let refusal = || string(message, "refusal").map(str::to_owned);
            builder.turn(role, text.or_else(refusal).map(Value::from));
        }
    }
    for (at, call) in calls(message) {
        let (function, args) = match call.get("custom") {
            Some(custom) => (Some(custom), custom.get("input").cloned()),
            None => {
                let function = call.get("function");
                let args = function.and_then(|function| function.get("arguments"));
                (function, args.map(arguments))
            }
        };
        builder.call(Call {
            id: id(call, "id").cloned(),
            name: function
                .and_then(|one| one.get("name"))
                .cloned()
                .unwrap_or_default(),
            args,
            source: Some(format!("{source}/tool_calls/{at}")),
            ..Call::default()
        });
    }
    if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
        builder.call(Call {
            name: call.get("name").cloned().unwrap_or_default(),
            args: call.get("arguments").map(arguments),
            source: Some(format!("{source}/function_call")),
            ..Call::default()
        });
    }
}

/// Reads a `usage` object.
pub(crate) fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, &["prompt_tokens"]);
    let mut output = count(usage, &["completion_tokens"]);
    let total = count(usage, &["total_tokens"]);
    let reasoning = count(usage, &["completion_tokens_details", "reasoning_tokens"]);
    // Some providers leave reasoning out of `completion_tokens`; the total shows it.
    if let (Some(input), Some(visible), Some(hidden)) = (input, output, reasoning) {
        let all = visible.saturating_add(hidden);
        if total == Some(input.saturating_add(all)) {
            output = Some(all);
        }
    }
    let usage = Usage {
        input,
        output,
        total,
        cached_input: count(usage, &["prompt_tokens_details", "cached_tokens"]),
        cache_write: count(usage, &["prompt_tokens_details", "cache_write_tokens"]),
        reasoning,
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests;
