//! Recorded traces instead of live runs: no server, no model, the same judgement.

use std::collections::{HashMap, HashSet};

use mcptest_report::model::{Kind, Report, TestReport};
use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Test};
use mcptest_trace::parallel;
use mcptest_trace::trace::Trace;

use crate::plan::{self, Filter};
use crate::verdicts::{CaseJudge, JudgeContext, RunOutcome};

/// So many traces are judged on all cores; for fewer it is not worth starting threads.
const SHARED_FROM: usize = 64;

/// How traces find their tests.
#[derive(Debug, Clone, Default)]
pub struct ScoreSettings {
    /// All traces belong to this test.
    pub test: Option<String>,
    /// Which tests to score.
    pub filter: Filter,
    /// Judged assertions are skipped.
    pub no_judges: bool,
}

/// Why traces could not be scored.
#[derive(Debug, thiserror::Error)]
pub enum ScoreError {
    /// `--test` names none of the tests.
    #[error("no agent test is called `{name}`; the suite has {}", list(known))]
    UnknownTest {
        /// What was asked for.
        name: String,
        /// The tests of the suite.
        known: Vec<String>,
    },
    /// A trace that belongs nowhere.
    #[error("trace {position} {}; the suite has {}. Name the test in the trace's `test` field, or use `--test NAME`", .named.as_ref().map_or_else(|| "names no test".to_owned(), |name| format!("names the test `{name}`, which is not in the suite")), list(known))]
    Homeless {
        /// Which trace, from 1.
        position: usize,
        /// The test it names.
        named: Option<String>,
        /// The tests of the suite.
        known: Vec<String>,
    },
    /// The suite has nothing that traces could be scored with.
    #[error("the suite has no agent test to score{}", if *filtered { " (with this filter)" } else { "" })]
    NothingToScore {
        /// Whether a filter left nothing.
        filtered: bool,
    },
}

fn list(known: &[String]) -> String {
    let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() {
        "no agent test".to_owned()
    } else {
        quoted.join(", ")
    }
}

/// Applies a suite's expectations and gates to recorded traces.
///
/// # Errors
/// A trace that belongs to no test, or nothing to score.
pub fn score(
    suite: &Suite,
    traces: Vec<Trace>,
    settings: &ScoreSettings,
) -> Result<Report, ScoreError> {
    let servers = suite.known_servers();
    let threads = parallel::threads_for(traces.len(), SHARED_FROM);
    let cells = cells(suite, traces, settings)?;
    // Few tests with many runs are shared out run by run, many tests test by test.
    let (of_tests, of_runs) = if cells.len() < threads {
        (1, threads)
    } else {
        (threads, 1)
    };
    let context = JudgeContext {
        servers: &servers,
        prices: &suite.prices,
        no_evidence: suite.options.no_evidence,
        judges: !settings.no_judges,
    };
    let reports = parallel::map(of_tests, cells, |cell| {
        cell.judge(&suite.name, &context, of_runs)
    });
    Ok(Report::conclude(reports, false))
}

/// The traces of one test and one model, which are judged together.
pub(crate) struct Cell<'a> {
    pub test: &'a AgentTest,
    pub model: Option<String>,
    pub label: String,
    pub traces: Vec<(u64, Trace)>,
}

impl Cell<'_> {
    pub fn judge(self, suite: &str, context: &JudgeContext<'_>, threads: usize) -> TestReport {
        let several = self.traces.len() > 1;
        let model = self.model.as_deref();
        let outcomes = parallel::map(threads, self.traces.iter().collect(), |(_, trace)| {
            RunOutcome::of_agent(context, self.test, trace)
        });
        let mut judge = CaseJudge::new(*context, self.test, model, &self.label);
        for ((index, trace), outcome) in self.traces.iter().zip(&outcomes) {
            judge.observe(*index, trace, &outcome.facts);
        }
        let verdict = judge.finish();
        let runs = self.traces.into_iter().zip(outcomes);
        let runs = runs.map(|((index, trace), outcome)| {
            outcome.into_record(index, plan::row(&self.label, several, index), trace)
        });
        TestReport {
            name: self.test.name.clone(),
            kind: Kind::Agent,
            model: self.model.clone(),
            suite: suite.to_owned(),
            verdict: verdict.verdict,
            runs: runs.collect(),
            gates: verdict.gates,
            no_evidence: verdict.no_evidence,
            saved_runs: None,
            spend: None,
            label: self.label.clone(),
        }
    }
}

