//! The pure step from evidence to verdicts. `run` and `score` share it, so a live run and a
//! recorded one cannot be judged differently.
//!
//! Each run is judged once ([`RunOutcome`]), where it ends. Its case observes the result
//! ([`CaseJudge`]) and is judged when no further run is made.

use mcptest_catalog::prices::Prices;
use mcptest_catalog::quality;
use mcptest_events::{CaseJudged, RunFacts, RunRecord};
use mcptest_gate_api::{Context, GateAccumulator, GateOutcome, LoadedGate, Run};
use mcptest_redact::redact;
use mcptest_suite::suite::{AgentTest, NoEvidence, Test, ToolQualityTest};
use mcptest_trace::expect::Assertion;
use mcptest_trace::judged::{self, Unjudged};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::{Observable, Trace, TraceView};
use mcptest_trace::verdict::{RunError, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::outcomes::{Outcomes, has_outcomes};

/// The settings that all tests of a suite share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgeContext<'a> {
    pub servers: &'a KnownServers,
    pub prices: &'a Prices,
    pub no_evidence: NoEvidence,
    /// True if judged assertions count; else they are skipped.
    pub judges: bool,
}

/// The reason why an expectation on a secret's own value does not hold.
const MASKED: &str = "a secret in it is shown as `[redacted]`: runs that are recorded or replayed \
                      are judged without secrets";

/// The reason why a test that expects only opinions has no evidence.
const JUDGES_ARE_OFF: &str = "all that the test expects is judged, and judges are switched off";

impl<'a> JudgeContext<'a> {
    /// The input of gates besides the runs.
    pub fn gate_context(&self, label: &'a str, model: Option<&'a str>) -> Context<'a> {
        Context {
            label,
            servers: self.servers,
            model,
            prices: self.prices,
        }
    }

    /// Applies the suite's choice for a verdict without evidence.
    fn settle(&self, verdict: Verdict) -> Verdict {
        match (verdict, self.no_evidence) {
            (Verdict::NoEvidence, NoEvidence::Pass) => Verdict::Pass,
            (Verdict::NoEvidence, NoEvidence::Fail) => Verdict::Fail,
            _ => verdict,
        }
    }
}

/// The judgement on one run.
pub(crate) struct RunOutcome {
    pub assertions: Vec<Assertion>,
    /// The error of the run, or of a judge of it.
    pub error: Option<RunError>,
    pub facts: RunFacts,
}

impl RunOutcome {
    /// Judges a run of an agent, and explains every assertion.
    pub fn of_agent(context: &JudgeContext<'_>, test: &AgentTest, trace: &TraceView<'_>) -> Self {
        Self::judge_agent(context, test, trace, Explain::Always)
    }

    /// Judges a run of an agent. Without a problem there are no assertions in the outcome, because
    /// no reporter shows them.
    pub fn of_agent_unless_good(
        context: &JudgeContext<'_>,
        test: &AgentTest,
        trace: &TraceView<'_>,
    ) -> Self {
        Self::judge_agent(context, test, trace, Explain::Problems)
    }

