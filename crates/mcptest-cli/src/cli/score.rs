//! The command line of `score`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use mcptest_runner::PartOf;

use super::shared::{EXECUTION, OUTPUT, TRACES};
use super::{FilterArgs, ReportArgs, TraceArgs, TraceFormatArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
A trace file is one JSON object, an array of them, JSON Lines, or a cassette; `-` is standard input.
Files of other tools (messages of providers, spans, sessions of coding agents, results of benchmarks)
are recognised by their content. Files that are compressed with gzip or Zstandard are decompressed.
Of a folder, all *.json, *.jsonl, *.ndjson and *.eval files are read, also with .gz or .zst, in the
order of their names (run-2 comes before run-10) and without hidden ones.

A line of JSON Lines that is not a trace is reported with its place, counted and skipped; then the
exit code is never 0, and 3 if nothing else failed. With --strict, it is an error (exit code 2).

With --partial, a part of the traces is scored to a partial result, on any machine. `mcptest report
merge` joins all of them, in any order, into the bytes of `score --summary --reporter json` over all
traces. The exit code is 0, or 3 after a broken line; the merge has that of the verdicts.

Examples:
  mcptest score suite.yml run1.json run2.json
  mcptest score suite.yml --trace traces.jsonl --reporter json
  mcptest score suite.yml --trace runs/ 'more/**/*.jsonl.gz' --threads 8
  mcptest score suite.yml --trace sessions/ --format claude-code --test 'fixes the bug'
  mcptest score suite.yml --trace day-1/ --partial day-1.part
  mcptest report merge day-*.part --output report.json
  other-tool | mcptest score suite.yml --test 'weather selection' --trace -")]
pub struct ScoreArgs {
    #[command(flatten)]
    pub traces: TraceArgs,
    /// Skip assertions with `llm-judge` and `llm-jury`.
    #[arg(long, help_heading = EXECUTION)]
    pub no_judges: bool,
    #[command(flatten)]
    pub format: TraceFormatArgs,
    /// Write a row for each trace to this file, as JSON Lines.
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", conflicts_with = "partial")]
    pub out: Option<PathBuf>,
    /// Treat a broken line in a trace file as an error.
    #[arg(long, help_heading = TRACES)]
    pub strict: bool,
    /// Leave out the rows of runs: the report has totals.
    #[arg(long, help_heading = OUTPUT)]
    pub summary: bool,
    /// Write a partial result for `mcptest report merge`, not a report.
    #[arg(long, help_heading = OUTPUT, value_name = "FILE", conflicts_with_all = ["reporter", "summary", "no_timing"])]
    pub partial: Option<PathBuf>,
    /// The place of the partial result, where traces do not show it.
    #[arg(long, help_heading = OUTPUT, value_name = "I/N", value_parser = part_of, requires = "partial")]
    pub part: Option<PartOf>,
    /// Number of threads; default: one for each core.
    #[arg(long, help_heading = EXECUTION, value_name = "N", visible_alias = "jobs")]
    pub threads: Option<NonZeroUsize>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Treat warnings about the suite as errors.
    #[arg(long, help_heading = EXECUTION)]
    pub deny_warnings: bool,
    #[command(flatten)]
    pub report: ReportArgs,
}

fn part_of(text: &str) -> Result<PartOf, String> {
    let part = text.split_once('/').and_then(|(number, of)| {
        Some(PartOf {
            number: number.parse().ok()?,
            of: of.parse().ok()?,
        })
    });
    part.filter(|part| (1..=part.of).contains(&part.number))
        .ok_or_else(|| "expected I/N with I from 1 to N, as in `3/8`".to_owned())
}
