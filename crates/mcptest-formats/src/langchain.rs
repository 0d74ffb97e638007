//! Messages of LangChain and LangGraph: `--format langchain`.
//!
//! Checked with langchain-core 1.7.2 and langgraph 1.2.22: messages as `messages_to_dict` writes
//! them (`type` and `data`), as LangChain serializes them (`lc`, `kwargs`) and as `model_dump`
//! does, in a list or as the `messages` of a graph's state.
//!
//! Calls whose arguments are not valid JSON are `invalid_tool_calls`, with the string. A tool
//! message with the `status` `error` is a failed call. Input tokens include cached ones. The states
//! that a graph streams repeat the messages before: the last one counts.

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::agent_log::structured;
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{arguments, count, id, string, text};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader, by_document};

/// The reader of LangChain's messages.
pub(crate) struct LangChain;

static FORMAT: Format = Format {
    name: "langchain",
    reads: "lists of LangChain messages and states of LangGraph with `messages`, in each of \
            LangChain's three forms; JSON, JSON Lines, also one message per line",
    versions: "langchain-core 1.7.2, langgraph 1.2.22",
    unknown: "offered tools",
};

impl Reader for LangChain {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_document(input, |document| {
            if Message::of(&document.value).is_some() {
                return Detection::Match;
            }
            match list(&document.value) {
                Some((messages, _)) if !messages.is_empty() => {
                    let known = messages
                        .iter()
                        .filter(|one| Message::of(one).is_some())
                        .count();
                    if known == messages.len() {
                        Detection::Match
                    } else if known > 0 {
                        Detection::close("some elements are not messages")
                    } else {
                        Detection::No
                    }
                }
                _ => Detection::No,
            }
        })
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        let documents = input.documents();
        let of_one_run = documents.windows(2).any(|pair| {
            continues(&pair[0].value, &pair[1].value) || Message::of(&pair[0].value).is_some()
        });
        if of_one_run
            || documents
                .iter()
                .any(|one| Message::of(&one.value).is_some())
        {
            Grouping::Input
        } else {
            Grouping::Document
        }
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces: Vec<Trace> = Vec::new();
        let mut lines = Vec::new();
        let mut before: Option<&Value> = None;
        for document in input.documents() {
            if let Some(message) = Message::of(&document.value) {
                lines.push((message, String::new()));
                continue;
            }
            if before.is_some_and(|before| continues(before, &document.value)) {
                traces.pop();
            }
            traces.push(state(document)?);
            before = Some(&document.value);
        }
        if !lines.is_empty() {
            traces.push(trace(&lines));
        }
        Ok(traces)
    }
}

/// The list of messages of a document, with its JSON pointer.
fn list(value: &Value) -> Option<(&Vec<Value>, &'static str)> {
    let at = |pointer: &'static str| Some((value.pointer(pointer)?.as_array()?, pointer));
    at("")
        .or_else(|| at("/messages"))
        .or_else(|| at("/values/messages"))
}

/// Returns true if a state has the messages of the one before, and more.
fn continues(before: &Value, after: &Value) -> bool {
    let (Some((before, _)), Some((after, _))) = (list(before), list(after)) else {
        return false;
    };
    let id = |message: &Value| Some(Message::of(message)?.string("id")?.to_owned());
    let first = before.first().and_then(id);
    before.len() <= after.len()
        && first.is_some()
        && before.last().and_then(id) == after.get(before.len() - 1).and_then(id)
        && first == after.first().and_then(id)
}

/// A message in one of the three forms.
#[derive(Clone, Copy)]
struct Message<'v> {
    kind: &'v str,
    fields: &'v Value,
    /// The JSON pointer of the fields in the message.
    place: &'static str,
}

impl<'v> Message<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        let kind = string(value, "type")?;
        if kind == "constructor" && value.get("lc").is_some() {
            let path = value.get("id")?.as_array()?;
            let fields = value.get("kwargs")?;
            let class = path.last()?.as_str()?;
            let kind = class
                .strip_suffix("Chunk")
                .unwrap_or(class)
                .strip_suffix("Message")?;
            return Some(Self {
                kind: of_class(kind)?,
                fields,
                place: "/kwargs",
            });
        }
        let kind = of_class(kind.strip_suffix("MessageChunk").unwrap_or(kind))?;
        match value.get("data").filter(|data| data.is_object()) {
            Some(fields) => Some(Self {
                kind,
                fields,
                place: "/data",
            }),
            None => value.get("content").map(|_| Self {
                kind,
                fields: value,
                place: "",
            }),
        }
    }

    fn string(&self, key: &str) -> Option<&'v str> {
        string(self.fields, key)
    }

    fn list(&self, key: &str) -> &'v [Value] {
        let list = self.fields.get(key).and_then(Value::as_array);
        list.map_or(&[][..], Vec::as_slice)
    }
}

/// The kind of a message by its class or its `type`.
fn of_class(name: &str) -> Option<&'static str> {
    match name {
        "AI" | "ai" => Some("ai"),
        "Human" | "human" => Some("human"),
        "Tool" | "tool" => Some("tool"),
        "System" | "system" => Some("system"),
        "Function" | "function" => Some("function"),
        "Remove" | "remove" => Some("remove"),
        _ => None,
    }
}