    fn judge_agent(
        context: &JudgeContext<'_>,
        test: &AgentTest,
        trace: &TraceView<'_>,
        explain: Explain,
    ) -> Self {
        count_judgement();
        if is_never_offered(trace) {
            return Self::without_evidence(context);
        }
        let mut assertions = Vec::new();
        let mut error = trace.error.clone();
        let mut expectations_held = None;
        let mut unjudged = false;
        // A run that failed is no evidence about the agent.
        if error.is_none() && (!test.expect.is_empty() || has_outcomes(test)) {
            let seen = trace.observable();
            let outcomes = Outcomes::of(test, trace);
            if explain == Explain::Problems && outcomes.hold() && all_hold(test, seen) {
                return Self::good();
            }
            if has_outcomes(test) {
                expectations_held = Some(outcomes.hold());
            }
            unjudged |= outcomes.missing;
            for mut assertion in outcomes.assertions {
                explain_mask(&mut assertion);
                assertions.push(assertion);
            }
            for expectation in &test.expect {
                let Some(judge) = expectation.judge() else {
                    let mut assertion = expectation.apply(seen, None);
                    explain_mask(&mut assertion);
                    // Gates see this flag: a model's opinion is not part of it.
                    let held = expectations_held.unwrap_or(true) && assertion.passed;
                    expectations_held = Some(held);
                    assertions.push(assertion);
                    continue;
                };
                let (assertion, problem) =
                    judged::apply(expectation, judge, seen, &trace.judgements, !context.judges);
                match problem {
                    Some(Unjudged::Broken(failure)) => {
                        error.get_or_insert(failure);
                    }
                    Some(Unjudged::Missing) => unjudged = true,
                    Some(Unjudged::Off) | None => {}
                }
                assertions.push(assertion);
            }
            // Without a gate, a run of which every assertion was skipped shows nothing.
            unjudged |= test.gates.is_empty()
                && !has_outcomes(test)
                && assertions.iter().all(|one| one.skipped.is_some());
        }
        let verdict = match verdict_of(error.as_ref(), &assertions) {
            Verdict::Pass if unjudged => Verdict::NoEvidence,
            verdict => verdict,
        };
        let fails_case = error.is_none() && fails_case(test, &assertions);
        let facts = RunFacts {
            verdict: context.settle(verdict),
            counted: match verdict {
                Verdict::Fail if !fails_case => Verdict::Pass,
                verdict => context.settle(verdict),
            },
            fails_case,
            expectations_held,
            error: error.as_ref().map(|error| error.kind),
        };
        Self {
            assertions,
            error,
            facts,
        }
    }

    /// The outcome of a run that shows nothing about the agent.
    fn without_evidence(context: &JudgeContext<'_>) -> Self {
        let verdict = context.settle(Verdict::NoEvidence);
        Self {
            assertions: Vec::new(),
            error: None,
            facts: RunFacts {
                verdict,
                counted: verdict,
                fails_case: false,
                expectations_held: None,
                error: None,
            },
        }
    }

    /// The outcome of a run whose assertions all hold, without them.
    fn good() -> Self {
        Self {
            assertions: Vec::new(),
            error: None,
            facts: RunFacts {
                verdict: Verdict::Pass,
                counted: Verdict::Pass,
                fails_case: false,
                expectations_held: Some(true),
                error: None,
            },
        }
    }

    /// Returns true if a reporter may show more of the run than its row.
    pub fn has_details(&self) -> bool {
        let noteworthy = |one: &Assertion| one.failed() || one.skipped.is_some();
        self.error.is_some() || self.assertions.iter().any(noteworthy)
    }

    /// Judges a direct tool call by its assertions. A call of which every assertion was skipped
    /// shows nothing.
    pub fn of_tool(context: &JudgeContext<'_>, trace: &Trace, assertions: Vec<Assertion>) -> Self {
        count_judgement();
        let error = trace.error.clone();
        let skipped = !assertions.is_empty() && assertions.iter().all(|one| one.skipped.is_some());
        let verdict = match verdict_of(error.as_ref(), &assertions) {
            Verdict::Pass if skipped => Verdict::NoEvidence,
            verdict => verdict,
        };
        let held = !assertions.iter().any(Assertion::failed);
        let verdict = context.settle(verdict);
        let facts = RunFacts {
            verdict,
            counted: verdict,
            fails_case: verdict == Verdict::Fail,
            expectations_held: (error.is_none() && !skipped).then_some(held),
            error: error.as_ref().map(|error| error.kind),
        };
        Self {
            assertions,
            error,
            facts,
        }
    }

    /// Judges a catalog that was listed, or that could not be.
    pub fn of_catalog(
        context: &JudgeContext<'_>,
        test: &ToolQualityTest,
        trace: &Trace,
        listed: Option<&[Value]>,
    ) -> (Self, Option<GateOutcome>) {
        count_judgement();
        let error = trace.error.clone();
        let gate = error.is_none().then(|| {
            let mut gate = quality::judge(&test.expect, listed.unwrap_or_default());
            gate.verdict = context.settle(gate.verdict);
            gate
        });
        let verdict = gate.as_ref().map_or(Verdict::Error, |gate| gate.verdict);
        let facts = RunFacts {
            verdict,
            counted: verdict,
            fails_case: verdict == Verdict::Fail,
            expectations_held: None,
            error: error.as_ref().map(|error| error.kind),
        };
        let outcome = Self {
            assertions: Vec::new(),
            error,
            facts,
        };
        (outcome, gate)
    }

