//! The messages that the server of a session sent by itself, with the client's answers. The
//! agent is the client: it answers by itself, and is only recorded.

use std::collections::BTreeMap;
use std::time::Instant;

use mcptest_trace::message_log::MessageLog;
use serde_json::Value;

/// The largest number of requests of the server without an answer.
const MAX_OPEN: usize = 1000;

/// The messages of one session.
#[derive(Debug, Default)]
pub(crate) struct ServerMessages {
    log: MessageLog,
    /// The time of each message.
    pub(crate) times: Vec<Instant>,
    /// Requests of the server without an answer, by their ids.
    open: BTreeMap<String, Option<usize>>,
    /// Questions in a result that requires input, by their names (2026-07-28).
    questions: BTreeMap<String, Option<usize>>,
}

impl ServerMessages {
    /// The messages so far.
    pub(crate) fn messages(&self) -> &[Value] {
        self.log.messages()
    }

    /// The number of messages by kind that are not kept, if there are any.
    pub(crate) fn omitted(&self) -> Option<Value> {
        self.log.omitted()
    }

    /// Records a request or notification of the server. Returns true if it is one.
    pub(crate) fn sent(&mut self, server: Option<&str>, message: &Value, now: Instant) -> bool {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return false;
        };
        let id = message.get("id").filter(|id| !id.is_null());
        // A server may ask at any time if the client is there.
        if method == "ping" {
            return false;
        }
        let index = self.add(server, method, message.get("params"), now);
        if let Some(id) = id
            && self.open.len() < MAX_OPEN
        {
            self.open.insert(id.to_string(), index);
        }
        true
    }

    /// Records the client's reply to a request of the server. Returns true if it is one.
    pub(crate) fn replied(&mut self, message: &Value) -> bool {
        let id = message
            .get("id")
            .filter(|_| message.get("method").is_none());
        let Some(index) = id.and_then(|id| self.open.remove(&id.to_string())) else {
            return false;
        };
        let answer = match (message.get("result"), message.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, error) => Err(error.cloned().unwrap_or_default()),
        };
        self.log.answer(index, answer);
        true
    }

    /// Records the questions of a result that requires input.
    pub(crate) fn asked(&mut self, server: Option<&str>, result: &Value, now: Instant) {
        let questions = result.get("inputRequests").and_then(Value::as_object);
        self.questions.clear();
        for (name, question) in questions.into_iter().flatten().take(MAX_OPEN) {
            let method = question.get("method").and_then(Value::as_str);
            let params = question.get("params");
            let index = self.add(server, method.unwrap_or_default(), params, now);
            self.questions.insert(name.clone(), index);
        }
    }

    /// Records the answers in a request that is repeated with them.
    pub(crate) fn answered(&mut self, params: &Value) -> bool {
        let answers = params.get("inputResponses").and_then(Value::as_object);
        let mut found = false;
        for (name, answer) in answers.into_iter().flatten() {
            if let Some(index) = self.questions.remove(name) {
                self.log.answer(index, Ok(answer.clone()));
                found = true;
            }
        }
        found
    }

    fn add(
        &mut self,
        server: Option<&str>,
        method: &str,
        params: Option<&Value>,
        now: Instant,
    ) -> Option<usize> {
        let server = server.unwrap_or_default();
        let index = self.log.add(server, method, params.cloned());
        if index.is_some() {
            self.times.push(now);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_recorded_with_the_answers_of_the_client() {
        let now = Instant::now();
        let mut messages = ServerMessages::default();
        let server = Some("shop");
        let request = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
        assert!(messages.sent(server, &request, now));
        assert!(!messages.sent(server, &json!({"id": 1, "method": "ping"}), now));
        assert!(!messages.sent(server, &json!({"id": 1, "result": {}}), now));
        let log = json!({"method": "notifications/message", "params": {"level": "info"}});
        assert!(messages.sent(server, &log, now));
        assert!(!messages.replied(&json!({"id": 7, "result": {}})));
        assert!(messages.replied(&json!({"id": "q", "result": {"roots": []}})));
        let asked = json!({"inputRequests": {
            "sure": {"method": "elicitation/create", "params": {"message": "Sure?"}},
        }});
        messages.asked(server, &asked, now);
        let params = json!({"inputResponses": {"sure": {"action": "accept"}, "other": {}}});
        assert!(messages.answered(&params));
        assert!(!messages.answered(&params));
        assert_eq!(
            messages.messages(),
            [
                json!({"server": "shop", "method": "roots/list", "answer": {"roots": []}}),
                json!({"server": "shop", "method": "notifications/message",
                       "params": {"level": "info"}}),
                json!({"server": "shop", "method": "elicitation/create",
                       "params": {"message": "Sure?"}, "answer": {"action": "accept"}}),
            ]
        );
        assert_eq!(messages.times.len(), 3);
    }
}
