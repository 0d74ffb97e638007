//! Message lists, requests and responses of model providers.
//!
//! Providers differ in their messages, but people store them in the same ways: the list alone, the
//! body of a request, the body of a response, pairs of both, and any of these as JSON Lines or in
//! an array. A [`Dialect`] describes the messages; this module does the rest. Every request of an
//! agent repeats the conversation so far, so requests that continue one another are one trace.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::builder::{TraceBuilder, Usage};
use crate::content::{count, string};
use crate::error::FormatError;
use crate::input::{Document, Input, a_type};
use crate::reader::{Detection, Grouping, by_document};

/// The messages of one provider.
pub(crate) trait Dialect {
    /// The name of the format.
    const NAME: &'static str;
    /// The key of the message list in a request.
    const LIST: &'static str;
    /// False if messages without a mark of the format are left to other formats.
    const PLAIN: bool = true;
    /// Returns true for a value that has the form of a message.
    fn is_message(value: &Value) -> bool {
        value.get("role").is_some_and(Value::is_string) && value.get(Self::LIST).is_none()
    }
    /// Detects a message.
    fn message(message: &Value) -> Detection;
    /// Detects a request by the keys beside its messages.
    fn request(request: &Value) -> Detection;
    /// Detects a response.
    fn response(response: &Value) -> Detection;
    /// The messages of a request. `None` if its list is missing or not one.
    fn messages(request: &Value) -> Option<Vec<(&Value, String)>> {
        let messages = request.get(Self::LIST)?.as_array()?;
        let place = |(at, message)| (message, format!("/{}/{at}", Self::LIST));
        Some(messages.iter().enumerate().map(place).collect())
    }
    /// The alternative answers of a response, each with its messages and their JSON pointers.
    fn answers(response: &Value) -> Vec<Vec<(&Value, String)>>;
    /// The id of the response that a request continues, for providers that keep the conversation.
    fn continues(_request: &Value) -> Option<&str> {
        None
    }
    /// The part of a message by which a repeated message is recognised.
    fn core(message: &Value) -> Value;
    /// Adds a message to a trace. `source` is its JSON pointer.
    fn add(builder: &mut TraceBuilder, message: &Value, source: &str);
    /// Adds the offered tools and other facts of a request.
    fn offer(builder: &mut TraceBuilder, request: &Value);
    /// The model of a request or a response.
    fn model(body: &Value) -> Option<&str> {
        string(body, "model")
    }
    /// The usage of a response.
    fn usage(response: &Value) -> Option<Usage>;
    /// The reason why a run ends with this response, in native words. `None` if it does not end.
    fn stop_reason(response: &Value) -> Option<&'static str>;
}

/// The number of alternative answers of a response that are read. Each is a trace with all
/// messages of its request, so more of them would let a small file grow without bound.
const MAX_ANSWERS: usize = 128;

/// The form of a JSON value.
enum Form<'v> {
    /// A list of messages.
    Messages(&'v Vec<Value>),
    /// The body of a request.
    Request(&'v Value),
    /// The body of a response.
    Response(&'v Value),
    /// A request (if recorded) and its response (if recorded), with their places.
    Pair(Option<(&'v Value, String)>, Option<(&'v Value, String)>),
    /// One message.
    Message,
    /// Anything else.
    Other,
}

fn form<D: Dialect>(value: &Value) -> Form<'_> {
    match value {
        Value::Array(items) if items.first().is_some_and(D::is_message) => Form::Messages(items),
        Value::Object(_) => {
            let request = body(value, "request");
            let response = body(value, "response").or_else(|| batch_result(value));
            if value.get(D::LIST).is_some() {
                match body(value, "response") {
                    Some(response) => Form::Pair(Some((value, String::new())), Some(response)),
                    None => Form::Request(value),
                }
            } else if request.is_some() || response.is_some() {
                Form::Pair(request, response)
            } else if !matches!(D::response(value), Detection::No) {
                Form::Response(value)
            } else if D::is_message(value) {
                Form::Message
            } else {
                Form::Other
            }
        }
        _ => Form::Other,
    }
}

/// The message in an entry of the results of a batch.
fn batch_result(value: &Value) -> Option<(&Value, String)> {
    let message = value
        .pointer("/result/message")
        .filter(|message| message.is_object())?;
    Some((message, "/result/message".to_owned()))
}

/// The body of a request or a response in a wrapper, with its JSON pointer. Some logs have another
/// level for the body, next to the status or the address.
fn body<'v>(value: &'v Value, key: &str) -> Option<(&'v Value, String)> {
    let part = value.get(key).filter(|part| part.is_object())?;
    match part.get("body").filter(|body| body.is_object()) {
        Some(body) => Some((body, format!("/{key}/body"))),
        None => Some((part, format!("/{key}"))),
    }
}

