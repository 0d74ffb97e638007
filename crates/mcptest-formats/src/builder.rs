//! The native trace while a reader makes it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use mcptest_json::canonical;
use mcptest_trace::catalog::Tool;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{Extra, Tokens, ToolCall, ToolName, ToolResult, Trace, Turn};
use mcptest_trace::verdict::RunError;
use serde_json::Value;

use crate::content;

/// The prefix of tool names that several agents use for the tools of MCP servers.
const MCP_PREFIX: &str = "mcp__";

/// A recorded call.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The id that joins the call with its result.
    pub id: Option<Value>,
    /// The name as recorded; anything but a string is a malformed call.
    pub name: Value,
    /// The server, where the format records it.
    pub server: Option<String>,
    /// The arguments. Use the recorded string if it is not valid JSON.
    pub args: Option<Value>,
    /// The provider's tag for a call from generated code.
    pub caller: Option<Value>,
    /// The JSON pointer of the call in its document.
    pub source: Option<String>,
    /// Other facts: `started_at`, `duration_ms`, …
    pub extra: Vec<(&'static str, Value)>,
}

/// A recorded result.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The id of the call.
    pub call_id: Option<Value>,
    /// True for an error; absent is unknown.
    pub is_error: Option<bool>,
    /// The content as recorded: a string, blocks, or any value. An object that is not a block list
    /// is kept as `structured_content` too.
    pub content: Option<Value>,
    /// Other facts: `structured_content`, `error`, `error_kind`, …
    pub extra: Vec<(&'static str, Value)>,
}

/// Token usage of one request to a model. Absent figures are unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens, with those that were read from a cache or written to it.
    pub input: Option<u64>,
    /// Output tokens, with those of hidden reasoning.
    pub output: Option<u64>,
    /// All tokens. If it is absent and the other two are not, their sum.
    pub total: Option<u64>,
    /// The part of `input` that was read from a cache.
    pub cached_input: Option<u64>,
    /// The part of `input` that was written to a cache.
    pub cache_write: Option<u64>,
    /// The part of `output` that was hidden reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Returns true if no figure is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// A native trace while a reader makes it.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    /// The trace. Readers set `test`, `model`, `run`, `final_response` and `extra` directly.
    pub trace: Trace,
    turns: Vec<Turn>,
    /// Text of the latest turn that was added in parts.
    added: Option<String>,
    /// The number of assistant turns.
    assistant_turns: u64,
    /// The calls of each id, in order.
    calls_by_id: HashMap<String, Vec<usize>>,
    /// The results of each id, in order.
    results_by_id: HashMap<String, Vec<usize>>,
    /// The calls that were not answered by name, by name.
    unanswered: HashMap<String, VecDeque<usize>>,
    /// True while items of one assistant turn are added one by one.
    turn_is_open: bool,
    usages: Vec<Option<Usage>>,
    usage_by_request: HashMap<String, usize>,
    tools: Vec<Value>,
    tools_known: bool,
    tool_keys: HashSet<String>,
    servers: Vec<String>,
}

impl TraceBuilder {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn of the conversation. Calls that follow belong to the latest assistant turn.
    pub fn turn(&mut self, role: &str, content: Option<Value>) {
        self.complete_turn();
        if role == "assistant" {
            self.assistant_turns += 1;
        }
        self.turn_is_open = false;
        self.turns.push(Turn {
            role: Some(Cow::Owned(role.to_owned())),
            content: present(content).map(Into::into),
            ..Turn::default()
        });
    }

    /// Adds text to the latest turn, for formats that record a turn in several parts. The parts
    /// are separate lines.
    pub fn say(&mut self, text: &str) {
        self.add_text(text, "\n");
    }

    /// Adds a piece of streamed text to the latest turn.
    pub fn append_text(&mut self, text: &str) {
        self.add_text(text, "");
    }

    fn add_text(&mut self, text: &str, between: &str) {
        let last = self.turns.last();
        let known = last.and_then(|turn| turn.content()?.as_str());
        // The string is moved into the turn when the turn is complete.
        match &mut self.added {
            Some(added) => {
                added.push_str(between);
                added.push_str(text);
            }
            None => {
                self.added = Some(match known {
                    Some(known) => format!("{known}{between}{text}"),
                    None => text.to_owned(),
                });
            }
        }
    }

