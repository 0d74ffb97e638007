//! Amazon Bedrock's Converse messages: `--format bedrock`.
//!
//! Written for the Converse API of `bedrock-runtime` as `botocore` 1.44 describes it.
//!
//! A call is a `toolUse` block of the assistant; a result is a `toolResult` block of the user,
//! joined by `toolUseId`, whose `status` is `success` or `error`. `inputTokens` excludes tokens
//! that were read from a cache or written to it.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string, tool};
use crate::error::FormatError;
use crate::exchange::{self, Dialect};
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};

/// The reader of Converse messages.
pub(crate) struct Bedrock;

static FORMAT: Format = Format {
    name: "bedrock",
    reads: "a list of messages, requests of `converse` (`messages`), its responses (`output`), \
            pairs of both (`request`, `response`); JSON, arrays, JSON Lines, also one message per \
            line",
    versions: "Converse API of `bedrock-runtime`, as of `botocore` 1.44",
    unknown: "if a call failed, unless its result has a `status`; tokens, unless responses are \
              recorded",
};

impl Reader for Bedrock {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        exchange::detect::<Converse>(input)
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        exchange::grouping::<Converse>(input)
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        exchange::read::<Converse>(input)
    }
}

/// Converse messages.
struct Converse;

fn blocks(message: &Value) -> &[Value] {
    message
        .get("content")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The keys of content blocks: each block has one of them.
const BLOCKS: [&str; 14] = [
    "text",
    "toolUse",
    "toolResult",
    "image",
    "document",
    "video",
    "reasoningContent",
    "cachePoint",
    "guardContent",
    "audio",
    "citationsContent",
    "searchResult",
    "toolAddition",
    "toolRemoval",
];

impl Dialect for Converse {
    const NAME: &'static str = "bedrock";
    const LIST: &'static str = "messages";

    fn message(message: &Value) -> Detection {
        if !matches!(string(message, "role"), Some("user" | "assistant")) {
            return Detection::No;
        }
        let Some(content) = message.get("content").and_then(Value::as_array) else {
            return Detection::No;
        };
        let is_block = |block: &Value| {
            block.get("type").is_none() && BLOCKS.iter().any(|key| block.get(key).is_some())
        };
        if content.is_empty() {
            Detection::Possible
        } else if content.iter().all(is_block) {
            Detection::Match
        } else {
            Detection::No
        }
    }

    fn request(request: &Value) -> Detection {
        let own = ["modelId", "toolConfig", "inferenceConfig"];
        if own.iter().any(|key| request.get(key).is_some()) {
            Detection::Match
        } else {
            Detection::Possible
        }
    }

    fn response(response: &Value) -> Detection {
        if response.pointer("/output/message").is_some() {
            Detection::Match
        } else if response.get("stopReason").is_some() && response.get("output").is_some() {
            Detection::close("`output` has no `message`")
        } else {
            Detection::No
        }
    }

    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>> {
        let message = response.pointer("/output/message");
        let answer = message.map(|message| vec![(message, "/output/message".to_owned())]);
        answer.into_iter().collect()
    }

    fn core(message: &Value) -> Value {
        let block = |block: &Value| {
            json!([
                block.get("text"),
                block.pointer("/toolUse/toolUseId"),
                block.pointer("/toolResult/toolUseId"),
            ])
        };
        let blocks = blocks(message).iter();
        // A mark for the cache moves from request to request.
        let blocks = blocks.filter(|block| block.get("cachePoint").is_none());
        json!([message.get("role"), blocks.map(block).collect::<Vec<_>>()])
    }

    fn add(builder: &mut TraceBuilder, message: &Value, source: &str) {
        let role = string(message, "role").unwrap_or_default();
        let blocks = blocks(message);
        let cited = |block: &Value| -> Vec<Value> {
            let parts = block.pointer("/citationsContent/content");
            parts.and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let texts: Vec<String> = blocks
            .iter()
            .flat_map(|block| std::iter::once(block.clone()).chain(cited(block)))
            .filter_map(|block| string(&block, "text").map(str::to_owned))
            .collect();
        let text = (!texts.is_empty()).then(|| Value::from(texts.join("\n")));
        if role != "user" || text.is_some() {
            builder.turn(role, text);
        }
        for (at, block) in blocks.iter().enumerate() {
            if let Some(call) = block.get("toolUse") {
                builder.call(Call {
                    id: id(call, "toolUseId").cloned(),
                    name: call.get("name").cloned().unwrap_or_default(),
                    args: call.get("input").cloned(),
                    source: Some(format!("{source}/content/{at}")),
                    ..Call::default()
                });
            } else if let Some(result) = block.get("toolResult") {
                let is_error = string(result, "status").map(|status| status == "error");
                let (content, structured) =
                    result.get("content").map_or((None, None), result_blocks);
                builder.result(Reply {
                    call_id: id(result, "toolUseId").cloned(),
                    is_error,
                    content,
                    extra: structured
                        .map(|json| ("structured_content", json))
                        .into_iter()
                        .collect(),
                });
            }
        }
    }

    fn offer(builder: &mut TraceBuilder, request: &Value) {
        let tools = request
            .pointer("/toolConfig/tools")
            .and_then(Value::as_array);
        if tools.is_some() {
            builder.tools_known();
        }
        for spec in tools
            .into_iter()
            .flatten()
            .filter_map(|tool| tool.get("toolSpec"))
        {
            if let Some(name) = spec.get("name") {
                builder.tool(tool(
                    None,
                    name,
                    spec.get("description"),
                    spec.pointer("/inputSchema/json"),
                ));
            }
        }
    }

    fn model(body: &Value) -> Option<&str> {
        string(body, "modelId")
    }

    fn usage(response: &Value) -> Option<Usage> {
        let usage = response.get("usage")?;
        let cached_input = count(usage, &["cacheReadInputTokens"]);
        let cache_write = count(usage, &["cacheWriteInputTokens"]);
        let input = count(usage, &["inputTokens"]).map(|input| {
            input
                .saturating_add(cached_input.unwrap_or(0))
                .saturating_add(cache_write.unwrap_or(0))
        });
        let usage = Usage {
            input,
            output: count(usage, &["outputTokens"]),
            total: None,
            cached_input,
            cache_write,
            reasoning: None,
        };
        (!usage.is_unknown()).then_some(usage)
    }

    fn stop_reason(response: &Value) -> Option<&'static str> {
        match string(response, "stopReason")? {
            "end_turn" | "stop_sequence" => Some("end"),
            "max_tokens" | "model_context_window_exceeded" => Some("max_tokens"),
            "guardrail_intervened" | "content_filtered" => Some("withheld"),
            "malformed_tool_use" | "malformed_model_output" => Some("malformed_call"),
            _ => None,
        }
    }
}

/// The blocks of a result in the form of MCP, and the JSON of a block that has some.
fn result_blocks(content: &Value) -> (Option<Value>, Option<Value>) {
    let Some(blocks) = content.as_array() else {
        return (Some(content.clone()), None);
    };
    let mut structured = None;
    let converted = blocks.iter().map(|block| {
        if let Some(json) = block.get("json") {
            structured.get_or_insert_with(|| json.clone());
            return json!({"type": "text", "text": json.to_string()});
        }
        match block.get("text") {
            Some(text) => json!({"type": "text", "text": text}),
            None => {
                let kind = block.as_object().and_then(|map| map.keys().next()).cloned();
                json!({"type": kind.unwrap_or_default(), "source": block})
            }
        }
    });
    let converted: Vec<Value> = converted.collect();
    (Some(converted.into()), structured)
}

#[cfg(test)]
mod tests;
