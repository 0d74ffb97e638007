//! Attacks: rewritten replies, contained calls.

use std::time::Instant;

use mcptest_attack::{AttackRun, Changes};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{LineAction, Observer, line_of};
use crate::attack::{self, SharedAttacks};

impl Observer {
    /// Adds the attacks of the run, which all its connections share.
    pub(crate) fn with_attacks(mut self, attacks: Option<SharedAttacks>) -> Self {
        self.attacks = attacks;
        self
    }

    /// The answer of an attack to a call, which then does not reach the server.
    pub(super) fn answer_attack(&mut self, message: &Value) -> Option<LineAction> {
        let reply = self.attack_reply(message)?;
        // A call without an id has no answer.
        let Some(reply) = reply else {
            return Some(LineAction::Drop);
        };
        let mut line = line_of(&reply);
        line.extend(self.list_changed().unwrap_or_default());
        Some(LineAction::Answer(line))
    }

    /// Has the attacks answer a call. `Some(None)` is a call without an id, which is not passed on.
    fn attack_reply(&mut self, message: &Value) -> Option<Option<Value>> {
        if message.get("method")?.as_str()? != "tools/call" {
            return None;
        }
        let params = message.get("params");
        let tool = params.and_then(|params| params.get("name")?.as_str())?;
        let args = params.and_then(|params| params.get("arguments"));
        let server = self.server.as_deref();
        let answer = attack::lock(self.attacks.as_ref()?).on_call(server, tool, args)?;
        self.record_call(message, params, None);
        let reply = attack::answer(message, &answer);
        self.record_result(&reply, None, answer.marks);
        self.answered();
        Some(message.get("id").is_some().then_some(reply))
    }

    /// Counts a call that no attack can apply to.
    pub(super) fn not_attacked(&self) {
        if let Some(attacks) = &self.attacks {
            attack::lock(attacks).answered_elsewhere();
        }
    }

    /// Handles several messages of the client in one line. Those that attacks answer are taken out.
    pub(super) fn client_batch(
        &mut self,
        batch: &[Value],
        line: &[u8],
        now: Instant,
    ) -> LineAction {
        let raw: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
        let (mut passed, mut answer) = (Vec::new(), Vec::new());
        for (message, raw) in batch.iter().zip(&raw) {
            match self.attack_reply(message) {
                Some(reply) => answer.extend(reply.iter().flat_map(line_of)),
                None => {
                    self.request(message, None, Map::new(), now);
                    passed.push(raw.get());
                }
            }
        }
        if passed.len() == batch.len() {
            return LineAction::Pass;
        }
        answer.extend(self.list_changed().unwrap_or_default());
        if passed.is_empty() {
            return LineAction::Answer(answer);
        }
        let passed = format!("[{}]\n", passed.join(",")).into_bytes();
        LineAction::Split { passed, answer }
    }

    /// Handles several replies in one line.
    pub(super) fn server_batch(&mut self, batch: &[Value], line: &[u8]) -> LineAction {
        let raw: Vec<&RawValue> = serde_json::from_slice(line).unwrap_or_default();
        let mut lines = Vec::new();
        let mut is_changed = false;
        for (message, raw) in batch.iter().zip(&raw) {
            // Without attacks nothing of a batch changes.
            let own = self.attacks.is_some().then(|| raw.get().as_bytes());
            lines.push(match self.reply(message, own) {
                LineAction::Replace(new) | LineAction::Hold(new, _) => {
                    is_changed = true;
                    String::from_utf8_lossy(&new).trim_end().to_owned()
                }
                _ => raw.get().to_owned(),
            });
        }
        match is_changed {
            true => LineAction::Replace(format!("[{}]\n", lines.join(",")).into_bytes()),
            false => LineAction::Pass,
        }
    }

    /// Handles a line of the client that is not valid JSON, or nested too deeply. Where calls may
    /// have to be contained, it is not passed on: it could be one of them.
    pub(super) fn unreadable(&mut self, line: &[u8]) -> LineAction {
        if line.trim_ascii().is_empty() || !self.must_see_calls() {
            return LineAction::Pass;
        }
        self.not_passed_on("is not valid JSON");
        LineAction::Drop
    }

    /// Returns true if a message of the client that is too long to be read must not be passed on.
    pub(crate) fn refuses_oversized(&mut self) -> bool {
        let refuses = self.must_see_calls();
        if refuses {
            self.not_passed_on("is too long to be read");
        }
        refuses
    }

    fn must_see_calls(&self) -> bool {
        let attacks = self.attacks.as_ref();
        attacks.is_some_and(|attacks| attack::lock(attacks).contains_calls())
    }

    fn not_passed_on(&mut self, why: &str) {
        self.changed = true;
        let message = format!(
            "a message of the client {why}, and was not passed on: attacks have to see every call"
        );
        self.trace.error.get_or_insert(RunError {
            kind: ErrorKind::Protocol,
            message,
        });
    }

    /// Handles the answer to the opening of the connection.
    pub(super) fn opened(
        &mut self,
        message: &Value,
        line: Option<&[u8]>,
        is_handshake: bool,
    ) -> LineAction {
        let announces = message.pointer("/result/capabilities/tools/listChanged");
        // Without a handshake, notifications need a subscription of the client.
        self.announces_lists |= is_handshake && announces == Some(&Value::Bool(true));
        let server = self.server.clone().unwrap_or_default();
        let rewritten = self.rewrite(message, line, |attacks, result| {
            attacks.on_instructions(&server, result)
        });
        rewritten.map_or(LineAction::Pass, |rewritten| {
            LineAction::Replace(rewritten.line)
        })
    }

    /// Rewrites a reply as the attacks of the run ask for. `None` if they leave it as it is.
    pub(super) fn rewrite(
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
    fn list_changed(&self) -> Option<Vec<u8>> {
        let attacks = self.attacks.as_ref().filter(|_| self.announces_lists)?;
        let server = self.server.as_deref().unwrap_or_default();
        let due = attack::lock(attacks).takes_list_changed(server);
        let method = "notifications/tools/list_changed";
        due.then(|| line_of(&json!({"jsonrpc": "2.0", "method": method})))
    }

    /// The action on a line with a result, with the notification after it that a list has changed.
    pub(super) fn with_list_changed(&mut self, action: LineAction, line: &[u8]) -> LineAction {
        let passed = match &action {
            LineAction::Pass => line,
            LineAction::Replace(new) => new,
            _ => return action,
        };
        let Some(notice) = self.list_changed() else {
            return action;
        };
        LineAction::Replace([passed, &notice].concat())
    }

    /// Handles a page of a list of tools.
    pub(super) fn record_list(
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
}
