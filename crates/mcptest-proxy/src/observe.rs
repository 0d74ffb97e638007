//! What the lines of a session say, and what becomes of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use serde_json::{Map, Value, json};

use crate::distract::{self, Distraction, Distractor};
use crate::fault::{ProxyFault, Strike};

/// Requests that can be open at once; a client that never gets answers could open any number.
const MOST_OPEN: usize = 10_000;

/// Calls that are kept in full. A session beyond that goes on, and the trace says that it is not
/// whole.
const MOST_CALLS: usize = 100_000;

/// What becomes of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It passes.
    Pass,
    /// It does not arrive.
    Drop,
    /// It arrives at this time, unless it is cancelled before.
    Hold(Instant),
    /// This arrives in its place.
    Replace(Vec<u8>),
    /// It does not arrive; its sender gets this line back.
    Answer(Vec<u8>),
}

/// A request of the client's that has no reply yet.
#[derive(Debug)]
enum Open {
    List {
        first_page: bool,
    },
    Call {
        strike: Option<Strike>,
        made: Instant,
    },
    /// Held back or lost: what else is said about it concerns nobody.
    Settled {
        strike: Strike,
    },
}

/// Reads both directions along.
#[derive(Debug)]
pub(crate) struct Observer {
    pub(crate) trace: Trace,
    server: Option<String>,
    fault: ProxyFault,
    fault_tools: Vec<String>,
    pub(crate) distractor: Option<Distractor>,
    /// Calls so far that the fault is meant for.
    struck: u64,
    open: BTreeMap<String, Open>,
    /// The trace has changed since it was last asked.
    pub(crate) changed: bool,
}

impl Observer {
    pub(crate) fn new(
        server: Option<String>,
        fault: ProxyFault,
        fault_tools: Vec<String>,
        distraction: Option<Distraction>,
    ) -> Self {
        Self {
            trace: Trace::default(),
            server,
            fault,
            fault_tools,
            distractor: distraction.map(Distractor::new),
            struck: 0,
            open: BTreeMap::new(),
            changed: false,
        }
    }

    /// A line from the client.
    pub(crate) fn client_line(&mut self, line: &[u8], now: Instant) -> Fate {
        match serde_json::from_slice::<Value>(line) {
            // Faults do not reach into batches: taking one message out would change the others'
            // bytes.
            Ok(Value::Array(batch)) => {
                for message in &batch {
                    self.request(message, None, now);
                }
                Fate::Pass
            }
            Ok(message) => {
                if let Some(answer) = self.refuse(&message) {
                    return Fate::Answer(answer);
                }
                let strike = self.strike_on(&message);
                self.request(&message, strike, now)
            }
            Err(_) => Fate::Pass,
        }
    }

    /// A line from the server.
    pub(crate) fn server_line(&mut self, line: &[u8]) -> Fate {
        match serde_json::from_slice::<Value>(line) {
            Ok(Value::Array(batch)) => {
                for message in &batch {
                    self.reply(message, None);
                }
                Fate::Pass
            }
            Ok(message) => self.reply(&message, Some(line)),
            Err(_) => Fate::Pass,
        }
    }

