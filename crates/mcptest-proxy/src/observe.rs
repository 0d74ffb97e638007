//! The trace of a session's lines, and the action on each line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcptest_attack::{AttackRun, Changes};
use mcptest_json::text::shorten;
use mcptest_protocol::malformed_tool_result;
use mcptest_trace::catalog::Tool;
use mcptest_trace::fault::timeout_text;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value, json};

use crate::attack::{self, SharedAttacks};
use crate::distract::{self, DistractorInjector, DistractorPlan};
use crate::fault::{CallEffect, ProxyFault};
use crate::run_state::{CallPlace, RunState, Struck, StruckCall};

/// The key of a trace that is `false` while the client has neither listed nor called a tool.
const MAX_SHOWN_CHARS: usize = 300;
const TOOLS_LISTED: &str = "tools_listed";

/// The largest number of open requests; a client without answers could open any number.
const MAX_OPEN: usize = 10_000;

/// The largest number of recorded calls. Beyond that the session continues, and the trace is marked
/// as truncated.
const MAX_CALLS: usize = 100_000;

/// The action on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineAction {
    /// Passes it on.
    Pass,
    /// Drops it.
    Drop,
    /// Passes it on at this time, unless it is cancelled before.
    Hold(Instant),
    /// Passes on this line instead.
    Replace(Vec<u8>),
    /// Drops it and returns this line to its sender.
    Answer(Vec<u8>),
    /// Drops it and returns this line to its sender at this time.
    AnswerAt(Vec<u8>, Instant),
}