/// Detects the format of an input.
pub(crate) fn detect<D: Dialect>(input: &Input<'_>) -> Detection {
    let found = by_document(input, |document| match &document.value {
        Value::Array(items) if !items.first().is_some_and(D::is_message) => {
            if items.is_empty() {
                return Detection::No;
            }
            Detection::of_all(items.iter().map(detect_one::<D>))
        }
        other => detect_one::<D>(other),
    });
    let lines = input.documents().first();
    let lines = lines.is_some_and(|first| matches!(form::<D>(&first.value), Form::Message));
    match found {
        Detection::Possible if lines && !D::PLAIN => Detection::No,
        other => other,
    }
}

fn detect_one<D: Dialect>(value: &Value) -> Detection {
    let response_of = |response: &Value| match D::response(response) {
        // The response of a failed request has only the error.
        Detection::No if response.get("error").is_some() => Detection::Possible,
        other => other,
    };
    match form::<D>(value) {
        Form::Messages(messages) => match Detection::of_all(messages.iter().map(D::message)) {
            Detection::Possible if !D::PLAIN => Detection::No,
            other => other,
        },
        Form::Message => D::message(value),
        Form::Request(request) => detect_request::<D>(request),
        Form::Response(response) => D::response(response),
        Form::Pair(request, response) => {
            let request = request.map(|(request, _)| detect_request::<D>(request));
            let response = response.map(|(response, _)| response_of(response));
            Detection::of_all(request.into_iter().chain(response))
        }
        Form::Other => Detection::No,
    }
}

fn detect_request<D: Dialect>(request: &Value) -> Detection {
    let Some(messages) = D::messages(request) else {
        return match request.get(D::LIST) {
            Some(_) => Detection::close(format!("`{}` is not an array", D::LIST)),
            None => Detection::close(format!("the request has no `{}`", D::LIST)),
        };
    };
    let each = messages.iter().map(|(message, _)| D::message(message));
    Detection::of_all(each.chain([D::request(request)]))
}

/// The part of an input that a trace is made of: requests may continue one another.
pub(crate) fn grouping<D: Dialect>(input: &Input<'_>) -> Grouping {
    let alone = |document: &Document| match form::<D>(&document.value) {
        Form::Messages(_) | Form::Response(_) => true,
        // A body that was sent to a provider has a model; a stored conversation has none.
        Form::Request(request) => D::model(request).is_none(),
        Form::Message | Form::Pair(..) => false,
        Form::Other => document.value.is_array(),
    };
    if input.documents().iter().all(alone) {
        Grouping::Document
    } else {
        Grouping::Input
    }
}

