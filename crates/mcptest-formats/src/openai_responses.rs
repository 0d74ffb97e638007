//! OpenAI's Responses items: `--format openai-responses`.
//!
//! Written for the Responses API as of the `openai` Python package 3.x (types
//! `ResponseInputItemParam` and `Response`).
//!
//! Calls are the items `function_call` and `custom_tool_call` (results are separate items, joined
//! by `call_id`), `mcp_call` with `server_label` (its `output` or `error` is in the item), and the
//! calls of tools that the provider runs (`web_search_call`, …). A response that continues another
//! one by `previous_response_id` belongs to the same trace. `input_tokens` includes cached tokens.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string, text, tool};
use crate::error::FormatError;
use crate::exchange::{self, Dialect};
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of OpenAI Responses items.
pub(crate) struct OpenAiResponses;

static FORMAT: Format = Format {
    name: "openai-responses",
    reads: "a list of items, request bodies (`input`), response bodies (`object: response`), pairs \
            of both (`request`, `response`), batch results; JSON, arrays, JSON Lines, also one item \
            per line",
    versions: "OpenAI Responses API as of `openai` 3.x for Python",
    unknown: "if a function call failed; tokens, unless responses are recorded",
};

impl Reader for OpenAiResponses {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        exchange::detect::<Items>(input)
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        exchange::grouping::<Items>(input)
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        exchange::read::<Items>(input)
    }
}

/// The types of items that only this format has.
const CALL_TYPES: [&str; 19] = [
    "function_call",
    "custom_tool_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
    "program",
    "program_output",
];

/// Items.
struct Items;

impl Dialect for Items {
    const NAME: &'static str = "openai-responses";
    const LIST: &'static str = "input";
    const PLAIN: bool = false;

    fn is_message(value: &Value) -> bool {
        let known = |kind: &str| {
            CALL_TYPES.contains(&kind)
                || kind.ends_with("_call_output")
                || matches!(
                    kind,
                    "reasoning" | "message" | "item_reference" | "compaction"
                )
        };
        let role = value.get("role").is_some_and(Value::is_string);
        let of_anthropic = value.get("stop_reason").is_some();
        string(value, "type").map_or(role, known) && !of_anthropic
    }

    fn message(item: &Value) -> Detection {
        if item.is_string() {
            return Detection::Possible;
        }
        match string(item, "type") {
            Some(kind) if CALL_TYPES.contains(&kind) => {
                if kind == "function_call" && item.get("call_id").is_none() {
                    return Detection::close("a `function_call` item has no `call_id`");
                }
                Detection::Match
            }
            Some(kind) if kind.ends_with("_call_output") => Detection::Match,
            Some("reasoning" | "item_reference" | "compaction") => Detection::Possible,
            Some("message") | None => message(item),
            Some(_) => Detection::No,
        }
    }

    fn request(request: &Value) -> Detection {
        let own = [
            "instructions",
            "previous_response_id",
            "max_output_tokens",
            "include",
        ];
        let tools = request.get("tools").and_then(Value::as_array);
        let flat = |tool: &Value| {
            tool.get("function").is_none()
                && string(tool, "type").is_some_and(|kind| {
                    kind == "mcp" || (kind == "function" && tool.get("name").is_some())
                })
        };
        let offers = tools.is_some_and(|tools| tools.iter().any(flat));
        if offers || own.iter().any(|key| request.get(key).is_some()) {
            Detection::Match
        } else {
            Detection::Possible
        }
    }

    fn response(response: &Value) -> Detection {
        let output = response.get("output");
        match string(response, "object") {
            Some("response") if output.is_some_and(Value::is_array) => Detection::Match,
            Some("response") => Detection::close("`output` is not a list of items"),
            _ => Detection::No,
        }
    }