impl LineAction {
    /// The name of the action in log events.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Drop => "dropped",
            Self::Hold(_) => "delayed",
            Self::Replace(_) => "replaced",
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
    /// The opening of the connection.
    Opening,
    /// A request whose answer an attack may strike.
    Text(attack::TextRequest),
    Call {
        tool: String,
        effect: Option<CallEffect>,
        sent: Instant,
        /// Further keys of the recorded result.
        marks: Map<String, Value>,
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

    /// Adds the attacks of the run, which all its connections share.
    pub(crate) fn with_attacks(mut self, attacks: Option<SharedAttacks>) -> Self {
        self.attacks = attacks;
        self
    }

    /// The answer of an attack to a call, which then does not reach the server.
    fn answer_attack(&mut self, message: &Value) -> Option<LineAction> {
        let tool = called_tool(message)?;
        let args = message
            .get("params")
            .and_then(|params| params.get("arguments"));
        let server = self.server.as_deref();
        let answer = attack::lock(self.attacks.as_ref()?).on_call(server, tool, args)?;
        self.record_call(message, message.get("params"), None);
        let reply = attack::answer(message, &answer);
        self.record_result(&reply, None, answer.marks);
        self.answered();
        Some(LineAction::Answer(line_of(&reply)))
    }

    /// Handles a line from the client.
    pub(crate) fn client_line(&mut self, line: &[u8], now: Instant) -> LineAction {
        match serde_json::from_slice::<Value>(line) {
            // Faults do not affect batches: removing one message would change the bytes of the
            // others.
            Ok(Value::Array(batch)) => {
                for message in &batch {
                    self.request(message, None, Map::new(), now);
                }
                LineAction::Pass
            }
            Ok(message) => {
                if let Some(answer) = self.refuse_distractor(&message) {
                    self.not_attacked();
                    return LineAction::Answer(answer);
                }
                let (effect, marks) = match self.strike(&message) {
                    Some(Struck::Timeout(answer)) => {
                        self.not_attacked();
                        return self.answer_struck(&message, answer);
                    }
                    Some(Struck::Late(marks)) => (None, marks),
                    None => (self.next_effect(&message), Map::new()),
                };
                if effect == Some(CallEffect::Dropped) {
                    self.not_attacked();
                } else if let Some(action) = self.answer_attack(&message) {
                    return action;
                }
                self.request(&message, effect, marks, now)
            }
            Err(_) => LineAction::Pass,
        }
    }

    /// Handles a line from the server.
    pub(crate) fn server_line(&mut self, line: &[u8]) -> LineAction {
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Array(batch)) => {
                for message in &batch {
                    self.reply(message, None);
                }
                LineAction::Pass
            }
            Ok(message) => self.reply(&message, Some(line)),
            Err(_) => LineAction::Pass,
        }
    }

    /// Returns true if a delayed reply is still to be delivered.
    pub(crate) fn release(&mut self, line: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return true;
        };
        id_of(&message).is_none_or(|id| self.open.remove(&id).is_some())
    }

    /// Counts a call that no attack can strike.
    fn not_attacked(&self) {
        if let Some(attacks) = &self.attacks {
            attack::lock(attacks).answered_elsewhere();
        }
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
    fn strike(&self, message: &Value) -> Option<Struck> {
        let tool = called_tool(message)?;
        let server = self.server.as_deref().unwrap_or_default();
        self.run.as_ref()?.strike(server, tool)
    }

    /// Answers a call that a fault strikes. The answer is sent a moment later, so that other calls
    /// of the same turn arrive before it.
    fn answer_struck(&mut self, message: &Value, struck: StruckCall) -> LineAction {
        self.record_call(message, message.get("params"), None);
        let answer = distract::error_answer(message, &struck.text);
        self.record_result(&answer, None, struck.marks);
        LineAction::AnswerAt(line_of(&answer), struck.at)
    }

    /// Ends a call that the server did not answer in time. Returns the answer for the client, or
    /// nothing if the call is not open any more.
    pub(crate) fn time_out(&mut self, message: &Value, timeout: Duration) -> Option<Vec<u8>> {
        let id = id_of(message)?;
        match self.open.get(&id)? {
            OpenRequest::Call { .. } => {}
            OpenRequest::List { .. }
            | OpenRequest::Opening
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
                self.open.insert(id, OpenRequest::Opening);
            }
            "resources/read" | "prompts/get"
                if self.attacks.is_some() && self.open.len() < MAX_OPEN =>
            {
                let request = attack::TextRequest::of(method, params);
                self.open.insert(id, OpenRequest::Text(request));
            }
            "tools/call" => {
                self.record_call(message, params, effect);
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
                    };
                    self.open.insert(id, call);
                }
            }
            _ => {}
        }
        LineAction::Pass
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

    fn record_call(&mut self, message: &Value, params: Option<&Value>, effect: Option<CallEffect>) {
        self.changed = true;
        self.trace.extra.remove(TOOLS_LISTED);
        if self.trace.tool_calls.len() >= MAX_CALLS {
            self.trace.extra.insert("truncated", true);
            return;
        }
        let id = message.get("id").cloned();
        let params = params.and_then(Value::as_object);
        let place = self.run.as_ref().map(|run| run.called());
        self.places.extend(place);
        self.trace.tool_calls.push(ToolCall {
            turn: place.map(|place| place.turn),
            id: id.clone().map(Into::into),
            raw_name: params
                .and_then(|params| params.get("name"))
                .cloned()
                .unwrap_or(Value::Null)
                .into(),
            server: self.server.clone().map(Into::into),
            args: params
                .and_then(|params| params.get("arguments"))
                .cloned()
                .map(Into::into),
            ..ToolCall::default()
        });
        if effect == Some(CallEffect::Dropped) {
            let extra = Map::from_iter([
                ("error_kind".to_owned(), "timeout".into()),
                ("fault".to_owned(), self.fault.name().into()),
            ]);
            self.trace.tool_results.push(ToolResult {
                call_id: id.map(Into::into),
                is_error: Some(true),
                content: None,
                extra: extra.into(),
            });
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
            Some(OpenRequest::Opening) => self.opened(message, line),
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
            Some(OpenRequest::Call {
                tool,
                effect,
                sent,
                mut marks,
            }) => {
                let server = self.server.clone().unwrap_or_default();
                // A delayed reply is passed on as it is.
                let rewritten = line.filter(|_| effect.is_none()).and_then(|line| {
                    self.rewrite(message, Some(line), |attacks, result| {
                        attacks.on_result(&server, &tool, result)
                    })
                });
                let seen = rewritten.as_ref().map_or(message, |new| &new.message);
                if let Some(new) = &rewritten {
                    marks.extend(new.marks.clone());
                }
                self.record_result(seen, effect, marks);
                self.answered();
                if effect.is_none()
                    && let Some(line) = line
                {
                    let notice = self.list_changed(&server);
                    return match (rewritten, notice) {
                        (None, None) => LineAction::Pass,
                        (new, notice) => {
                            let mut out = new.map_or_else(|| line.to_vec(), |new| new.line);
                            out.extend(notice.unwrap_or_default());
                            LineAction::Replace(out)
                        }
                    };
                }
                match effect {
                    Some(
                        effect @ (CallEffect::Delayed(delay) | CallEffect::DelayedAlways(delay)),
                    ) => {
                        self.open.insert(id, OpenRequest::Finished { effect });
                        LineAction::Hold(sent.checked_add(delay).unwrap_or(sent))
                    }
                    _ => LineAction::Pass,
                }
            }
        }
    }

    /// Handles the answer to the opening of the connection.
    fn opened(&mut self, message: &Value, line: Option<&[u8]>) -> LineAction {
        let announces = message.pointer("/result/capabilities/tools/listChanged");
        self.announces_lists |= announces == Some(&Value::Bool(true));
        let server = self.server.clone().unwrap_or_default();
        let rewritten = self.rewrite(message, line, |attacks, result| {
            attacks.on_instructions(&server, result)
        });
        rewritten.map_or(LineAction::Pass, |rewritten| {
            LineAction::Replace(rewritten.line)
        })
    }

    /// Rewrites a reply as the attacks of the run ask for. Nothing if they leave it as it is.
    fn rewrite(
        &mut self,
        message: &Value,
        line: Option<&[u8]>,
        changes: impl FnOnce(&mut AttackRun, &Value) -> Changes,
    ) -> Option<attack::Rewritten> {
        let attacks = self.attacks.as_ref()?;
        let mut attacks = attack::lock(attacks);
        let rewritten = attack::rewrite(&mut attacks, message, line?, changes)?;
        if self.run.is_none() {
            attack::record(&attacks, &mut self.trace);
            self.changed = true;
        }
        Some(rewritten)
    }

    /// The notification that makes the client list the tools again, when an attack waits for that.
    fn list_changed(&self, server: &str) -> Option<Vec<u8>> {
        let attacks = self.attacks.as_ref().filter(|_| self.announces_lists)?;
        let due = attack::lock(attacks).takes_list_changed(server);
        let method = "notifications/tools/list_changed";
        due.then(|| line_of(&json!({"jsonrpc": "2.0", "method": method})))
    }

    fn record_list(
        &mut self,
        message: &Value,
        line: Option<&[u8]>,
        first_page: bool,
    ) -> LineAction {
        let name = self.server.clone().unwrap_or_default();
        let rewritten = self.rewrite(message, line, |attacks, result| {
            let cursor = result.get("nextCursor").and_then(Value::as_str);
            let last_page = cursor.is_none_or(str::is_empty);
            attacks.on_tools(&name, result, first_page, last_page)
        });
        let Some(new) = rewritten else {
            return self.record_tools(message, line, first_page);
        };
        match self.record_tools(&new.message, Some(&new.line), first_page) {
            LineAction::Pass => LineAction::Replace(new.line),
            other => other,
        }
    }

    fn record_tools(
        &mut self,
        message: &Value,
        line: Option<&[u8]>,
        first_page: bool,
    ) -> LineAction {
        let Some(tools) = message
            .get("result")
            .and_then(|result| result.get("tools")?.as_array())
        else {
            return LineAction::Pass;
        };
        self.changed = true;
        self.trace.extra.remove(TOOLS_LISTED);
        let catalog = self.trace.catalog.get_or_insert_default().tools_mut();
        if first_page {
            catalog.clear();
        }
        let server = self.server.as_deref();
        catalog.extend(
            tools
                .iter()
                .filter_map(|tool| Tool::from_listing(server, tool)),
        );
        let (Some(distractors), Some(line)) = (&mut self.distractors, line) else {
            return LineAction::Pass;
        };
        let Some((new, fakes)) = distractors.add_to_page(line, server, first_page) else {
            return LineAction::Pass;
        };
        catalog.extend(fakes);
        self.trace.distractors = Some(distractors.ids.clone());
        LineAction::Replace(new)
    }

    fn record_result(
        &mut self,
        message: &Value,
        effect: Option<CallEffect>,
        mut extra: Map<String, Value>,
    ) {
        self.changed = true;
        if self.trace.tool_results.len() >= MAX_CALLS {
            return;
        }
        let (is_error, content) = match (message.get("result"), message.get("error")) {
            (Some(result), _) => {
                if let Some(structured) = result.get("structuredContent") {
                    extra.insert("structured_content".to_owned(), structured.clone());
                }
                if let Some(problem) = malformed_tool_result(result) {
                    let message = format!("the tool result is malformed: {problem}");
                    extra.insert("error_kind".to_owned(), "protocol".into());
                    let text = format!(
                        "{message}: {}",
                        shorten(&result.to_string(), MAX_SHOWN_CHARS)
                    );
                    // The agent saw something that is no answer: nothing that it does next is
                    // evidence.
                    self.trace.error.get_or_insert(RunError {
                        kind: ErrorKind::Protocol,
                        message,
                    });
                    (true, Some(json!([{"type": "text", "text": text}])))
                } else {
                    let is_error = result.get("isError").and_then(Value::as_bool);
                    (is_error.unwrap_or(false), result.get("content").cloned())
                }
            }
            (None, error) => {
                let error = error.cloned().unwrap_or(Value::Null);
                let code = error.get("code").cloned().unwrap_or(Value::Null);
                let text = error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let text = format!("Error {code}: {text}");
                extra.insert("error".to_owned(), error);
                (true, Some(json!([{"type": "text", "text": text}])))
            }
        };
        if let Some(CallEffect::Delayed(delay) | CallEffect::DelayedAlways(delay)) = effect {
            extra.insert("fault".to_owned(), self.fault.name().into());
            extra.insert("delay_ms".to_owned(), millis(delay).into());
        }
        self.trace.tool_results.push(ToolResult {
            call_id: message.get("id").cloned().map(Into::into),
            is_error: Some(is_error),
            content: content.map(Into::into),
            extra: extra.into(),
        });
    }
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
mod tests {
    use super::*;

