//! The gate `narrative:`: any closing message compared with calls. The input is a native trace, or
//! the message alone.

use std::sync::LazyLock;

use mcptest_narrative::{Narrative, score_narrative};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{Trace, TraceView, read};

/// Calls that messages are compared with.
static CALLS: LazyLock<Trace> = LazyLock::new(|| {
    let text = r#"{"tool_calls":[{"id":"1","name":"create_issue","server":"github","args":{"title":"Login fails","labels":["bug"],"number":7}},{"id":"2","name":"send_email","args":{"to":"ann@example.org","subject":"Report","amount":12.5,"date":"2025-03-01"}},{"id":"3","name":"delete_file","args":{"path":"/tmp/a.txt"}}],"tool_results":[{"call_id":"1","content":"created #7"},{"call_id":"2","is_error":true,"content":"refused"}]}"#;
    TraceView::parse(text)
        .expect("the calls of the target")
        .into_owned()
});

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if text.len() > 64 * 1024 {
        return;
    }
    for trace in read(text).into_iter().flatten().take(8) {
        check(&trace);
    }
    let mut trace = CALLS.clone();
    trace.final_response = Some(text.to_owned().into());
    check(&trace);
}

fn check(trace: &Trace) {
    let servers: KnownServers = ["github"].into_iter().collect();
    let rules = Narrative::default();
    let found = score_narrative(&rules, trace, &servers);
    assert!((0.0..=1.0).contains(&found.score()), "{found:?}");
    assert_eq!(found.passes(Some(1.0)), found.passes(None));
    let again = score_narrative(&rules, trace, &servers);
    assert_eq!(format!("{found:?}"), format!("{again:?}"), "undecided");
}
