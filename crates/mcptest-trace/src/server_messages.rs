//! Messages that servers sent by themselves during a run: requests to the client, log messages,
//! progress, changes.
//!
//! A trace has them in the order of arrival under [`KEY`], as they were sent:
//! `{"server": "shop", "method": "elicitation/create", "params": {…}, "answer": {…}}`. A request
//! has the client's `answer` or `error`. Targets select from views of this list ([`view`]).

use serde_json::{Map, Value, json};

/// The key of a trace that has the messages. Without it, messages were not recorded.
pub const KEY: &str = "server_messages";

/// The key of a trace that counts messages that are not kept, by kind.
pub const OMITTED_KEY: &str = "server_messages_omitted";

/// The roots of targets that select from the messages.
pub const ROOTS: [&str; 6] = [
    "client",
    "logs",
    "progress",
    "notifications",
    "updates",
    "list_changed",
];

/// The requests of servers that clients know, with their keys in the view `client`.
pub const REQUESTS: [(&str, &str); 3] = [
    ("sampling/createMessage", "sampling"),
    ("elicitation/create", "elicitation"),
    ("roots/list", "roots"),
];

/// The view of the messages that a target's root selects; `None` for other roots.
///
/// - `client`: the requests by kind, `sampling`, `elicitation`, `roots` and `other`. Each has the
///   members of its parameters, with `server`, `answer` or `error`, and for `sampling` the `text`
///   of all messages.
/// - `logs`, `progress`: the parameters of log messages and of progress, with `server`.
/// - `notifications`: all notifications: `server`, `method`, `params`.
/// - `updates`: the URIs of resources that changed.
/// - `list_changed`: the lists that changed: `tools`, `resources`, `prompts`.
#[must_use]
pub fn view(messages: &[Value], root: &str) -> Option<Value> {
    let method = |message: &Value| {
        message
            .get("method")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let of = |wanted: &str| {
        let found = messages
            .iter()
            .filter(|one| method(one).as_deref() == Some(wanted));
        found
            .map(|message| Value::Object(members(message)))
            .collect()
    };
    Some(match root {
        "client" => client(messages),
        "logs" => of("notifications/message"),
        "progress" => of("notifications/progress"),
        "notifications" => {
            let notifications = messages.iter().filter(|one| !is_request(one));
            notifications.cloned().collect()
        }
        "updates" => {
            let updates = messages.iter().filter_map(|message| {
                let is_update = method(message)? == "notifications/resources/updated";
                message.get("params")?.get("uri").filter(|_| is_update)
            });
            updates.cloned().collect()
        }
        "list_changed" => {
            let lists = messages.iter().filter_map(|message| {
                let method = method(message)?;
                let list = method.strip_prefix("notifications/")?;
                list.strip_suffix("/list_changed").map(str::to_owned)
            });
            lists.map(Value::from).collect()
        }
        _ => return None,
    })
}

/// Returns true for a request, which has an answer.
#[must_use]
pub fn is_request(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    !method.is_some_and(|method| method.starts_with("notifications/"))
}

/// The members of the parameters, with the server.
fn members(message: &Value) -> Map<String, Value> {
    let mut members = match message.get("params") {
        Some(Value::Object(params)) => params.clone(),
        Some(other) => Map::from_iter([("params".to_owned(), other.clone())]),
        None => Map::new(),
    };
    if let Some(server) = message.get("server") {
        members.insert("server".to_owned(), server.clone());
    }
    members
}

fn client(messages: &[Value]) -> Value {
    let mut view = json!({"sampling": [], "elicitation": [], "roots": [], "other": []});
    for message in messages.iter().filter(|one| is_request(one)) {
        let method = message.get("method").and_then(Value::as_str);
        let known = REQUESTS.iter().find(|(known, _)| Some(*known) == method);
        let kind = known.map_or("other", |(_, kind)| kind);
        let mut entry = members(message);
        match kind {
            "sampling" => {
                let text = sampling_text(message.get("params"));
                entry.insert("text".to_owned(), text.into());
            }
            "other" => {
                entry.insert("method".to_owned(), method.into());
            }
            _ => {}
        }
        for key in ["answer", "error"] {
            if let Some(value) = message.get(key) {
                entry.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(entries) = view.get_mut(kind).and_then(Value::as_array_mut) {
            entries.push(entry.into());
        }
    }
    view
}

/// The text of all messages of a request for sampling, joined by line ends. The content of a
/// message is a block, or a list of blocks.
#[must_use]
pub fn sampling_text(params: Option<&Value>) -> String {
    let messages = params.and_then(|params| params.get("messages")?.as_array());
    let mut texts = Vec::new();
    for message in messages.into_iter().flatten() {
        match message.get("content") {
            Some(Value::Array(blocks)) => {
                texts.extend(
                    blocks
                        .iter()
                        .filter_map(|block| block.get("text")?.as_str()),
                );
            }
            Some(block) => texts.extend(block.get("text").and_then(Value::as_str)),
            None => {}
        }
    }
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Value> {
        let block = |text: &str| json!({"type": "text", "text": text});
        let asked = json!([
            {"role": "user", "content": block("Hi")},
            {"role": "user", "content": [block("a"), {"type": "image"}, block("b")]},
        ]);
        vec![
            json!({"server": "s", "method": "roots/list", "answer": {"roots": []}}),
            json!({"server": "s", "method": "notifications/message",
                   "params": {"level": "info", "data": "x"}}),
            json!({"server": "s", "method": "sampling/createMessage",
                   "params": {"messages": asked, "maxTokens": 5},
                   "error": {"code": -1, "message": "no"}}),
            json!({"server": "s", "method": "notifications/progress",
                   "params": {"progress": 1, "total": 2}}),
            json!({"server": "s", "method": "notifications/resources/updated",
                   "params": {"uri": "test://a"}}),
            json!({"server": "s", "method": "notifications/tools/list_changed"}),
            json!({"server": "s", "method": "odd/method", "params": [1]}),
        ]
    }

    #[test]
    fn messages_are_viewed_by_kind() {
        let messages = messages();
        let view = |root: &str| view(&messages, root).unwrap();
        let client = view("client");
        assert_eq!(client["sampling"][0]["text"], "Hi\na\nb");
        assert_eq!(client["sampling"][0]["maxTokens"], 5);
        assert_eq!(client["sampling"][0]["error"]["code"], -1);
        assert_eq!(
            client["roots"],
            json!([{"server": "s", "answer": {"roots": []}}])
        );
        assert_eq!(client["elicitation"], json!([]));
        assert_eq!(
            client["other"],
            json!([{"params": [1], "server": "s", "method": "odd/method"}])
        );
        assert_eq!(
            view("logs"),
            json!([{"level": "info", "data": "x", "server": "s"}])
        );
        assert_eq!(view("progress")[0]["total"], 2);
        assert_eq!(view("updates"), json!(["test://a"]));
        assert_eq!(view("list_changed"), json!(["tools"]));
        assert_eq!(view("notifications").as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn every_root_has_a_view_even_of_nothing() {
        for root in ROOTS {
            assert!(view(&[], root).is_some(), "{root}");
        }
        assert_eq!(view(&[], "result"), None);
        // Hostile entries have no effect.
        let odd = [json!(7), json!({}), json!({"method": 3})];
        for root in ROOTS {
            assert!(view(&odd, root).is_some(), "{root}");
        }
    }
}
