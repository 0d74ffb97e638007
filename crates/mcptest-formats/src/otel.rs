//! OpenTelemetry spans of generative AI and of MCP: `--format otel`.
//!
//! Written for the semantic conventions from 1.37 on, with messages as attributes (in development:
//! names of earlier versions are read too). Checked with spans of Pydantic AI 2.66.0, FastMCP
//! 4.1.2, the MCP SDK for Python 2.3.0 and opentelemetry-instrumentation-openai-v2 2.4b0, in the
//! OTLP JSON of the SDK for Python 1.45.2.
//!
//! A trace (`traceId`) is a run. One call may have several spans within one another (the agent's
//! `execute_tool`, the MCP client's and the server's `tools/call`), and is in the messages of the
//! model's span too: all of these are one call. Spans and messages are joined by the call's id;
//! spans without an id by their names and arguments. A span that lists tools is not a call. Input
//! tokens include cached ones. Usage is that of the requests to models; the sum that an agent's
//! span repeats counts only if there are no others.

mod calls;
mod messages;

use std::collections::{HashMap, HashSet};

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::agent_log;
use crate::builder::{Call, Reply, TraceBuilder, Usage};
use crate::content::{string, tool};
use crate::error::FormatError;
use crate::input::Input;
use crate::otlp::{self, Span};
use crate::reader::{Detection, Format, Grouping, Reader};

use calls::{Executed, Made};

/// The reader of OpenTelemetry's spans.
pub(crate) struct Otel;

static FORMAT: Format = Format {
    name: "otel",
    reads: "OTLP JSON (`resourceSpans`), in one file or one export per line, with spans of the \
            GenAI and MCP semantic conventions",
    versions: "semantic conventions from 1.37 on (messages as attributes), and the older names \
               `gen_ai.usage.*_tokens` and `gen_ai.completion.*`",
    unknown: "arguments, results and texts, unless the writer records content",
};

impl Reader for Otel {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        let detected = otlp::detect(input, |span| {
            let starts = |prefix: &str| span.attributes.keys().any(|key| key.starts_with(prefix));
            if starts("openinference.") || starts("ai.operationId") {
                Detection::No
            } else if starts("gen_ai.") || starts("mcp.") {
                Detection::Match
            } else {
                Detection::Possible
            }
        });
        match detected {
            Detection::Possible => {
                Detection::close("no span has an attribute `gen_ai.*` or `mcp.*`")
            }
            other => other,
        }
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Input
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let traces = otlp::traces(FORMAT.name, input.documents())?;
        let read: Vec<Trace> = traces.iter().filter_map(|spans| run(spans)).collect();
        match (read.is_empty(), input.documents().first()) {
            (true, Some(first)) => Err(first.wrong(
                FORMAT.name,
                &first.value,
                "no span is a request to a model, an agent or a tool call (attributes \
                 `gen_ai.operation.name` or `mcp.method.name`)",
            )),
            _ => Ok(read),
        }
    }
}

/// The part that a span has in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A request to a model.
    Request,
    /// An agent or a workflow.
    Agent,
    /// The execution of a tool, as the agent sees it.
    Tool,
    /// A `tools/call` request of MCP.
    Mcp,
    /// Anything else.
    Other,
}

fn part(span: &Span<'_>) -> Part {
    if span.text("mcp.method.name") == Some("tools/call") {
        return Part::Mcp;
    }
    match span.text("gen_ai.operation.name") {
        Some("chat" | "text_completion" | "generate_content") => Part::Request,
        Some("execute_tool") => Part::Tool,
        Some("invoke_agent" | "create_agent" | "invoke_workflow") => Part::Agent,
        Some(_) => Part::Other,
        // Before the attribute was required.
        None if span.get("gen_ai.request.model").is_some() && has_usage(span) => Part::Request,
        None => Part::Other,
    }
}

fn has_usage(span: &Span<'_>) -> bool {
    usage(span).is_some() || span.get("gen_ai.output.messages").is_some()
}

/// The spans of a run with their parts and places.
struct Run<'s, 'v> {
    spans: &'s [Span<'v>],
    parts: Vec<Part>,
    by_id: HashMap<&'v str, usize>,
}