    /// Whether a held reply is still to be delivered; asked when its time has come.
    pub(crate) fn release(&mut self, line: &[u8]) -> bool {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return true;
        };
        id_of(&message).is_none_or(|id| self.open.remove(&id).is_some())
    }

    /// A call of a distractor is ours to answer; no server and no fault has to do with it.
    fn refuse(&mut self, message: &Value) -> Option<Vec<u8>> {
        if message.get("method")?.as_str()? != "tools/call" || message.get("id").is_none() {
            return None;
        }
        let tool = message.get("params")?.get("name")?.as_str()?;
        if !self.distractor.as_ref()?.has(tool) {
            return None;
        }
        let answer = distract::answer(message, tool);
        self.call(message, message.get("params"), None);
        self.result(&answer, None);
        let mut line = answer.to_string().into_bytes();
        line.push(b'\n');
        Some(line)
    }

    fn strike_on(&mut self, message: &Value) -> Option<Strike> {
        if message.get("method")?.as_str()? != "tools/call" || message.get("id").is_none() {
            return None;
        }
        let tool = message
            .get("params")
            .and_then(|params| params.get("name")?.as_str());
        let meant = self.fault_tools.is_empty()
            || tool.is_some_and(|tool| self.fault_tools.iter().any(|t| t == tool));
        if !meant {
            return None;
        }
        let strike = self.fault.strike(self.struck);
        self.struck += 1;
        strike
    }

    fn request(&mut self, message: &Value, strike: Option<Strike>, now: Instant) -> Fate {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return Fate::Pass;
        };
        let params = message.get("params");
        if method == "notifications/cancelled" {
            let id = params
                .and_then(|params| params.get("requestId"))
                .map(Value::to_string);
            return id.map_or(Fate::Pass, |id| self.cancelled(&id));
        }
        let Some(id) = id_of(message) else {
            return Fate::Pass;
        };
        match method {
            "tools/list" if self.open.len() < MOST_OPEN => {
                let first_page = params
                    .and_then(|params| params.get("cursor"))
                    .is_none_or(Value::is_null);
                self.open.insert(id, Open::List { first_page });
            }
            "tools/call" => {
                self.call(message, params, strike);
                if strike == Some(Strike::Lost) {
                    self.open.insert(
                        id,
                        Open::Settled {
                            strike: Strike::Lost,
                        },
                    );
                    return Fate::Drop;
                }
                if self.open.len() < MOST_OPEN {
                    self.open.insert(id, Open::Call { strike, made: now });
                }
            }
            _ => {}
        }
        Fate::Pass
    }

    /// The server never heard of a lost call, and is not told of a cancellation that it is made to
    /// ignore.
    fn cancelled(&mut self, id: &str) -> Fate {
        match self.open.get(id) {
            Some(Open::Settled {
                strike: Strike::Stubborn(_),
            }) => Fate::Drop,
            Some(Open::Call {
                strike: Some(Strike::Stubborn(_)),
                ..
            }) => Fate::Drop,
            Some(Open::Settled { strike }) => {
                let lost = *strike == Strike::Lost;
                self.open.remove(id);
                // A late one was answered by the server already, but only we know that.
                if lost { Fate::Drop } else { Fate::Pass }
            }
            _ => Fate::Pass,
        }
    }

    fn call(&mut self, message: &Value, params: Option<&Value>, strike: Option<Strike>) {
        self.changed = true;
        if self.trace.tool_calls.len() >= MOST_CALLS {
            self.trace.extra.insert("truncated", true);
            return;
        }
        let id = message.get("id").cloned();
        let params = params.and_then(Value::as_object);
        self.trace.tool_calls.push(ToolCall {
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
        if strike == Some(Strike::Lost) {
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

    /// `line` is what the reply came in, if it came alone.
    fn reply(&mut self, message: &Value, line: Option<&[u8]>) -> Fate {
        if message.get("method").is_some() {
            return Fate::Pass;
        }
        let Some(id) = id_of(message) else {
            return Fate::Pass;
        };
        match self.open.remove(&id) {
            None => Fate::Pass,
            Some(Open::List { first_page }) => self.listed(message, line, first_page),
            // A second reply to a call whose first is held back: it passes as the server sent it.
            Some(settled @ Open::Settled { .. }) => {
                self.open.insert(id, settled);
                Fate::Pass
            }
            Some(Open::Call { strike, made }) => {
                self.result(message, strike);
                match strike {
                    Some(strike @ (Strike::Late(delay) | Strike::Stubborn(delay))) => {
                        self.open.insert(id, Open::Settled { strike });
                        Fate::Hold(made.checked_add(delay).unwrap_or(made))
                    }
                    _ => Fate::Pass,
                }
            }
        }
    }

    fn listed(&mut self, message: &Value, line: Option<&[u8]>, first_page: bool) -> Fate {
        let Some(tools) = message
            .get("result")
            .and_then(|result| result.get("tools")?.as_array())
        else {
            return Fate::Pass;
        };
        self.changed = true;
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
        let (Some(distractor), Some(line)) = (&mut self.distractor, line) else {
            return Fate::Pass;
        };
        let Some((new, fakes)) = distractor.page(line, server, first_page) else {
            return Fate::Pass;
        };
        catalog.extend(fakes);
        self.trace.distractors = Some(distractor.ids.clone());
        Fate::Replace(new)
    }

    fn result(&mut self, message: &Value, strike: Option<Strike>) {
        self.changed = true;
        if self.trace.tool_results.len() >= MOST_CALLS {
            return;
        }
        let mut extra = Map::new();
        let (is_error, content) = match (message.get("result"), message.get("error")) {
            (Some(result), _) => {
                if let Some(structured) = result.get("structuredContent") {
                    extra.insert("structured_content".to_owned(), structured.clone());
                }
                let is_error = result
                    .get("isError")
                    .and_then(Value::as_bool)
                    .unwrap_or(false);
                (is_error, result.get("content").cloned())
            }
            (None, error) => {
                let error = error.cloned().unwrap_or(Value::Null);
                let code = error.get("code").cloned().unwrap_or(Value::Null);
                let words = error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let text = format!("Error {code}: {words}");
                extra.insert("error".to_owned(), error);
                (true, Some(json!([{"type": "text", "text": text}])))
            }
        };
        if let Some(Strike::Late(delay) | Strike::Stubborn(delay)) = strike {
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The id as JSON text, so that 1 and "1" stay apart.
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
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{{\"q\":{id}}}}}}}\n").into_bytes()
    }

    fn reply(id: u32) -> Vec<u8> {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"structuredContent\":{{\"a\":1}}}}}}\n")
            .into_bytes()
    }

    fn cancel(id: u32) -> Vec<u8> {
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n")
            .into_bytes()
    }

    fn observer(fault: &str) -> Observer {
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
        let mut seen = observer("none");
        seen.client_line(b"not json\n", now);
        seen.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, now);
        seen.server_line(
            br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}"#,
        );
        seen.client_line(
            br#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"x"}}"#,
            now,
        );
        seen.server_line(br#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"b","x":1}]}}"#);
        assert_eq!(seen.client_line(&call(3, "a"), now), Fate::Pass);
        // A request of the server's with the same id is another matter.
        seen.server_line(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
        seen.client_line(br#"{"jsonrpc":"2.0","id":3,"result":{}}"#, now);
        assert_eq!(seen.server_line(&reply(3)), Fate::Pass);
        seen.client_line(&call(4, "b"), now);
        seen.server_line(br#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no"}}"#);
        seen.client_line(&call(5, "b"), now);
        assert_eq!(
            serde_json::to_value(&seen.trace).expect("JSON"),
            json!({
                "tool_calls": [
                    {"id": 3, "name": "a", "server": "web", "args": {"q": 3}},
                    {"id": 4, "name": "b", "server": "web", "args": {"q": 4}},
                    {"id": 5, "name": "b", "server": "web", "args": {"q": 5}},
                ],
                "tool_results": [
                    {"call_id": 3, "is_error": false, "content": [], "structured_content": {"a": 1}},
                    {"call_id": 4, "is_error": true, "content": [{"type": "text", "text": "Error -32602: no"}], "error": {"code": -32602, "message": "no"}},
                ],
                "catalog": [{"server": "web", "name": "a"}, {"server": "web", "name": "b", "x": 1}],
            })
        );
    }

    #[test]
    fn lost_calls_are_timeouts_in_the_trace() {
        let now = Instant::now();
        let mut seen = observer("recover-after:1");
        assert_eq!(seen.client_line(&call(1, "a"), now), Fate::Drop);
        assert_eq!(seen.client_line(&cancel(1), now), Fate::Drop);
        assert_eq!(seen.client_line(&call(2, "a"), now), Fate::Pass);
        assert_eq!(seen.client_line(&cancel(2), now), Fate::Pass);
        assert_eq!(seen.server_line(&reply(2)), Fate::Pass);
        let results = serde_json::to_value(&seen.trace.tool_results).expect("JSON");
        assert_eq!(
            results[0],
            json!({"call_id": 1, "is_error": true, "error_kind": "timeout", "fault": "recover-after"})
        );
        assert_eq!(results[1]["is_error"], false);
    }

    #[test]
    fn only_calls_are_struck_and_only_those_meant() {
        let now = Instant::now();
        let mut seen = Observer::new(None, ProxyFault::Hang, vec!["a".to_owned()], None);
        assert_eq!(
            seen.client_line(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, now),
            Fate::Pass
        );
        assert_eq!(
            seen.client_line(br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, now),
            Fate::Pass
        );
        assert_eq!(seen.client_line(&call(3, "b"), now), Fate::Pass);
        assert_eq!(seen.client_line(&call(4, "a"), now), Fate::Drop);
    }

    #[test]
    fn a_late_reply_is_dropped_when_cancelled_and_a_stubborn_one_is_not() {
        let now = Instant::now();
        let delay = Duration::from_millis(50);
        for (fault, cancellation, delivered) in [
            ("slow:50", Fate::Pass, false),
            ("reply-after-cancel:50", Fate::Drop, true),
        ] {
            let mut seen = observer(fault);
            assert_eq!(seen.client_line(&call(1, "a"), now), Fate::Pass);
            assert_eq!(seen.server_line(&reply(1)), Fate::Hold(now + delay));
            assert_eq!(seen.client_line(&cancel(1), now), cancellation);
            assert_eq!(seen.release(&reply(1)), delivered, "{fault}");
            let result = serde_json::to_value(&seen.trace.tool_results[0]).expect("JSON");
            assert_eq!(result["delay_ms"], 50);
        }
        let mut seen = observer("slow:50");
        seen.client_line(&call(1, "a"), now);
        seen.server_line(&reply(1));
        assert!(seen.release(&reply(1)));
    }
}
