//! Carrying out one direct tool call.

use mcptest_core::trace::{ToolCall, ToolResult, Trace};
use mcptest_suite::suite::ToolTest;
use mcptest_wire::CallOutcome;
use serde_json::{Map, Value, json};

use crate::sessions::{Sessions, reply};

/// A direct call as a trace of one call, and the value that its assertions look into: the result as the server sent it, with `is_error`
/// and `text` beside it, and `error`, which is `null` when there is none.
pub(crate) async fn tool_call(test: &ToolTest, sessions: &Sessions) -> (Trace, Option<Value>) {
    let args = Value::Object(test.args.clone());
    let mut trace = Trace {
        tool_calls: vec![ToolCall {
            args: Some(args.clone()),
            ..ToolCall::new(Some(&test.server), &test.tool)
        }],
        ..Trace::default()
    };
    let session = match sessions.open(&test.server).await {
        Ok(session) => session,
        Err(error) => {
            trace.error = Some(error);
            return (trace, None);
        }
    };
    let outcome = session.call(&test.tool, &args, test.timeout).await;
    session.release().await;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            trace.error = Some(error);
            return (trace, None);
        }
    };
    let short = reply(&outcome);
    let seen = match &outcome {
        CallOutcome::Result(result) => {
            let mut result = match result {
                Value::Object(map) => map.clone(),
                other => Map::from_iter([("value".to_owned(), other.clone())]),
            };
            result.insert("is_error".to_owned(), short.is_error.into());
            result.insert("text".to_owned(), short.text().into());
            json!({"result": result, "error": null})
        }
        CallOutcome::Error(error) => json!({"result": null, "error": error}),
    };
    let mut extra = Map::new();
    if let Some(structured) = short.structured {
        extra.insert("structured_content".to_owned(), structured);
    }
    if let Some(error) = short.error {
        extra.insert("error".to_owned(), error);
    }
    trace.tool_results.push(ToolResult {
        call_id: None,
        is_error: Some(short.is_error),
        content: Some(short.content),
        extra,
    });
    (trace, Some(seen))
}
