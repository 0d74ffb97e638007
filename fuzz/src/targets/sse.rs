//! Server-sent events: the chunks of a stream do not matter.

use mcptest_http::sse::{Event, Parser};

use crate::property::chunks;

const LIMIT: usize = 4096;

/// Everything that a stream gives.
type Parsed = (Vec<Event>, bool, Option<String>, Option<u64>, bool);

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let whole = parse(std::iter::once(input));
    assert_eq!(parse(chunks(input)), whole, "in chunks");
    assert_eq!(parse(input.chunks(1)), whole, "byte by byte");
    let (events, ..) = whole;
    for event in events {
        assert!(event.has_data && event.data.len() <= LIMIT);
        assert!(!event.kind.contains(['\n', '\r']));
    }
}

fn parse<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Parsed {
    let mut parser = Parser::new(LIMIT);
    let mut events = Vec::new();
    let outcome = chunks
        .into_iter()
        .try_for_each(|chunk| parser.push(chunk, &mut events));
    let is_too_long = outcome.is_err();
    // After an error the state is of no interest.
    let is_mid_event = !is_too_long && parser.is_mid_event();
    (
        events,
        is_too_long,
        parser.last_id,
        parser.retry_ms,
        is_mid_event,
    )
}
