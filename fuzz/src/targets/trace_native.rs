//! Native traces: the quick reader gives what the thorough one gives, and what is written reads
//! back.

use mcptest_trace::trace::{Trace, TraceView, read, read_sequence, views};

/// Runs one input.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let one = serde_json::from_str::<Trace>(text);
    match (TraceView::parse(text), &one) {
        (Ok(view), Ok(trace)) => assert_eq!(view, *trace, "the two readers disagree"),
        (Err(error), Err(_)) => assert!(error.line > 0, "without a place: {error}"),
        (view, trace) => panic!("only one reader accepts it: {view:?}, {trace:?}"),
    }
    let sequence: Result<Vec<TraceView<'_>>, _> = views(text).collect();
    match (sequence, read_sequence(text)) {
        (Ok(views), Ok(traces)) => assert_eq!(views, traces, "the two readers disagree"),
        (Err(view), Err(trace)) => assert_eq!(view, trace, "the errors differ"),
        (views, traces) => panic!("only one reader accepts it: {views:?}, {traces:?}"),
    }
    for trace in read(text).into_iter().flatten() {
        reads_back(&trace);
        let results = trace.pair_results();
        assert_eq!(results.len(), trace.tool_calls.len());
        let count = trace.tool_results.len();
        assert!(results.iter().flatten().all(|result| *result < count));
        let _ = (trace.final_text(), trace.total_tokens());
        let _ = trace.observable().to_value();
    }
}

/// Panics unless a trace is the same after it was written, in both ways.
pub(super) fn reads_back(trace: &Trace) {
    let text = trace.to_json();
    match TraceView::parse(&text) {
        Ok(again) => assert_eq!(again, *trace, "differs after it was written: {text}"),
        Err(error) => panic!("cannot be read back: {error}: {text}"),
    }
    let other = serde_json::to_string(trace).unwrap_or_default();
    assert_eq!(text, other, "two writers");
}
