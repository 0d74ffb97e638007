//! Small charts below a row: curves that are easier to see than to read.

use mcptest_trace::outcome::GateOutcome;

use crate::report::TestReport;
use crate::reporter::Style;
use crate::reporter::plots::{self, CurvePoint};
use crate::reporter::sparkline::{greatest, sparkline};

/// The number of columns of a chart. Longer curves are drawn with every second, third, … point.
const MAX_COLUMNS: usize = 40;
/// The number of values that are written beside a chart.
const MAX_VALUES: usize = 8;
/// Runs that a chart of tokens needs. Fewer are shown by their rows.
const MIN_RUNS: usize = 5;

/// The chart of a gate's curve, if it has one that is not flat.
pub(super) fn of_gate(gate: &GateOutcome) -> Option<String> {
    match gate.block.as_str() {
        "reliability" => decay(&plots::decay(gate)?.values),
        "distractors" => accuracy(&plots::distractors(gate)?),
        _ => None,
    }
}

/// The chart of the tokens of each run. It is shown where runs differ by half or more. A test may
/// have a million runs: only the columns of the chart are kept.
pub(super) fn of_tokens(test: &TestReport, style: Style) -> Option<String> {
    let runs = usize::try_from(test.runs.len()).ok()?;
    if runs < MIN_RUNS {
        return None;
    }
    let (mut least, mut most) = (u64::MAX, 0);
    let mut columns = Vec::new();
    let mut shown = places(runs, MAX_COLUMNS).peekable();
    for (at, run) in test.runs.iter().enumerate() {
        let tokens = run.tokens()?;
        (least, most) = (least.min(tokens), most.max(tokens));
        if shown.next_if_eq(&at).is_some() {
            columns.push(tokens as f64);
        }
    }
    let differ = style.verbose || most.saturating_sub(least) >= least.div_ceil(2).max(1);
    differ.then(|| {
        let chart = draw(&columns, None);
        format!("tokens by run  {chart}  {least} to {most}")
    })
}

/// `pass^k  █▆▄▃  100 75 56 42 % for k = 1 to 4`.
fn decay(percents: &[f64]) -> Option<String> {
    is_curve(percents).then(|| {
        let chart = draw(percents, Some(100.0));
        let values = listed(percents);
        format!(
            "pass^k  {chart}  {values} % for k = 1 to {}",
            percents.len()
        )
    })
}

/// `accuracy  █▆▄  100 75 50 % with 0, 5, 10 distractors`.
fn accuracy(curve: &[CurvePoint]) -> Option<String> {
    let counts: Vec<u64> = curve
        .iter()
        .map(|point| point.count)
        .collect::<Option<_>>()?;
    let percents: Vec<f64> = curve.iter().map(|point| point.accuracy).collect();
    is_curve(&percents).then(|| {
        let chart = draw(&percents, Some(100.0));
        let counts: Vec<String> = thinned(&counts, MAX_VALUES).map(u64::to_string).collect();
        format!(
            "accuracy  {chart}  {} % with {} distractors",
            listed(&percents),
            counts.join(", ")
        )
    })
}

/// Returns true if there is more to see than one value.
fn is_curve(values: &[f64]) -> bool {
    values.iter().any(|value| Some(value) != values.first())
}

/// A column per value, with the full height at `most`, or at the greatest value.
fn draw(values: &[f64], most: Option<f64>) -> String {
    let columns: Vec<Option<f64>> = thinned(values, MAX_COLUMNS).map(|it| Some(*it)).collect();
    sparkline(&columns, most.unwrap_or_else(|| greatest(&columns)))
}

fn listed(values: &[f64]) -> String {
    let values: Vec<String> = thinned(values, MAX_VALUES).map(f64::to_string).collect();
    values.join(" ")
}

/// At most `max` values at equal distances, the first and the last among them.
fn thinned<T>(values: &[T], max: usize) -> impl Iterator<Item = &T> {
    places(values.len(), max).filter_map(|at| values.get(at))
}

/// The places of at most `max` values out of `length`, in order.
fn places(length: usize, max: usize) -> impl Iterator<Item = usize> {
    let last = length.saturating_sub(1);
    let shown = length.min(max);
    // Two values at least, or all of them, so the division is by one or more.
    (0..shown).map(move |at| at * last / shown.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use mcptest_trace::verdict::Verdict;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::samples;

    #[test]
    fn a_decay_and_a_curve_are_drawn_with_their_values() {
        assert_eq!(
            decay(&[100.0, 75.0, 56.0, 0.0]).unwrap(),
            "pass^k  █▆▅▁  100 75 56 0 % for k = 1 to 4"
        );
        assert_eq!(decay(&[100.0, 100.0]), None);
        let mut gate = samples::floor(Verdict::Pass, 100);
        gate.block = "distractors".to_owned();
        let curve = json!({"curve": [
            {"count": 0, "accuracy": 100, "runs": 4}, {"count": 8, "accuracy": 75, "runs": 4},
        ]});
        gate.detail = curve.as_object().unwrap().clone().into();
        assert_eq!(
            of_gate(&gate).unwrap(),
            "accuracy  █▆  100 75 % with 0, 8 distractors"
        );
    }

    #[test]
    fn tokens_are_drawn_where_runs_differ() {
        let chart = |tokens: &[Option<u64>], verbose| {
            let mut test = samples::test("a", Some("m"), Verdict::Pass);
            let run = |(index, tokens): (u64, &Option<u64>)| {
                samples::run(index, "a", Verdict::Pass, *tokens)
            };
            test.runs = (1..).zip(tokens).map(run).collect();
            let report = samples::concluded(vec![test]);
            let style = Style {
                verbose,
                ..Style::default()
            };
            of_tokens(&report.tests[0], style)
        };
        let differ = [Some(100), Some(100), Some(800), Some(100), Some(200)];
        let drawn = "tokens by run  ▂▂█▂▃  100 to 800";
        assert_eq!(chart(&differ, false).as_deref(), Some(drawn));
        assert_eq!(chart(&differ[..4], false), None);
        assert_eq!(chart(&[Some(100); 5], false), None);
        assert!(chart(&[Some(100); 5], true).is_some());
        assert_eq!(
            chart(&[Some(1), None, Some(9), Some(1), Some(1)], true),
            None
        );
    }

    proptest! {
        #[test]
        fn thinning_keeps_the_ends_and_the_order(count in 0_usize..500, max in 2_usize..60) {
            let values: Vec<usize> = (0..count).collect();
            let kept: Vec<usize> = thinned(&values, max).copied().collect();
            prop_assert_eq!(kept.len(), count.min(max));
            prop_assert!(kept.is_sorted_by(|one, next| one < next));
            prop_assert_eq!(kept.first(), values.first());
            prop_assert_eq!(kept.last(), values.last());
        }
    }
}
