//! Home-made formats: `--map FILE` describes one by JSON pointers.
//!
//! A map is a YAML or JSON file. Pointers are relative: those of a trace to the trace, those of a
//! call to the call, those of a result to the result. A step `*` means every element of a list.
//!
//! ```
//! use mcptest_formats::{Input, Map};
//! let map = "{test: /case, calls: /steps/*/call, name: /tool, args: /input, content: /out}";
//! let map = Map::load("map.yml", map.as_bytes()).unwrap();
//! let text = br#"{"case": "t", "steps": [{"call": {"tool": "get", "input": {"id": 7}, "out": "x"}}]}"#;
//! let traces = map.read(&Input::parse(text).unwrap()).unwrap();
//! assert_eq!(traces[0].tool_calls[0].args().unwrap()["id"], 7);
//! assert_eq!(traces[0].tool_results.len(), 1);
//! ```

use mcptest_trace::trace::{Tokens, Trace};
use mcptest_yaml::{Diagnostics, Severity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::builder::{Call, Reply, TraceBuilder};
use crate::content::{arguments, count};
use crate::error::{FormatError, shown};
use crate::input::{Document, Input, a_type};

/// The description of a home-made trace format. Every value is a JSON pointer; a step `*` means
/// every element of a list.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MapFile {
    /// The traces in a document: a list or one object. Without it, every document is a trace, and
    /// so is every element of a document that is a list.
    traces: Option<String>,
    /// The name of the test, in a trace: a string or a number.
    test: Option<String>,
    /// The number of the run, in a trace, from 1.
    run: Option<String>,
    /// The model, in a trace.
    model: Option<String>,
    /// The calls, in a trace: a list or single objects.
    calls: String,
    /// The name of the tool, in a call.
    name: String,
    /// The arguments, in a call: an object, or JSON text.
    args: Option<String>,
    /// The id of the call, in a call.
    id: Option<String>,
    /// The server, in a call.
    server: Option<String>,
    /// The results, in a trace: a list or single objects. Without it, the result is in the call.
    results: Option<String>,
    /// The id of the call that a result answers, in a result. Without it, results are in the order
    /// of the calls.
    result_id: Option<String>,
    /// The error flag, in a result: `true`, a string or an object for an error; `false`, `null` or
    /// an empty string for none. An absent one is unknown.
    is_error: Option<String>,
    /// The content, in a result: a string, a list of content blocks, or any JSON.
    content: Option<String>,
    /// The token usage, in a trace.
    tokens: Option<MapTokens>,
    /// The closing answer, in a trace.
    #[serde(rename = "final")]
    final_text: Option<String>,
}

/// The token usage of a trace: whole numbers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MapTokens {
    /// Input tokens.
    input: Option<String>,
    /// Output tokens.
    output: Option<String>,
    /// All tokens.
    total: Option<String>,
}

/// The JSON Schema of a map file.
#[must_use]
pub fn map_schema() -> Value {
    schemars::SchemaGenerator::default()
        .into_root_schema_for::<MapFile>()
        .to_value()
}

/// A JSON pointer with its key in the map, parsed.
#[derive(Debug, Clone)]
struct Pointer {
    key: &'static str,
    written: String,
    steps: Vec<String>,
}

/// A home-made format.
#[derive(Debug, Clone)]
pub struct Map {
    traces: Option<Pointer>,
    test: Option<Pointer>,
    run: Option<Pointer>,
    model: Option<Pointer>,
    calls: Pointer,
    name: Pointer,
    args: Option<Pointer>,
    id: Option<Pointer>,
    server: Option<Pointer>,
    results: Option<Pointer>,
    result_id: Option<Pointer>,
    is_error: Option<Pointer>,
    content: Option<Pointer>,
    input: Option<Pointer>,
    output: Option<Pointer>,
    total: Option<Pointer>,
    final_text: Option<Pointer>,
}

