//! The pure step from evidence to verdicts. `run` and `score` both end here.

use mcptest_catalog::prices::Prices;
use mcptest_catalog::quality;
use mcptest_gates::{Context, GateOutcome, Run};
use mcptest_redact::redact;
use mcptest_report::model::{Kind, RunReport, TestReport};
use mcptest_suite::suite::{AgentTest, NoEvidence, ToolQualityTest, ToolTest};
use mcptest_trace::expect::Assertion;
use mcptest_trace::judged::{self, Unjudged};
use mcptest_trace::parallel;
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{RunError, Verdict};
use serde_json::Value;

use crate::plan;

/// What holds for all tests of a suite.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub suite: &'a str,
    pub servers: &'a KnownServers,
    pub prices: &'a Prices,
    pub no_evidence: NoEvidence,
    /// Whether judged assertions count; else they are skipped.
    pub judges: bool,
    /// On how many threads a test's runs are judged.
    pub threads: usize,
}

/// Why an expectation on a secret's own value does not hold.
const MASKED: &str = "a secret in it stands as `[redacted]`: runs that are recorded or replayed are judged without secrets";

/// Why a test that expects nothing but opinions has nothing to go by.
const JUDGES_ARE_OFF: &str = "all that the test expects is judged, and judges are switched off";

/// What the assertions of one run came to.
pub(crate) struct RunOutcome {
    pub assertions: Vec<Assertion>,
    /// Whether the assertions that evidence decides all held; nothing without any. This is what
    /// gates look at: a model's opinion is no part of it.
    pub expectations_held: Option<bool>,
    /// What broke: the run, or a judge of it.
    pub error: Option<RunError>,
    /// Why an assertion could not be judged, if it should have been.
    unjudged: bool,
}

impl RunOutcome {
    pub fn of(bench: &Bench<'_>, test: &AgentTest, trace: &Trace) -> Self {
        let mut outcome = Self {
            assertions: Vec::new(),
            expectations_held: None,
            error: trace.error.clone(),
            unjudged: false,
        };
        // A run that broke says nothing about the agent.
        if outcome.error.is_some() || test.expect.is_empty() {
            return outcome;
        }
        let seen = trace.observable();
        for expectation in &test.expect {
            let Some(judge) = expectation.judge() else {
                let mut assertion = expectation.apply(&seen, None);
                if assertion.failed() && redact::is_masked(&assertion.actual) {
                    let reason = assertion.reason.take().map(|reason| format!("{reason}; "));
                    assertion.reason = Some(format!("{}{MASKED}", reason.unwrap_or_default()));
                }
                outcome.expectations_held =
                    Some(outcome.expectations_held.unwrap_or(true) && assertion.passed);
                outcome.assertions.push(assertion);
                continue;
            };
            let (assertion, unjudged) =
                judged::apply(expectation, judge, &seen, &trace.judgements, !bench.judges);
            match unjudged {
                Some(Unjudged::Broken(error)) => {
                    outcome.error.get_or_insert(error);
                }
                Some(Unjudged::Missing) => outcome.unjudged = true,
                Some(Unjudged::Off) | None => {}
            }
            outcome.assertions.push(assertion);
        }
        // Where nothing else is asked for, a run of which every assertion was skipped shows
        // nothing.
        outcome.unjudged |=
            test.gates.is_empty() && outcome.assertions.iter().all(|one| one.skipped.is_some());
        outcome
    }

    pub fn verdict(&self) -> Verdict {
        match verdict_of(self.error.as_ref(), &self.assertions) {
            Verdict::Pass if self.unjudged => Verdict::NoEvidence,
            verdict => verdict,
        }
    }

