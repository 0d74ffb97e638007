//! Logs of inspect_ai: `--format inspect`.
//!
//! Checked with inspect_ai 0.3.285: `.eval` archives (Zstandard, and deflate as before) and `.json`
//! logs (version 2).
//!
//! A sample is a trace: its id is the test, its `epoch` the run. Calls come from its messages; if
//! these were shortened on the way, from its `tool` events. A tool message with an `error` is a
//! failed call. Usage is that of the evaluated model, without that of graders; `input_tokens`
//! excludes cached ones.

use std::collections::HashSet;

use mcptest_json::surrogates::mended;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value};

use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string, text, tool};
use crate::error::FormatError;
use crate::input::Input;
use crate::reader::{Detection, Format, Grouping, Reader};
use crate::zip::Archive;

/// The reader of inspect_ai's logs.
pub(crate) struct Inspect;

static FORMAT: Format = Format {
    name: "inspect",
    reads: "`.eval` archives and `.json` logs of inspect_ai",
    versions: "inspect_ai 0.3.285 (log version 2)",
    unknown: "servers",
};

impl Reader for Inspect {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        if let Some(bytes) = input.archive() {
            // The list of files may be cut off at the start of a file; the first one is not.
            let head = bytes.get(30..).unwrap_or_default();
            return if is_own_file(head) {
                Detection::Match
            } else {
                Detection::close("the archive does not start with a file of inspect_ai")
            };
        }
        match input.documents() {
            [] => Detection::No,
            documents if documents.iter().all(|one| is_log(&one.value)) => Detection::Match,
            _ => Detection::No,
        }
    }

    fn grouping(&self, input: &Input<'_>) -> Grouping {
        if input.archive().is_some() {
            Grouping::Input
        } else {
            Grouping::Document
        }
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        if let Some(bytes) = input.archive() {
            return archive(bytes);
        }
        let mut traces = Vec::new();
        for document in input.documents() {
            let value = &document.value;
            if !is_log(value) {
                return Err(document.wrong(
                    FORMAT.name,
                    value,
                    "expected a log with `version`, `eval` and `samples`",
                ));
            }
            if value.get("samples").is_none_or(Value::is_null) {
                return Err(document.wrong(FORMAT.name, value, "the log has no `samples`"));
            }
            for sample in document.array(FORMAT.name, value, "samples")? {
                document.object(FORMAT.name, sample)?;
                traces.push(trace(sample, value));
            }
        }
        Ok(traces)
    }
}

fn is_own_file(name: &[u8]) -> bool {
    let own: [&[u8]; 3] = [b"_journal/", b"samples/", b"header.json"];
    own.iter().any(|start| name.starts_with(start))
}

fn is_log(value: &Value) -> bool {
    value.pointer("/eval/task").is_some()
        && value.pointer("/eval/model").is_some()
        && value.get("version").is_some()
}

fn archive(bytes: &[u8]) -> Result<Vec<Trace>, FormatError> {
    let mut archive = Archive::open(FORMAT.name, bytes)?;
    let files = archive.files().to_vec();
    let mut parsed = |name: &str| -> Result<Option<Value>, FormatError> {
        // A file that was written again is listed again.
        let Some(file) = files.iter().rev().find(|file| file.name == name) else {
            return Ok(None);
        };
        parse(name, &archive.read(file)?).map(Some)
    };
    // A log of an unfinished evaluation has no header yet.
    let header = match parsed("header.json")? {
        Some(header) => header,
        None => parsed("_journal/start.json")?.unwrap_or_default(),
    };
    let mut seen = HashSet::new();
    let mut names: Vec<&str> = files
        .iter()
        .rev()
        .map(|file| file.name.as_str())
        .filter(|name| name.starts_with("samples/") && name.ends_with(".json"))
        .filter(|name| seen.insert(*name))
        .collect();
    names.reverse();
    if names.is_empty() {
        return Err(FormatError::Archive {
            format: FORMAT.name,
            message: "it has no `samples/*.json`".to_owned(),
        });
    }
    let mut traces = Vec::new();
    for name in names {
        if let Some(sample) = parsed(name)? {
            traces.push(trace(&sample, &header));
        }
    }
    Ok(traces)
}

fn parse(name: &str, content: &[u8]) -> Result<Value, FormatError> {
    serde_json::from_slice(&mended(content)).map_err(|error| FormatError::Archive {
        format: FORMAT.name,
        message: format!("{}: not valid JSON: {error}", crate::error::shown(name)),
    })
}