impl Map {
    /// Reads a map file. `name` is that of the file, for messages.
    ///
    /// # Errors
    /// All problems of the file, each with its place.
    pub fn load(name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        let (file, document) = mcptest_yaml::from_bytes::<MapFile>(name, bytes)?;
        let mut problems = Vec::new();
        let mut parse = |key: &'static str, at: &str, written: Option<String>| {
            let written = written?;
            match steps(&written) {
                Some(steps) => Some(Pointer {
                    key,
                    written,
                    steps,
                }),
                None => {
                    let message = format!("`{key}` is not a JSON pointer");
                    let problem = document.diagnostic_at(at, message);
                    problems.push(problem.help("a JSON pointer starts with `/`, like `/steps/0`"));
                    None
                }
            }
        };
        let tokens = file.tokens.as_ref();
        let part =
            |part: fn(&MapTokens) -> &Option<String>| tokens.and_then(|one| part(one).clone());
        let traces = parse("traces", "/traces", file.traces);
        let test = parse("test", "/test", file.test);
        let run = parse("run", "/run", file.run);
        let model = parse("model", "/model", file.model);
        let calls = parse("calls", "/calls", Some(file.calls));
        let name = parse("name", "/name", Some(file.name));
        let args = parse("args", "/args", file.args);
        let id = parse("id", "/id", file.id);
        let server = parse("server", "/server", file.server);
        let results = parse("results", "/results", file.results);
        let result_id = parse("result_id", "/result_id", file.result_id);
        let is_error = parse("is_error", "/is_error", file.is_error);
        let content = parse("content", "/content", file.content);
        let input = parse("tokens.input", "/tokens/input", part(|one| &one.input));
        let output = parse("tokens.output", "/tokens/output", part(|one| &one.output));
        let total = parse("tokens.total", "/tokens/total", part(|one| &one.total));
        let final_text = parse("final", "/final", file.final_text);
        if result_id.is_some() && results.is_none() {
            let message = "`result_id` needs `results`: without it, the result is in the call";
            problems.push(document.diagnostic_at("/result_id", message));
        }
        if result_id.is_some() && id.is_none() {
            let message = "`result_id` needs `id`, the id in a call that it is compared with";
            problems.push(document.diagnostic_at("/result_id", message));
        }
        match (calls, name) {
            (Some(calls), Some(name)) if problems.is_empty() => Ok(Self {
                traces,
                test,
                run,
                model,
                calls,
                name,
                args,
                id,
                server,
                results,
                result_id,
                is_error,
                content,
                input,
                output,
                total,
                final_text,
            }),
            _ => {
                debug_assert!(problems.iter().all(|one| one.severity == Severity::Error));
                Err(Diagnostics(problems))
            }
        }
    }

    /// Reads all traces of an input. Every document has its own traces.
    ///
    /// # Errors
    /// The first place at which a key of the map does not find what it describes.
    pub fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for document in input.documents() {
            let reading = Reading {
                map: self,
                document,
            };
            match (&self.traces, &document.value) {
                (Some(pointer), value) => {
                    for trace in reading.list(value, pointer)? {
                        traces.push(reading.trace(trace)?);
                    }
                }
                (None, Value::Array(items)) => {
                    for trace in items {
                        traces.push(reading.trace(trace)?);
                    }
                }
                (None, value) => traces.push(reading.trace(value)?),
            }
        }
        Ok(traces)
    }
}

/// The steps of a pointer; `None` if it is not one.
fn steps(written: &str) -> Option<Vec<String>> {
    if written.is_empty() {
        return Some(Vec::new());
    }
    let steps = written.strip_prefix('/')?.split('/');
    Some(
        steps
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect(),
    )
}

/// The reading of one document.
struct Reading<'m, 'v> {
    map: &'m Map,
    document: &'v Document,
}

