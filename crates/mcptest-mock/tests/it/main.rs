//! Tests of the mock server through its public interface.
//!
//! - `load`: loading of manifests, and the messages for invalid files
//! - `golden`: messages and replies, for every revision
//! - `attacks`: hostile texts in answers
//! - `captured`: catalogs of real servers
//! - `database`: tables, and tools that are SQL statements
//! - `faults`: late and missing answers, cancellation
//! - `http`: sessions, streams, refusals, headers
//! - `interactive`: answers that depend on the client: requests to it, subscriptions, tasks
//! - `presets`: the bundled catalogs
//! - `stdio`: lines, bounds and ends of streams
//! - `properties`: properties of any input
//! - `official_client`: the official Rust SDK as a client of a mock process

mod attacks;
mod captured;
#[cfg(feature = "database")]
mod database;
mod faults;
mod golden;
mod http;
mod interactive;
mod load;
mod official_client;
mod presets;
mod properties;
mod stdio;

use mcptest_mock::{Manifest, MockServer, load};
use serde_json::Value;

/// The path of a test data file.
fn data(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn load_data(name: &str) -> Manifest {
    let bytes = std::fs::read(data(name)).expect("a readable file");
    load(name, &bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn server(name: &str) -> MockServer {
    MockServer::new(load_data(name))
}

/// The replies to these lines on a new session.
fn answer(server: &MockServer, lines: &[&str]) -> Vec<Value> {
    let mut session = server.session();
    let mut out = Vec::new();
    for line in lines {
        server.handle_line(&mut session, line.as_bytes(), &mut out);
    }
    let text = String::from_utf8(out).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
