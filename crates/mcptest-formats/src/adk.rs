//! Google ADK: `--format adk`.
//!
//! Checked with google-adk 2.13.0: eval sets (`*.evalset.json`), eval set results
//! (`*.evalset_result.json`) and sessions. Keys in camel case and in snake case.
//!
//! An eval case is a trace; so is a case of a result, of which the actual invocations are read.
//! Cases of one id are runs of one test. `intermediateData` has `invocationEvents`, or in earlier
//! versions `toolUses` and `toolResponses`, without usage and turns. Results of MCP tools have
//! `isError`; those of other tools follow conventions (`error`, `status`) or are unknown.

use std::collections::HashMap;

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::agent_log::structured;
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{count, id, string};
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader, by_document};

/// The reader of ADK's evaluations and sessions.
pub(crate) struct Adk;

static FORMAT: Format = Format {
    name: "adk",
    reads: "eval sets, eval set results, eval cases and sessions of Google ADK",
    versions: "google-adk 2.13.0; eval sets also with the `toolUses` of earlier versions",
    unknown: "servers, offered tools; with `toolUses` also tokens and turns",
};

impl Reader for Adk {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_document(input, |document| match Form::of(&document.value) {
            Some(_) => Detection::Match,
            None => Detection::No,
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Document
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for document in input.documents() {
            read(document, &mut traces)?;
        }
        Ok(traces)
    }
}

/// A key in either spelling.
fn get<'v>(value: &'v Value, camel: &str) -> Option<&'v Value> {
    let snake = || {
        let mut snake = String::new();
        for c in camel.chars() {
            if c.is_ascii_uppercase() {
                snake.push('_');
            }
            snake.push(c.to_ascii_lowercase());
        }
        value.get(snake)
    };
    value
        .get(camel)
        .or_else(snake)
        .filter(|value| !value.is_null())
}

fn list<'v>(value: &'v Value, key: &str) -> Option<&'v Vec<Value>> {
    get(value, key)?.as_array()
}

