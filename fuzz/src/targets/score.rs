//! Scoring: traces through every gate; partial results of the traces give the bytes of the whole.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use mcptest_gates::GATES;
use mcptest_score::{Environment, ScoreSettings, ScoreSuite, TraceInput, lines, merge, to_json};
use mcptest_trace::trace::TraceView;

/// Gates compare runs with higher numbers by their position until all runs are known.
const MAX_RUN: u64 = (1 << 22) - 2;

static SUITE: LazyLock<ScoreSuite> = LazyLock::new(|| {
    let text = include_str!("../../seeds/score-suite.yml");
    ScoreSuite::from_text("suite.yml".as_ref(), text, &Environment::new(GATES))
        .expect("the suite of the target")
});

/// Runs one input: native traces, one per line.
pub(super) fn run(input: &[u8]) {
    let settings = ScoreSettings {
        summary: true,
        threads: NonZeroUsize::new(1),
        ..ScoreSettings::default()
    };
    let Ok(whole) = SUITE.report(lines("t", 0, input), &settings) else {
        return;
    };
    super::report::check(&whole);
    let Some(traces) = traces(input) else {
        return;
    };
    // Neighbours are in different parts.
    let mut parts: [Vec<TraceInput<'_>>; 2] = [Vec::new(), Vec::new()];
    for (position, trace) in traces.into_iter().enumerate() {
        let part = &mut parts[(position + 1) % 2];
        part.extend(lines("t", position as u64, trace));
    }
    let partials = parts.into_iter().enumerate().map(|(number, part)| {
        match SUITE.partial(part, &settings, None) {
            Ok(partial) => (number.to_string(), partial),
            Err(error) => panic!("the whole can be scored, and a part cannot: {error}"),
        }
    });
    match merge(partials.collect(), &Environment::new(GATES)) {
        Ok(report) => assert_eq!(
            text(&report),
            text(&whole),
            "two parts differ from the whole"
        ),
        Err(error) => panic!("the parts cannot be merged: {error}"),
    }
}

/// The traces, if each is on a separate line and complete.
fn traces(input: &[u8]) -> Option<Vec<&[u8]>> {
    let lines = input.split(|byte| *byte == b'\n');
    let traces: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    let is_simple = |line: &&[u8]| {
        let trace = std::str::from_utf8(line).ok().map(TraceView::parse);
        let trace = trace.and_then(Result::ok);
        trace.is_some_and(|trace| trace.run.is_none_or(|run| run <= MAX_RUN))
    };
    traces.iter().all(is_simple).then_some(traces)
}

fn text(report: &mcptest_report::Report) -> String {
    let bytes = to_json(report).expect("a report in memory");
    String::from_utf8_lossy(&bytes).into_owned()
}