fn state(document: &Document) -> Result<Trace, FormatError> {
    let wrong = |part, message: &str| Err(document.wrong(FORMAT.name, part, message));
    let Some((list, pointer)) = list(&document.value) else {
        return wrong(
            &document.value,
            "expected a list of messages, or an object with `messages`",
        );
    };
    let mut messages = Vec::new();
    for (at, value) in list.iter().enumerate() {
        let Some(message) = Message::of(value) else {
            return wrong(
                value,
                "expected a message of LangChain: `type` (`human`, `ai`, `tool`, …) with \
                 `content` or `data`, or `lc` with `kwargs`",
            );
        };
        messages.push((message, format!("{pointer}/{at}{}", message.place)));
    }
    Ok(trace(&messages))
}

fn trace(messages: &[(Message<'_>, String)]) -> Trace {
    let mut builder = TraceBuilder::new();
    for (message, source) in messages {
        match message.kind {
            "ai" => add_answer(&mut builder, *message, source),
            "tool" => add_result(&mut builder, *message),
            "remove" => {}
            kind => {
                let role = if kind == "human" { "user" } else { kind };
                let content = message.fields.get("content").and_then(text);
                builder.turn(role, content.map(Value::from));
            }
        }
    }
    builder.finish()
}

fn add_answer(builder: &mut TraceBuilder, message: Message<'_>, source: &str) {
    let fields = message.fields;
    let content = fields
        .get("content")
        .and_then(text)
        .filter(|text| !text.is_empty());
    builder.turn("assistant", content.map(Value::from));
    let metadata = fields.get("response_metadata").unwrap_or(&Value::Null);
    let model = string(metadata, "model_name").or_else(|| string(metadata, "model"));
    if let Some(model) = model {
        builder
            .trace
            .model
            .get_or_insert_with(|| model.to_owned().into());
    }
    builder.usage(usage(fields, metadata));
    let calls = message.list("tool_calls");
    for (at, call) in calls.iter().enumerate() {
        let source = format!("{source}/tool_calls/{at}");
        add_call(
            builder,
            call,
            call.get("name"),
            call.get("args").cloned(),
            source,
        );
    }
    let invalid = message.list("invalid_tool_calls");
    for (at, call) in invalid.iter().enumerate() {
        let source = format!("{source}/invalid_tool_calls/{at}");
        add_call(
            builder,
            call,
            call.get("name"),
            call.get("args").cloned(),
            source,
        );
    }
    // Early versions have the provider's calls only.
    if calls.is_empty() && invalid.is_empty() {
        let raw = fields
            .pointer("/additional_kwargs/tool_calls")
            .and_then(Value::as_array);
        for (at, call) in raw.into_iter().flatten().enumerate() {
            let source = format!("{source}/additional_kwargs/tool_calls/{at}");
            let args = call.pointer("/function/arguments").map(arguments);
            add_call(builder, call, call.pointer("/function/name"), args, source);
        }
    }
}

fn add_call(
    builder: &mut TraceBuilder,
    call: &Value,
    name: Option<&Value>,
    args: Option<Value>,
    source: String,
) {
    let error = call.get("error").filter(|error| error.is_string());
    builder.call(Call {
        id: id(call, "id").cloned(),
        name: name.cloned().unwrap_or_default(),
        args,
        source: Some(source),
        extra: error
            .map(|error| ("parse_error", error.clone()))
            .into_iter()
            .collect(),
        ..Call::default()
    });
}

fn add_result(builder: &mut TraceBuilder, message: Message<'_>) {
    let fields = message.fields;
    builder.result(Reply {
        call_id: id(fields, "tool_call_id").cloned(),
        is_error: match message.string("status") {
            Some("error") => Some(true),
            Some("success") => Some(false),
            _ => None,
        },
        content: fields.get("content").cloned(),
        extra: structured(fields.pointer("/artifact/structured_content")),
    });
}

/// The usage of a request: LangChain's own form, else that of the provider.
fn usage(fields: &Value, metadata: &Value) -> Option<Usage> {
    let own = fields
        .get("usage_metadata")
        .filter(|usage| usage.is_object());
    let usage = match own {
        Some(own) => Usage {
            input: count(own, &["input_tokens"]),
            output: count(own, &["output_tokens"]),
            total: count(own, &["total_tokens"]),
            cached_input: count(own, &["input_token_details", "cache_read"]),
            cache_write: count(own, &["input_token_details", "cache_creation"]),
            reasoning: count(own, &["output_token_details", "reasoning"]),
        },
        None => {
            let tokens = metadata.get("token_usage")?;
            Usage {
                input: count(tokens, &["prompt_tokens"]),
                output: count(tokens, &["completion_tokens"]),
                total: count(tokens, &["total_tokens"]),
                cached_input: count(tokens, &["prompt_tokens_details", "cached_tokens"]),
                cache_write: None,
                reasoning: count(tokens, &["completion_tokens_details", "reasoning_tokens"]),
            }
        }
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests;
