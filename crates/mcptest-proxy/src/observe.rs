//! The trace of a session's lines, and the action on each line.

mod attacks;
mod recording;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcptest_json::surrogates::mended;
use mcptest_trace::fault::timeout_text;
use mcptest_trace::server_messages;
use mcptest_trace::trace::Trace;
use serde_json::{Map, Value, json};

use crate::attack::{self, SharedAttacks};
use crate::distract::{self, DistractorInjector, DistractorPlan};
use crate::fault::{CallEffect, ProxyFault};
use crate::run_state::{CallPlace, DelayedAnswer, FaultEffect, RunState};
use crate::server_messages::ServerMessages;

/// The key of a trace that is `false` while the client has neither listed nor called a tool.
const TOOLS_LISTED: &str = "tools_listed";

/// The largest number of open requests; a client without answers could open any number.
const MAX_OPEN: usize = 10_000;

/// The action on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineAction {
    /// Passes it on.
    Pass,
    /// Drops it.
    Drop,
    /// Passes on this line instead, at this time, unless it is cancelled before.
    Hold(Vec<u8>, Instant),
    /// Passes on this line instead.
    Replace(Vec<u8>),
    /// Drops it and returns this line to its sender.
    Answer(Vec<u8>),
    /// Passes on this line instead, and returns another one to its sender.
    Split { passed: Vec<u8>, answer: Vec<u8> },
    /// Drops it and returns this line to its sender at this time.
    AnswerAt(Vec<u8>, Instant),
}

impl LineAction {
    /// The name of the action in log events.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Drop => "dropped",
            Self::Hold(..) => "delayed",
            Self::Replace(_) => "replaced",
            Self::Split { .. } => "answered in part",
            Self::Answer(_) | Self::AnswerAt(..) => "answered",
        }
    }
}

/// A request of the client without a reply.
#[derive(Debug)]
enum OpenRequest {
    List {
        first_page: bool,
    },
    /// The opening of the connection; true for one with a handshake.
    Opening {
        is_handshake: bool,
    },
    /// A request whose answer an attack may change.
    Text(attack::TextRequest),
    Call {
        tool: String,
        effect: Option<CallEffect>,
        sent: Instant,
        /// Further keys of the recorded result.
        marks: Map<String, Value>,
        /// The id of the recorded call, if this one repeats it with the client's input.
        repeats: Option<Value>,
    },
    /// A `ping` of the proxy itself.
    Ping,
    /// Dropped, or answered with a delay.
    Finished {
        effect: CallEffect,
    },
}

/// Observes both directions of a session.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) trace: Trace,
    server: Option<String>,
    fault: ProxyFault,
    fault_tools: Vec<String>,
    pub(crate) distractors: Option<DistractorInjector>,
    /// The attacks of the run.
    attacks: Option<SharedAttacks>,
    /// True if the server announces changes of its list of tools.
    announces_lists: bool,
    /// The number of calls so far that match the fault's tools.
    matching_calls: u64,
    open: BTreeMap<String, OpenRequest>,
    /// The messages of the server that are not replies.
    pub(crate) messages: ServerMessages,
    /// Calls that require input of the client: the tool and the id of the recorded call.
    unfinished: Vec<(String, Value)>,
    /// True if the trace has changed since it was written.
    pub(crate) changed: bool,
    /// The state that all connections of one run share, if this is one of them.
    run: Option<Arc<RunState>>,
    /// The place of each recorded call among all calls of the run.
    pub(crate) places: Vec<CallPlace>,
    /// The number of pings so far.
    pings: u64,
    /// True if the server did not answer a `ping` after a call had timed out.
    pub(crate) unresponsive: bool,
}

impl Observer {
    pub(crate) fn new(
        server: Option<String>,
        fault: ProxyFault,
        fault_tools: Vec<String>,
        plan: Option<DistractorPlan>,
    ) -> Self {
        let mut trace = Trace::default();
        // Until the client has the tools, its silence proves nothing about the agent.
        trace.extra.insert(TOOLS_LISTED, false);
        Self {
            trace,
            server,
            fault,
            fault_tools,
            distractors: plan.map(DistractorInjector::new),
            attacks: None,
            announces_lists: false,
            matching_calls: 0,
            open: BTreeMap::new(),
            messages: ServerMessages::default(),
            unfinished: Vec::new(),
            changed: false,
            run: None,
            places: Vec::new(),
            pings: 0,
            unresponsive: false,
        }
    }

