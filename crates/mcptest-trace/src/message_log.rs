//! The messages of servers during a test, kept within bounds.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::server_messages::{KEY, OMITTED_KEY};
use crate::trace::Trace;

/// The largest number of messages of a kind that are kept.
const MAX_MESSAGES: u64 = 1000;

/// The size of the largest message that is kept, and of all together.
const MAX_MESSAGE_BYTES: usize = 256 << 10;
const MAX_BYTES: usize = 4 << 20;

/// The messages of one test or session, within bounds.
#[derive(Debug, Default)]
pub struct MessageLog {
    messages: Vec<Value>,
    bytes: usize,
    /// The number of messages by kind.
    kinds: BTreeMap<&'static str, u64>,
    /// The number of messages by kind that are not kept.
    omitted: BTreeMap<&'static str, u64>,
}

impl MessageLog {
    /// The messages that are kept, in order.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Adds a message, and returns its index if it is kept.
    pub fn add(&mut self, server: &str, method: &str, params: Option<Value>) -> Option<usize> {
        let kind = kind_of(method);
        let count = self.kinds.entry(kind).or_default();
        *count += 1;
        let size = params.as_ref().map_or(0, size_of_json) + method.len();
        let fits =
            *count <= MAX_MESSAGES && size <= MAX_MESSAGE_BYTES && self.bytes + size <= MAX_BYTES;
        if !fits {
            *self.omitted.entry(kind).or_default() += 1;
            return None;
        }
        let mut message = json!({"server": server, "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.bytes += size;
        self.messages.push(message);
        Some(self.messages.len() - 1)
    }

    /// Adds the client's answer to a request, or its error.
    pub fn answer(&mut self, index: Option<usize>, answer: Result<Value, Value>) {
        let message = index.and_then(|index| self.messages.get_mut(index));
        if let Some(message) = message {
            match answer {
                Ok(answer) => message["answer"] = answer,
                Err(error) => message["error"] = error,
            }
        }
    }

    /// Moves the messages into a trace.
    pub fn finish(&mut self, trace: &mut Trace) {
        trace.extra.insert(KEY, std::mem::take(&mut self.messages));
        if let Some(omitted) = self.omitted() {
            trace.extra.insert(OMITTED_KEY, omitted);
        }
    }

    /// The number of messages by kind that are not kept, if there are any.
    #[must_use]
    pub fn omitted(&self) -> Option<Value> {
        let omitted: Map<String, Value> = self
            .omitted
            .iter()
            .map(|(kind, count)| ((*kind).to_owned(), (*count).into()))
            .collect();
        (!omitted.is_empty()).then(|| omitted.into())
    }

    /// The reason why targets with these roots cannot be judged, if messages that they select from
    /// are not kept.
    #[must_use]
    pub fn gap<'r>(&self, mut roots: impl Iterator<Item = &'r str>) -> Option<String> {
        let needs = |kind: &str, root: &str| match kind {
            "logs" => matches!(root, "logs" | "notifications"),
            "progress" => matches!(root, "progress" | "notifications"),
            "requests" => root == "client",
            _ => matches!(root, "notifications" | "updates" | "list_changed"),
        };
        let (kind, omitted) = roots.find_map(|root| {
            let mut kinds = self.omitted.iter();
            kinds.find(|(kind, _)| needs(kind, root))
        })?;
        let words = match *kind {
            "logs" => "log messages",
            "progress" => "reports of progress",
            "requests" => "requests",
            _ => "notifications",
        };
        let total = self.kinds.get(kind).copied().unwrap_or(0);
        Some(format!(
            "the server sent {total} {words}, of which {omitted} are beyond the bounds of a test \
             ({MAX_MESSAGES} messages of a kind, {} KiB each, {} MiB together), so they cannot be \
             judged",
            MAX_MESSAGE_BYTES >> 10,
            MAX_BYTES >> 20,
        ))
    }
}

/// The kind of a message, by which it is counted.
fn kind_of(method: &str) -> &'static str {
    match method {
        "notifications/message" => "logs",
        "notifications/progress" => "progress",
        other if other.starts_with("notifications/") => "notifications",
        _ => "requests",
    }
}

/// The size of a value as JSON. Only its order of magnitude matters.
fn size_of_json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(size_of_json).sum::<usize>(),
        Value::Object(map) => {
            let members = map.iter();
            2 + members
                .map(|(key, value)| key.len() + 4 + size_of_json(value))
                .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_the_bounds_are_counted_and_reported() {
        let mut log = MessageLog::default();
        for number in 0..=MAX_MESSAGES {
            let kept = log.add(
                "s",
                "notifications/message",
                Some(json!({ "data": number })),
            );
            assert_eq!(kept.is_some(), number < MAX_MESSAGES);
        }
        let large = json!({"text": "x".repeat(MAX_MESSAGE_BYTES)});
        assert_eq!(log.add("s", "sampling/createMessage", Some(large)), None);
        let roots = log.add("s", "roots/list", None);
        log.answer(roots, Ok(json!({"roots": []})));
        assert_eq!(log.gap(["result", "progress"].into_iter()), None);
        let gap = log.gap(["logs"].into_iter()).unwrap();
        assert!(gap.contains("1001 log messages, of which 1"), "{gap}");
        assert!(log.gap(["client"].into_iter()).is_some());
        let mut trace = Trace::default();
        log.finish(&mut trace);
        let kept = trace.extra[KEY].as_array().unwrap();
        assert_eq!(kept.len(), 1001);
        assert_eq!(kept[1000]["answer"], json!({"roots": []}));
        assert_eq!(trace.extra[OMITTED_KEY], json!({"logs": 1, "requests": 1}));
    }
}