    /// Moves the added text into the latest turn.
    fn complete_turn(&mut self) {
        if let (Some(text), Some(turn)) = (self.added.take(), self.turns.last_mut()) {
            turn.content = Some(Value::from(text).into());
        }
    }

    /// Adds an assistant turn without text to the count, for formats that record calls only.
    pub fn count_turn(&mut self) {
        self.assistant_turns += 1;
    }

    /// Opens an assistant turn unless one is open, for formats that record turns as single items.
    pub fn open_turn(&mut self) {
        if !self.turn_is_open {
            self.turn("assistant", None);
            self.turn_is_open = true;
        }
    }

    /// Ends the open turn: the next item of the assistant belongs to another one.
    pub fn close_turn(&mut self) {
        self.turn_is_open = false;
    }

    /// Adds text to the open assistant turn.
    pub fn turn_text(&mut self, text: &str) {
        self.open_turn();
        self.say(text);
    }

    /// The number of assistant turns so far.
    #[must_use]
    pub fn assistant_turns(&self) -> u64 {
        self.assistant_turns
    }

    /// Adds a call of a message list. The same call (id, name, arguments) is added once while it
    /// has no result: some writers repeat a message. After its result, an id may be used again.
    pub fn call(&mut self, call: Call) {
        let key = call.id.as_ref().map(id_key);
        let same = key.as_ref().and_then(|key| {
            let at = *self.calls_by_id.get(key)?.last()?;
            let answered = self.results_by_id.get(key).map_or(0, Vec::len);
            let open = self.calls_by_id.get(key)?.len() > answered;
            let known = self.trace.tool_calls.get(at)?;
            let equal =
                known.raw_name.to_value() == call.name && known.args().cloned() == call.args;
            (open && equal).then_some(at)
        });
        match same {
            Some(at) => self.complete(at, call),
            None => self.push(key, call),
        }
    }

    /// Adds a call of a format that records calls in several places (spans, events): one id is one
    /// call, and facts that were missing are completed.
    pub fn call_once(&mut self, call: Call) {
        let key = call.id.as_ref().map(id_key);
        let known = key
            .as_ref()
            .and_then(|key| self.calls_by_id.get(key)?.first());
        match known.copied() {
            Some(at) => self.complete(at, call),
            None => self.push(key, call),
        }
    }

    fn push(&mut self, key: Option<String>, call: Call) {
        let at = self.trace.tool_calls.len();
        if let Some(key) = key {
            self.calls_by_id.entry(key).or_default().push(at);
        }
        if let Value::String(name) = &call.name {
            self.unanswered
                .entry(name.clone())
                .or_default()
                .push_back(at);
        }
        let mut extra = Extra::default();
        for (key, value) in call.extra {
            extra.insert(key, value);
        }
        if let Some(source) = call.source {
            extra.insert("source", source);
        }
        let turn = self.assistant_turns;
        self.trace.tool_calls.push(ToolCall {
            id: present(call.id).map(Into::into),
            raw_name: ToolName::from(call.name),
            server: call.server.map(Cow::Owned),
            args: call.args.map(Into::into),
            caller: present(call.caller).map(Into::into),
            turn: (turn > 0).then_some(turn),
            extra,
        });
    }

    /// Adds facts to a call that was recorded before without them.
    fn complete(&mut self, at: usize, call: Call) {
        let Some(known) = self.trace.tool_calls.get_mut(at) else {
            return;
        };
        if known.server.is_none() {
            known.server = call.server.map(Cow::Owned);
        }
        if known.args.is_none() {
            known.args = call.args.map(Into::into);
        }
        if known.caller.is_none() {
            known.caller = call.caller.map(Into::into);
        }
        for (key, value) in call.extra {
            if known.extra.get(key).is_none() {
                known.extra.insert(key, value);
            }
        }
    }

