//! Mutation of recorded traces: a small change to a trace should change the judgement, or the
//! suite's assertions cannot fail.

use mcptest_gate_api::mutate::{Mutation, mutations_with};
use mcptest_numbers::percent;
use mcptest_suite::Suite;
use mcptest_trace::parallel;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;
use serde::Serialize;

use crate::score::{JudgedGroup, ScoreError, ScoreSettings, TraceGroup, group_traces};
use crate::verdicts::JudgeContext;

/// The result of mutating a suite's traces.
#[derive(Debug, Clone, Serialize)]
pub struct MutationReport {
    /// The version of this format.
    pub schema_version: u32,
    /// Mutants over all tests.
    pub mutants: u64,
    /// The mutants that at least one assertion detected.
    pub killed: u64,
    /// Killed of all, whole percent, rounded down; `None` without mutants.
    pub score: Option<u64>,
    /// Each test.
    pub tests: Vec<MutatedTest>,
}

/// One test with one model.
#[derive(Debug, Clone, Serialize)]
pub struct MutatedTest {
    /// The test's name, with the model when models fan out.
    pub name: String,
    /// The verdict on the original traces. Only a test that passes is mutated.
    pub baseline: Verdict,
    /// The number of mutants.
    pub mutants: u64,
    /// The number of detected mutants.
    pub killed: u64,
    /// Killed of all, whole percent, rounded down; `None` without mutants.
    pub score: Option<u64>,
    /// The number of mutants that each gate (and `expect`) detected, in the order of the test.
    pub kills_by: Vec<(String, u64)>,
    /// Every mutant.
    pub details: Vec<MutantReport>,
}

/// One mutant.
#[derive(Debug, Clone, Serialize)]
pub struct MutantReport {
    /// The kind of change.
    pub kind: &'static str,
    /// A description of the change.
    pub mutation: String,
    /// The gates (and `expect`) that detected it. Empty if it survived.
    pub killed_by: Vec<String>,
    /// The change to the first run that it changes: lines with `-` and `+`.
    pub diff: Vec<String>,
}

/// Applies every mutation to the traces of each test, one at a time and in all runs alike, and
/// judges them again.
///
/// All runs alike, because the suite should detect an agent that behaves this way. One slip among
/// many runs may rightly be forgiven by a pooled figure.
///
/// # Errors
/// As [`score()`](crate::score()).
pub fn mutate(
    suite: &Suite,
    traces: Vec<Trace>,
    settings: &ScoreSettings,
) -> Result<MutationReport, ScoreError> {
    let servers = suite.known_servers();
    let context = JudgeContext {
        servers: &servers,
        prices: &suite.prices,
        no_evidence: suite.options.no_evidence,
        // There is no opinion on a changed string.
        judges: false,
    };
    let groups = group_traces(suite, traces, settings)?;
    let tests = parallel::map(parallel::threads(), groups, |group| {
        mutate_group(&group, &context)
    });
    let mutants = tests.iter().map(|test: &MutatedTest| test.mutants).sum();
    let killed = tests.iter().map(|test| test.killed).sum();
    Ok(MutationReport {
        schema_version: 1,
        mutants,
        killed,
        score: percent::down(killed, mutants),
        tests,
    })
}

fn mutate_group(group: &TraceGroup<'_>, context: &JudgeContext<'_>) -> MutatedTest {
    let TraceGroup {
        test,
        label,
        traces,
        ..
    } = group;
    let judge = |traces: Vec<(u64, Trace)>| {
        let mutated = TraceGroup {
            test,
            model: group.model.clone(),
            label: label.clone(),
            traces,
        };
        mutated.judge(context)
    };
    let baseline = group.judge(context);
    let mut details = Vec::new();
    if baseline.case.verdict == Verdict::Pass {
        let plain: Vec<Trace> = traces.iter().map(|(_, trace)| trace.clone()).collect();
        for mutation in mutations_with(&plain, &test.attacks) {
            details.push(try_mutation(&mutation, traces, &baseline, &judge));
        }
    }
    let noticed = |name: &str| {
        details
            .iter()
            .filter(|mutant| mutant.killed_by.iter().any(|by| by == name))
            .count() as u64
    };
    let mut judges: Vec<String> = baseline
        .case
        .gates
        .iter()
        .map(|gate| gate.block.clone())
        .collect();
    if !test.expect.is_empty() {
        judges.insert(0, "expect".to_owned());
    }
    let mutants = details.len() as u64;
    let killed = details
        .iter()
        .filter(|mutant| !mutant.killed_by.is_empty())
        .count() as u64;
    MutatedTest {
        name: label.clone(),
        baseline: baseline.case.verdict,
        mutants,
        killed,
        score: percent::down(killed, mutants),
        kills_by: judges
            .iter()
            .map(|name| (name.clone(), noticed(name)))
            .collect(),
        details,
    }
}

fn try_mutation(
    mutation: &Mutation,
    traces: &[(u64, Trace)],
    baseline: &JudgedGroup,
    judge: &dyn Fn(Vec<(u64, Trace)>) -> JudgedGroup,
) -> MutantReport {
    let mut diff = Vec::new();
    let mutated = traces
        .iter()
        .map(|(index, trace)| match mutation.apply(trace) {
            Some(mutant) => {
                if diff.is_empty() {
                    diff = changed_lines(trace, &mutant);
                }
                (*index, mutant)
            }
            None => (*index, trace.clone()),
        })
        .collect();
    let after = judge(mutated);
    let mut killed_by = Vec::new();
    let broke = |before: Verdict, after: Verdict| before == Verdict::Pass && after != Verdict::Pass;
    if baseline
        .runs
        .iter()
        .zip(&after.runs)
        .any(|(before, after)| broke(*before, *after))
    {
        killed_by.push("expect".to_owned());
    }
    for (before, after) in baseline.case.gates.iter().zip(&after.case.gates) {
        if broke(before.verdict, after.verdict) {
            killed_by.push(after.block.clone());
        }
    }
    MutantReport {
        kind: mutation.kind(),
        mutation: mutation.to_string(),
        killed_by,
        diff,
    }
}

/// The lines of the two traces that differ, without equal lines at the start and at the end.
fn changed_lines(before: &Trace, after: &Trace) -> Vec<String> {
    let (before, after) = (lines(before), lines(after));
    let same_start = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let rest = before.len().min(after.len()) - same_start;
    let same_end = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let gone = before[same_start..before.len() - same_end]
        .iter()
        .map(|line| format!("- {line}"));
    let new = after[same_start..after.len() - same_end]
        .iter()
        .map(|line| format!("+ {line}"));
    gone.chain(new).collect()
}

/// A trace as lines that people can compare.
fn lines(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    for (call, result) in trace.tool_calls.iter().zip(trace.results_by_call()) {
        let args = call
            .args()
            .map_or_else(String::new, |args| format!(" {args}"));
        let outcome = match result.and_then(|result| result.is_error) {
            Some(true) => " → error",
            Some(false) => " → ok",
            None => "",
        };
        lines.push(format!("{}{args}{outcome}", call.full_id()));
    }
    if let Some(total) = trace.total_tokens() {
        lines.push(format!("tokens {total}"));
    }
    if let Some(text) = trace.final_text() {
        lines.push(format!("says {text:?}"));
    }
    lines
}
