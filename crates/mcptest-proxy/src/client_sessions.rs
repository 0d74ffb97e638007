//! The sessions of one client in one trace file.
//!
//! Some agents start a server for each call, or several servers in parallel, and each start is a
//! separate proxy. Those that have the same client add to one trace; the trace of an earlier client
//! is replaced. The key `recording` of the trace names the client and counts its sessions. Calls of
//! later sessions have the key `connection`, and ids that no other session uses.

use mcptest_trace::server_messages;
use mcptest_trace::verdict::ErrorKind;
use serde_json::{Map, Value, json};

/// The key of the trace that names the client.
const RECORDING: &str = "recording";

/// The key of calls and results of sessions after the first.
const CONNECTION: &str = "connection";

/// One session of a client.
#[derive(Debug)]
pub(crate) struct ClientSession {
    client: String,
    server: Option<String>,
    /// The number of the session, from 1. Known after the first merge.
    number: Option<u64>,
}

impl ClientSession {
    /// A session of the process that started this one.
    pub(crate) fn of_parent(server: Option<String>) -> Self {
        let parent = std::os::unix::process::parent_id();
        // Numbers of processes are used again.
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat")).unwrap_or_default();
        let started = stat
            .rsplit_once(')')
            .and_then(|(_, fields)| fields.split_whitespace().nth(19));
        let client = match started {
            Some(started) => format!("{parent}-{started}"),
            None => parent.to_string(),
        };
        Self {
            client,
            server,
            number: None,
        }
    }

    /// Adds the trace of this session to the file's. `own` replaces what this session added before.
    pub(crate) fn merge(&mut self, file: Option<Value>, own: Value) -> Value {
        let client = |file: &Value| file[RECORDING]["client"] == self.client.as_str();
        let file = file.filter(client);
        let sessions = |file: &Value| file[RECORDING]["sessions"].as_u64().unwrap_or(1);
        let count = file.as_ref().map_or(0, sessions);
        let number = *self.number.get_or_insert(count + 1);
        let count = count.max(number);
        let mut merged = match (file, own) {
            (Some(Value::Object(file)), Value::Object(own)) if count > 1 => {
                self.merge_traces(file, own, number)
            }
            (_, Value::Object(own)) => own,
            (_, own) => return own,
        };
        let recording = json!({"client": self.client, "sessions": count});
        merged.insert(RECORDING.to_owned(), recording);
        Value::Object(merged)
    }

    fn merge_traces(
        &self,
        mut file: Map<String, Value>,
        mut own: Map<String, Value>,
        number: u64,
    ) -> Map<String, Value> {
        let is_own = |entry: &Value| entry[CONNECTION].as_u64().unwrap_or(1) == number;
        let mut new_calls = marked(&mut own, "tool_calls", "id", number).into_iter();
        let mut calls: Vec<Value> = take_list(&mut file, "tool_calls")
            .into_iter()
            .filter_map(|call| match is_own(&call) {
                true => new_calls.next(),
                false => Some(call),
            })
            .collect();
        calls.extend(new_calls);
        let mut results = take_list(&mut file, "tool_results");
        results.retain(|result| !is_own(result));
        results.extend(marked(&mut own, "tool_results", "call_id", number));
        let listed = own.contains_key("catalog");
        for (key, id) in [
            ("catalog", &["server", "name"][..]),
            ("distractors", &[][..]),
        ] {
            let mut all = take_list(&mut file, key);
            for new in take_list(&mut own, key) {
                let same = |old: &Value| match id {
                    [] => *old == new,
                    id => id.iter().all(|part| old[part] == new[part]),
                };
                if !all.iter().any(same) {
                    all.push(new);
                }
            }
            if !all.is_empty() {
                own.insert(key.to_owned(), all.into());
            }
        }
        let mut messages = take_list(&mut file, server_messages::KEY);
        messages.retain(|message| !is_own(message));
        let mut own_messages = take_list(&mut own, server_messages::KEY);
        if number > 1 {
            for message in &mut own_messages {
                message[CONNECTION] = number.into();
            }
        }
        messages.extend(own_messages);
        if !messages.is_empty() {
            own.insert(server_messages::KEY.to_owned(), messages.into());
        }
        // A server that came up at a later start is not missing.
        let error = file.get("error").filter(|error| {
            !(listed
                && error["kind"] == ErrorKind::ServerMissing.as_str()
                && error["message"]
                    .as_str()
                    .is_some_and(|text| text.starts_with(&subject(self.server.as_deref()))))
        });
        if let (Some(error), false) = (error, own.contains_key("error")) {
            own.insert("error".to_owned(), error.clone());
        }
        if file.get("truncated").is_some() {
            own.insert("truncated".to_owned(), true.into());
        }
        // Present, and false, only while no session has listed or called a tool.
        if !file.contains_key("tools_listed") {
            own.remove("tools_listed");
        }
        own.insert("tool_calls".to_owned(), calls.into());
        if !results.is_empty() {
            own.insert("tool_results".to_owned(), results.into());
        }
        own
    }
}

