//! A bounded parser for server-sent events.

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `event` field; empty means `message`.
    pub kind: String,
    /// The `data` fields, joined by newlines.
    pub data: Vec<u8>,
    /// True if there was a `data` field, even an empty one.
    pub has_data: bool,
}

/// The state between two chunks of a stream.
#[derive(Debug)]
pub struct Parser {
    line: Vec<u8>,
    event: Event,
    /// The bytes of the event so far, counted against the limit.
    size: usize,
    max_bytes: usize,
    /// The last byte was a CR, so a following LF belongs to it.
    after_cr: bool,
    at_start: bool,
    /// The last `id` field; a resumed stream continues after it.
    pub last_id: Option<String>,
    /// The last `retry` field, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// An event above the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than the limit")]
pub struct TooLong;

impl Parser {
    /// Creates a parser that rejects events of more than `max_bytes`.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            size: 0,
            max_bytes,
            after_cr: false,
            at_start: true,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Parses a chunk and appends the events that it completes.
    ///
    /// # Errors
    /// An event above the limit.
    pub fn push(&mut self, mut chunk: &[u8], events: &mut Vec<Event>) -> Result<(), TooLong> {
        while !chunk.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if let Some(rest) = chunk.strip_prefix(b"\n") {
                    chunk = rest;
                    continue;
                }
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let taken = end.unwrap_or(chunk.len());
            self.size += taken;
            if self.size > self.max_bytes {
                return Err(TooLong);
            }
            self.line.extend_from_slice(&chunk[..taken]);
            let Some(end) = end else {
                return Ok(());
            };
            self.after_cr = chunk[end] == b'\r';
            chunk = &chunk[end + 1..];
            self.end_line(events);
        }
        Ok(())
    }

    /// Returns true if the stream stopped in the middle of an event.
    #[must_use]
    pub fn is_mid_event(&self) -> bool {
        !self.line.is_empty() || self.event.has_data
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            self.size = 0;
            let event = std::mem::take(&mut self.event);
            if event.has_data {
                events.push(event);
            }
            return;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => {
                // A comment, which keeps a connection open; comments do not count as a long event.
                self.size = self.size.saturating_sub(line.len());
                return;
            }
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[..0]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.event.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
                self.event.has_data = true;
            }
            b"event" => self.event.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.last_id =
                    Some(String::from_utf8_lossy(value).into_owned()).filter(|id| !id.is_empty());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry_ms = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> (Vec<Event>, Parser) {
        let mut parser = Parser::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut events).expect("within the limit");
        }
        (events, parser)
    }

    fn data(events: &[Event]) -> Vec<String> {
        events
            .iter()
            .map(|event| String::from_utf8_lossy(&event.data).into_owned())
            .collect()
    }

    #[test]
    fn parses_fields_as_the_standard_requires() {
        let (events, parser) = parse(&[
            b"\xef\xbb\xbf: hello\n\nevent: message\nid: 7\ndata: a\ndata:b\n\n\
              retry: 250\nid: 8\ndata\n\nunknown: x\n\n",
        ]);
        assert_eq!(data(&events), ["a\nb", ""]);
        assert_eq!(events[0].kind, "message");
        assert_eq!(events[1].kind, "");
        assert_eq!(parser.last_id.as_deref(), Some("8"));
        assert_eq!(parser.retry_ms, Some(250));
        assert!(!parser.is_mid_event());
    }

    #[test]
    fn all_line_ends_are_line_ends() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: a{end}data: b{end}{end}data: c{end}{end}");
            assert_eq!(data(&parse(&[text.as_bytes()]).0), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn an_unfinished_event_is_not_returned() {
        let (events, parser) = parse(&[b"data: {\"jsonrpc\""]);
        assert!(events.is_empty());
        assert!(parser.is_mid_event());
        let (events, parser) = parse(&[b"data: x\n"]);
        assert!(events.is_empty());
        assert!(parser.is_mid_event());
    }

    #[test]
    fn a_long_event_is_rejected_and_comments_do_not_add_up() {
        let mut parser = Parser::new(20);
        let mut events = Vec::new();
        for _ in 0..100 {
            parser
                .push(b": keep-alive\n", &mut events)
                .expect("comments");
        }
        parser.push(b"data: 12345\n\n", &mut events).expect("short");
        assert_eq!(
            parser.push(b"data: 1234567\ndata: 1234567\n", &mut events),
            Err(TooLong)
        );
    }

    proptest! {
        /// The network may split a stream anywhere.
        #[test]
        fn chunk_boundaries_do_not_matter(
            text in "(data: [a-c]{0,3}|:x|id: [0-9]|\r\n|\n|\r){0,30}",
            cut in 0usize..200,
        ) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let (whole, _) = parse(&[bytes]);
            let (parts, _) = parse(&[&bytes[..cut], &bytes[cut..]]);
            prop_assert_eq!(whole, parts);
        }
    }
}