    /// Adds a result. One that repeats an earlier result of the same call is left out.
    pub fn result(&mut self, reply: Reply) {
        let key = reply.call_id.as_ref().map(id_key);
        let result = result(reply);
        if let Some(key) = key {
            let known = self.results_by_id.entry(key.clone()).or_default();
            let repeated = known.last().and_then(|at| self.trace.tool_results.get(*at));
            let calls = self.calls_by_id.get(&key).map_or(0, Vec::len);
            if known.len() >= calls.max(1) && repeated.is_some_and(|one| *one == result) {
                return;
            }
            known.push(self.trace.tool_results.len());
        }
        self.trace.tool_results.push(result);
    }

    /// Adds a result of a format that records results in several places: the first one of an id is
    /// kept, and facts that were missing are completed.
    pub fn result_once(&mut self, reply: Reply) {
        let key = reply.call_id.as_ref().map(id_key);
        let known = key
            .as_ref()
            .and_then(|key| self.results_by_id.get(key)?.first().copied());
        let Some(known) = known.and_then(|at| self.trace.tool_results.get_mut(at)) else {
            return self.result(reply);
        };
        let more = result(reply);
        known.is_error = known.is_error.or(more.is_error);
        if known.content.is_none() {
            known.content = more.content;
        }
        for (key, value) in more.extra.iter() {
            if known.extra.get(key).is_none() {
                known.extra.insert(key.to_owned(), value.value().clone());
            }
        }
    }

    /// Returns true if a call with this id was added.
    #[must_use]
    pub fn has_call(&self, id: &Value) -> bool {
        self.calls_by_id.contains_key(&id_key(id))
    }

    /// The id of the oldest call of a tool that has no result, for formats that join by name. A
    /// call without an id gets one.
    pub fn answer_by_name(&mut self, name: &str) -> Option<Value> {
        loop {
            let at = self.unanswered.get_mut(name)?.pop_front()?;
            let Some(id) = self.trace.tool_calls.get(at).and_then(ToolCall::id) else {
                return self.give_id(at);
            };
            if !self.results_by_id.contains_key(&id_key(id)) {
                return Some(id.clone());
            }
        }
    }

    /// Gives a call an id that no other call has.
    fn give_id(&mut self, at: usize) -> Option<Value> {
        let mut number = at + 1;
        while self
            .calls_by_id
            .contains_key(&id_key(&format!("c{number}").into()))
        {
            number += self.trace.tool_calls.len();
        }
        let id = Value::from(format!("c{number}"));
        self.calls_by_id.entry(id_key(&id)).or_default().push(at);
        self.trace.tool_calls.get_mut(at)?.id = Some(id.clone().into());
        Some(id)
    }

    /// Adds the usage of one request; absent if the request is recorded without usage. One that
    /// is absent makes the sum unknown.
    pub fn usage(&mut self, usage: Option<Usage>) {
        self.usages.push(usage.filter(|usage| !usage.is_unknown()));
    }

    /// Adds the usage of the request with this id. A later record of the same request replaces an
    /// earlier one, unless it has no usage.
    pub fn usage_of(&mut self, request: &str, usage: Option<Usage>) {
        match self.usage_by_request.get(request) {
            None => {
                let at = self.usages.len();
                self.usage_by_request.insert(request.to_owned(), at);
                self.usage(usage);
            }
            Some(at) => {
                let usage = usage.filter(|usage| !usage.is_unknown());
                if let (Some(known), Some(usage)) = (self.usages.get_mut(*at), usage) {
                    *known = Some(usage);
                }
            }
        }
    }

    /// Adds an offered tool: an object with `name`, `description` and `inputSchema`. A tool that is
    /// offered with every request is added once.
    pub fn tool(&mut self, tool: Value) {
        self.tools_known = true;
        if self.tool_keys.insert(canonical(&tool)) {
            self.tools.push(tool);
        }
    }

    /// Records that the offered tools are known, also if there are none.
    pub fn tools_known(&mut self) {
        self.tools_known = true;
    }

    /// Adds the name of a server, so that `server__tool` can be split.
    pub fn server(&mut self, name: &str) {
        self.servers.push(name.to_owned());
    }

