use super::*;

fn observed(traces: &[&str]) -> Stats {
    let mut stats = TraceStats::default();
    for text in traces {
        stats.observe(&TraceView::parse(text).unwrap());
    }
    stats.finish()
}

const TRACES: &[&str] = &[
    r#"{"test": "a", "model": "gpt-4o", "tool_calls": [
         {"id": 1, "name": "get", "server": "w", "args": {"a": 1, "b": 2}},
         {"id": 2, "name": "get", "server": "w", "args": {"b": 2, "a": 1}},
         {"id": 3, "name": "put"}],
       "tool_results": [
         {"call_id": 1, "is_error": true, "error_kind": "timeout"},
         {"call_id": 2, "is_error": false}],
       "conversation": {"tokens": {"input": 1000000, "output": 0, "total": 1000000}}}"#,
    r#"{"test": "a", "tool_calls": [{"name": "put"}], "tool_results": [{"is_error": true}],
       "conversation": {"tokens": {"total": 11}}}"#,
    r#"{"tool_calls": [], "error": {"kind": "timeout", "message": "x"}}"#,
];

#[test]
fn figures_of_calls_tools_errors_and_repeats() {
    let stats = observed(TRACES);
    assert_eq!((stats.traces, stats.failed_runs), (3, 1));
    assert_eq!(stats.tests, BTreeMap::from([("a".to_owned(), 2)]));
    let calls = Spread {
        traces: 3,
        sum: 4,
        min: 0,
        median: 1,
        p95: 3,
        max: 3,
    };
    assert_eq!(stats.calls, Some(calls));
    assert_eq!((stats.errors, stats.unanswered), (2, 1));
    assert_eq!(
        stats.error_kinds,
        BTreeMap::from([("timeout".to_owned(), 1)])
    );
    // Arguments are compared by value: the order of keys does not matter.
    assert_eq!((stats.repeated_calls, stats.traces_with_repeats), (1, 1));
    let tools: Vec<_> = stats
        .tools
        .iter()
        .map(|it| (it.tool.as_str(), it.calls, it.traces))
        .collect();
    assert_eq!(tools, [("put", 2, 2), ("w.get", 2, 1)]);
}

#[test]
fn unknown_tokens_and_prices_are_counted_not_guessed() {
    let stats = observed(TRACES);
    let total = Spread {
        traces: 2,
        sum: 1_000_011,
        min: 11,
        median: 500_005,
        p95: 1_000_000,
        max: 1_000_000,
    };
    assert_eq!(stats.total_tokens, Some(total));
    assert_eq!((stats.unknown_tokens, stats.unknown_cost), (1, 2));
    let price = Prices::builtin()
        .find("gpt-4o")
        .unwrap()
        .most(1_000_000, 0)
        .to_f64();
    assert_eq!(stats.cost_usd, Some(price));
    let text = stats.to_text();
    assert!(
        text.contains("errors          2 (50 % of calls), 1 timeout"),
        "{text}"
    );
    assert!(
        text.contains("repeated calls  1 (25 % of calls), in 1 trace"),
        "{text}"
    );
    assert!(text.contains("unknown in 1 trace"), "{text}");
}

#[test]
fn no_traces_have_no_spread() {
    let stats = observed(&[]);
    assert_eq!(stats.calls, None);
    assert!(stats.to_text().contains("unknown"));
}

#[test]
fn quantiles_are_exact() {
    let mut histogram = Histogram::default();
    for value in 1..=100 {
        histogram.add(value);
    }
    let spread = histogram.spread().unwrap();
    assert_eq!(
        (spread.min, spread.median, spread.p95, spread.max),
        (1, 50, 95, 100)
    );
}