/// The server, as the subject of a message.
pub(crate) fn subject(server: Option<&str>) -> String {
    server.map_or_else(
        || "the server ".to_owned(),
        |server| format!("server `{server}` "),
    )
}

fn take_list(trace: &mut Map<String, Value>, key: &str) -> Vec<Value> {
    match trace.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The calls or results of a session, with its number if it is not the first.
fn marked(trace: &mut Map<String, Value>, key: &str, id: &str, number: u64) -> Vec<Value> {
    let mut list = take_list(trace, key);
    if number > 1 {
        for entry in &mut list {
            let shown = match &entry[id] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            entry[id] = format!("{number}.{shown}").into();
            entry[CONNECTION] = number.into();
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(client: &str, server: &str) -> ClientSession {
        ClientSession {
            client: client.to_owned(),
            server: Some(server.to_owned()),
            number: None,
        }
    }

    fn trace(ids: &[u64]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "name": "a"}))
            .collect();
        let results: Vec<Value> = ids.iter().map(|id| json!({"call_id": id})).collect();
        json!({"tool_calls": calls, "tool_results": results,
               "catalog": [{"server": "s", "name": "a"}]})
    }

    fn ids(trace: &Value, key: &str, id: &str) -> Vec<String> {
        let list = trace[key].as_array().unwrap();
        list.iter().map(|entry| entry[id].to_string()).collect()
    }

    #[test]
    fn sessions_of_one_client_are_one_trace_in_the_order_of_the_calls() {
        let (mut first, mut second) = (session("c", "s"), session("c", "s"));
        let file = first.merge(None, trace(&[1]));
        assert_eq!(ids(&file, "tool_calls", "id"), ["1"]);
        let file = second.merge(Some(file), trace(&[1]));
        let file = first.merge(Some(file), trace(&[1, 2]));
        let file = second.merge(Some(file), trace(&[1, 2]));
        let expected = ["1", "\"2.1\"", "2", "\"2.2\""];
        assert_eq!(ids(&file, "tool_calls", "id"), expected);
        let expected = ["1", "2", "\"2.1\"", "\"2.2\""];
        assert_eq!(ids(&file, "tool_results", "call_id"), expected);
        assert_eq!(file["catalog"].as_array().unwrap().len(), 1);
        assert_eq!(file["recording"]["sessions"], 2);
    }

    #[test]
    fn the_trace_of_another_client_is_replaced() {
        let file = session("earlier", "s").merge(None, trace(&[1, 2]));
        let file = session("later", "s").merge(Some(file), trace(&[7]));
        assert_eq!(ids(&file, "tool_calls", "id"), ["7"]);
        assert_eq!(file["recording"]["sessions"], 1);
    }

    #[test]
    fn an_error_stays_unless_its_server_came_up_later() {
        let missing = json!({"tool_calls": [], "tools_listed": false,
            "error": {"kind": "server_missing", "message": "server `s` did not start"}});
        let file = session("c", "s").merge(None, missing.clone());
        let other = session("c", "other").merge(Some(file.clone()), trace(&[1]));
        assert_eq!(other["error"], missing["error"]);
        assert!(other.get("tools_listed").is_none());
        let same = session("c", "s").merge(Some(file), trace(&[1]));
        assert!(same.get("error").is_none());
    }
}
