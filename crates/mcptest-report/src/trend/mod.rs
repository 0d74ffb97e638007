//! The figures of reports over time, and the tests that change their verdict from one to the next.
//!
//! A test *flips* where it passed in one report and failed in the next one that judged it, or the
//! other way round. A report without evidence for a test, or with an error, neither is a flip nor
//! hides one. Tests are ranked by the number of their flips, then by the number of reports in which
//! only some of their runs passed.

mod html;
mod pretty;

use std::collections::BTreeMap;
use std::io::Write;

use mcptest_events::CaseId;
use mcptest_trace::verdict::Verdict;
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::SCHEMA_VERSION;
use crate::report::{Report, TestReport};
use crate::reporter::{RenderError, Style};

/// The gate and the target that selection F1 is from.
const F1: (&str, &str) = ("equal_function_sets", "tool_selection.f1");

/// The figures of several reports.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Trend {
    /// The version of the format.
    pub schema_version: u32,
    /// Each report, the oldest first.
    pub points: Vec<TrendPoint>,
    /// True if all reports have the same tests. Otherwise a change of a figure may be one of its
    /// tests.
    pub same_tests: bool,
    /// The tests that flipped, or of which only some runs passed, the most flaky first.
    pub flaky: Vec<FlakyTest>,
}

/// The figures of one report. A figure that the report does not have is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TrendPoint {
    /// The id of a run in the history, or the name of a file.
    pub name: String,
    /// The gravest of all verdicts.
    pub verdict: Verdict,
    /// Set if the run was interrupted or killed: only finished tests are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Tests that were decided.
    pub tests: u64,
    /// Tests that passed.
    pub passed: u64,
    /// The share of tests that passed, from 0 to 1.
    pub pass_rate: Option<f64>,
    /// All runs of these tests.
    pub runs: u64,
    /// The share of runs that passed, from 0 to 1.
    pub run_pass_rate: Option<f64>,
    /// The mean number of tokens per run, over the runs that report one.
    pub tokens_per_run: Option<f64>,
    /// The cost of the models in US dollars.
    pub usd: Option<f64>,
    /// The mean selection F1 of the tests that have one, in percent.
    pub f1: Option<f64>,
    /// The share of tests with several runs of which some passed and some did not, from 0 to 1.
    pub flakiness: Option<f64>,
}

/// A test whose verdict depends on the report or on the run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FlakyTest {
    /// The test and its model.
    #[serde(flatten)]
    pub id: CaseId,
    /// The number of changes between pass and fail.
    pub flips: u64,
    /// The reports that judged the test.
    pub judged: u64,
    /// The share of pairs of judged reports in a row with a flip; `null` with one report.
    pub flip_rate: Option<f64>,
    /// The reports in which some runs passed and some did not.
    pub mixed: u64,
    /// The verdict in each report; `null` where the test is missing or undecided.
    pub verdicts: Vec<Option<Verdict>>,
}

/// Collects reports, one at a time: nothing of a report is kept but its figures.
#[derive(Debug, Default)]
pub struct TrendFold {
    points: Vec<TrendPoint>,
    tests: BTreeMap<CaseId, TestVerdicts>,
}

/// The course of one test. Positions are those of `points`.
#[derive(Debug, Default)]
struct TestVerdicts {
    verdicts: Vec<(usize, Verdict)>,
    mixed: u64,
}

impl TrendFold {
    /// Adds a report, which must be newer than those before. With a suite, only its tests count.
    /// Returns false if the report has no test to count; it is then left out.
    pub fn add(&mut self, name: &str, report: &Report, suite: Option<&str>) -> bool {
        let is_meant = |test: &&TestReport| suite.is_none_or(|suite| test.id.suite == suite);
        let tests = report.tests.iter().filter(is_meant);
        let tests: Vec<&TestReport> = tests.filter(|test| !test.is_undecided()).collect();
        if tests.is_empty() {
            return false;
        }
        let at = self.points.len();
        for test in &tests {
            let course = self.tests.entry(test.id.clone()).or_default();
            course.verdicts.push((at, test.verdict));
            course.mixed += u64::from(is_mixed(test));
        }
        self.points.push(point(name, report, &tests));
        true
    }

    /// The trend of all reports.
    #[must_use]
    pub fn finish(self) -> Trend {
        let reports = self.points.len();
        let is_everywhere = |course: &TestVerdicts| course.verdicts.len() == reports;
        let same_tests = self.tests.values().all(is_everywhere);
        let tests = self.tests.into_iter();
        let mut flaky: Vec<FlakyTest> = tests
            .map(|(id, course)| flaky(id, &course, reports))
            .filter(|test| test.flips > 0 || test.mixed > 0)
            .collect();
        // Stable: equally flaky tests stay in the order of their names.
        flaky.sort_by_key(|test| (u64::MAX - test.flips, u64::MAX - test.mixed));
        Trend {
            schema_version: SCHEMA_VERSION,
            points: self.points,
            same_tests,
            flaky,
        }
    }
}