    fn call(id: u32, tool: &str) -> Vec<u8> {
        let params = json!({"name": tool, "arguments": {"q": id}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        format!("{message}\n").into_bytes()
    }

    fn reply(id: u32) -> Vec<u8> {
        let result = json!({"content": [], "structuredContent": {"a": 1}});
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        format!("{message}\n").into_bytes()
    }

    fn cancel(id: u32) -> Vec<u8> {
        let method = "notifications/cancelled";
        let params = json!({"requestId": id});
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        format!("{message}\n").into_bytes()
    }

    fn new_observer(fault: &str) -> Observer {
        Observer::new(
            Some("web".to_owned()),
            fault.parse().expect("a fault"),
            Vec::new(),
            None,
        )
    }

    #[test]
    fn a_session_becomes_a_trace() {
        let now = Instant::now();
        let mut observer = new_observer("none");
        observer.client_line(b"not json\n", now);
        observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, now);
        observer.server_line(
            br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}"#,
        );
        observer.client_line(
            br#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
            now,
        );
        observer
            .server_line(br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"b","x":1}]}}"#);
        assert_eq!(observer.client_line(&call(3, "a"), now), LineAction::Pass);
        // A request of the server with the same id is unrelated.
        observer.server_line(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
        observer.client_line(br#"{"jsonrpc":"2.0","id":3,"result":{}}"#, now);
        assert_eq!(observer.server_line(&reply(3)), LineAction::Pass);
        observer.client_line(&call(4, "b"), now);
        observer.server_line(br#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#);
        observer.client_line(&call(5, "b"), now);
        assert_eq!(
            serde_json::to_value(&observer.trace).expect("JSON"),
            json!({
                "tool_calls": [
                    {"id": 3, "name": "a", "server": "web", "args": {"q": 3}},
                    {"id": 4, "name": "b", "server": "web", "args": {"q": 4}},
                    {"id": 5, "name": "b", "server": "web", "args": {"q": 5}},
                ],
                "tool_results": [
                    {
                        "call_id": 3, "is_error": false, "content": [],
                        "structured_content": {"a": 1},
                    },
                    {
                        "call_id": 4, "is_error": true,
                        "content": [{"type": "text", "text": "Error -32602: no"}],
                        "error": {"code": -32602, "message": "no"},
                    },
                ],
                "catalog": [{"server": "web", "name": "a"}, {"server": "web", "name": "b", "x": 1}],
            })
        );
    }

    #[test]
    fn issue_10_a_client_that_never_listed_tools_is_marked() {
        let now = Instant::now();
        let mark = |observer: &Observer| observer.trace.extra.get("tools_listed").cloned();
        let mut observer = new_observer("none");
        observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now);
        assert_eq!(mark(&observer), Some(false.into()));
        observer.client_line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, now);
        // A request without an answer gives the client no tools.
        assert_eq!(mark(&observer), Some(false.into()));
        let reply = br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
        observer.server_line(reply);
        assert_eq!(mark(&observer), None);
        // A client may know the tools from an earlier session.
        let mut observer = new_observer("none");
        observer.client_line(&call(1, "a"), now);
        assert_eq!(mark(&observer), None);
    }

    #[test]
    fn dropped_calls_are_timeouts_in_the_trace() {
        let now = Instant::now();
        let mut observer = new_observer("recover-after:1");
        assert_eq!(observer.client_line(&call(1, "a"), now), LineAction::Drop);
        assert_eq!(observer.client_line(&cancel(1), now), LineAction::Drop);
        assert_eq!(observer.client_line(&call(2, "a"), now), LineAction::Pass);
        assert_eq!(observer.client_line(&cancel(2), now), LineAction::Pass);
        assert_eq!(observer.server_line(&reply(2)), LineAction::Pass);
        let results = serde_json::to_value(&observer.trace.tool_results).expect("JSON");
        assert_eq!(
            results[0],
            json!({
                "call_id": 1, "is_error": true,
                "error_kind": "timeout", "fault": "recover-after",
            })
        );
        assert_eq!(results[1]["is_error"], false);
    }

    #[test]
    fn only_matching_calls_are_affected() {
        let now = Instant::now();
        let mut observer = Observer::new(None, ProxyFault::Hang, vec!["a".to_owned()], None);
        assert_eq!(
            observer.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now),
            LineAction::Pass
        );
        assert_eq!(
            observer.client_line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, now),
            LineAction::Pass
        );
        assert_eq!(observer.client_line(&call(3, "b"), now), LineAction::Pass);
        assert_eq!(observer.client_line(&call(4, "a"), now), LineAction::Drop);
    }

    #[test]
    fn a_cancelled_delayed_reply_is_dropped_unless_always_sent() {
        let now = Instant::now();
        let delay = Duration::from_millis(50);
        for (fault, cancellation, delivered) in [
            ("slow:50", LineAction::Pass, false),
            ("reply-after-cancel:50", LineAction::Drop, true),
        ] {
            let mut observer = new_observer(fault);
            assert_eq!(observer.client_line(&call(1, "a"), now), LineAction::Pass);
            assert_eq!(
                observer.server_line(&reply(1)),
                LineAction::Hold(now + delay)
            );
            assert_eq!(observer.client_line(&cancel(1), now), cancellation);
            assert_eq!(observer.release(&reply(1)), delivered, "{fault}");
            let result = serde_json::to_value(&observer.trace.tool_results[0]).expect("JSON");
            assert_eq!(result["delay_ms"], 50);
        }
        let mut observer = new_observer("slow:50");
        observer.client_line(&call(1, "a"), now);
        observer.server_line(&reply(1));
        assert!(observer.release(&reply(1)));
    }
}