impl<'v> Reading<'_, 'v> {
    fn error(&self, pointer: &Pointer, part: &Value, message: String) -> FormatError {
        FormatError::Map {
            key: pointer.key,
            written: shown(&pointer.written),
            place: Box::new(self.document.wrong("the map", part, message)),
        }
    }

    /// The value at a pointer that has no `*`. `None` if it is absent.
    fn find(part: &'v Value, pointer: &Pointer) -> Option<&'v Value> {
        pointer
            .steps
            .iter()
            .try_fold(part, |value, step| child(value, step))
    }

    /// The elements at a pointer: all of every list that it leads to.
    fn list(&self, part: &'v Value, pointer: &Pointer) -> Result<Vec<&'v Value>, FormatError> {
        let mut found = vec![part];
        let mut any = false;
        for step in &pointer.steps {
            let mut next = Vec::new();
            for value in &found {
                match (step.as_str(), value) {
                    ("*", Value::Array(items)) => next.extend(items),
                    ("*", other) => {
                        let message = format!("expected a list for `*`, found {}", a_type(other));
                        return Err(self.error(pointer, other, message));
                    }
                    (step, value) => match child(value, step) {
                        Some(value) => next.push(value),
                        // An element of a list may lack it.
                        None if any => {}
                        None => return Err(self.nothing(pointer, value, step)),
                    },
                }
            }
            any |= step == "*";
            found = next;
        }
        let mut elements = Vec::new();
        for value in found {
            match value {
                Value::Array(items) => elements.extend(items),
                Value::Null => {}
                Value::Object(_) => elements.push(value),
                other => {
                    let found = a_type(other);
                    let message = format!("expected a list or an object, found {found}");
                    return Err(self.error(pointer, other, message));
                }
            }
        }
        Ok(elements)
    }

    fn nothing(&self, pointer: &Pointer, part: &Value, step: &str) -> FormatError {
        let found = match part {
            Value::Object(map) => {
                let keys: Vec<String> = map.keys().take(12).map(|key| shown(key)).collect();
                format!("an object with the keys `{}`", keys.join("`, `"))
            }
            other => a_type(other),
        };
        self.error(
            pointer,
            part,
            format!("found no `{}` in {found}", shown(step)),
        )
    }

    /// A string at a pointer. `None` if it is absent or null.
    fn text(
        &self,
        part: &'v Value,
        pointer: Option<&Pointer>,
    ) -> Result<Option<String>, FormatError> {
        let Some((pointer, value)) = pointer.and_then(|one| Some((one, Self::find(part, one)?)))
        else {
            return Ok(None);
        };
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            Value::Number(number) => Ok(Some(number.to_string())),
            other => {
                let message = format!("expected a string, found {}", a_type(other));
                Err(self.error(pointer, other, message))
            }
        }
    }

    /// A whole number at a pointer. `None` if it is absent or null.
    fn number(
        &self,
        part: &'v Value,
        pointer: Option<&Pointer>,
    ) -> Result<Option<u64>, FormatError> {
        let Some((pointer, value)) = pointer.and_then(|one| Some((one, Self::find(part, one)?)))
        else {
            return Ok(None);
        };
        match value {
            Value::Null => Ok(None),
            other => match count(other, &[]) {
                Some(number) => Ok(Some(number)),
                None => {
                    let found = shown(&other.to_string());
                    let message = format!("expected a whole number, found `{found}`");
                    Err(self.error(pointer, other, message))
                }
            },
        }
    }

    fn trace(&self, trace: &'v Value) -> Result<Trace, FormatError> {
        let map = self.map;
        let mut builder = TraceBuilder::new();
        for call in self.list(trace, &map.calls)? {
            self.call(&mut builder, call)?;
        }
        if let Some(results) = &map.results {
            for result in self.list(trace, results)? {
                let call_id = match &map.result_id {
                    Some(pointer) => match Self::find(result, pointer) {
                        Some(Value::Null) | None => {
                            let step = pointer.steps.last().map_or("", String::as_str);
                            return Err(self.nothing(pointer, result, step));
                        }
                        Some(id) => Some(id.clone()),
                    },
                    None => None,
                };
                builder.result(self.reply(result, call_id));
            }
        }
        builder.trace.test = self.text(trace, map.test.as_ref())?.map(Into::into);
        builder.trace.model = self.text(trace, map.model.as_ref())?.map(Into::into);
        builder.trace.final_response = self.text(trace, map.final_text.as_ref())?.map(Into::into);
        builder.trace.run = self.number(trace, map.run.as_ref())?;
        let tokens = Tokens {
            input: self.number(trace, map.input.as_ref())?,
            output: self.number(trace, map.output.as_ref())?,
            total: self.number(trace, map.total.as_ref())?,
            ..Tokens::default()
        };
        if tokens != Tokens::default() {
            builder.trace.conversation.tokens = Some(tokens);
        }
        Ok(builder.finish())
    }

    fn call(&self, builder: &mut TraceBuilder, call: &'v Value) -> Result<(), FormatError> {
        let map = self.map;
        let name = match Self::find(call, &map.name) {
            Some(Value::String(name)) => name.clone(),
            Some(other) => {
                let message = format!("expected a string, found {}", a_type(other));
                return Err(self.error(&map.name, other, message));
            }
            None => {
                let step = map.name.steps.last().map_or("", String::as_str);
                return Err(self.nothing(&map.name, call, step));
            }
        };
        let value = |pointer: &Option<Pointer>| Self::find(call, pointer.as_ref()?);
        let inline = map.results.is_none();
        let mut id = value(&map.id).filter(|id| !id.is_null()).cloned();
        let reply = self.reply(call, None);
        let answered = inline && (reply.content.is_some() || reply.is_error.is_some());
        if answered && id.is_none() {
            id = Some(format!("c{}", builder.trace.tool_calls.len() + 1).into());
        }
        builder.call(Call {
            id: id.clone(),
            name: name.into(),
            server: self.text(call, map.server.as_ref())?,
            args: value(&map.args).map(arguments),
            ..Call::default()
        });
        if answered {
            builder.result(Reply {
                call_id: id,
                ..reply
            });
        }
        Ok(())
    }

    fn reply(&self, result: &'v Value, call_id: Option<Value>) -> Reply {
        let value = |pointer: &Option<Pointer>| Self::find(result, pointer.as_ref()?);
        let is_error = value(&self.map.is_error).map(|flag| match flag {
            Value::Bool(flag) => *flag,
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Array(_) | Value::Object(_) => true,
        });
        Reply {
            call_id,
            is_error,
            content: value(&self.map.content)
                .filter(|content| !content.is_null())
                .cloned(),
            ..Reply::default()
        }
    }
}

fn child<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
