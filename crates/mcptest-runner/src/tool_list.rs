//! Listing the tools of one server, for the tests that judge its catalog.

use mcptest_suite::suite::ToolQualityTest;
use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::sessions::{Sessions, StartupTime};

/// Lists the tools of a server, each entry as sent: a malformed one is evidence, too. The trace
/// holds only an error, if there was one.
pub(crate) async fn tool_list(
    test: &ToolQualityTest,
    sessions: &Sessions,
    startup: &StartupTime,
) -> (Trace, Option<Vec<Value>>) {
    let listed = async {
        let session = sessions.open_for(&test.server, None, startup).await?;
        let listed = session.listing().await;
        session.release().await;
        listed
    };
    match listed.await {
        Ok(listed) => (Trace::default(), Some(listed)),
        Err(error) => {
            let trace = Trace {
                error: Some(error),
                ..Trace::default()
            };
            (trace, None)
        }
    }
}