/// The trace of a sample. `log` has the facts of the whole evaluation.
fn trace(sample: &Value, log: &Value) -> Trace {
    let mut builder = TraceBuilder::new();
    let model = log.pointer("/eval/model").and_then(Value::as_str);
    builder.trace.model = model.map(|model| model.to_owned().into());
    builder.trace.test = sample.get("id").map(|id| match id {
        Value::String(id) => id.clone().into(),
        other => other.to_string().into(),
    });
    builder.trace.run = count(sample, &["epoch"]).filter(|epoch| *epoch > 0);
    let attachments = sample.get("attachments").and_then(Value::as_object);
    let resolve = Resolve { attachments };
    let events: Vec<&Value> = agent_events(sample);
    let messages = sample.get("messages").and_then(Value::as_array);
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let is_shortened = {
        let known: HashSet<&str> = messages
            .iter()
            .flat_map(calls_of)
            .filter_map(|call| string(call, "id"))
            .collect();
        let of_tools = events
            .iter()
            .filter(|event| string(event, "event") == Some("tool"));
        let mut ids = of_tools.filter_map(|event| string(event, "id"));
        ids.any(|id| !known.contains(id))
    };
    if is_shortened {
        for event in &events {
            add_event(&mut builder, event, &resolve);
        }
    } else {
        for (at, message) in messages.iter().enumerate() {
            add_message(&mut builder, message, &resolve, &format!("/messages/{at}"));
        }
    }
    for event in &events {
        let offered = event.get("tools").and_then(Value::as_array);
        for one in offered.into_iter().flatten() {
            let one = resolve.value(one);
            if let Some(name) = one.get("name") {
                let schema = one.get("parameters");
                builder.tool(tool(None, name, one.get("description"), schema));
            }
        }
    }
    builder.usage(usage(sample, model));
    if let Some(error) = sample.get("error").filter(|error| !error.is_null()) {
        let message = string(error, "message").unwrap_or("the sample failed");
        builder.error(RunError {
            kind: ErrorKind::Provider,
            message: message.to_owned(),
        });
    }
    let limit = sample.pointer("/limit/type").and_then(Value::as_str);
    if let Some(limit) = limit.filter(|limit| !matches!(*limit, "message" | "turn")) {
        builder.error(RunError {
            kind: ErrorKind::Budget,
            message: format!(
                "the sample reached its limit (`{}`)",
                crate::error::shown(limit)
            ),
        });
    }
    if let Some(reason) = stop_reason(sample) {
        builder.trace.extra.insert("stop_reason", reason);
    }
    let scores = sample.get("scores").and_then(Value::as_object);
    let scores: Map<String, Value> = scores
        .into_iter()
        .flatten()
        .filter_map(|(name, score)| Some((name.clone(), score.get("value")?.clone())))
        .collect();
    if !scores.is_empty() {
        builder.trace.extra.insert("scores", Value::Object(scores));
    }
    builder.finish()
}

/// Text that inspect_ai stored once and refers to.
struct Resolve<'v> {
    attachments: Option<&'v Map<String, Value>>,
}

impl Resolve<'_> {
    /// A value with all references replaced.
    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let key = text.strip_prefix("attachment://");
                let found = key.and_then(|key| self.attachments?.get(key));
                found.unwrap_or(value).clone()
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                let pairs = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.value(value)));
                Value::Object(pairs.collect())
            }
            other => other.clone(),
        }
    }
}

/// The events of a sample that are the agent's, not a scorer's.
fn agent_events(sample: &Value) -> Vec<&Value> {
    let events = sample.get("events").and_then(Value::as_array);
    let mut scoring = HashSet::new();
    let mut kept = Vec::new();
    for event in events.into_iter().flatten() {
        if string(event, "event") == Some("span_begin") {
            let is_scorer = matches!(string(event, "type"), Some("scorer" | "scorers"));
            let inside = string(event, "parent_id").is_some_and(|id| scoring.contains(id));
            if let Some(id) = string(event, "id").filter(|_| is_scorer || inside) {
                scoring.insert(id);
            }
        }
        if string(event, "span_id").is_none_or(|id| !scoring.contains(id)) {
            kept.push(event);
        }
    }
    kept
}

fn calls_of(message: &Value) -> &[Value] {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.map_or(&[][..], Vec::as_slice)
}

fn add_message(builder: &mut TraceBuilder, message: &Value, resolve: &Resolve<'_>, source: &str) {
    let content = message.get("content").map(|content| resolve.value(content));
    let role = string(message, "role").unwrap_or_default();
    if role == "tool" {
        let error = message.get("error");
        add_result(
            builder,
            id(message, "tool_call_id"),
            content,
            error,
            resolve,
        );
        return;
    }
    let written = content
        .as_ref()
        .and_then(text)
        .filter(|text| !text.is_empty());
    builder.turn(role, written.map(Value::from));
    for (at, call) in calls_of(message).iter().enumerate() {
        add_call(builder, call, resolve, format!("{source}/tool_calls/{at}"));
    }
}

