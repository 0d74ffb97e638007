//! The head: the part of a page's data that is read when it is opened.
//!
//! It has one entry per test, with the runs as columns: a string of verdicts, and lists of numbers.
//! `comparison` is a comparison with baselines, as `report --compare --reporter json` writes it,
//! and `null` without one.

use std::io::Write;

use mcptest_events::{CaseId, Kind, Replayed, RunTotals, Spend};
use mcptest_trace::outcome::{TargetInfo, Unit};
use mcptest_trace::verdict::Verdict;
use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use super::blocks::{Layout, TestLayout};
use super::reasons::reasons;
use crate::broken_lines::BrokenLines;
use crate::exit_code::ExitCode;
use crate::gate_meaning::GateMeaning;
use crate::model::Shard;
use crate::packed_rows::PackedRows;
use crate::report::{Report, TestReport};
use crate::reporter::plots::Plots;
use crate::reporter::{RenderError, Style};
use crate::row::RunRow;

/// The version of the head. The page and the data come from one program, so it is only for those
/// who read pages with other programs.
const FORMAT: u32 = 1;

pub(super) fn write(
    report: &Report,
    layout: Option<&Layout>,
    comparison: Option<&impl Serialize>,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let timed = report.is_timed();
    let head = Head {
        format: FORMAT,
        mcptest: env!("CARGO_PKG_VERSION"),
        verdict: report.verdict,
        exit_code: report.exit_code,
        interrupted: report.interrupted,
        duration_ms: report.timing.as_ref().map(|timing| timing.duration_ms),
        spend: report.spend.as_ref(),
        replayed: report.replayed.as_ref(),
        gates: meanings(report, style),
        tests: Tests {
            report,
            layout,
            timed,
        },
        not_run: &report.not_run,
        broken_lines: report.broken_lines.as_ref(),
        shard: report.shard.as_ref(),
        comparison,
    };
    serde_json::to_writer(out, &head).map_err(|error| match error.is_io() {
        true => RenderError::Write(error.into()),
        false => RenderError::Record(error.to_string()),
    })
}

#[derive(Serialize)]
struct Head<'a, C> {
    format: u32,
    mcptest: &'static str,
    verdict: Verdict,
    exit_code: ExitCode,
    interrupted: bool,
    duration_ms: Option<u64>,
    spend: Option<&'a Spend>,
    replayed: Option<&'a Replayed>,
    gates: Vec<Meaning>,
    tests: Tests<'a>,
    not_run: &'a [CaseId],
    broken_lines: Option<&'a BrokenLines>,
    shard: Option<&'a Shard>,
    comparison: Option<&'a C>,
}

/// A gate that the report has, in words.
#[derive(Serialize)]
struct Meaning {
    block: &'static str,
    meaning: &'static str,
    targets: Vec<TargetMeaning>,
}

#[derive(Serialize)]
struct TargetMeaning {
    name: &'static str,
    unit: &'static str,
    /// The least and the greatest value; `null` if there is none.
    range: Option<(f64, Option<f64>)>,
    doc: &'static str,
}

/// The meanings of the gates that occur in a report.
fn meanings(report: &Report, style: Style) -> Vec<Meaning> {
    let occurs = |block: &str| {
        let gates = report.tests.iter().flat_map(|test| &test.gates);
        gates.into_iter().any(|gate| gate.block == block)
    };
    let known = style.gates.iter().filter(|gate| occurs(gate.block));
    let mut meanings: Vec<Meaning> = known.map(meaning).collect();
    if occurs(mcptest_catalog::quality::BLOCK) {
        meanings.push(quality());
    }
    meanings
}

fn meaning(gate: &GateMeaning) -> Meaning {
    let target = |target: &TargetInfo| TargetMeaning {
        name: target.name,
        unit: match target.unit {
            Unit::Percent => "percent",
            Unit::Count => "count",
            Unit::Fraction => "fraction",
            Unit::Tokens => "tokens",
            Unit::Dollars => "dollars",
            Unit::Milliseconds => "milliseconds",
            Unit::Flag => "flag",
            Unit::Points => "points",
            Unit::List => "list",
        },
        range: target
            .unit
            .range()
            .map(|(least, greatest)| (least, Some(greatest).filter(|it| it.is_finite()))),
        doc: target.doc,
    };
    Meaning {
        block: gate.block,
        meaning: gate.summary,
        targets: gate.targets.iter().map(target).collect(),
    }
}