/// The form of a document.
enum Form<'v> {
    Set(&'v Vec<Value>),
    Result(&'v Vec<Value>),
    Case(&'v Value),
    Session(&'v Vec<Value>),
}

impl<'v> Form<'v> {
    fn of(value: &'v Value) -> Option<Self> {
        let is_case = |case: &Value| {
            get(case, "evalId").is_some()
                && (get(case, "conversation").is_some()
                    || get(case, "conversationScenario").is_some())
        };
        if let Some(cases) = list(value, "evalCases").filter(|all| all.iter().all(is_case)) {
            return Some(Self::Set(cases));
        }
        if let Some(results) = list(value, "evalCaseResults") {
            return Some(Self::Result(results));
        }
        if is_case(value) {
            return Some(Self::Case(value));
        }
        let events = list(value, "events")?;
        get(value, "appName").and_then(|_| get(value, "userId"))?;
        Some(Self::Session(events))
    }
}

fn read(document: &Document, traces: &mut Vec<Trace>) -> Result<(), FormatError> {
    match Form::of(&document.value) {
        Some(Form::Set(cases)) => {
            for case in cases {
                traces.push(read_case(document, case)?);
            }
        }
        Some(Form::Case(case)) => traces.push(read_case(document, case)?),
        Some(Form::Result(results)) => {
            let mut runs: HashMap<&str, u64> = HashMap::new();
            for result in results {
                let test = get(result, "evalId")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let run = runs.entry(test).or_default();
                *run += 1;
                let invocations = list(result, "evalMetricResultPerInvocation");
                let actual = invocations
                    .into_iter()
                    .flatten()
                    .filter_map(|one| get(one, "actualInvocation"));
                let mut trace = invocations_trace(actual);
                trace.test = Some(test.to_owned().into());
                trace.run = Some(*run);
                traces.push(trace);
            }
        }
        Some(Form::Session(events)) => {
            let mut builder = TraceBuilder::new();
            if let Some(session) = string(&document.value, "id") {
                builder.trace.extra.insert("session", session.to_owned());
            }
            for (at, event) in events.iter().enumerate() {
                if get(event, "partial") != Some(&Value::Bool(true)) {
                    add_event(&mut builder, event, &format!("/events/{at}"));
                }
            }
            traces.push(builder.finish());
        }
        None => {
            return Err(document.wrong(
                FORMAT.name,
                &document.value,
                "expected `eval_cases`, `evalCaseResults`, an eval case with `evalId` and \
                 `conversation`, or a session with `appName`, `userId` and `events`",
            ));
        }
    }
    Ok(())
}

fn read_case(document: &Document, case: &Value) -> Result<Trace, FormatError> {
    let Some(conversation) = list(case, "conversation") else {
        return Err(document.wrong(
            FORMAT.name,
            case,
            "the case has a scenario and no recorded `conversation`",
        ));
    };
    let mut trace = invocations_trace(conversation.iter());
    let test = get(case, "evalId").and_then(Value::as_str);
    trace.test = test.map(|test| test.to_owned().into());
    Ok(trace)
}

fn invocations_trace<'v>(invocations: impl Iterator<Item = &'v Value>) -> Trace {
    let mut builder = TraceBuilder::new();
    let mut turns_known = true;
    for invocation in invocations {
        if let Some(prompt) = get(invocation, "userContent").and_then(content_text) {
            builder.turn("user", Some(prompt.into()));
        }
        let data = get(invocation, "intermediateData").unwrap_or(&Value::Null);
        let last = get(invocation, "finalResponse");
        match list(data, "invocationEvents") {
            Some(events) => {
                let mut answered = last.is_none();
                for event in events {
                    answered = add_event(&mut builder, event, "") || last.is_none();
                }
                // The request of the answer is not recorded.
                if !answered {
                    builder.usage(None);
                }
            }
            None => {
                turns_known = false;
                for call in list(data, "toolUses").into_iter().flatten() {
                    add_call(&mut builder, call, "");
                }
                for response in list(data, "toolResponses").into_iter().flatten() {
                    add_response(&mut builder, response);
                }
            }
        }
        if let Some(text) = last.and_then(content_text) {
            builder.turn("assistant", Some(text.into()));
        }
    }
    let mut trace = builder.finish();
    if !turns_known {
        for call in &mut trace.tool_calls {
            call.turn = None;
        }
    }
    trace
}

/// The text of a content, without the model's thoughts. Its parts are one string in pieces.
fn content_text(content: &Value) -> Option<String> {
    let texts: Vec<&str> = list(content, "parts")?
        .iter()
        .filter(|part| get(part, "thought") != Some(&Value::Bool(true)))
        .filter_map(|part| string(part, "text"))
        .collect();
    (!texts.is_empty()).then(|| texts.concat())
}

/// Adds an event. Returns true for an answer of the model without calls: the last one.
fn add_event(builder: &mut TraceBuilder, event: &Value, source: &str) -> bool {
    let content = get(event, "content").unwrap_or(&Value::Null);
    let parts = list(content, "parts").map_or(&[][..], Vec::as_slice);
    let text = content_text(content);
    if get(event, "author").and_then(Value::as_str) == Some("user") {
        builder.turn("user", text.map(Value::from));
        return false;
    }
    let responses: Vec<&Value> = parts
        .iter()
        .filter_map(|part| get(part, "functionResponse"))
        .collect();
    let usage = get(event, "usageMetadata").map(usage);
    if responses.is_empty() {
        if let Some(model) = get(event, "modelVersion").and_then(Value::as_str) {
            builder
                .trace
                .model
                .get_or_insert_with(|| model.to_owned().into());
        }
        let calls = parts.iter().any(|part| get(part, "functionCall").is_some());
        if calls || text.is_some() {
            builder.turn("assistant", text.map(Value::from));
        }
        // An event without either is a change of state.
        if calls || usage.is_some() || !parts.is_empty() {
            builder.usage(usage);
        }
        for (at, part) in parts.iter().enumerate() {
            if let Some(call) = get(part, "functionCall") {
                add_call(builder, call, &format!("{source}/content/parts/{at}"));
            }
        }
        return !calls && (usage.is_some() || !parts.is_empty());
    }
    for response in responses {
        add_response(builder, response);
    }
    false
}

fn add_call(builder: &mut TraceBuilder, call: &Value, source: &str) {
    builder.call(Call {
        id: id(call, "id").cloned(),
        name: call.get("name").cloned().unwrap_or_default(),
        args: call.get("args").cloned(),
        source: (!source.is_empty()).then(|| source.to_owned()),
        ..Call::default()
    });
}

fn add_response(builder: &mut TraceBuilder, response: &Value) {
    let name = string(response, "name").unwrap_or_default();
    let call_id = match id(response, "id") {
        Some(id) => Some(id.clone()),
        None => builder.answer_by_name(name),
    };
    let value = get(response, "response").unwrap_or(&Value::Null);
    let error = value.get("error").filter(|error| !error.is_null());
    let flag = get(value, "isError").and_then(Value::as_bool);
    let status = match string(value, "status") {
        Some("error") => Some(true),
        Some("success") => Some(false),
        _ => None,
    };
    let content = value.get("content").filter(|content| content.is_array());
    builder.result(Reply {
        call_id,
        is_error: flag.or(error.map(|_| true)).or(status),
        content: Some(content.or(error).unwrap_or(value).clone()),
        extra: structured(get(value, "structuredContent")),
    });
}

/// The usage of a request. Hidden reasoning and the prompts of Gemini's own tools are apart.
fn usage(metadata: &Value) -> Usage {
    let number = |key: &str| count(get(metadata, key)?, &[]);
    let with = |key: &str, more: &str| {
        number(key).map(|count| count.saturating_add(number(more).unwrap_or(0)))
    };
    let total = number("totalTokenCount");
    let input = with("promptTokenCount", "toolUsePromptTokenCount");
    // An answer of calls alone may have no count of its own.
    let rest = || total?.checked_sub(input?);
    Usage {
        input,
        output: with("candidatesTokenCount", "thoughtsTokenCount").or_else(rest),
        total,
        cached_input: number("cachedContentTokenCount"),
        cache_write: None,
        reasoning: number("thoughtsTokenCount"),
    }
}

#[cfg(test)]
mod tests;
