//! The points of a test's plots, taken from the outcomes of its gates.

use mcptest_catalog::tokens;
use mcptest_numbers::statistics::{Z_95, wilson};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::Trace;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::TestReport;
use crate::store::StoreError;

/// The number of runs whose catalog may be the one that a gate counted.
const MAX_CATALOGS: usize = 20;

/// The points of all plots of a test. A plot without points is absent.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Plots {
    /// Accuracy by the number of injected distractors.
    #[serde(skip_serializing_if = "Option::is_none")]
    distractors: Option<Vec<CurvePoint>>,
    /// pass^k for k = 1, 2, …, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    decay: Option<Decay>,
    /// The rate at which the expected tool was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<Rate>,
    /// The sub-scores of stability, 0 to 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stability: Vec<(String, f64)>,
    /// The tokens of each offered tool, the most expensive first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    catalog: Vec<(String, u64)>,
}

/// The accuracy at one number of distractors, in percent.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CurvePoint {
    pub(super) count: Option<u64>,
    pub(super) accuracy: f64,
    #[serde(default)]
    certified_lower: Option<f64>,
    runs: u64,
}

/// The decay of pass^k.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Decay {
    /// Whole percents, from k = 1.
    pub(super) values: Vec<f64>,
    /// Wilson's interval of the pass rate of the first k runs, 0 to 1, from k = 1; its k-th power
    /// is the band at k. Absent without the outcome of each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_rates: Option<Vec<Limits>>,
}

