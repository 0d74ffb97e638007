//! Anthropic's messages: `--format anthropic`.
//!
//! Written for the Messages API as of the `anthropic` Python package 2.x (types `MessageParam`,
//! `Message` and their beta forms with MCP connector blocks).
//!
//! Calls are `tool_use` blocks of the assistant (with a `caller` tag if generated code made them),
//! `mcp_tool_use` blocks with `server_name`, and `server_tool_use` blocks for tools that the
//! provider runs. Results are `tool_result` blocks of the user, `mcp_tool_result` and
//! `*_tool_result` blocks of the assistant, joined by `tool_use_id`. An absent `is_error` means
//! success. `input_tokens` excludes tokens that were read from a cache or written to it.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string, text, tool};
use crate::error::FormatError;
use crate::exchange::{self, Dialect};
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Anthropic messages.
pub(crate) struct Anthropic;

static FORMAT: Format = Format {
    name: "anthropic",
    reads: "a list of messages, request bodies (`messages`), response bodies (`type: message`), \
            pairs of both (`request`, `response`), batch results; JSON, arrays, JSON Lines, also \
            one message per line",
    versions: "Anthropic Messages API as of `anthropic` 2.x for Python, with the blocks of its \
               MCP connector and the `caller` tag",
    unknown: "tokens, unless responses are recorded",
};

impl Reader for Anthropic {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        exchange::detect::<Messages>(input)
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        exchange::grouping::<Messages>(input)
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        exchange::read::<Messages>(input)
    }
}

/// Anthropic's messages.
pub(crate) struct Messages;

impl Dialect for Messages {
    const NAME: &'static str = "anthropic";
    const LIST: &'static str = "messages";

    fn message(message: &Value) -> Detection {
        if !matches!(string(message, "role"), Some("user" | "assistant")) {
            return Detection::No;
        }
        let foreign = ["tool_calls", "function_call", "tool_call_id", "parts"];
        if foreign
            .iter()
            .any(|key| message.get(key).is_some_and(|value| !value.is_null()))
        {
            return Detection::No;
        }
        match message.get("content") {
            Some(Value::String(_)) => Detection::Possible,
            Some(Value::Array(blocks)) => {
                if blocks.is_empty() && string(message, "type") != Some("message") {
                    return Detection::Possible;
                }
                let own = string(message, "type") == Some("message");
                let blocks = Detection::of_all(blocks.iter().map(block));
                match blocks {
                    Detection::Possible if own => Detection::Match,
                    Detection::No if own && message.get("stop_reason").is_some() => {
                        Detection::Match
                    }
                    other => other,
                }
            }
            _ => Detection::No,
        }
    }

    fn request(request: &Value) -> Detection {
        let offers_tools = request
            .get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| tools.iter().any(|tool| tool.get("input_schema").is_some()));
        let own = [
            "system",
            "mcp_servers",
            "stop_sequences",
            "thinking",
            "anthropic_version",
        ];
        if offers_tools || own.iter().any(|key| request.get(key).is_some()) {
            Detection::Match
        } else {
            Detection::Possible
        }
    }

    fn response(response: &Value) -> Detection {
        let answer = string(response, "type") == Some("message")
            && string(response, "role") == Some("assistant");
        if !answer {
            return Detection::No;
        }
        match response.get("content") {
            Some(Value::Array(_)) => Detection::Match,
            _ => Detection::close("`content` is not a list of blocks"),
        }
    }

    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>> {
        if response.get("content").is_some() {
            vec![vec![(response, String::new())]]
        } else {
            Vec::new()
        }
    }

    fn core(message: &Value) -> Value {
        let blocks = message.get("content").and_then(Value::as_array);
        let calls: Vec<Value> = blocks
            .into_iter()
            .flatten()
            .filter(|block| {
                block.get("text").is_none() && string(block, "type") != Some("thinking")
            })
            .map(|block| json!([block.get("id"), block.get("tool_use_id"), block.get("name")]))
            .collect();
        json!([
            message.get("role"),
            message.get("content").and_then(text).unwrap_or_default(),
            calls,
        ])
    }

    fn add(builder: &mut TraceBuilder, message: &Value, source: &str) {
        add_message(builder, message, source);
    }

    fn offer(builder: &mut TraceBuilder, request: &Value) {
        let servers = request.get("mcp_servers").and_then(Value::as_array);
        for server in servers.into_iter().flatten() {
            if let Some(name) = string(server, "name") {
                builder.server(name);
            }
        }
        if let Some(tools) = request.get("tools").and_then(Value::as_array) {
            builder.tools_known();
            // Tools of a connected server are not listed: `mcp_toolset` has no name.
            for offered in tools {
                if let Some(name) = offered.get("name") {
                    builder.tool(tool(
                        None,
                        name,
                        offered.get("description"),
                        offered.get("input_schema"),
                    ));
                }
            }
        }
    }

    fn usage(response: &Value) -> Option<Usage> {
        usage(response.get("usage")?)
    }

    fn stop_reason(response: &Value) -> Option<&'static str> {
        match string(response, "stop_reason")? {
            "end_turn" | "stop_sequence" => Some("end"),
            "max_tokens" | "model_context_window_exceeded" => Some("max_tokens"),
            "refusal" => Some("withheld"),
            _ => None,
        }
    }
}