/// Adds an event of a sample whose messages are not complete.
fn add_event(builder: &mut TraceBuilder, event: &Value, resolve: &Resolve<'_>) {
    match string(event, "event") {
        Some("model") => {
            let answer = event.pointer("/output/choices/0/message");
            if let Some(message) = answer {
                add_message(builder, message, resolve, "");
            }
        }
        Some("tool") => {
            if id(event, "id").is_none_or(|id| !builder.has_call(id)) {
                add_call(builder, event, resolve, String::new());
            }
            let content = event.get("result").map(|result| resolve.value(result));
            add_result(
                builder,
                id(event, "id"),
                content,
                event.get("error"),
                resolve,
            );
        }
        _ => {}
    }
}

fn add_call(builder: &mut TraceBuilder, call: &Value, resolve: &Resolve<'_>, source: String) {
    let parse_error = string(call, "parse_error");
    let raw = parse_error.and_then(raw_arguments);
    let args = match raw {
        Some(raw) => Some(raw.into()),
        None => call.get("arguments").map(|args| resolve.value(args)),
    };
    let error = parse_error.map(|error| ("parse_error", error.into()));
    builder.call(Call {
        id: id(call, "id").cloned(),
        name: call.get("function").cloned().unwrap_or_default(),
        args,
        source: (!source.is_empty()).then_some(source),
        extra: error.into_iter().collect(),
        ..Call::default()
    });
}

/// The arguments that could not be parsed, which only the message has.
fn raw_arguments(message: &str) -> Option<&str> {
    let start = "Error parsing the following tool call arguments:\n\n";
    let (raw, _) = message
        .strip_prefix(start)?
        .rsplit_once("\n\nError details:")?;
    Some(raw)
}

fn add_result(
    builder: &mut TraceBuilder,
    call_id: Option<&Value>,
    content: Option<Value>,
    error: Option<&Value>,
    resolve: &Resolve<'_>,
) {
    let error = error.filter(|error| !error.is_null());
    let message = error
        .and_then(|error| error.get("message"))
        .map(|text| resolve.value(text));
    let is_empty = content.as_ref().is_none_or(|content| *content == "");
    let kind = error.and_then(|error| error.get("type")).cloned();
    builder.result(Reply {
        call_id: call_id.cloned(),
        is_error: Some(error.is_some()),
        content: if is_empty {
            message.or(content)
        } else {
            content
        },
        extra: kind.map(|kind| ("error_kind", kind)).into_iter().collect(),
    });
}

/// The usage of the evaluated model, else of all models.
fn usage(sample: &Value, model: Option<&str>) -> Option<Usage> {
    let models = sample.get("model_usage")?.as_object()?;
    if let Some(own) = model.and_then(|model| models.get(model)) {
        return Some(of_model(own));
    }
    let mut all = models.values().map(of_model);
    let first = all.next()?;
    Some(all.fold(first, |sum, one| {
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Usage {
            input: add(sum.input, one.input),
            output: add(sum.output, one.output),
            total: add(sum.total, one.total),
            cached_input: add(sum.cached_input, one.cached_input),
            cache_write: add(sum.cache_write, one.cache_write),
            reasoning: add(sum.reasoning, one.reasoning),
        }
    }))
}

fn of_model(usage: &Value) -> Usage {
    let cached_input = count(usage, &["input_tokens_cache_read"]);
    let cache_write = count(usage, &["input_tokens_cache_write"]);
    let output = count(usage, &["output_tokens"]);
    let total = count(usage, &["total_tokens"]);
    let input = count(usage, &["input_tokens"]).map(|input| {
        // Early versions count cached tokens as a part of the input: then the total shows it.
        let alone = output.is_some_and(|output| Some(input.saturating_add(output)) == total);
        let more = if alone {
            [None; 2]
        } else {
            [cached_input, cache_write]
        };
        more.iter()
            .flatten()
            .fold(input, |sum, one| sum.saturating_add(*one))
    });
    Usage {
        input,
        output,
        total,
        cached_input,
        cache_write,
        reasoning: count(usage, &["reasoning_tokens"]),
    }
}

fn stop_reason(sample: &Value) -> Option<&'static str> {
    match sample.pointer("/limit/type").and_then(Value::as_str) {
        Some("message" | "turn") => return Some("max_turns"),
        Some(_) => return None,
        None => {}
    }
    match sample.pointer("/output/choices/0/stop_reason")?.as_str()? {
        "stop" => Some("end"),
        "max_tokens" | "model_length" => Some("max_tokens"),
        "content_filter" => Some("withheld"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
