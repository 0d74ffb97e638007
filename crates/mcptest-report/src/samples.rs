//! Reports for the tests of this crate, in their written form.

use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::{Conversation, Tokens, Trace};
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::{Map, Value, json};

use crate::model::{Kind, Report, RunReport, RunTiming, TestReport, Timing};

/// A report with this number of tests, of which every third fails, each with a run, a gate and
/// times.
pub fn report(tests: usize) -> Report {
    let tests: Vec<TestReport> = (0..tests)
        .map(|at| {
            let verdict = if at % 3 == 2 {
                Verdict::Fail
            } else {
                Verdict::Pass
            };
            let mut test = test(&format!("test {at}"), Some("model-a"), verdict);
            test.gates.push(floor(
                verdict,
                if verdict == Verdict::Pass { 100 } else { 50 },
            ));
            test
        })
        .collect();
    let runs = tests
        .iter()
        .flat_map(|test| &test.runs)
        .map(|run| RunTiming {
            name: run.name.clone(),
            duration_ms: 10,
        })
        .collect();
    let mut report = Report::conclude(tests, false);
    report.timing = Some(Timing {
        duration_ms: 99,
        runs,
    });
    report
}

/// The report of these tests.
pub fn concluded(tests: Vec<TestReport>) -> crate::Report {
    crate::Report::from(&Report::conclude(tests, false))
}

/// A test with one run, both with this verdict.
pub fn test(name: &str, model: Option<&str>, verdict: Verdict) -> TestReport {
    TestReport {
        name: name.to_owned(),
        kind: Kind::Agent,
        model: model.map(Into::into),
        label: model.map_or_else(|| name.to_owned(), |model| format!("{name} [{model}]")),
        suite: "sample".to_owned(),
        verdict,
        runs: vec![run(1, name, verdict, Some(1000))],
        gates: Vec::new(),
        no_evidence: (verdict == Verdict::NoEvidence)
            .then(|| "the test expects nothing".to_owned()),
        saved_runs: None,
        spend: None,
    }
}

/// A run with this verdict.
pub fn run(index: u64, name: &str, verdict: Verdict, tokens: Option<u64>) -> RunReport {
    let error = (verdict == Verdict::Error).then(|| RunError {
        kind: ErrorKind::Timeout,
        message: "no answer".to_owned(),
    });
    RunReport {
        index,
        name: name.to_owned(),
        verdict,
        trace: Trace {
            conversation: Conversation {
                tokens: tokens.map(|total| Tokens {
                    total: Some(total),
                    ..Tokens::default()
                }),
                ..Conversation::default()
            },
            error: error.clone(),
            ..Trace::default()
        },
        assertions: if verdict == Verdict::Fail {
            vec![assertion(
                "tool_calls[0].name",
                json!({"exact": "search"}),
                json!("fetch"),
                false,
            )]
        } else {
            Vec::new()
        },
        error,
    }
}

/// The outcome of an expectation.
pub fn assertion(target: &str, matcher: Value, actual: Value, passed: bool) -> Assertion {
    let why_not = (!passed).then(|| "the values differ".to_owned());
    Assertion::new(target, matcher, actual, why_not)
}

/// A `tool_selection:` floor with this rate.
pub fn floor(verdict: Verdict, rate: u64) -> GateOutcome {
    let passed = verdict == Verdict::Pass;
    let values: Map<String, Value> = [
        ("floor.selection_rate", json!(rate)),
        ("floor.pass_hat_k", json!(rate)),
        ("floor.tokens_median", Value::Null),
        ("floor.passed", json!(u64::from(passed))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let mut detail = Map::new();
    detail.insert("passed".to_owned(), json!(passed));
    detail.insert("selection_rate".to_owned(), json!(rate));
    GateOutcome {
        block: "tool_selection".to_owned(),
        verdict,
        values,
        detail: detail.into(),
        assertions: vec![assertion(
            "floor.passed",
            json!({">=": 1}),
            json!(u64::from(passed)),
            passed,
        )],
        summary: format!("selection {rate}%"),
        findings: Vec::new(),
        no_evidence: (verdict == Verdict::NoEvidence)
            .then(|| "no run was carried through".to_owned()),
        status_lines: Vec::new(),
    }
}