fn is_mixed(test: &TestReport) -> bool {
    (1..test.run_count()).contains(&test.passed_runs())
}

/// A part of a whole that is not empty.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn point(name: &str, report: &Report, tests: &[&TestReport]) -> TrendPoint {
    let count = |is: &dyn Fn(&TestReport) -> bool| tests.iter().filter(|it| is(it)).count() as u64;
    let passed = count(&|test| test.verdict == Verdict::Pass);
    let runs: u64 = tests.iter().map(|test| test.run_count()).sum();
    let passed_runs = tests.iter().map(|test| test.passed_runs()).sum();
    let repeated = count(&|test| test.run_count() > 1);
    let (tokens, with_tokens) = tests
        .iter()
        .map(|test| tokens(test))
        .fold((0_u64, 0_u64), |(tokens, runs), (more, more_runs)| {
            (tokens.saturating_add(more), runs + more_runs)
        });
    let f1: Vec<f64> = tests.iter().filter_map(|test| f1(test)).collect();
    let spends = tests.iter().filter_map(|test| test.spend);
    TrendPoint {
        name: name.to_owned(),
        verdict: Verdict::worst(tests.iter().map(|test| test.verdict)),
        interrupted: report.interrupted,
        tests: tests.len() as u64,
        passed,
        pass_rate: share(passed, tests.len() as u64),
        runs,
        run_pass_rate: share(passed_runs, runs),
        tokens_per_run: share(tokens, with_tokens),
        usd: mcptest_events::Spend::total(spends).and_then(|spend| spend.usd),
        f1: (!f1.is_empty()).then(|| f1.iter().sum::<f64>() / f1.len() as f64),
        flakiness: share(count(&is_mixed), repeated),
    }
}

/// The tokens of a test, and the number of runs that report them.
fn tokens(test: &TestReport) -> (u64, u64) {
    if let Some(totals) = test.run_totals {
        return (totals.tokens, totals.runs_with_tokens);
    }
    let known = test.runs.iter().filter_map(|run| run.tokens());
    known.fold((0, 0), |(sum, runs), tokens| {
        (sum.saturating_add(tokens), runs + 1)
    })
}

fn f1(test: &TestReport) -> Option<f64> {
    let gate = test.gates.iter().find(|gate| gate.block == F1.0)?;
    gate.values.get(F1.1)?.as_f64()
}

fn flaky(id: CaseId, course: &TestVerdicts, reports: usize) -> FlakyTest {
    let is_judged = |(_, verdict): &&(usize, Verdict)| {
        matches!(verdict, Verdict::Pass | Verdict::Fail) // The others are not about the test.
    };
    let judged: Vec<Verdict> = course
        .verdicts
        .iter()
        .filter(is_judged)
        .map(|(_, verdict)| *verdict)
        .collect();
    let flips = judged.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    let mut verdicts = vec![None; reports];
    for (at, verdict) in &course.verdicts {
        // A position is below the number of points, which are the reports.
        verdicts[*at] = Some(*verdict);
    }
    FlakyTest {
        id,
        flips,
        judged: judged.len() as u64,
        flip_rate: share(flips, (judged.len() as u64).saturating_sub(1)),
        mixed: course.mixed,
        verdicts,
    }
}

type Render = fn(&Trend, Style, &mut dyn Write) -> Result<(), RenderError>;

/// The reporters that can show a trend.
const RENDERERS: [(&str, Render); 3] = [
    ("pretty", |trend, style, out| {
        Ok(pretty::render(trend, style, out)?)
    }),
    ("json", |trend, _, out| {
        Ok(crate::reporter::json::write_pretty(trend, out)?)
    }),
    ("html", |trend, _, out| html::render(trend, out)),
];

/// Writes a trend with the reporter of this name.
///
/// # Errors
/// A reporter without a form for trends, or an output that cannot be written.
pub fn render(
    name: &str,
    trend: &Trend,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let found = RENDERERS.iter().find(|(known, _)| *known == name);
    let Some((_, render)) = found else {
        return Err(RenderError::NoTrend {
            name: name.to_owned(),
            known: RENDERERS.iter().map(|(known, _)| *known).collect(),
        });
    };
    render(trend, style, out)
}

#[cfg(test)]
mod tests;