    /// The row of the report.
    pub fn into_record(self, index: u64, name: String, trace: Trace) -> RunRecord {
        RunRecord {
            index,
            name,
            verdict: self.facts.verdict,
            trace,
            assertions: self.assertions,
            error: self.error,
        }
    }
}

/// The assertions of a run that its outcome has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Explain {
    /// All of them.
    Always,
    /// None, if all of them hold.
    Problems,
}

/// Returns true for the recording of a session in which the client never listed the tools: the
/// agent could not call any, so its silence proves nothing. The proxy marks such recordings.
fn is_never_offered(trace: &TraceView<'_>) -> bool {
    trace.tool_calls.is_empty()
        && trace.error.is_none()
        && trace.extra.get("tools_listed") == Some(&Value::Bool(false))
}

/// Returns true if evidence decides all assertions, and all hold.
fn all_hold(test: &AgentTest, seen: Observable<'_>) -> bool {
    let holds = |one: &mcptest_trace::expect::Expectation| one.judge().is_none() && one.holds(seen);
    test.expect.iter().all(holds)
}

/// Adds to the reason of a failed assertion that its value was masked.
fn explain_mask(assertion: &mut Assertion) {
    if assertion.failed() && redact::is_masked(&assertion.actual) {
        let reason = assertion.reason.take().map(|reason| format!("{reason}; "));
        assertion.reason = Some(format!("{}{MASKED}", reason.unwrap_or_default()));
    }
}

/// Returns true if the assertions of a run fail its case. With `tolerate_failed_runs`, evidence is
/// left to the `reliability:` gate, which does not see opinions.
fn fails_case(test: &AgentTest, assertions: &[Assertion]) -> bool {
    let failed = |judged: bool| {
        assertions
            .iter()
            .any(|one| one.failed() && one.judged == judged)
    };
    failed(true) || (failed(false) && !test.tolerates_failed_runs)
}

/// Returns true if one failed run fails the test; false if a gate decides about the runs together.
pub(crate) fn one_run_decides(test: &Test) -> bool {
    !matches!(test, Test::Agent(test) if test.tolerates_failed_runs)
}

fn verdict_of(error: Option<&RunError>, assertions: &[Assertion]) -> Verdict {
    if error.is_some() {
        Verdict::Error
    } else if assertions.iter().any(Assertion::failed) {
        Verdict::Fail
    } else {
        Verdict::Pass
    }
}

/// The judgement on a case.
#[derive(Debug)]
pub(crate) struct CaseVerdict {
    pub verdict: Verdict,
    pub gates: Vec<GateOutcome>,
    pub no_evidence: Option<String>,
}

impl CaseVerdict {
    /// The verdict on a direct tool call.
    pub fn of_tool(facts: &RunFacts) -> Self {
        let shows_nothing = facts.error.is_none() && facts.expectations_held.is_none();
        Self {
            verdict: facts.verdict,
            gates: Vec::new(),
            no_evidence: shows_nothing.then(|| JUDGES_ARE_OFF.to_owned()),
        }
    }

    /// The verdict on a catalog.
    pub fn of_catalog(facts: &RunFacts, gate: Option<GateOutcome>) -> Self {
        Self {
            verdict: facts.verdict,
            gates: gate.into_iter().collect(),
            no_evidence: None,
        }
    }

    /// The verdict on a case that was interrupted before a run finished.
    pub fn interrupted(finished: u64, runs: u32) -> Self {
        Self {
            verdict: Verdict::NoEvidence,
            gates: Vec::new(),
            no_evidence: Some(interrupted(finished, runs)),
        }
    }

    /// The event for a case.
    pub fn into_event(mut self, case: usize, complete: bool) -> CaseJudged {
        let lines = self
            .gates
            .iter_mut()
            .flat_map(|gate| gate.status_lines.drain(..));
        let status_lines = lines.collect();
        CaseJudged {
            case,
            verdict: self.verdict,
            complete,
            gates: self.gates,
            no_evidence: self.no_evidence,
            saved_runs: None,
            spend: None,
            replayed: None,
            duration_ms: None,
            status_lines,
        }
    }
}

