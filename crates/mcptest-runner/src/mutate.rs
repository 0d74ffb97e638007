//! Whether a suite's assertions can fail: recorded traces are changed a little, and the judgement
//! should change with them.

use mcptest_gates::mutate::{Mutation, mutations};
use mcptest_numbers::percent;
use mcptest_report::model::TestReport;
use mcptest_suite::Suite;
use mcptest_trace::parallel;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;
use serde::Serialize;

use crate::score::{Cell, ScoreError, ScoreSettings, cells};
use crate::verdicts::JudgeContext;

/// What came of mutating a suite's traces.
#[derive(Debug, Clone, Serialize)]
pub struct MutationReport {
    /// The version of this format.
    pub schema_version: u32,
    /// Mutants over all tests.
    pub mutants: u64,
    /// Those that at least one assertion noticed.
    pub killed: u64,
    /// Killed of all, whole percent, rounded down; nothing without mutants.
    pub score: Option<u64>,
    /// Each test.
    pub tests: Vec<MutatedTest>,
}

/// One test with one model.
#[derive(Debug, Clone, Serialize)]
pub struct MutatedTest {
    /// The test's name, with the model when models fan out.
    pub name: String,
    /// The verdict on the traces as they are. Only a pass can be broken.
    pub baseline: Verdict,
    /// How many mutants there were.
    pub mutants: u64,
    /// How many were noticed.
    pub killed: u64,
    /// Killed of all, whole percent, rounded down; nothing without mutants.
    pub score: Option<u64>,
    /// How many mutants each gate (and `expect`) noticed, in the order of the test.
    pub kills_by: Vec<(String, u64)>,
    /// Every mutant.
    pub details: Vec<MutantReport>,
}

/// One mutant.
#[derive(Debug, Clone, Serialize)]
pub struct MutantReport {
    /// The kind of change.
    pub kind: &'static str,
    /// The change in words.
    pub mutation: String,
    /// The gates (and `expect`) that noticed. None: it survived.
    pub killed_by: Vec<String>,
    /// What changed in the first run that it changes: lines with `-` and `+`.
    pub diff: Vec<String>,
}

/// Changes the traces of each test in every way there is, one at a time and in all runs alike, and
/// judges again.
///
/// All runs alike, because the question is whether the suite would notice an agent that behaves so,
/// not one slip among many runs that a pooled figure may rightly forgive.
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
        // No opinion was ever given on a text that was changed.
        judges: false,
    };
    let cells = cells(suite, traces, settings)?;
    let tests = parallel::map(parallel::threads(), cells, |cell| {
        mutate_cell(cell, &suite.name, &context)
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

fn mutate_cell(cell: Cell<'_>, suite: &str, context: &JudgeContext<'_>) -> MutatedTest {
    let Cell {
        test,
        model,
        label,
        traces,
    } = cell;
    let judge = |traces: Vec<(u64, Trace)>| {
        Cell {
            test,
            model: model.clone(),
            label: label.clone(),
            traces,
        }
        .judge(suite, context, 1)
    };
    let baseline = judge(traces.clone());
    let mut details = Vec::new();
    if baseline.verdict == Verdict::Pass {
        let plain: Vec<Trace> = traces.iter().map(|(_, trace)| trace.clone()).collect();
        for mutation in mutations(&plain) {
            details.push(try_mutation(&mutation, &traces, &baseline, &judge));
        }
    }
    let noticed = |name: &str| {
        details
            .iter()
            .filter(|mutant| mutant.killed_by.iter().any(|by| by == name))
            .count() as u64
    };
    let mut judges: Vec<String> = baseline
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
        baseline: baseline.verdict,
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
    baseline: &TestReport,
    judge: &dyn Fn(Vec<(u64, Trace)>) -> TestReport,
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
        .any(|(before, after)| broke(before.verdict, after.verdict))
    {
        killed_by.push("expect".to_owned());
    }
    for (before, after) in baseline.gates.iter().zip(&after.gates) {
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

/// The lines of the two traces that differ: what is the same at the start and at the end is left
/// out.
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

/// A trace in lines that people can compare.
fn lines(trace: &Trace) -> Vec<String> {
    let mut lines = Vec::new();
    for (call, result) in trace.tool_calls.iter().zip(trace.results_by_call()) {
        let args = call
            .args
            .as_ref()
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