    fn messages(request: &Value) -> Option<Vec<(&Value, String)>> {
        match request.get("input")? {
            text @ Value::String(_) => Some(vec![(text, "/input".to_owned())]),
            Value::Array(items) => Some(
                items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| (item, format!("/input/{at}")))
                    .collect(),
            ),
            _ => None,
        }
    }

    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>> {
        let Some(items) = response.get("output").and_then(Value::as_array) else {
            return Vec::new();
        };
        let items = items.iter().enumerate();
        vec![
            items
                .map(|(at, item)| (item, format!("/output/{at}")))
                .collect(),
        ]
    }

    fn continues(request: &Value) -> Option<&str> {
        string(request, "previous_response_id")
    }

    fn core(item: &Value) -> Value {
        match item {
            Value::String(text) => json!(["user", text]),
            _ if item.get("call_id").is_some() => {
                json!([item.get("type"), item.get("call_id")])
            }
            _ if item.get("role").is_some() => {
                json!([item.get("role"), item.get("content").and_then(text)])
            }
            _ => json!([item.get("type"), item.get("id")]),
        }
    }

    fn add(builder: &mut TraceBuilder, item: &Value, source: &str) {
        if let Value::String(text) = item {
            return builder.turn("user", Some(text.as_str().into()));
        }
        let kind = string(item, "type").unwrap_or("message");
        match kind {
            "message" => {
                let text = item.get("content").and_then(text);
                match string(item, "role").unwrap_or_default() {
                    "assistant" => builder.turn_text(&text.unwrap_or_default()),
                    role => builder.turn(role, text.map(Value::from)),
                }
            }
            "mcp_list_tools" => list_tools(builder, item),
            "additional_tools" => {
                let tools = item.get("tools").and_then(Value::as_array);
                offer_tools(builder, tools.map_or(&[], Vec::as_slice));
            }
            "function_call" | "custom_tool_call" => {
                builder.open_turn();
                let args = match kind {
                    "function_call" => item.get("arguments").map(arguments),
                    _ => item.get("input").cloned(),
                };
                builder.call_once(Call {
                    id: id(item, "call_id").cloned(),
                    name: item.get("name").cloned().unwrap_or_default(),
                    server: string(item, "namespace").map(str::to_owned),
                    args,
                    caller: caller(item),
                    source: Some(source.to_owned()),
                    ..Call::default()
                });
            }
            "program" => {
                builder.open_turn();
                add_provider_call(builder, item, "program", source);
            }
            "mcp_call" => {
                builder.open_turn();
                add_mcp_call(builder, item, source);
            }
            _ if kind.ends_with("_output") => {
                let content = ["output", "result", "tools"].into_iter();
                builder.result_once(Reply {
                    // A local shell has the id of the call as that of the item.
                    call_id: id(item, "call_id").or(id(item, "id")).cloned(),
                    is_error: (string(item, "status") == Some("incomplete")).then_some(true),
                    content: content.filter_map(|key| item.get(key)).next().cloned(),
                    ..Reply::default()
                });
                builder.close_turn();
            }
            _ => {
                if let Some(name) = kind.strip_suffix("_call") {
                    builder.open_turn();
                    add_provider_call(builder, item, name, source);
                }
            }
        }
    }

    fn offer(builder: &mut TraceBuilder, request: &Value) {
        let Some(tools) = request.get("tools").and_then(Value::as_array) else {
            return;
        };
        builder.tools_known();
        offer_tools(builder, tools);
    }

    fn usage(response: &Value) -> Option<Usage> {
        let usage = response.get("usage")?;
        let usage = Usage {
            input: count(usage, &["input_tokens"]),
            output: count(usage, &["output_tokens"]),
            total: count(usage, &["total_tokens"]),
            cached_input: count(usage, &["input_tokens_details", "cached_tokens"]),
            cache_write: count(usage, &["input_tokens_details", "cache_write_tokens"]),
            reasoning: count(usage, &["output_tokens_details", "reasoning_tokens"]),
        };
        (!usage.is_unknown()).then_some(usage)
    }

    fn stop_reason(response: &Value) -> Option<&'static str> {
        let reason = response.pointer("/incomplete_details/reason");
        match (string(response, "status")?, reason.and_then(Value::as_str)) {
            ("incomplete", Some("max_output_tokens")) => Some("max_tokens"),
            ("incomplete", Some("content_filter")) => Some("withheld"),
            ("completed", _) if !has_open_call(response) => Some("end"),
            _ => None,
        }
    }
}

/// Returns true if a response ends with a call that the client has to make.
fn has_open_call(response: &Value) -> bool {
    let items = response.get("output").and_then(Value::as_array);
    let is_call = |item: &Value| {
        matches!(
            string(item, "type"),
            Some("function_call" | "custom_tool_call")
        )
    };
    items.into_iter().flatten().any(is_call)
}