impl<'s, 'v> Run<'s, 'v> {
    fn new(spans: &'s [Span<'v>]) -> Self {
        Self {
            spans,
            parts: spans.iter().map(part).collect(),
            by_id: spans
                .iter()
                .enumerate()
                .map(|(at, span)| (span.id, at))
                .collect(),
        }
    }

    /// The places of the spans around a span, from the inside. A loop of parents is cut.
    fn around(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let mut steps = 0;
        let mut next = Some(at);
        std::iter::from_fn(move || {
            steps += 1;
            let parent = self.spans.get(next?)?.parent?;
            next = self
                .by_id
                .get(parent)
                .copied()
                .filter(|_| steps < MAX_DEPTH);
            next
        })
    }

    /// The closest span around a span that is one of these parts.
    fn within(&self, at: usize, parts: &[Part]) -> Option<usize> {
        self.around(at)
            .find(|one| parts.contains(&self.parts[*one]))
    }

    fn all(&self, part: Part) -> impl Iterator<Item = usize> + '_ {
        let each = self.parts.iter().enumerate();
        each.filter(move |(_, one)| **one == part).map(|(at, _)| at)
    }

    /// The requests, each once: a library below the agent may record the same request again.
    fn requests(&self) -> Vec<usize> {
        let mut seen = HashSet::new();
        let mut requests: Vec<usize> = self
            .all(Part::Request)
            .filter(|at| {
                let parts = [Part::Request, Part::Agent, Part::Tool, Part::Mcp];
                let outer = self.within(*at, &parts);
                outer.is_none_or(|outer| self.parts[outer] != Part::Request)
            })
            .filter(|at| {
                let id = self.spans[*at].text("gen_ai.response.id");
                id.is_none_or(|id| seen.insert(id))
            })
            .collect();
        requests.sort_by_key(|at| self.spans[*at].end);
        requests
    }
}

/// The levels of spans that are followed from the inside.
const MAX_DEPTH: usize = 256;

/// The trace of a run; `None` if no span is a part of one.
fn run(spans: &[Span<'_>]) -> Option<Trace> {
    let run = Run::new(spans);
    if run.parts.iter().all(|part| *part == Part::Other) {
        return None;
    }
    let requests = run.requests();
    let mut executed = calls::executed(&run);
    let mut made = calls::made(&run, &requests);
    calls::join(&mut made, &mut executed);
    let mut builder = TraceBuilder::new();
    if let Some(first) = spans.first() {
        builder
            .trace
            .extra
            .insert("session", first.trace.to_owned());
    }
    let mut prompts = 0;
    let mut executions = executed.iter().peekable();
    for (number, at) in requests.iter().enumerate() {
        let span = &spans[*at];
        // What happened before the answer.
        while let Some(one) = executions.next_if(|one| one.start < span.end) {
            add_executed(&mut builder, one, &made);
        }
        add_request(&mut builder, span, &mut prompts);
        for call in made.iter().filter(|call| call.request == number) {
            add_made(&mut builder, call, &executed);
        }
    }
    for one in executions {
        add_executed(&mut builder, one, &made);
    }
    if requests.is_empty() {
        for at in run.all(Part::Agent) {
            if run.within(at, &[Part::Agent]).is_none() {
                add_agent(&mut builder, &spans[at]);
            }
        }
    }
    if let Some(last) = requests.last().map(|at| &spans[*at]) {
        finish(&mut builder, last);
    }
    Some(builder.finish())
}

/// Adds the facts of an agent's span, for runs whose requests are not recorded. `mcptest.*` is what
/// `mcptest trace convert --to otlp` writes.
fn add_agent(builder: &mut TraceBuilder, span: &Span<'_>) {
    set_model(builder, span);
    let mut usage = usage(span);
    if let Some(usage) = &mut usage {
        usage.total = usage
            .total
            .or_else(|| span.count("mcptest.usage.total_tokens"));
    }
    builder.usage(usage);
    for message in messages::input(span) {
        let role = message.get("role").and_then(Value::as_str);
        builder.turn(
            role.unwrap_or("user"),
            messages::text(&message).map(Value::from),
        );
    }
    let answer = messages::output(span).iter().rev().find_map(messages::text);
    builder.trace.final_response = answer.map(Into::into);
    builder.trace.test = span.text("mcptest.test").map(|name| name.to_owned().into());
    builder.trace.run = span.count("mcptest.run");
    offer(builder, span);
}

fn set_model(builder: &mut TraceBuilder, span: &Span<'_>) {
    let model = span
        .text("gen_ai.response.model")
        .or_else(|| span.text("gen_ai.request.model"));
    if let Some(model) = model {
        builder
            .trace
            .model
            .get_or_insert_with(|| model.to_owned().into());
    }
}

/// Adds the texts, the usage and the offered tools of a request.
fn add_request(builder: &mut TraceBuilder, span: &Span<'_>, prompts: &mut usize) {
    set_model(builder, span);
    builder.usage(usage(span));
    let input = messages::input(span);
    let asked: Vec<String> = input.iter().filter_map(messages::prompt).collect();
    // Every request repeats the prompts before.
    for prompt in asked.iter().skip(*prompts) {
        builder.turn("user", Some(prompt.as_str().into()));
    }
    *prompts = asked.len().max(*prompts);
    for (id, response) in input.iter().flat_map(messages::responses) {
        if builder.has_call(id) {
            builder.result_once(Reply {
                call_id: Some(id.clone()),
                content: Some(response.clone()),
                ..Reply::default()
            });
        }
    }
    let text = messages::output(span).iter().find_map(messages::text);
    builder.turn("assistant", text.map(Value::from));
    offer(builder, span);
}

/// Adds the tools that a span offers.
fn offer(builder: &mut TraceBuilder, span: &Span<'_>) {
    let offered = span.json("gen_ai.tool.definitions");
    for one in offered
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let function = one.get("function").unwrap_or(one);
        if let Some(name) = function.get("name") {
            let schema = function
                .get("parameters")
                .or_else(|| function.get("inputSchema"));
            let server = string(function, "server");
            builder.tool(tool(server, name, function.get("description"), schema));
        }
    }
}