    /// Whether the run fails the test. Under `tolerate_failed_runs` evidence is left to the
    /// `reliability:` gate, which knows nothing of opinions.
    pub fn fails(&self, test: &AgentTest) -> bool {
        let failed = |judged: bool| {
            self.assertions
                .iter()
                .any(|one| one.failed() && one.judged == judged)
        };
        self.error.is_none() && (failed(true) || (failed(false) && !test.tolerates_failed_runs))
    }
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
    let outcomes: Vec<RunOutcome> =
        parallel::map(bench.threads, traces.iter().collect(), |(_, trace)| {
            RunOutcome::of(bench, test, trace)
        });
    // What a run's own assertions add to the verdict of the test.
    let counted: Vec<Verdict> = outcomes
        .iter()
        .map(|outcome| match outcome.verdict() {
            Verdict::Fail if !outcome.fails(test) => Verdict::Pass,
            Verdict::NoEvidence => bench.settle(Verdict::NoEvidence),
            verdict => verdict,
        })
        .collect();
    let held: Vec<Option<bool>> = outcomes
        .iter()
        .map(|outcome| outcome.expectations_held)
        .collect();
    let runs: Vec<RunReport> = traces
        .into_iter()
        .zip(outcomes)
        .map(|((index, trace), outcome)| RunReport {
            index,
            name: plan::row(label, several, index),
            verdict: bench.settle(outcome.verdict()),
            trace,
            error: outcome.error,
            assertions: outcome.assertions,
        })
        .collect();
    let judged: Vec<Run<'_>> = runs
        .iter()
        .zip(held)
        // A judge that broke takes nothing from the evidence.
        .filter(|(run, _)| run.trace.error.is_none())
        .map(|(run, expectations_held)| Run {
            index: run.index,
            trace: &run.trace,
            expectations_held,
        })
        .collect();
    let context = bench.context(label, model);
    let mut gates = parallel::map(bench.threads, test.gates.iter().collect(), |gate| {
        gate.judge(&context, &judged)
    });
    let mut no_evidence = if runs.is_empty() {
        Some("there is no trace of this test".to_owned())
    } else if test.gates.is_empty() && test.expect.is_empty() {
        Some("the test expects nothing".to_owned())
    } else if test.gates.is_empty()
        && !bench.judges
        && test.expect.iter().all(|one| one.judge().is_some())
    {
        Some(JUDGES_ARE_OFF.to_owned())
    } else {
        None
    };
    for gate in &mut gates {
        gate.verdict = bench.settle(gate.verdict);
    }
    let mut verdicts: Vec<Verdict> = counted
        .into_iter()
        .chain(gates.iter().map(|gate| gate.verdict))
        .collect();
    if no_evidence.is_some() {
        verdicts.push(bench.settle(Verdict::NoEvidence));
        // Said once: a gate without runs has the same to say.
        gates.retain(|gate| {
            !runs.is_empty() || gate.no_evidence.is_none() || gate.verdict != Verdict::NoEvidence
        });
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
        saved_runs: None,
        spend: None,
    }
}

pub(crate) fn verdict_of(error: Option<&RunError>, assertions: &[Assertion]) -> Verdict {
    if error.is_some() {
        Verdict::Error
    } else if !assertions.iter().any(Assertion::failed) {
        Verdict::Pass
    } else {
        Verdict::Fail
    }
}

/// What a direct tool call's expectations came to. One of which every expectation was skipped shows
/// nothing.
pub(crate) fn tool_verdict(error: Option<&RunError>, assertions: &[Assertion]) -> Verdict {
    let nothing = !assertions.is_empty() && assertions.iter().all(|one| one.skipped.is_some());
    match verdict_of(error, assertions) {
        Verdict::Pass if nothing => Verdict::NoEvidence,
        verdict => verdict,
    }
}

/// Judges a direct tool call by what came of its expectations.
pub(crate) fn tool(
    bench: &Bench<'_>,
    test: &ToolTest,
    trace: Trace,
    assertions: Vec<Assertion>,
) -> TestReport {
    let error = trace.error.clone();
    let verdict = tool_verdict(error.as_ref(), &assertions);
    let no_evidence = (verdict == Verdict::NoEvidence).then(|| JUDGES_ARE_OFF.to_owned());
    let verdict = bench.settle(verdict);
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
        no_evidence,
        saved_runs: None,
        spend: None,
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
        saved_runs: None,
        spend: None,
    }
}

/// The `tool_quality:` gate over what a server listed.
pub(crate) fn quality_gate(test: &ToolQualityTest, listed: Option<&Value>) -> GateOutcome {
    let listed = listed
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    quality::judge(&test.expect, listed)
}

impl<'a> Bench<'a> {
    /// What gates need besides the runs.
    pub fn context(&self, label: &'a str, model: Option<&'a str>) -> Context<'a> {
        Context {
            label,
            servers: self.servers,
            model,
            prices: self.prices,
        }
    }

    /// A suite may decide what a verdict without evidence counts as.
    fn settle(&self, verdict: Verdict) -> Verdict {
        match (verdict, self.no_evidence) {
            (Verdict::NoEvidence, NoEvidence::Pass) => Verdict::Pass,
            (Verdict::NoEvidence, NoEvidence::Fail) => Verdict::Fail,
            _ => verdict,
        }
    }
}