    /// Records that the run could not be completed, for a reason that is not the agent's.
    pub fn error(&mut self, error: RunError) {
        self.trace.error = Some(error);
    }

    /// The finished trace.
    #[must_use]
    pub fn finish(mut self) -> Trace {
        self.complete_turn();
        if !self.turns.is_empty() {
            self.trace.conversation.turns = Some(self.turns);
        }
        if self.trace.conversation.tokens.is_none() {
            self.trace.conversation.tokens = sum(&self.usages);
        }
        if self.tools_known {
            let tools = self
                .tools
                .iter()
                .filter_map(|tool| Tool::from_listing(None, tool));
            self.trace.set_catalog(Some(tools.collect()));
        }
        split_names(&mut self.trace, &self.servers.into_iter().collect());
        self.trace
    }
}

/// Splits `mcp__server__tool` and `server__tool`, and keeps the recorded name as `wire_name`.
fn split_names(trace: &mut Trace, servers: &KnownServers) {
    let wired = |call: &ToolCall| call.name().contains("__");
    if !trace.tool_calls.iter().any(wired) {
        return;
    }
    let names: Vec<String> = trace
        .tool_calls
        .iter()
        .map(|call| call.name().to_owned())
        .collect();
    trace.split_wire_names(servers);
    for (call, recorded) in trace.tool_calls.iter_mut().zip(names) {
        if call.server.is_none()
            && let Some((server, tool)) = mcp_name(&recorded)
        {
            call.server = Some(Cow::Owned(server.to_owned()));
            call.raw_name = tool.into();
        }
        if call.name() != recorded {
            call.extra.insert("wire_name", recorded);
        }
    }
}

/// Splits `mcp__server__tool` where there is one way to do so.
fn mcp_name(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(MCP_PREFIX)?;
    let (server, tool) = rest.split_once("__")?;
    let one_way = !tool.starts_with('_') && !tool.contains("__");
    (one_way && !server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

fn result(reply: Reply) -> ToolResult {
    let mut extra = Extra::default();
    for (key, value) in reply.extra {
        extra.insert(key, value);
    }
    if let Some(object @ Value::Object(_)) = &reply.content
        && reply.is_error != Some(true)
        && extra.get("structured_content").is_none()
    {
        extra.insert("structured_content", object.clone());
    }
    ToolResult {
        call_id: present(reply.call_id).map(Into::into),
        is_error: reply.is_error,
        content: reply
            .content
            .as_ref()
            .and_then(content::blocks)
            .map(Into::into),
        extra,
    }
}

/// A value that is not null: in a native trace, null is absent.
fn present(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !value.is_null())
}

/// An id as a key of a map.
fn id_key(id: &Value) -> String {
    match id {
        Value::String(text) => format!("\"{text}"),
        other => canonical(other),
    }
}

/// The sum over all requests. A figure that one of them lacks is unknown.
fn sum(usages: &[Option<Usage>]) -> Option<Tokens> {
    if usages.is_empty() {
        return None;
    }
    let all = |figure: fn(&Usage) -> Option<u64>| {
        usages
            .iter()
            .map(|usage| usage.as_ref().and_then(figure))
            .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one?)))
    };
    // A part that nobody reported for one request may still be known for the others.
    let some = |figure: fn(&Usage) -> Option<u64>| {
        let known = usages.iter().flatten().filter_map(figure);
        known.reduce(u64::saturating_add)
    };
    let total = |usage: &Usage| {
        let sum = || Some(usage.input?.saturating_add(usage.output?));
        usage.total.or_else(sum)
    };
    let mut tokens = Tokens {
        input: all(|usage| usage.input),
        output: all(|usage| usage.output),
        total: all(total),
        extra: Extra::default(),
    };
    for (name, count) in [
        ("cached_input", some(|usage| usage.cached_input)),
        ("cache_write", some(|usage| usage.cache_write)),
        ("reasoning", some(|usage| usage.reasoning)),
    ] {
        if let Some(count) = count {
            tokens.extra.insert(name, count);
        }
    }
    let known = tokens.input.or(tokens.output).or(tokens.total).is_some();
    known.then_some(tokens)
}

#[cfg(test)]
mod tests;
