//! Shared parts of the assemblers.

use serde_json::{Map, Value};

use super::api_error::{self, ApiError, ApiErrorKind};

/// The largest streamed answer. The longest answers of today's models are a hundredth of it.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The limit of blocks, calls or items in one streamed answer.
pub(super) const MAX_ITEMS: usize = 10_000;

/// Parses events and limits their total size.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    bytes: usize,
    any_valid: bool,
}

impl EventReader {
    /// Parses one event.
    pub(super) fn read(&mut self, data: &str) -> Result<Value, ApiError> {
        self.bytes = self.bytes.saturating_add(data.len());
        if self.bytes > MAX_BYTES {
            return Err(ApiError::malformed(format!(
                "the streamed answer is longer than {MAX_BYTES} bytes"
            )));
        }
        let event = serde_json::from_str(data).map_err(|error| {
            // After valid events, an invalid one is a transmission error; as the first event, it
            // means another API.
            let kind = if self.any_valid {
                ApiErrorKind::Transient
            } else {
                ApiErrorKind::Malformed
            };
            ApiError::new(
                kind,
                format!("an event of the stream is not valid JSON ({error}): {data}"),
            )
        })?;
        self.any_valid = true;
        Ok(event)
    }

    /// Parses an event that is a chunk of the answer.
    pub(super) fn chunk(&mut self, data: &str) -> Result<Map<String, Value>, ApiError> {
        let chunk = self.read(data)?;
        if let Some(error) = api_error::inside(&chunk) {
            return Err(error);
        }
        match chunk {
            Value::Object(fields) => Ok(fields),
            other => Err(ApiError::malformed(format!(
                "a chunk that is not an object: {other}"
            ))),
        }
    }
}

/// Returns the index in an event.
pub(super) fn index(event: &Value, key: &str) -> Result<usize, ApiError> {
    let number = event
        .get(key)
        .and_then(Value::as_u64)
        .and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number < MAX_ITEMS).ok_or_else(|| {
        ApiError::malformed(format!(
            "an event of the stream has no usable `{key}`: {event}"
        ))
    })
}

/// Appends to the string at `key`, which may be absent or `null`.
pub(super) fn append(map: &mut Map<String, Value>, key: &str, more: &str) {
    match map.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            map.insert(key.to_owned(), more.into());
        }
    }
}

/// Copies every value except `null`, which never overwrites an earlier value.
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
    fn an_invalid_event_is_transient_only_after_valid_ones() {
        let mut events = EventReader::default();
        assert_eq!(
            events.read("<html>").unwrap_err().kind,
            ApiErrorKind::Malformed
        );
        events.read("{}").unwrap();
        assert_eq!(
            events.read("{\"a\":").unwrap_err().kind,
            ApiErrorKind::Transient
        );
    }

    #[test]
    fn the_size_of_a_stream_is_limited() {
        let long = format!("\"{}\"", "x".repeat(MAX_BYTES / 4));
        let mut events = EventReader::default();
        let outcomes: Vec<bool> = (0..4).map(|_| events.read(&long).is_ok()).collect();
        assert_eq!(outcomes, [true, true, true, false]);
    }
}