    /// An observer of one of the connections of a run.
    pub(crate) fn of_run(server: &str, run: Arc<RunState>, plan: Option<DistractorPlan>) -> Self {
        let mut observer = Self::new(Some(server.to_owned()), ProxyFault::None, Vec::new(), plan);
        observer.run = Some(run);
        observer
    }

    /// Handles a line from the client.
    pub(crate) fn client_line(&mut self, line: &[u8], now: Instant) -> LineAction {
        match serde_json::from_slice::<Value>(&mended(line)) {
            // Faults do not affect batches: removing one message would change the bytes of the
            // others.
            Ok(Value::Array(batch)) => self.client_batch(&batch, line, now),
            Ok(message) => {
                self.changed |= self.messages.replied(&message);
                if let Some(answer) = self.refuse_distractor(&message) {
                    self.not_attacked();
                    return LineAction::Answer(answer);
                }
                let (effect, marks) = match self.apply(&message) {
                    Some(FaultEffect::Timeout(answer)) => {
                        self.not_attacked();
                        return self.answer_fault(&message, answer);
                    }
                    Some(FaultEffect::Late(marks)) => (None, marks),
                    None => (self.next_effect(&message), Map::new()),
                };
                if effect == Some(CallEffect::Dropped) {
                    self.not_attacked();
                } else if let Some(action) = self.answer_attack(&message) {
                    return action;
                }
                self.request(&message, effect, marks, now)
            }
            Err(_) => self.unreadable(line),
        }
    }

    /// Handles a line from the server.
    pub(crate) fn server_line(&mut self, line: &[u8]) -> LineAction {
        let results = self.trace.tool_results.len();
        let action = match serde_json::from_slice::<Value>(&mended(line)) {
            Ok(Value::Array(batch)) => self.server_batch(&batch, line),
            Ok(message) => {
                let server = self.server.as_deref();
                self.changed |= self.messages.sent(server, &message, Instant::now());
                self.reply(&message, Some(line))
            }
            Err(_) => LineAction::Pass,
        };
        if self.trace.tool_results.len() == results {
            return action;
        }
        self.with_list_changed(action, line)
    }

    /// Returns true if a delayed reply is still to be delivered.
    pub(crate) fn release(&mut self, line: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<Value>(&mended(line)) else {
            return true;
        };
        id_of(&message).is_none_or(|id| self.open.remove(&id).is_some())
    }

    /// The answer to a call of a distractor, which does not reach the server and is never faulty.
    fn refuse_distractor(&mut self, message: &Value) -> Option<Vec<u8>> {
        let tool = called_tool(message)?;
        if !self.distractors.as_ref()?.has(tool) {
            return None;
        }
        let answer = distract::answer(message, tool);
        self.record_call(message, message.get("params"), None);
        self.record_result(&answer, None, Map::new());
        self.answered();
        Some(line_of(&answer))
    }

    /// The effect of the run's injected faults on a message.
    fn apply(&self, message: &Value) -> Option<FaultEffect> {
        let tool = called_tool(message)?;
        let server = self.server.as_deref().unwrap_or_default();
        self.run.as_ref()?.apply(server, tool)
    }

    /// Answers a call that a fault applies to. The answer is sent a moment later, so that other
    /// calls of the same turn arrive before it.
    fn answer_fault(&mut self, message: &Value, applied: DelayedAnswer) -> LineAction {
        self.record_call(message, message.get("params"), None);
        let answer = distract::error_answer(message, &applied.text);
        self.record_result(&answer, None, applied.marks);
        LineAction::AnswerAt(line_of(&answer), applied.at)
    }

    /// Ends a call that the server did not answer in time. Returns the answer for the client, or
    /// nothing if the call is no longer open.
    pub(crate) fn time_out(&mut self, message: &Value, timeout: Duration) -> Option<Vec<u8>> {
        let id = id_of(message)?;
        match self.open.get(&id)? {
            OpenRequest::Call { .. } => {}
            OpenRequest::List { .. }
            | OpenRequest::Opening { .. }
            | OpenRequest::Text(_)
            | OpenRequest::Ping
            | OpenRequest::Finished { .. } => {
                return None;
            }
        }
        self.open.remove(&id);
        let tool = called_tool(message).unwrap_or_default();
        let text = timeout_text(tool, Some(millis(timeout)));
        let answer = distract::error_answer(message, &text);
        let marks = Map::from_iter([
            ("error_kind".to_owned(), "timeout".into()),
            ("timeout_ms".to_owned(), millis(timeout).into()),
        ]);
        self.record_result(&answer, None, marks);
        // A late reply is dropped.
        let effect = CallEffect::Dropped;
        self.open.insert(id, OpenRequest::Finished { effect });
        Some(line_of(&answer))
    }