/// Sorts traces by test and model, in the order of the suite.
pub(crate) fn cells<'a>(
    suite: &'a Suite,
    traces: Vec<Trace>,
    settings: &ScoreSettings,
) -> Result<Vec<Cell<'a>>, ScoreError> {
    let tests: Vec<&AgentTest> = suite.agent_tests().collect();
    let homes = find_homes(suite, &tests, &traces, settings)?;
    let servers = suite.known_servers();
    let mut by_test: Vec<Vec<Trace>> = tests.iter().map(|_| Vec::new()).collect();
    for (mut trace, home) in traces.into_iter().zip(homes) {
        let Some(home) = home else { continue };
        trace.split_wire_names(&servers);
        by_test[home].push(trace);
    }
    let taken = |name: &str| {
        let is_it = |test: &&Test| matches!(test, Test::Agent(agent) if agent.name == name);
        suite
            .tests
            .iter()
            .find(is_it)
            .is_some_and(|test| settings.filter.selects(test))
            && settings.test.as_deref().is_none_or(|wanted| wanted == name)
    };
    let mut cells = Vec::new();
    for (test, traces) in tests
        .iter()
        .zip(by_test)
        .filter(|(test, _)| taken(&test.name))
    {
        let groups = by_model(traces);
        let several_models = groups.len() > 1;
        for (model, traces) in groups {
            let label = plan::label(&test.name, model.as_deref(), several_models);
            cells.push(Cell {
                test,
                model,
                label,
                traces: in_run_order(traces),
            });
        }
    }
    if cells.is_empty() {
        return Err(ScoreError::NothingToScore {
            filtered: !tests.is_empty(),
        });
    }
    Ok(cells)
}

/// The index of each trace's test; nothing for a direct tool call, which `run --traces` writes too
/// and gates do not judge.
fn find_homes(
    suite: &Suite,
    tests: &[&AgentTest],
    traces: &[Trace],
    settings: &ScoreSettings,
) -> Result<Vec<Option<usize>>, ScoreError> {
    let known = || tests.iter().map(|test| test.name.clone()).collect();
    // A name that two tests have means the first.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, test) in tests.iter().enumerate() {
        places.entry(&test.name).or_insert(place);
    }
    let position = |name: &str| places.get(name).copied();
    if let Some(name) = &settings.test {
        let home = position(name).ok_or_else(|| ScoreError::UnknownTest {
            name: name.clone(),
            known: known(),
        })?;
        return Ok(vec![Some(home); traces.len()]);
    }
    let direct = suite
        .tests
        .iter()
        .filter(|test| !matches!(test, Test::Agent(_)));
    let direct_calls: HashSet<&str> = direct.map(Test::name).collect();
    traces
        .iter()
        .enumerate()
        .map(|(index, trace)| {
            let named = trace.test.as_deref();
            if named.is_some_and(|name| direct_calls.contains(name)) {
                return Ok(None);
            }
            let home = match (named, tests) {
                (Some(name), _) => position(name),
                // With one test there is no question.
                (None, [_]) => Some(0),
                (None, _) => None,
            };
            home.map(Some).ok_or_else(|| ScoreError::Homeless {
                position: index + 1,
                named: named.map(Into::into),
                known: known(),
            })
        })
        .collect()
}

/// Traces of different models are different runs of the test; models in the order of their first
/// trace. No trace gives one empty group.
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

/// By `run`, where all traces have one and no two the same; else as they came, numbered from 1.
fn in_run_order(mut traces: Vec<Trace>) -> Vec<(u64, Trace)> {
    // Stable, so that traces without a number, or with the same one, stay in file order.
    traces.sort_by_key(|trace| trace.run.unwrap_or(u64::MAX));
    let numbers: Vec<u64> = traces.iter().filter_map(|trace| trace.run).collect();
    let clear = numbers.len() == traces.len() && numbers.windows(2).all(|pair| pair[0] < pair[1]);
    traces
        .into_iter()
        .zip(1..)
        .map(|(trace, position)| (trace.run.filter(|_| clear).unwrap_or(position), trace))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(run: Option<u64>) -> Trace {
        Trace {
            run,
            ..Trace::default()
        }
    }

    fn indices(runs: &[Option<u64>]) -> Vec<(u64, Option<u64>)> {
        let traces = runs.iter().map(|run| trace(*run)).collect();
        in_run_order(traces)
            .into_iter()
            .map(|(index, trace)| (index, trace.run))
            .collect()
    }

    #[test]
    fn runs_go_by_their_number_else_by_file_order() {
        assert_eq!(indices(&[Some(3), Some(1)]), [(1, Some(1)), (3, Some(3))]);
        assert_eq!(indices(&[None, None]), [(1, None), (2, None)]);
        assert_eq!(
            indices(&[Some(2), Some(2), Some(1)]),
            [(1, Some(1)), (2, Some(2)), (3, Some(2))]
        );
        assert_eq!(indices(&[None, Some(5)]), [(1, Some(5)), (2, None)]);
    }
}