/// Detects a content block.
fn block(block: &Value) -> Detection {
    let Some(kind) = string(block, "type") else {
        return Detection::No;
    };
    match kind {
        "text" => Detection::Possible,
        "tool_use" | "server_tool_use" | "mcp_tool_use" | "thinking" | "redacted_thinking"
        | "document" | "search_result" | "container_upload" | "compaction" | "fallback"
        | "mcp_tool_listing" => Detection::Match,
        "image" if block.get("source").is_some() => Detection::Match,
        kind if kind.ends_with("tool_result") && block.get("tool_use_id").is_some() => {
            Detection::Match
        }
        "tool_result" => Detection::close("a `tool_result` block has no `tool_use_id`"),
        _ => Detection::No,
    }
}

/// Adds a message with its blocks.
pub(crate) fn add_message(builder: &mut TraceBuilder, message: &Value, source: &str) {
    let role = string(message, "role").unwrap_or_default();
    let content = message.get("content");
    let blocks = content
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let is_result = |block: &Value| string(block, "type") == Some("tool_result");
    // A user message that only carries results is not a turn of the user.
    if role != "user" || blocks.is_empty() || !blocks.iter().all(is_result) {
        builder.turn(role, content.and_then(text).map(Value::from));
    }
    for (at, block) in blocks.iter().enumerate() {
        add_block(builder, block, &format!("{source}/content/{at}"));
    }
}

/// Adds a call or a result block. Other blocks are ignored here: the caller adds their text.
pub(crate) fn add_block(builder: &mut TraceBuilder, block: &Value, source: &str) {
    let Some(kind) = string(block, "type") else {
        return;
    };
    match kind {
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let mut extra = Vec::new();
            if kind == "server_tool_use" {
                extra.push(("provider_tool", true.into()));
            }
            builder.call(Call {
                id: id(block, "id").cloned(),
                name: block.get("name").cloned().unwrap_or_default(),
                server: string(block, "server_name").map(str::to_owned),
                args: block.get("input").cloned(),
                caller: caller(block),
                source: Some(source.to_owned()),
                extra,
            });
        }
        "mcp_tool_listing" => {
            let server = string(block, "mcp_server_name");
            let tools = block.get("tools").and_then(Value::as_array);
            for listed in tools.into_iter().flatten() {
                if let Some(name) = listed.get("name") {
                    let schema = listed.get("input_schema");
                    builder.tool(tool(server, name, listed.get("description"), schema));
                }
            }
        }
        _ if kind.ends_with("tool_result") => builder.result(Reply {
            call_id: id(block, "tool_use_id").cloned(),
            is_error: Some(is_error(block)),
            content: block.get("content").cloned(),
            ..Reply::default()
        }),
        _ => {}
    }
}

/// The tag of a call that generated code made. `direct` is the model itself.
fn caller(block: &Value) -> Option<Value> {
    let caller = block.get("caller").filter(|caller| !caller.is_null())?;
    (string(caller, "type") != Some("direct")).then(|| caller.clone())
}

/// Returns true for an error. An absent flag means success; the provider's own tools report errors
/// in their content.
fn is_error(block: &Value) -> bool {
    let flag = block
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let content = block.get("content");
    let kind = content.and_then(|content| string(content, "type"));
    flag || kind.is_some_and(|kind| kind.ends_with("tool_result_error"))
}

/// Reads a `usage` object. Cached tokens are not part of `input_tokens`.
pub(crate) fn usage(usage: &Value) -> Option<Usage> {
    let cached_input = count(usage, &["cache_read_input_tokens"]);
    let cache_write = count(usage, &["cache_creation_input_tokens"]);
    let input = count(usage, &["input_tokens"]).map(|input| {
        input
            .saturating_add(cached_input.unwrap_or(0))
            .saturating_add(cache_write.unwrap_or(0))
    });
    let usage = Usage {
        input,
        output: count(usage, &["output_tokens"]),
        total: None,
        cached_input,
        cache_write,
        reasoning: count(usage, &["output_tokens_details", "thinking_tokens"]),
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests;
