//! The pure step from evidence to verdicts. `run` and `score` both end here.

use mcptest_core::eval::{Context, GateOutcome, Run};
use mcptest_core::expect::Assertion;
use mcptest_core::prices::Prices;
use mcptest_core::quality;
use mcptest_core::tool_id::KnownServers;
use mcptest_core::trace::Trace;
use mcptest_core::verdict::{RunError, Verdict};
use mcptest_report::model::{Kind, RunReport, TestReport};
use mcptest_suite::suite::{AgentTest, NoEvidence, ToolQualityTest, ToolTest};
use serde_json::Value;

use crate::plan;

/// What holds for all tests of a suite.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub suite: &'a str,
    pub servers: &'a KnownServers,
    pub prices: &'a Prices,
    pub no_evidence: NoEvidence,
}

/// Judges the runs of an agent test with one model.
pub(crate) fn agent(
    bench: &Bench<'_>,
    test: &AgentTest,
    model: Option<&str>,
    label: &str,
    traces: Vec<(u64, Trace)>,
    several: bool,
) -> TestReport {
    let runs: Vec<RunReport> = traces
        .into_iter()
        .map(|(index, trace)| agent_run(test, plan::row(label, several, index), index, trace))
        .collect();
    let judged: Vec<Run<'_>> = runs
        .iter()
        .filter(|run| run.error.is_none())
        .map(|run| Run {
            index: run.index,
            trace: &run.trace,
            expectations_held: (!test.expect.is_empty()).then(|| run.verdict == Verdict::Pass),
        })
        .collect();
    let context = Context {
        label,
        servers: bench.servers,
        model,
        prices: bench.prices,
    };
    let mut gates: Vec<_> = test.gates.iter().map(|gate| gate.judge(&context, &judged)).collect();
    let mut no_evidence = if runs.is_empty() {
        Some("there is no trace of this test".to_owned())
    } else if test.gates.is_empty() && test.expect.is_empty() {
        Some("the test expects nothing".to_owned())
    } else {
        None
    };
    for gate in &mut gates {
        gate.verdict = bench.settle(gate.verdict);
    }
    let mut verdicts: Vec<Verdict> = runs
        .iter()
        .map(|run| run.verdict)
        .filter(|verdict| !(test.tolerates_failed_runs && *verdict == Verdict::Fail))
        .chain(gates.iter().map(|gate| gate.verdict))
        .collect();
    if no_evidence.is_some() {
        verdicts.push(bench.settle(Verdict::NoEvidence));
        // Said once: a gate without runs has the same to say.
        gates.retain(|gate| !runs.is_empty() || gate.no_evidence.is_none() || gate.verdict != Verdict::NoEvidence);
    }
    let verdict = Verdict::worst(verdicts);
    if verdict == Verdict::Error {
        no_evidence = None;
    }
    TestReport {
        name: test.name.clone(),
        kind: Kind::Agent,
        model: model.map(Into::into),
        label: label.to_owned(),
        suite: bench.suite.to_owned(),
        verdict,
        runs,
        gates,
        no_evidence,
    }
}

fn agent_run(test: &AgentTest, name: String, index: u64, trace: Trace) -> RunReport {
    let error = trace.error.clone();
    let assertions: Vec<Assertion> = if error.is_some() || test.expect.is_empty() {
        // A run that broke says nothing about the agent.
        Vec::new()
    } else {
        let seen = trace.observable();
        test.expect
            .iter()
            .map(|expectation| expectation.apply(&seen, None))
            .collect()
    };
    RunReport {
        index,
        name,
        verdict: verdict_of(error.as_ref(), &assertions),
        trace,
        assertions,
        error,
    }
}

pub(crate) fn verdict_of(error: Option<&RunError>, assertions: &[Assertion]) -> Verdict {
    if error.is_some() {
        Verdict::Error
    } else if assertions.iter().all(|assertion| assertion.passed) {
        Verdict::Pass
    } else {
        Verdict::Fail
    }
}

/// Judges a direct tool call by what came of its expectations.
pub(crate) fn tool(bench: &Bench<'_>, test: &ToolTest, trace: Trace, assertions: Vec<Assertion>) -> TestReport {
    let error = trace.error.clone();
    let verdict = verdict_of(error.as_ref(), &assertions);
    TestReport {
        name: test.name.clone(),
        kind: Kind::Tool,
        model: None,
        label: test.name.clone(),
        suite: bench.suite.to_owned(),
        verdict,
        runs: vec![RunReport {
            index: 1,
            name: test.name.clone(),
            verdict,
            trace,
            assertions,
            error,
        }],
        gates: Vec::new(),
        no_evidence: None,
    }
}

/// Judges a catalog: one gate, and no run unless the catalog could not be had.
pub(crate) fn tool_quality(
    bench: &Bench<'_>,
    test: &ToolQualityTest,
    trace: Trace,
    listed: Option<&Value>,
) -> TestReport {
    let error = trace.error.clone();
    let mut runs = Vec::new();
    let mut gates = Vec::new();
    let verdict = if error.is_some() {
        runs.push(RunReport {
            index: 1,
            name: test.name.clone(),
            verdict: Verdict::Error,
            trace,
            assertions: Vec::new(),
            error,
        });
        Verdict::Error
    } else {
        let mut gate = quality_gate(test, listed);
        gate.verdict = bench.settle(gate.verdict);
        let verdict = gate.verdict;
        gates.push(gate);
        verdict
    };
    TestReport {
        name: test.name.clone(),
        kind: Kind::ToolQuality,
        model: None,
        label: test.name.clone(),
        suite: bench.suite.to_owned(),
        verdict,
        runs,
        gates,
        no_evidence: None,
    }
}

/// The `tool_quality:` gate over what a server listed.
pub(crate) fn quality_gate(test: &ToolQualityTest, listed: Option<&Value>) -> GateOutcome {
    let listed = listed.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    quality::judge(&test.expect, listed)
}

impl Bench<'_> {
    /// A suite may decide what a verdict without evidence counts as.
    fn settle(&self, verdict: Verdict) -> Verdict {
        match (verdict, self.no_evidence) {
            (Verdict::NoEvidence, NoEvidence::Pass) => Verdict::Pass,
            (Verdict::NoEvidence, NoEvidence::Fail) => Verdict::Fail,
            _ => verdict,
        }
    }
}