/// A share of runs and its interval at 95 %, all from 0 to 1.
#[derive(Debug, PartialEq, Serialize)]
struct Rate {
    selected: u64,
    runs: u64,
    lower: f64,
    upper: f64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Limits {
    lower: f64,
    upper: f64,
}

impl Plots {
    pub(crate) fn of(test: &TestReport) -> Result<Self, StoreError> {
        let mut plots = Self::default();
        for gate in &test.gates {
            match gate.block.as_str() {
                "distractors" => plots.distractors = distractors(gate),
                "reliability" => plots.decay = decay(gate),
                "tool_selection" => plots.selection = selection(gate),
                "stability" => plots.stability = stability(gate),
                "token_efficiency" => plots.catalog = catalog(test, gate)?,
                _ => {}
            }
        }
        Ok(plots)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of a gate's detail.
fn part<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

/// The accuracy by the number of injected distractors.
pub(super) fn distractors(gate: &GateOutcome) -> Option<Vec<CurvePoint>> {
    #[derive(Deserialize)]
    struct Curve {
        curve: Vec<CurvePoint>,
    }
    let curve: Curve = part(&gate.detail.text())?;
    Some(curve.curve).filter(|curve| !curve.is_empty())
}

/// pass^k for k = 1, 2, …
pub(super) fn decay(gate: &GateOutcome) -> Option<Decay> {
    #[derive(Deserialize)]
    struct Outcomes {
        per_run: Vec<Outcome>,
    }
    #[derive(Deserialize)]
    struct Outcome {
        passed: bool,
    }
    let values = gate.values.get("reliability.decay")?.as_array()?;
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    let outcomes: Option<Outcomes> = part(&gate.detail.text());
    let pass_rates = outcomes.map(|outcomes| {
        let mut passed = 0;
        (1_u64..)
            .zip(outcomes.per_run)
            .map(|(runs, outcome)| {
                passed += u64::from(outcome.passed);
                let interval = wilson(passed, runs, Z_95);
                Limits {
                    lower: interval.lower,
                    upper: interval.upper,
                }
            })
            .collect()
    });
    (!values.is_empty()).then_some(Decay { values, pass_rates })
}

fn selection(gate: &GateOutcome) -> Option<Rate> {
    #[derive(Deserialize)]
    struct Selected {
        selected: u64,
        runs: u64,
    }
    let Selected { selected, runs } = part(&gate.detail.text())?;
    let interval = wilson(selected, runs, Z_95);
    (runs > 0).then_some(Rate {
        selected,
        runs,
        lower: interval.lower,
        upper: interval.upper,
    })
}

/// The sub-scores: the figures from 0 to 1 that the whole score is made of.
fn stability(gate: &GateOutcome) -> Vec<(String, f64)> {
    const SCORES: [&str; 6] = [
        "tool_sequence_similarity",
        "argument_consistency",
        "tool_usage_stability",
        "response_consistency",
        "redundancy",
        "cost_per_progress",
    ];
    let score = |name: &&str| {
        let value = gate.values.get(&format!("stability.{name}"))?.as_f64()?;
        Some(((*name).to_owned(), value))
    };
    SCORES.iter().filter_map(score).collect()
}

/// The tokens of each tool of the catalog that the gate counted. The first one whose sum is the
/// gate's figure; none if no record has it.
fn catalog(test: &TestReport, gate: &GateOutcome) -> Result<Vec<(String, u64)>, StoreError> {
    let figure = gate.values.get("token_efficiency.tool_surface_tokens");
    let Some(surface) = figure.and_then(Value::as_u64) else {
        return Ok(Vec::new());
    };
    let recorded = test.runs.iter().filter(|run| run.record_len() > 0);
    for run in recorded.take(MAX_CATALOGS) {
        let record = test.record(&run)?;
        let mut tools = tools(&record.trace);
        if tools.iter().map(|(_, tokens)| tokens).sum::<u64>() == surface {
            tools.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            return Ok(tools);
        }
    }
    Ok(Vec::new())
}

fn tools(trace: &Trace) -> Vec<(String, u64)> {
    let tools = trace.catalog().unwrap_or_default().iter();
    tools
        .map(|tool| (full_id(tool.server(), tool.name()), tokens::of_tool(tool)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use mcptest_trace::verdict::Verdict;
    use serde_json::json;

    fn gate(block: &str, values: Value, detail: &Value) -> GateOutcome {
        GateOutcome {
            block: block.to_owned(),
            values: serde_json::from_value(values).unwrap(),
            detail: detail.as_object().unwrap().clone().into(),
            ..samples::floor(Verdict::Pass, 100)
        }
    }

    #[test]
    fn points_are_those_of_the_gates() {
        let curve = json!({"curve": [
            {"count": 0, "accuracy": 100, "certified_lower": 47, "runs": 4},
            {"count": 8, "accuracy": 75, "runs": 4},
        ]});
        let outcomes = json!({"per_run": [
            {"index": 1, "passed": true, "because": "all expectations held"},
            {"index": 2, "passed": false, "because": "an expectation did not hold"},
        ]});
        let mut written = samples::test("a", None, Verdict::Pass);
        written.gates = vec![
            gate("distractors", json!({}), &curve),
            gate(
                "reliability",
                json!({"reliability.decay": [100, 25]}),
                &outcomes,
            ),
            gate(
                "tool_selection",
                json!({}),
                &json!({"selected": 9, "runs": 10}),
            ),
            gate(
                "stability",
                json!({"stability.redundancy": 0.5}),
                &json!({}),
            ),
        ];
        let report = samples::concluded(vec![written]);
        let plots = Plots::of(&report.tests[0]).unwrap();
        let plots = serde_json::to_value(plots).unwrap();
        assert_eq!(plots["distractors"][1]["accuracy"], 75.0);
        assert_eq!(plots["decay"]["values"], json!([100.0, 25.0]));
        // The band at k is about the first k runs, as the point is: it always has the point.
        for (at, point) in [1.0, 0.25].into_iter().enumerate() {
            let k = i32::try_from(at + 1).unwrap();
            let limit = |end: &str| plots["decay"]["pass_rates"][at][end].as_f64().unwrap();
            let band = limit("lower").powi(k)..=limit("upper").powi(k);
            assert!(band.contains(&point), "k = {k}: {band:?} has no {point}");
        }
        let expected = wilson(9, 10, Z_95);
        assert_eq!(plots["selection"]["lower"], expected.lower);
        assert_eq!(plots["stability"], json!([["redundancy", 0.5]]));
        assert!(plots.get("catalog").is_none());
    }
}
