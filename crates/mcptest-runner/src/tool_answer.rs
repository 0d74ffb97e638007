//! The answer to a direct call: its value for assertions, and hints about a failure.

use mcptest_agent::ToolReply;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::CallOutcome;
use serde_json::{Map, Value, json};

use crate::sessions::Session;

/// The value that assertions are applied to: the result as the server sent it, with `is_error` and
/// `text` added, and `error`, which is `null` when there is none.
pub(crate) fn observe(outcome: CallOutcome, short: &ToolReply) -> Value {
    match outcome {
        CallOutcome::Result(result) => {
            let mut result = match result {
                Value::Object(map) => map,
                other => Map::from_iter([("value".to_owned(), other)]),
            };
            result.insert("is_error".to_owned(), short.is_error.into());
            result.insert("text".to_owned(), short.text().into());
            Value::Object(Map::from_iter([
                ("result".to_owned(), Value::Object(result)),
                ("error".to_owned(), Value::Null),
            ]))
        }
        CallOutcome::Error(error) => json!({"result": null, "error": error}),
    }
}

/// The hint that a server does not list a tool, with the name that was probably meant. Only needed
/// after a call failed.
pub(crate) async fn unlisted(session: &Session, server: &str, tool: &str) -> Option<String> {
    let listed = session.listing().await.ok()?;
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|entry| entry.get("name")?.as_str())
        .collect();
    if names.contains(&tool) {
        return None;
    }
    let message = format!("server `{server}` lists no tool `{tool}`");
    Some(match mcptest_suite::suggest(tool, names) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    })
}

/// An error of a test's setup or teardown.
pub(crate) fn fixture_error(message: String) -> RunError {
    RunError {
        kind: ErrorKind::Fixture,
        message,
    }
}