/// One request with its answer.
struct Exchange<'v> {
    messages: Vec<(&'v Value, String)>,
    request: Option<&'v Value>,
    /// The messages of an answer, each with its place.
    answer: Vec<(&'v Value, String)>,
    response: Option<&'v Value>,
    /// The number of answers of the response; usage is that of all of them.
    answers: usize,
    /// The record around both.
    record: &'v Value,
}

/// Reads all traces of an input.
pub(crate) fn read<D: Dialect>(input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
    let mut exchanges = Vec::new();
    let mut lines: Vec<(&Value, String)> = Vec::new();
    for document in input.documents() {
        match (&document.value, form::<D>(&document.value)) {
            (message, Form::Message) => lines.push((message, String::new())),
            (Value::Array(items), Form::Other) => {
                for (at, item) in items.iter().enumerate() {
                    exchanges_of::<D>(document, item, &format!("/{at}"), &mut exchanges)?;
                }
            }
            (value, _) => exchanges_of::<D>(document, value, "", &mut exchanges)?,
        }
    }
    if let Some((first, _)) = lines.first() {
        exchanges.push(Exchange {
            record: first,
            messages: lines,
            request: None,
            answer: Vec::new(),
            response: None,
            answers: 0,
        });
    }
    Ok(conversations::<D>(&exchanges)
        .into_iter()
        .map(|group| trace::<D>(&group))
        .collect())
}

fn exchanges_of<'v, D: Dialect>(
    document: &Document,
    value: &'v Value,
    at: &str,
    exchanges: &mut Vec<Exchange<'v>>,
) -> Result<(), FormatError> {
    let list = |request: &'v Value, at: &str| -> Result<Vec<_>, FormatError> {
        let Some(messages) = D::messages(request) else {
            document.array(D::NAME, request, D::LIST)?;
            return Ok(Vec::new());
        };
        let each = messages.into_iter().map(|(message, place)| {
            if !message.is_string() {
                document.object(D::NAME, message)?;
            }
            Ok((message, format!("{at}{place}")))
        });
        each.collect()
    };
    let (messages, request, response) = match form::<D>(value) {
        Form::Messages(messages) => {
            let each = messages.iter().enumerate().map(|(index, message)| {
                document.object(D::NAME, message)?;
                Ok((message, format!("{at}/{index}")))
            });
            (each.collect::<Result<_, FormatError>>()?, None, None)
        }
        Form::Request(request) => (list(request, at)?, Some(request), None),
        Form::Response(response) => (Vec::new(), None, Some((response, at.to_owned()))),
        Form::Pair(request, response) => {
            let messages = match &request {
                Some((request, place)) => list(request, &format!("{at}{place}"))?,
                None => Vec::new(),
            };
            let response = response.map(|(response, place)| (response, format!("{at}{place}")));
            (messages, request.map(|(request, _)| request), response)
        }
        Form::Message | Form::Other => {
            return Err(document.wrong(
                D::NAME,
                value,
                format!(
                    "expected a list of messages, a request with `{}` or a response, found {}",
                    D::LIST,
                    a_type(value)
                ),
            ));
        }
    };
    let mut answers = Vec::new();
    if let Some((response, place)) = &response {
        answers = D::answers(response);
        if answers.is_empty() && request.is_none() && response.get("error").is_none() {
            return Err(document.wrong(D::NAME, response, "the response has no answer"));
        }
        if answers.len() > MAX_ANSWERS {
            let message = format!(
                "the response has {} answers, more than {MAX_ANSWERS}",
                answers.len()
            );
            return Err(document.wrong(D::NAME, response, message));
        }
        for (_, source) in answers.iter_mut().flatten() {
            source.insert_str(0, place);
        }
    }
    let number = answers.len();
    if answers.is_empty() {
        answers.push(Vec::new());
    }
    for answer in answers {
        exchanges.push(Exchange {
            messages: messages.clone(),
            request,
            answer,
            response: response.as_ref().map(|(response, _)| *response),
            answers: number,
            record: value,
        });
    }
    Ok(())
}

