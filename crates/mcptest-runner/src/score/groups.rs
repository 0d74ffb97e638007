//! The traces of a test and a model in memory, for `mutate`.

use mcptest_suite::Suite;
use mcptest_suite::suite::AgentTest;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

use super::matching::{Match, Tests, model_order};
use super::{ScoreError, ScoreSettings};
use crate::plan;
use crate::verdicts::{CaseJudge, CaseVerdict, JudgeContext, RunOutcome};

/// The traces of one test and one model, which are judged together.
pub(crate) struct TraceGroup<'a> {
    pub test: &'a AgentTest,
    pub model: Option<String>,
    pub label: String,
    pub traces: Vec<(u64, Trace)>,
}

/// The judgement on a group, and the verdict on each of its runs.
pub(crate) struct JudgedGroup {
    pub case: CaseVerdict,
    pub runs: Vec<Verdict>,
}

impl TraceGroup<'_> {
    pub fn judge(&self, context: &JudgeContext<'_>) -> JudgedGroup {
        let model = self.model.as_deref();
        let mut judge = CaseJudge::new(*context, self.test, model, &self.label);
        let mut runs = Vec::with_capacity(self.traces.len());
        for (index, trace) in &self.traces {
            let facts = RunOutcome::of_agent_unless_good(context, self.test, trace).facts;
            judge.observe(*index, trace, &facts);
            runs.push(facts.verdict);
        }
        JudgedGroup {
            case: judge.finish(),
            runs,
        }
    }
}

/// Sorts traces by test and model, in the order of the suite.
pub(crate) fn group_traces<'a>(
    suite: &'a Suite,
    traces: Vec<Trace>,
    settings: &ScoreSettings,
) -> Result<Vec<TraceGroup<'a>>, ScoreError> {
    let tests = Tests::new(suite, settings)?;
    let servers = suite.known_servers();
    let mut by_test: Vec<Vec<Trace>> = tests.all.iter().map(|_| Vec::new()).collect();
    for (position, mut trace) in (0..).zip(traces) {
        match tests.find(trace.test.as_deref()) {
            Match::Test(place) => {
                trace.split_wire_names(&servers);
                by_test[place].push(trace);
            }
            Match::Direct => {}
            Match::None => return Err(tests.unmatched(position, trace.test.as_deref())),
        }
    }
    let mut groups = Vec::new();
    for ((test, selected), traces) in tests.all.iter().zip(&tests.selected).zip(by_test) {
        if !selected {
            continue;
        }
        let mut by_model = by_model(traces);
        by_model.sort_by(|(one, _), (other, _)| {
            let order = |model| model_order(test, model);
            order(one.as_deref()).cmp(&order(other.as_deref()))
        });
        let several_models = by_model.len() > 1;
        for (model, traces) in by_model {
            let label = plan::label(&test.name, model.as_deref(), several_models);
            groups.push(TraceGroup {
                test,
                model,
                label,
                traces: in_run_order(traces),
            });
        }
    }
    if groups.is_empty() {
        let filtered = !tests.all.is_empty();
        return Err(ScoreError::NothingToScore { filtered });
    }
    Ok(groups)
}

/// Groups the traces of a test by model, in the order of their first traces. Without a trace there
/// is one empty group.
fn by_model(traces: Vec<Trace>) -> Vec<(Option<String>, Vec<Trace>)> {
    let mut groups: Vec<(Option<String>, Vec<Trace>)> = Vec::new();
    for trace in traces {
        let model = trace.model.as_deref();
        match groups.iter_mut().find(|(of, _)| of.as_deref() == model) {
            Some((_, group)) => group.push(trace),
            None => groups.push((model.map(Into::into), vec![trace])),
        }
    }
    if groups.is_empty() {
        groups.push((None, Vec::new()));
    }
    groups
}

/// Numbers traces by `run` if every trace has a distinct one; otherwise in input order, from 1.
fn in_run_order(mut traces: Vec<Trace>) -> Vec<(u64, Trace)> {
    // Stable, so that traces without a number, or with the same one, stay in file order.
    traces.sort_by_key(|trace| trace.run.unwrap_or(u64::MAX));
    let clear = traces.iter().all(|trace| trace.run.is_some())
        && traces.windows(2).all(|pair| pair[0].run < pair[1].run);
    let index = |trace: &Trace, position| trace.run.filter(|_| clear).unwrap_or(position);
    (1..)
        .zip(traces)
        .map(|(position, trace)| (index(&trace, position), trace))
        .collect()
}
