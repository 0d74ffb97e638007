//! Getting the catalog of one server, for the tests that judge it.

use mcptest_suite::suite::ToolQualityTest;
use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::sessions::Sessions;

/// What the server lists, entry by entry as sent: a malformed one is evidence too. The trace holds
/// nothing but an error, if there was one.
pub(crate) async fn tool_list(
    test: &ToolQualityTest,
    sessions: &Sessions,
) -> (Trace, Option<Value>) {
    let listed = async {
        let session = sessions.open(&test.server).await?;
        let listed = session.listing().await;
        session.release().await;
        listed
    };
    match listed.await {
        Ok(listed) => (Trace::default(), Some(Value::Array(listed))),
        Err(error) => {
            let trace = Trace {
                error: Some(error),
                ..Trace::default()
            };
            (trace, None)
        }
    }
}
