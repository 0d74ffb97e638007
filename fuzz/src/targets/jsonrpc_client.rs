//! The client's side of JSON-RPC: any lines of a server end in events, answers and violations
//! within bounds.

use std::collections::BTreeSet;

use mcptest_wire::WireLimits;
use mcptest_wire::fuzzing::{CallEvent, ClientState};
use serde_json::Value;

use crate::property::assert_printable;

/// Runs one input: lines of a server, which answer the calls 1 to 4; the third is abandoned.
pub(super) fn run(input: &[u8]) {
    let limits = WireLimits {
        max_violations: 8,
        max_text_chars: 80,
        max_server_messages: 8,
        ..WireLimits::default()
    };
    let mut client = ClientState::new(&limits);
    let calls: Vec<u64> = (0..4).map(|_| client.call()).collect();
    client.abandon(calls[2]);
    if input.len().is_multiple_of(2) {
        client.allow_batches();
    }
    let mut replied = BTreeSet::new();
    let mut lines = input.split(|byte| *byte == b'\n').take(256).peekable();
    while let Some(line) = lines.next() {
        match line.strip_prefix(b"too long:") {
            Some(beginning) => client.line_too_long(beginning),
            None => client.line(line, lines.peek().is_some()),
        }
        for (id, event) in client.take_events() {
            match event {
                CallEvent::Reply(response) => {
                    assert_eq!(response.id, id, "the reply of another call");
                    assert_ne!(id, calls[2], "a reply to an abandoned call");
                    assert!(replied.insert(id), "a second reply to call {id}");
                }
                CallEvent::Damaged(text) | CallEvent::Failed(text) => {
                    assert!(!replied.contains(&id), "an error after the reply: {text}");
                    assert_printable(&text);
                }
            }
        }
        for sent in client.take_sent() {
            let message: Value = match serde_json::from_slice(&sent) {
                Ok(message) => message,
                Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&sent)),
            };
            assert!(sent.ends_with(b"\n") && !sent[..sent.len() - 1].contains(&b'\n'));
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            assert!(message.get("result").is_some() != message.get("error").is_some());
        }
    }
    let violations = client.violations();
    assert!(violations.len() <= limits.max_violations);
    for violation in &violations {
        assert_printable(&violation.to_string());
        assert_printable(&violation.text);
    }
    let messages = client.server_messages();
    assert!(messages.len() <= limits.max_server_messages);
    for message in messages {
        assert_printable(&message.method);
    }
}