    /// A `ping` of the proxy: its id and its line.
    pub(crate) fn ping(&mut self) -> (String, Vec<u8>) {
        self.pings += 1;
        let id = Value::from(format!("mcptest-ping-{}", self.pings));
        let line = line_of(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        let id = id.to_string();
        self.open.insert(id.clone(), OpenRequest::Ping);
        (id, line)
    }

    /// Ends the wait for the answer to a `ping`.
    pub(crate) fn end_ping(&mut self, id: &str) {
        if self.open.remove(id).is_some() {
            self.unresponsive = true;
        }
    }

    /// Notes that the answer to a call was sent, or will never be.
    pub(crate) fn answered(&self) {
        if let Some(run) = &self.run {
            run.answered();
        }
    }

    /// The effect of the fault on a message.
    fn next_effect(&mut self, message: &Value) -> Option<CallEffect> {
        if message.get("method")?.as_str()? != "tools/call" || message.get("id").is_none() {
            return None;
        }
        let tool = message
            .get("params")
            .and_then(|params| params.get("name")?.as_str());
        let matches = self.fault_tools.is_empty()
            || tool.is_some_and(|tool| self.fault_tools.iter().any(|t| t == tool));
        if !matches {
            return None;
        }
        let effect = self.fault.effect(self.matching_calls);
        self.matching_calls += 1;
        effect
    }

    fn request(
        &mut self,
        message: &Value,
        effect: Option<CallEffect>,
        marks: Map<String, Value>,
        now: Instant,
    ) -> LineAction {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return LineAction::Pass;
        };
        let params = message.get("params");
        if method == "notifications/cancelled" {
            let id = params
                .and_then(|params| params.get("requestId"))
                .map(Value::to_string);
            return id.map_or(LineAction::Pass, |id| self.cancelled(&id));
        }
        let Some(id) = id_of(message) else {
            return LineAction::Pass;
        };
        match method {
            "tools/list" if self.open.len() < MAX_OPEN => {
                let first_page = params
                    .and_then(|params| params.get("cursor"))
                    .is_none_or(Value::is_null);
                self.open.insert(id, OpenRequest::List { first_page });
            }
            "initialize" | "server/discover" if self.attacks.is_some() => {
                let is_handshake = method == "initialize";
                self.open.insert(id, OpenRequest::Opening { is_handshake });
            }
            "resources/read" | "prompts/get"
                if self.attacks.is_some() && self.open.len() < MAX_OPEN =>
            {
                let request = attack::TextRequest::of(method, params);
                self.open.insert(id, OpenRequest::Text(request));
            }
            "tools/call" => {
                let repeats = self.repeated(message, params);
                if repeats.is_none() {
                    self.record_call(message, params, effect);
                }
                if effect == Some(CallEffect::Dropped) {
                    self.open.insert(
                        id,
                        OpenRequest::Finished {
                            effect: CallEffect::Dropped,
                        },
                    );
                    return LineAction::Drop;
                }
                if self.open.len() < MAX_OPEN {
                    let sent = now;
                    let call = OpenRequest::Call {
                        tool: called_tool(message).unwrap_or_default().to_owned(),
                        effect,
                        sent,
                        marks,
                        repeats,
                    };
                    self.open.insert(id, call);
                }
            }
            _ => {}
        }
        LineAction::Pass
    }

    /// The id of the recorded call that a call repeats with the client's input.
    fn repeated(&mut self, message: &Value, params: Option<&Value>) -> Option<Value> {
        let params = params?;
        let is_repeated = ["inputResponses", "requestState"]
            .iter()
            .any(|key| params.get(key).is_some());
        let tool = called_tool(message).filter(|_| is_repeated)?;
        let at = self.unfinished.iter().position(|(name, _)| name == tool)?;
        self.messages.answered(params);
        Some(self.unfinished.remove(at).1)
    }

    /// Adds the messages of the server to the trace.
    pub(crate) fn add_messages(&mut self) {
        if !self.messages.messages().is_empty() {
            let messages = self.messages.messages().to_vec();
            self.trace.extra.insert(server_messages::KEY, messages);
        }
        if let Some(omitted) = self.messages.omitted() {
            self.trace
                .extra
                .insert(server_messages::OMITTED_KEY, omitted);
        }
    }

