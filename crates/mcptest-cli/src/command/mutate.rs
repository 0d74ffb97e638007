//! `mcptest mutate`.

use std::fmt::Write as _;

use clap::ValueEnum as _;
use mcptest_json::text::{one_line, shorten};
use mcptest_report::ExitCode;
use mcptest_runner::{Filter, MutatedTest, MutationReport, ScoreSettings};
use mcptest_suite::Purpose;
use mcptest_trace::verdict::Verdict;

use super::score::{read_all, trace_format};
use crate::cli::{Format, MutateArgs, TraceFormatArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::secrets;
use crate::suites;

pub fn mutate(args: &MutateArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let loaded = suites::load_one(&args.traces.suite, Purpose::Score, gates)?;
    output.problems(&loaded.warnings);
    let settings = ScoreSettings {
        test: args.traces.test.clone(),
        filter: Filter::from(&args.filter),
        no_judges: true,
        ..ScoreSettings::default()
    };
    let (output_format, trace_names) = split_formats(&args.format)?;
    let format = trace_format(&trace_names, args.format.map.as_deref())?;
    let traces = read_all(args.traces.sources(), &format)?;
    let report = mcptest_runner::mutate(&loaded.suite, traces, &settings)
        .map_err(|error| error.to_string())?;
    let redactor = secrets::redactor(loaded.suite.secrets.iter().cloned());
    let text = match output_format {
        Format::Json => {
            let value = serde_json::to_value(&report).map_err(|error| error.to_string())?;
            format!("{value:#}\n")
        }
        Format::Pretty => pretty(&report, args.killed),
    };
    output.result(&redactor.text(&text));
    Ok(exit_code(&report, args.min_score))
}

/// The output format, and the names of trace formats.
fn split_formats(args: &TraceFormatArgs) -> Result<(Format, Vec<String>), String> {
    let (outputs, traces): (Vec<String>, Vec<String>) = args
        .format
        .iter()
        .cloned()
        .partition(|name| Format::from_str(name, false).is_ok());
    let format = match outputs.as_slice() {
        [] => Format::Pretty,
        [name] => Format::from_str(name, false)?,
        _ => return Err("`--format` names two output formats; give one".to_owned()),
    };
    Ok((format, traces))
}

/// A test that does not pass as it is cannot be broken: it shows nothing.
fn exit_code(report: &MutationReport, least: Option<u64>) -> ExitCode {
    let below = |test: &MutatedTest| {
        least.is_some_and(|least| test.score.is_some_and(|score| score < least))
    };
    if report.tests.iter().any(below) {
        ExitCode::Failed
    } else if report
        .tests
        .iter()
        .any(|test| test.baseline != Verdict::Pass)
    {
        ExitCode::NoEvidence
    } else {
        ExitCode::Passed
    }
}

fn pretty(report: &MutationReport, with_killed: bool) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for test in &report.tests {
        let name = one_line(&test.name);
        let Some(score) = test.score else {
            let _ = writeln!(
                out,
                "{name}: not mutated, its traces do not pass as they are"
            );
            continue;
        };
        let _ = writeln!(
            out,
            "{name}: {} of {} mutants killed ({score}%)",
            test.killed, test.mutants
        );
        for (judge, kills) in &test.kills_by {
            let _ = writeln!(out, "  {judge} noticed {kills}");
        }
        for mutant in &test.details {
            let survived = mutant.killed_by.is_empty();
            if !survived && !with_killed {
                continue;
            }
            let outcome = if survived {
                "SURVIVED".to_owned()
            } else {
                format!("killed by {}", mutant.killed_by.join(", "))
            };
            let _ = writeln!(out, "  {outcome}: {}", one_line(&mutant.mutation));
            if survived {
                for line in &mutant.diff {
                    let _ = writeln!(out, "    {}", shorten(&one_line(line), 160));
                }
            }
        }
    }
    match report.score {
        Some(score) => {
            let _ = writeln!(
                out,
                "\nmutation score {score}% ({} of {} mutants killed)",
                report.killed, report.mutants
            );
        }
        None => out.push_str("\nno mutants\n"),
    }
    out
}