/// The meaning of `tool_quality:`, which is not a gate of agents.
fn quality() -> Meaning {
    let target = |(name, doc): &(&'static str, &'static str)| {
        let is_score = name.ends_with("_score");
        TargetMeaning {
            name,
            unit: if is_score { "fraction" } else { "count" },
            range: Some((0.0, is_score.then_some(1.0))),
            doc,
        }
    };
    Meaning {
        block: mcptest_catalog::quality::BLOCK,
        meaning: "How well the tools of a server describe themselves to a model.",
        targets: mcptest_catalog::quality::TARGETS
            .iter()
            .map(target)
            .collect(),
    }
}

/// The tests, serialised one at a time.
struct Tests<'a> {
    report: &'a Report,
    layout: Option<&'a Layout>,
    timed: bool,
}

impl Serialize for Tests<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tests = &self.report.tests;
        let mut list = serializer.serialize_seq(Some(tests.len()))?;
        for (at, test) in tests.iter().enumerate() {
            let layout = self.layout.and_then(|layout| layout.test(at));
            list.serialize_element(&entry(test, layout, self.timed).map_err(S::Error::custom)?)?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    label: &'a str,
    suite: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
    kind: Kind,
    verdict: Verdict,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    undecided: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spend: Option<&'a Spend>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_totals: Option<&'a RunTotals>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<(&'a str, Verdict)>,
    runs: Columns<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<&'a [usize]>,
    #[serde(skip_serializing_if = "Plots::is_empty")]
    plots: Plots,
}

/// The entry of a test. The suite's file is shown with times only, as in JSON.
fn entry<'a>(
    test: &'a TestReport,
    layout: Option<&'a TestLayout>,
    timed: bool,
) -> Result<Entry<'a>, crate::store::StoreError> {
    Ok(Entry {
        name: &test.id.name,
        label: &test.label,
        suite: &test.id.suite,
        model: test.id.model.as_deref(),
        file: test.file.as_deref().filter(|_| timed),
        tags: &test.tags,
        kind: test.kind,
        verdict: test.verdict,
        undecided: test.is_undecided(),
        reasons: reasons(test)?,
        duration_ms: timed.then(|| test.duration_ms()),
        spend: test.spend.as_ref(),
        saved_runs: test.saved_runs,
        run_totals: test.run_totals.as_ref(),
        gates: test
            .gates
            .iter()
            .map(|gate| (gate.block.as_str(), gate.verdict))
            .collect(),
        runs: Columns {
            runs: &test.runs,
            timed,
        },
        block: layout.map(|layout| layout.first),
        starts: layout
            .map(|layout| layout.starts.as_slice())
            .filter(|starts| starts.len() > 1),
        plots: Plots::of(test)?,
    })
}

/// The runs of a test as columns. A column is absent if no run has the figure.
struct Columns<'a> {
    runs: &'a PackedRows,
    timed: bool,
}

impl Serialize for Columns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written {
            /// `P`, `F`, `N` or `E` for each run.
            verdicts: String,
            /// The numbers of the runs, unless they are 1, 2, 3, …
            #[serde(skip_serializing_if = "Vec::is_empty")]
            numbers: Vec<u64>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            tokens: Vec<Option<u64>>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            ms: Vec<u64>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            calls: Vec<u32>,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            errors: Vec<u32>,
        }
        let runs = self.runs;
        let are_counted = runs.iter().zip(1_u64..).all(|(run, at)| run.index() == at);
        Written {
            verdicts: runs.iter().map(|run| letter(run.verdict())).collect(),
            numbers: column(runs, !are_counted, RunRow::index),
            tokens: column(runs, runs.iter().any(|run| run.tokens().is_some()), |run| {
                run.tokens()
            }),
            ms: column(runs, self.timed, RunRow::duration_ms),
            calls: column(runs, runs.iter().any(|run| run.calls() > 0), RunRow::calls),
            errors: column(
                runs,
                runs.iter().any(|run| run.errors() > 0),
                RunRow::errors,
            ),
        }
        .serialize(serializer)
    }
}

/// A figure of all runs; empty if it is not wanted.
fn column<T>(runs: &PackedRows, wanted: bool, figure: impl Fn(&RunRow) -> T) -> Vec<T> {
    match wanted {
        true => runs.iter().map(|run| figure(&run)).collect(),
        false => Vec::new(),
    }
}

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Pass => 'P',
        Verdict::Fail => 'F',
        Verdict::NoEvidence => 'N',
        Verdict::Error => 'E',
    }
}