    /// Handles a cancellation. The server does not get one for a dropped call, nor one that it
    /// shall ignore.
    fn cancelled(&mut self, id: &str) -> LineAction {
        match self.open.get(id) {
            Some(OpenRequest::Finished {
                effect: CallEffect::DelayedAlways(_),
            }) => LineAction::Drop,
            Some(OpenRequest::Call {
                effect: Some(CallEffect::DelayedAlways(_)),
                ..
            }) => LineAction::Drop,
            Some(OpenRequest::Finished { effect }) => {
                let dropped = *effect == CallEffect::Dropped;
                self.open.remove(id);
                // The server has answered a delayed call already, but the client does not know.
                if dropped {
                    LineAction::Drop
                } else {
                    LineAction::Pass
                }
            }
            _ => LineAction::Pass,
        }
    }

    /// Handles a reply. `line` is its line, unless it is part of a batch.
    fn reply(&mut self, message: &Value, line: Option<&[u8]>) -> LineAction {
        if message.get("method").is_some() {
            return LineAction::Pass;
        }
        let Some(id) = id_of(message) else {
            return LineAction::Pass;
        };
        match self.open.remove(&id) {
            None => LineAction::Pass,
            Some(OpenRequest::Ping) => LineAction::Drop,
            Some(OpenRequest::List { first_page }) => self.record_list(message, line, first_page),
            Some(OpenRequest::Opening { is_handshake }) => self.opened(message, line, is_handshake),
            Some(OpenRequest::Text(request)) => {
                let server = self.server.clone().unwrap_or_default();
                let rewritten = self.rewrite(message, line, |attacks, result| {
                    request.changes(attacks, &server, result)
                });
                rewritten.map_or(LineAction::Pass, |rewritten| {
                    LineAction::Replace(rewritten.line)
                })
            }
            // The client has an answer already: that of the timeout.
            Some(OpenRequest::Finished {
                effect: CallEffect::Dropped,
            }) if self.run.is_some() => LineAction::Drop,
            // A second reply to a call whose first one is delayed is passed on.
            Some(finished @ OpenRequest::Finished { .. }) => {
                self.open.insert(id, finished);
                LineAction::Pass
            }
            Some(OpenRequest::Call { tool, repeats, .. }) if requires_input(message) => {
                let first = repeats.or_else(|| message.get("id").cloned());
                let server = self.server.as_deref();
                let result = message.get("result").unwrap_or(&Value::Null);
                self.messages.asked(server, result, Instant::now());
                if self.unfinished.len() < MAX_OPEN {
                    self.unfinished.push((tool, first.unwrap_or_default()));
                }
                self.changed = true;
                LineAction::Pass
            }
            Some(OpenRequest::Call {
                tool,
                effect,
                sent,
                mut marks,
                repeats,
            }) => {
                let server = self.server.clone().unwrap_or_default();
                let rewritten = self.rewrite(message, line, |attacks, result| {
                    attacks.on_result(&server, &tool, result)
                });
                let seen = rewritten.as_ref().map_or(message, |new| &new.message);
                let of_first = repeats.map(|first| {
                    let mut seen = seen.clone();
                    seen["id"] = first;
                    seen
                });
                let seen = of_first.as_ref().unwrap_or(seen);
                if let Some(new) = &rewritten {
                    marks.extend(new.marks.clone());
                }
                self.record_result(seen, effect, marks);
                self.answered();
                let new = rewritten.map(|new| new.line);
                match (effect, line) {
                    (
                        Some(
                            effect
                            @ (CallEffect::Delayed(delay) | CallEffect::DelayedAlways(delay)),
                        ),
                        Some(line),
                    ) => {
                        self.open.insert(id, OpenRequest::Finished { effect });
                        let at = sent.checked_add(delay).unwrap_or(sent);
                        LineAction::Hold(new.unwrap_or_else(|| line.to_vec()), at)
                    }
                    _ => new.map_or(LineAction::Pass, LineAction::Replace),
                }
            }
        }
    }
}

/// Returns true if a reply requires input of the client first.
fn requires_input(message: &Value) -> bool {
    let kind = message
        .get("result")
        .and_then(|result| result.get("resultType"));
    kind.and_then(Value::as_str) == Some("input_required")
}

/// The tool that a request calls.
pub(crate) fn called_tool(message: &Value) -> Option<&str> {
    if message.get("method")?.as_str()? != "tools/call" || message.get("id").is_none() {
        return None;
    }
    message.get("params")?.get("name")?.as_str()
}

fn line_of(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The id as JSON text, so that 1 and "1" differ.
fn id_of(message: &Value) -> Option<String> {
    message
        .get("id")
        .filter(|id| !id.is_null())
        .map(Value::to_string)
}

#[cfg(test)]
mod tests;