/// Detects a message: its parts have their own types.
fn message(item: &Value) -> Detection {
    if !matches!(
        string(item, "role"),
        Some("user" | "assistant" | "system" | "developer")
    ) {
        return Detection::No;
    }
    let foreign = ["tool_calls", "function_call", "tool_call_id", "parts"];
    if foreign.iter().any(|key| item.get(key).is_some()) {
        return Detection::No;
    }
    match item.get("content") {
        Some(Value::String(_)) => Detection::Possible,
        Some(Value::Array(parts)) if !parts.is_empty() => {
            let own = |part: &Value| match string(part, "type") {
                Some("input_text" | "output_text" | "input_image" | "input_file") => {
                    Detection::Match
                }
                Some("refusal") => Detection::Possible,
                _ => Detection::No,
            };
            Detection::of_all(parts.iter().map(own))
        }
        Some(Value::Array(_)) => Detection::Possible,
        _ => Detection::No,
    }
}

/// The tag of a call that generated code made. `direct` is the model itself.
fn caller(item: &Value) -> Option<Value> {
    let caller = item.get("caller").filter(|caller| !caller.is_null())?;
    (string(caller, "type") != Some("direct")).then(|| caller.clone())
}

fn offer_tools(builder: &mut TraceBuilder, tools: &[Value]) {
    for offered in tools {
        match (offered.get("name"), string(offered, "server_label")) {
            // The tools of a server are listed by an item.
            (_, Some(server)) => builder.server(server),
            (Some(name), None) => builder.tool(tool(
                None,
                name,
                offered.get("description"),
                offered.get("parameters"),
            )),
            (None, None) => {}
        }
    }
}

fn list_tools(builder: &mut TraceBuilder, item: &Value) {
    let server = string(item, "server_label");
    if let Some(server) = server {
        builder.server(server);
    }
    for listed in item
        .get("tools")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(name) = listed.get("name") {
            builder.tool(tool(
                server,
                name,
                listed.get("description"),
                listed.get("input_schema"),
            ));
        }
    }
}

/// Adds a call of a connected server, with its result.
fn add_mcp_call(builder: &mut TraceBuilder, item: &Value, source: &str) {
    let call_id = id(item, "id").cloned();
    builder.call_once(Call {
        id: call_id.clone(),
        name: item.get("name").cloned().unwrap_or_default(),
        server: string(item, "server_label").map(str::to_owned),
        args: item.get("arguments").map(arguments),
        source: Some(source.to_owned()),
        ..Call::default()
    });
    let error = item.get("error").filter(|error| !error.is_null());
    let output = item.get("output").filter(|output| !output.is_null());
    if error.is_none() && output.is_none() && string(item, "status") != Some("completed") {
        // The call is in progress, or was cut off.
        return;
    }
    builder.result_once(Reply {
        call_id,
        is_error: Some(error.is_some()),
        content: output.or_else(|| error_text(error?)).cloned(),
        extra: error
            .map(|error| ("error", error.clone()))
            .into_iter()
            .collect(),
    });
}

/// The text of an error: the content of a failed tool, or the message of a failed request.
fn error_text(error: &Value) -> Option<&Value> {
    let inside = ["content", "message"]
        .into_iter()
        .find_map(|key| error.get(key));
    Some(inside.unwrap_or(error))
}

/// Adds a call of a tool that the provider runs, with its outcome.
fn add_provider_call(builder: &mut TraceBuilder, item: &Value, name: &str, source: &str) {
    let call_id = id(item, "call_id").or(id(item, "id")).cloned();
    let args = ["action", "queries", "code", "operation"]
        .into_iter()
        .find_map(|key| Some(json!({key: item.get(key).filter(|value| !value.is_null())?})));
    builder.call_once(Call {
        id: call_id.clone(),
        name: name.into(),
        args,
        source: Some(source.to_owned()),
        extra: vec![("provider_tool", true.into())],
        ..Call::default()
    });
    let is_error = match string(item, "status") {
        // A result is a separate item if the client runs the tool.
        _ if item.get("call_id").is_some() => return,
        Some("completed") => false,
        Some("failed") => true,
        _ => return,
    };
    let content = ["results", "outputs", "result"]
        .into_iter()
        .find_map(|key| item.get(key).filter(|value| !value.is_null()).cloned());
    builder.result_once(Reply {
        call_id,
        is_error: Some(is_error),
        content,
        ..Reply::default()
    });
}

#[cfg(test)]
mod tests;
