//! Parts that the readers of agents' logs share: events, one per line.

use std::collections::HashMap;

use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::builder::TraceBuilder;
use crate::content::string;
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::Detection;

/// An event with its document and its JSON pointer there.
#[derive(Clone)]
pub(crate) struct Event<'v> {
    pub document: &'v Document,
    pub value: &'v Value,
    pub source: String,
}

impl Event<'_> {
    /// The string of a key.
    pub fn string(&self, key: &str) -> Option<&str> {
        string(self.value, key)
    }
}

/// The events of an input: one per document, or the elements of a document that is an array.
///
/// # Errors
/// An event is not an object.
pub(crate) fn events<'v>(
    format: &'static str,
    input: &'v Input<'_>,
) -> Result<Vec<Event<'v>>, FormatError> {
    let mut events = Vec::new();
    for document in input.documents() {
        let items = match &document.value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for (at, value) in items.iter().enumerate() {
            document.object(format, value)?;
            let source = if document.value.is_array() {
                format!("/{at}")
            } else {
                String::new()
            };
            events.push(Event {
                document,
                value,
                source,
            });
        }
    }
    Ok(events)
}

/// Detects a log of events: all are objects with a string `type`, and one has a mark of the format.
pub(crate) fn detect(input: &Input<'_>, is_mark: impl Fn(&Value) -> bool) -> Detection {
    detect_events(input, |event| string(event, "type").is_some(), is_mark)
}

/// Detects a log of events by what all events must be, and by what one of them must be.
pub(crate) fn detect_events(
    input: &Input<'_>,
    is_event: impl Fn(&Value) -> bool,
    is_mark: impl Fn(&Value) -> bool,
) -> Detection {
    let Ok(events) = events("", input) else {
        return Detection::No;
    };
    if events.iter().any(|event| !is_event(event.value)) {
        return Detection::No;
    }
    if events.iter().any(|event| is_mark(event.value)) {
        Detection::Match
    } else {
        Detection::No
    }
}

/// Events by a key, in the order in which each group starts.
pub(crate) fn groups<'v>(
    events: Vec<Event<'v>>,
    mut key: impl FnMut(&Event<'v>) -> String,
) -> Vec<Vec<Event<'v>>> {
    let mut groups: Vec<Vec<Event<'v>>> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    for event in events {
        let at = *place.entry(key(&event)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.push(event);
        }
    }
    groups
}

/// Records that the agent's provider failed.
pub(crate) fn provider_failed(builder: &mut TraceBuilder, status: Option<u64>, message: &str) {
    let kind = match status {
        Some(401 | 403) => ErrorKind::Auth,
        Some(429) => ErrorKind::RateLimit,
        Some(408 | 504) => ErrorKind::Timeout,
        _ => ErrorKind::Provider,
    };
    builder.error(RunError {
        kind,
        message: message.to_owned(),
    });
}

/// Records that the log ends before the run does.
pub(crate) fn incomplete(builder: &mut TraceBuilder, missing: &str) {
    builder.error(RunError {
        kind: ErrorKind::Transport,
        message: format!(
            "the log has no {missing}: the agent was ended, or its output was cut off"
        ),
    });
}

/// The name of a server as agents write it in the names of tools: other characters than letters,
/// digits, `_` and `-` become `_`.
pub(crate) fn sanitized(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

/// Sets the part of a result that has a structured form beside its text.
pub(crate) fn structured(value: Option<&Value>) -> Vec<(&'static str, Value)> {
    match value {
        Some(value) if !value.is_null() => vec![("structured_content", value.clone())],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_must_be_one_and_one_must_have_a_mark() {
        let detected = |text: &str| {
            let input = Input::parse(text.as_bytes()).unwrap();
            detect(&input, |event| event.get("mark").is_some())
        };
        assert_eq!(
            detected("{\"type\":\"a\"}\n{\"type\":\"b\",\"mark\":1}"),
            Detection::Match
        );
        assert_eq!(detected("[{\"type\":\"a\",\"mark\":1}]"), Detection::Match);
        assert_eq!(
            detected("{\"type\":\"a\"}\n{\"type\":\"b\"}"),
            Detection::No
        );
        assert_eq!(detected("{\"mark\":1}\n{\"type\":\"b\"}"), Detection::No);
        assert_eq!(detected("{\"type\":\"a\",\"mark\":1}\n7"), Detection::No);
    }

    #[test]
    fn names_of_servers_in_names_of_tools() {
        assert_eq!(sanitized("my.server/é-1_x"), "my_server__-1_x");
    }
}