/// The facts of a [`CaseTally`] apart from its gates.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct TallyFacts {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs in which no tool was offered.
    pub never_offered: u64,
    /// The worst verdict that a run adds to the case.
    pub counted: Verdict,
    /// True if a run fails the case.
    pub failed: bool,
}

/// The observed runs of an agent test with one model. Tallies of parts of the runs merge.
pub(crate) struct CaseTally<'a> {
    gates: Vec<GateAccumulator<'a>>,
    /// The number of runs.
    runs: u64,
    /// The number of runs in which no tool was offered.
    never_offered: u64,
    /// The worst verdict that a run adds to the case.
    counted: Verdict,
    /// True if a run fails the case.
    failed: bool,
}

impl<'a> CaseTally<'a> {
    /// A tally of no runs. Without `rows`, gates keep no rows of single runs for their detail.
    pub fn new(test: &'a AgentTest, rows: bool) -> Self {
        let accumulator = |gate: &'a LoadedGate| match rows {
            true => gate.accumulator(),
            false => gate.accumulator_without_rows(),
        };
        Self {
            gates: test.gates.iter().map(accumulator).collect(),
            runs: 0,
            never_offered: 0,
            counted: Verdict::Pass,
            failed: false,
        }
    }

    /// Adds a judged run.
    pub fn observe(
        &mut self,
        context: &Context<'_>,
        index: u64,
        trace: &TraceView<'_>,
        facts: &RunFacts,
    ) {
        self.runs += 1;
        self.counted = self.counted.max(facts.counted);
        self.failed |= facts.fails_case;
        // A judge that failed takes nothing from the evidence.
        if trace.error.is_some() {
            return;
        }
        if is_never_offered(trace) {
            self.never_offered += 1;
            return;
        }
        let run = Run {
            index,
            trace,
            expectations_held: facts.expectations_held,
        };
        for gate in &mut self.gates {
            gate.observe(context, &run);
        }
    }

    /// Adds the runs of another tally of the same test.
    pub fn merge(&mut self, other: Self) {
        for (gate, other) in self.gates.iter_mut().zip(other.gates) {
            gate.merge(other);
        }
        self.runs += other.runs;
        self.never_offered += other.never_offered;
        self.counted = self.counted.max(other.counted);
        self.failed |= other.failed;
    }

    /// A tally that was saved.
    pub fn resume(gates: Vec<GateAccumulator<'a>>, facts: TallyFacts) -> Self {
        Self {
            gates,
            runs: facts.runs,
            never_offered: facts.never_offered,
            counted: facts.counted,
            failed: facts.failed,
        }
    }

    /// The facts apart from the gates, to be saved.
    pub fn facts(&self) -> TallyFacts {
        TallyFacts {
            runs: self.runs,
            never_offered: self.never_offered,
            counted: self.counted,
            failed: self.failed,
        }
    }

    /// The accumulators as JSON, to be saved.
    pub fn gates_json(&self) -> impl Iterator<Item = String> {
        self.gates.iter().map(GateAccumulator::to_json)
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for gate in &mut self.gates {
            gate.renumber(number);
        }
    }

    /// Judges the case.
    pub fn finish(
        self,
        context: &JudgeContext<'_>,
        test: &AgentTest,
        gate_context: &Context<'_>,
    ) -> CaseVerdict {
        let runs = self.runs;
        let gates = self.gates.into_iter();
        let mut gates: Vec<GateOutcome> = gates.map(|gate| gate.finish(gate_context)).collect();
        let mut no_evidence = match self.never_offered {
            0 => why_no_evidence(context, test, runs),
            count => Some(format!(
                "in {count} of {runs} runs the client never listed the tools"
            )),
        };
        for gate in &mut gates {
            gate.verdict = context.settle(gate.verdict);
        }
        let of_gates = Verdict::worst(gates.iter().map(|gate| gate.verdict));
        let mut verdict = self.counted.max(of_gates);
        if no_evidence.is_some() {
            verdict = verdict.max(context.settle(Verdict::NoEvidence));
            // Reported once: a gate without runs has the same reason.
            gates.retain(|gate| {
                runs > 0 || gate.no_evidence.is_none() || gate.verdict != Verdict::NoEvidence
            });
        }
        if verdict == Verdict::Error {
            no_evidence = None;
        }
        CaseVerdict {
            verdict,
            gates,
            no_evidence,
        }
    }
}

