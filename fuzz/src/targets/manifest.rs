//! Manifests of the mock server: problems have places, and a loaded manifest can be served.

use mcptest_mock::{MockServer, load};

use super::mock_session::assert_messages;
use crate::property::assert_located;

/// Requests that every server answers.
const SESSION: [&[u8]; 6] = [
    br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"fuzz","version":"1"}}}"#,
    br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    br#"{"jsonrpc":"2.0","id":3,"method":"resources/list"}"#,
    br#"{"jsonrpc":"2.0","id":4,"method":"prompts/list"}"#,
    br#"{"jsonrpc":"2.0","id":5,"method":"resources/templates/list"}"#,
];

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    for name in ["mock.yml", "catalog.json"] {
        match load(name, input) {
            Err(problems) => assert_located(&problems, name),
            Ok(manifest) => {
                let server = MockServer::new(manifest);
                let mut session = server.session();
                let mut out = Vec::new();
                for line in SESSION {
                    server.handle_line(&mut session, line, &mut out);
                }
                assert_messages(&out);
            }
        }
    }
}