/// Groups exchanges: each group is one conversation, its last exchange has all of it.
fn conversations<'e, 'v, D: Dialect>(exchanges: &'e [Exchange<'v>]) -> Vec<Vec<&'e Exchange<'v>>> {
    let mut groups: Vec<Vec<&Exchange<'_>>> = Vec::new();
    // The conversations by a hash of their messages and the answer, and by the response's id.
    let mut open: HashMap<u64, usize> = HashMap::new();
    let mut by_response: HashMap<&str, usize> = HashMap::new();
    for exchange in exchanges {
        let model = exchange.request.and_then(D::model);
        let continued = exchange.request.and_then(D::continues);
        // Only bodies that were sent can continue one another.
        if model.is_none() && continued.is_none() && exchange.response.is_none() {
            groups.push(vec![exchange]);
            continue;
        }
        let mut hasher = DefaultHasher::new();
        let mut known = None;
        let mut key = None;
        for (message, _) in &exchange.messages {
            key = step(&mut hasher, &D::core(message));
            known = key.and_then(|key| open.get(&key).copied()).or(known);
        }
        for (message, _) in &exchange.answer {
            key = step(&mut hasher, &D::core(message));
        }
        let known = match continued {
            Some(id) => by_response.get(id).copied(),
            None => known,
        };
        let group = match known {
            Some(group) => group,
            None => {
                groups.push(Vec::new());
                groups.len() - 1
            }
        };
        if let Some(known) = groups.get_mut(group) {
            known.push(exchange);
        }
        if let Some(id) = exchange
            .response
            .and_then(|response| string(response, "id"))
        {
            by_response.insert(id, group);
        }
        if let Some(key) = key.filter(|_| continued.is_none()) {
            open.insert(key, group);
        }
    }
    groups
}

/// Adds a message to a running hash and returns the hash so far.
fn step(hasher: &mut DefaultHasher, core: &Value) -> Option<u64> {
    core.to_string().hash(hasher);
    Some(hasher.clone().finish())
}

fn trace<D: Dialect>(group: &[&Exchange<'_>]) -> Trace {
    let mut builder = TraceBuilder::new();
    let Some(last) = group.last() else {
        return builder.finish();
    };
    for exchange in group {
        if let Some(request) = exchange.request {
            D::offer(&mut builder, request);
        }
    }
    // The last request that does not rely on the provider's memory has all before it.
    let linked = |exchange: &&Exchange<'_>| exchange.request.and_then(D::continues).is_some();
    let start = group.iter().rposition(|one| !linked(one)).unwrap_or(0);
    for exchange in &group[start..] {
        for (message, source) in exchange.messages.iter().chain(&exchange.answer) {
            D::add(&mut builder, message, source);
        }
    }
    for exchange in group {
        if let Some(response) = exchange.response {
            // The usage of several answers is not that of one of them.
            let usage = D::usage(response).filter(|_| exchange.answers <= 1);
            match string(response, "id").filter(|_| usage.is_some()) {
                Some(id) => builder.usage_of(id, usage),
                None => builder.usage(usage),
            }
        } else if let Some(request) = exchange.request {
            // Stored conversations have their usage next to the messages.
            if let Some(usage) = D::usage(request) {
                builder.usage(Some(usage));
            }
        }
    }
    let bodies = [last.response, last.request, Some(last.record)];
    builder.trace.model = bodies
        .into_iter()
        .flatten()
        .find_map(D::model)
        .map(|model| model.to_owned().into());
    name_run(&mut builder, last.record);
    if let Some(reason) = last.response.and_then(D::stop_reason) {
        builder.trace.extra.insert("stop_reason", reason);
    }
    builder.finish()
}

/// Takes the name of the test and the number of the run from a record that has them.
pub(crate) fn name_run(builder: &mut TraceBuilder, record: &Value) {
    builder.trace.test = string(record, "test").map(|test| test.to_owned().into());
    builder.trace.run = count(record, &["run"]).filter(|run| *run > 0);
    for key in ["custom_id", "reward", "metadata"] {
        if let Some(value) = record.get(key).filter(|value| !value.is_null()) {
            builder.trace.extra.insert(key, value.clone());
        }
    }
}
