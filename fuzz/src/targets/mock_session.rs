//! The mock server's protocol: any lines of a client get well-formed messages.

use std::sync::LazyLock;

use mcptest_mock::{MockServer, load};
use serde_json::Value;

/// A server with every feature, and one with faults, waits and questions.
static SERVERS: LazyLock<Vec<MockServer>> = LazyLock::new(|| {
    let manifests: [&[u8]; 2] = [
        include_bytes!("../../../crates/mcptest-mock/tests/data/full.yml"),
        include_bytes!("../../../crates/mcptest-mock/tests/data/behaviour.yml"),
    ];
    let servers = manifests.iter().map(|manifest| {
        let manifest = load("mock.yml", manifest).expect("a fixture of the mock server");
        MockServer::new(manifest)
    });
    servers.collect()
});

/// Runs one input: lines of a client.
pub(super) fn run(input: &[u8]) {
    for server in SERVERS.iter() {
        let mut session = server.session();
        for line in input.split(|byte| *byte == b'\n').take(64) {
            let mut out = Vec::new();
            server.handle_line(&mut session, line, &mut out);
            let answered = assert_messages(&out);
            let asked = serde_json::from_slice::<Value>(line).ok();
            let requests = asked.map_or(1, |asked| {
                asked.as_array().map_or(1, |all| all.len().max(1))
            });
            assert!(
                answered <= requests,
                "{answered} replies to {requests} requests"
            );
            session.take_events();
        }
    }
}

/// Panics unless each line is a JSON-RPC message, or a batch of them. Returns the number of replies.
pub(super) fn assert_messages(out: &[u8]) -> usize {
    assert!(
        out.is_empty() || out.ends_with(b"\n"),
        "the last line does not end"
    );
    let mut replies = 0;
    for line in out
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let message: Value = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => panic!("{error}: {}", String::from_utf8_lossy(line)),
        };
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        for message in messages {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if message.get("method").is_none() {
                let parts = [message.get("result"), message.get("error")];
                assert_eq!(parts.iter().flatten().count(), 1, "{message}");
                assert!(message.get("id").is_some(), "{message}");
                replies += 1;
            }
        }
    }
    replies
}