/// The reason why an interrupted case is not judged.
fn interrupted(finished: u64, runs: u32) -> String {
    format!("interrupted: {finished} of {runs} runs finished")
}

/// Observes the runs of an agent test with one model.
pub(crate) struct CaseJudge<'a> {
    context: JudgeContext<'a>,
    test: &'a AgentTest,
    gate_context: Context<'a>,
    tally: CaseTally<'a>,
}

impl<'a> CaseJudge<'a> {
    pub fn new(
        context: JudgeContext<'a>,
        test: &'a AgentTest,
        model: Option<&'a str>,
        label: &'a str,
    ) -> Self {
        Self {
            context,
            test,
            gate_context: context.gate_context(label, model),
            tally: CaseTally::new(test, true),
        }
    }

    /// Adds a judged run.
    pub fn observe(&mut self, index: u64, trace: &TraceView<'_>, facts: &RunFacts) {
        self.tally.observe(&self.gate_context, index, trace, facts);
    }

    /// The number of runs.
    pub fn runs(&self) -> u64 {
        self.tally.runs
    }

    /// Returns true if a run fails the case.
    pub fn has_failed(&self) -> bool {
        self.tally.failed
    }

    /// The gates that observe the runs.
    pub fn gates(&mut self) -> &mut [GateAccumulator<'a>] {
        &mut self.tally.gates
    }

    /// Returns true if a single run can fail the case.
    pub fn run_can_fail(&self) -> bool {
        self.test
            .expect
            .iter()
            .any(|expectation| match expectation.judge() {
                Some(_) => self.context.judges,
                None => !self.test.tolerates_failed_runs,
            })
            || (has_outcomes(self.test) && !self.test.tolerates_failed_runs)
    }

    /// Judges a case that was interrupted. A gate whose figures could still change has judged
    /// nothing; one that no further run can pass has failed.
    pub fn finish_interrupted(mut self, runs: u32) -> CaseVerdict {
        let finished = self.tally.runs;
        let remaining = u64::from(runs).saturating_sub(finished);
        let gates = self.tally.gates.iter_mut();
        let lost: Vec<bool> = gates
            .map(|gate| gate.decided(remaining) == Some(Verdict::Fail))
            .collect();
        let counted = self.tally.counted;
        let mut verdict = self.finish();
        let why = interrupted(finished, runs);
        for (gate, lost) in verdict.gates.iter_mut().zip(&lost) {
            gate.status_lines.clear();
            if !lost {
                gate.verdict = Verdict::NoEvidence;
                gate.no_evidence = Some(why.clone());
            }
        }
        let of_gates = Verdict::worst(verdict.gates.iter().map(|gate| gate.verdict));
        verdict.verdict = counted.max(of_gates).max(Verdict::NoEvidence);
        verdict.no_evidence = Some(why);
        verdict
    }

    /// Judges the case.
    pub fn finish(self) -> CaseVerdict {
        self.tally
            .finish(&self.context, self.test, &self.gate_context)
    }
}

/// The reason why a test has nothing to judge, apart from its gates.
fn why_no_evidence(context: &JudgeContext<'_>, test: &AgentTest, runs: u64) -> Option<String> {
    let all_judged = || !has_outcomes(test) && test.expect.iter().all(|one| one.judge().is_some());
    if runs == 0 {
        Some("there is no trace of this test".to_owned())
    } else if !test.gates.is_empty() {
        None
    } else if test.expect.is_empty() && !has_outcomes(test) {
        Some("the test expects nothing".to_owned())
    } else if !context.judges && all_judged() {
        Some(JUDGES_ARE_OFF.to_owned())
    } else {
        None
    }
}

#[inline]
fn count_judgement() {
    #[cfg(test)]
    counter::add();
}

/// Counts the judgements of a thread, so that a test can prove that each run is judged once.
#[cfg(test)]
pub(crate) mod counter {
    use std::cell::Cell;

    thread_local! {
        static JUDGEMENTS: Cell<u64> = const { Cell::new(0) };
    }

    pub fn add() {
        JUDGEMENTS.set(JUDGEMENTS.get() + 1);
    }

    /// Returns the count, and starts again.
    pub fn take() -> u64 {
        JUDGEMENTS.take()
    }
}
