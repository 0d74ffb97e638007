//! What the assemblers of all dialects share.

use serde_json::{Map, Value};

use super::{Failure, FailureKind, failure};

/// The most that one streamed answer may grow to. The longest answers of today's models are a
/// hundredth of it.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The most blocks, calls or items in one streamed answer.
pub(super) const MOST_ITEMS: usize = 10_000;

/// Reads events and counts what they add up to.
#[derive(Debug, Default)]
pub(super) struct Events {
    bytes: usize,
    understood: bool,
}

impl Events {
    /// The JSON of one event.
    pub(super) fn read(&mut self, data: &str) -> Result<Value, Failure> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > MOST_BYTES {
            return Err(Failure::malformed(format!(
                "the streamed answer is longer than {MOST_BYTES} bytes"
            )));
        }
        let event = serde_json::from_str(data).map_err(|error| {
            // After events that were in order, a broken one is an accident on the way; at the
            // start, this is another dialect.
            let kind = if self.understood {
                FailureKind::Transient
            } else {
                FailureKind::Malformed
            };
            Failure::new(
                kind,
                format!("an event of the stream is not JSON ({error}): {data}"),
            )
        })?;
        self.understood = true;
        Ok(event)
    }

    /// The fields of one event, where events are pieces of the answer.
    pub(super) fn chunk(&mut self, data: &str) -> Result<Map<String, Value>, Failure> {
        let chunk = self.read(data)?;
        if let Some(failure) = failure::inside(&chunk) {
            return Err(failure);
        }
        match chunk {
            Value::Object(fields) => Ok(fields),
            other => Err(Failure::malformed(format!(
                "a chunk that is no object: {other}"
            ))),
        }
    }
}

/// The index that an event gives for what it adds to.
pub(super) fn index(event: &Value, key: &str) -> Result<usize, Failure> {
    let number = event
        .get(key)
        .and_then(Value::as_u64)
        .and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number < MOST_ITEMS).ok_or_else(|| {
        Failure::malformed(format!(
            "an event of the stream has no usable `{key}`: {event}"
        ))
    })
}

/// Lengthens the text at `key`, which may be absent or `null` so far.
pub(super) fn append(map: &mut Map<String, Value>, key: &str, more: &str) {
    match map.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            map.insert(key.to_owned(), more.into());
        }
    }
}

/// Takes over every value but `null`: a later event that does not tell takes nothing back.
pub(super) fn overlay(map: &mut Map<String, Value>, newer: &Value) {
    for (key, value) in newer.as_object().into_iter().flatten() {
        if !value.is_null() || !map.contains_key(key) {
            map.insert(key.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_event_is_an_accident_only_after_good_ones() {
        let mut events = Events::default();
        assert_eq!(
            events.read("<html>").unwrap_err().kind,
            FailureKind::Malformed
        );
        events.read("{}").unwrap();
        assert_eq!(
            events.read("{\"a\":").unwrap_err().kind,
            FailureKind::Transient
        );
    }

    #[test]
    fn a_stream_without_end_is_stopped() {
        let long = format!("\"{}\"", "x".repeat(MOST_BYTES / 4));
        let mut events = Events::default();
        let outcomes: Vec<bool> = (0..4).map(|_| events.read(&long).is_ok()).collect();
        assert_eq!(outcomes, [true, true, true, false]);
    }
}