/// Adds a call of the model, with the facts of its execution.
fn add_made(builder: &mut TraceBuilder, call: &Made, executed: &[Executed]) {
    let execution = call.executed.and_then(|at| executed.get(at));
    let tool = execution.and_then(|one| one.tool.clone());
    let name = tool.unwrap_or_else(|| call.name.clone());
    let mut extra = Vec::new();
    if name != call.name {
        extra.push(("wire_name", call.name.as_str().into()));
    }
    let args = call.args.clone();
    builder.call_once(Call {
        id: Some(call.id.clone()),
        name: name.into(),
        server: execution.and_then(|one| one.server.clone()),
        args: args.or_else(|| execution?.args.clone()),
        extra,
        ..Call::default()
    });
}

/// Adds an execution: its result, and the call unless a model's span has it.
fn add_executed(builder: &mut TraceBuilder, one: &Executed, made: &[Made]) {
    let call = one.made.and_then(|at| made.get(at));
    let id = call.map_or_else(|| one.id.clone(), |call| Some(call.id.clone()));
    let id = id.unwrap_or_else(|| one.span.as_str().into());
    if call.is_none() {
        let name = one.tool.clone().unwrap_or_else(|| one.name.clone());
        let mut extra = Vec::new();
        if name != one.name {
            extra.push(("wire_name", one.name.as_str().into()));
        }
        builder.call_once(Call {
            id: Some(id.clone()),
            // Null is the name of a malformed call.
            name: if name.is_empty() {
                Value::Null
            } else {
                name.into()
            },
            server: one.server.clone(),
            args: one.args.clone(),
            extra,
            ..Call::default()
        });
    }
    builder.result_once(Reply {
        call_id: Some(id),
        is_error: one.is_error,
        content: one.result.clone(),
        extra: Vec::new(),
    });
}

/// Records why the run ended, from its last request.
fn finish(builder: &mut TraceBuilder, last: &Span<'_>) {
    if last.failed {
        let kind = last.text("error.type").unwrap_or_default();
        let status = last
            .count("http.response.status_code")
            .or_else(|| kind.parse().ok());
        let message = last.message.unwrap_or(if kind.is_empty() {
            "the last request failed"
        } else {
            kind
        });
        agent_log::provider_failed(builder, status, message);
        return;
    }
    let reasons = last.json("gen_ai.response.finish_reasons");
    let reason = reasons.as_ref().and_then(|reasons| match reasons {
        Value::Array(all) => all.first()?.as_str(),
        one => one.as_str(),
    });
    let reason = match reason {
        Some("stop" | "end_turn" | "end" | "STOP") => "end",
        Some("length" | "max_tokens" | "MAX_TOKENS") => "max_tokens",
        Some("content_filter" | "refusal") => "withheld",
        _ => return,
    };
    builder.trace.extra.insert("stop_reason", reason);
}

/// The usage of a request.
fn usage(span: &Span<'_>) -> Option<Usage> {
    let first = |keys: &[&str]| keys.iter().find_map(|key| span.count(key));
    let usage = Usage {
        input: first(&["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]),
        output: first(&[
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
        ]),
        total: first(&["gen_ai.usage.total_tokens", "llm.usage.total_tokens"]),
        cached_input: first(&[
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
        ]),
        cache_write: first(&[
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
        ]),
        reasoning: first(&[
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.details.reasoning_tokens",
        ]),
    };
    (!usage.is_unknown()).then_some(usage)
}

#[cfg(test)]
mod tests;
