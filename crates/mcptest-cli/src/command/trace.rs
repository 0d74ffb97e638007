//! `mcptest trace`.

use std::io::{BufWriter, Write};
use std::path::Path;

use mcptest_events::log::redact_json;
use mcptest_files::AtomicFile;
use mcptest_json::visible::visible;
use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{BrokenLine, ScoreSettings};
use mcptest_suite::Purpose;
use mcptest_trace::trace::Trace;
use mcptest_trace_tools::anonymise::Collector;
use mcptest_trace_tools::infer::Inference;
use mcptest_trace_tools::otlp;
use mcptest_trace_tools::show::{Layout, timeline};
use mcptest_trace_tools::stats::TraceStats;
use serde_json::Value;

use super::score::{trace_files, trace_format};
use crate::cli::{
    AnonymiseArgs, ConvertArgs, ConvertTo, InferArgs, StatsArgs, TraceCommand, TraceCommandArgs,
    TraceInputArgs, TraceShowArgs,
};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::{CheckedStdout, Output};
use crate::secrets;
use crate::suites;

/// The width of a timeline that is not shown on a terminal.
const DEFAULT_WIDTH: usize = 160;

pub fn trace(args: &TraceCommandArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        TraceCommand::Convert(args) => convert(args, output),
        TraceCommand::Show(args) => show(args, output),
        TraceCommand::Stats(args) => stats(args, output),
        TraceCommand::Infer(args) => infer(args, gates, output),
        TraceCommand::Anonymise(args) => anonymise(args, output),
    }
}

fn convert(args: &ConvertArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut lines = Lines::create(args.out.as_deref())?;
    let mut position = 0;
    let code = each_trace(&args.input, output, &mut |trace| {
        let line = match args.to {
            ConvertTo::Native => trace.to_json(),
            ConvertTo::Otlp => otlp::traces_data(&trace, position).to_string(),
        };
        position += 1;
        lines.write(&line)
    })?;
    lines.finish()?;
    Ok(code)
}

fn show(args: &TraceShowArgs, output: &Output) -> Result<ExitCode, Failure> {
    let redactor = secrets::redactor([]);
    let width = output
        .result_style()
        .width
        .map_or(DEFAULT_WIDTH, usize::from);
    let layout = Layout {
        width: (!args.full).then_some(width),
    };
    let mut shown = 0_u64;
    let code = each_trace(&args.input, output, &mut |trace| {
        let is_test = args
            .test
            .as_deref()
            .is_none_or(|name| trace.test.as_deref() == Some(name));
        if is_test && args.run.is_none_or(|run| trace.run == Some(run)) {
            let space = if shown == 0 { "" } else { "\n" };
            output.result(&redactor.text(&format!("{space}{}", timeline(&trace, layout))));
            shown += 1;
        }
        Ok(())
    })?;
    if shown == 0 {
        return Err("no trace to show: none has this test and run"
            .to_owned()
            .into());
    }
    Ok(code)
}

fn stats(args: &StatsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let mut stats = TraceStats::default();
    let code = each_trace(&args.input, output, &mut |trace| {
        stats.observe(&trace);
        Ok(())
    })?;
    let stats = stats.finish();
    let redactor = secrets::redactor([]);
    if args.json {
        // Nothing in the figures fails to serialise.
        let mut value = serde_json::to_value(&stats).unwrap_or_default();
        redactor.value(&mut value);
        output.result(&format!("{value:#}\n"));
    } else {
        output.result(&redactor.text(&stats.to_text()));
    }
    Ok(code)
}

fn anonymise(args: &AnonymiseArgs, output: &Output) -> Result<ExitCode, Failure> {
    // Two passes: a name that the last trace gives away may be in the first one's texts.
    let mut collector = Collector::new(&args.key);
    let mut traces = Vec::new();
    let code = each_trace(&args.input, output, &mut |trace| {
        let json = trace.to_json();
        let value: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        collector.observe(&value);
        traces.push(json);
        Ok(())
    })?;
    let mut anonymiser = collector.finish();
    let mut lines = Lines::create(args.out.as_deref())?;
    for json in traces {
        let mut value: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        anonymiser.apply(&mut value);
        lines.write(&value.to_string())?;
    }
    lines.finish()?;
    let counts = anonymiser.counts();
    let counts = counts.iter().map(|(kind, count)| kind.counted(*count));
    let counts: Vec<String> = counts.collect();
    output.status(&if counts.is_empty() {
        "found no personal data".to_owned()
    } else {
        format!(
            "replaced {}; read the result before you share it",
            counts.join(", ")
        )
    });
    Ok(code)
}

/// A file of JSON Lines, or standard output. Secrets are masked in every line.
struct Lines {
    redactor: Redactor,
    to: Destination,
}

enum Destination {
    Stdout(BufWriter<CheckedStdout>),
    File(String, BufWriter<AtomicFile>),
}

impl Lines {
    fn create(file: Option<&Path>) -> Result<Self, String> {
        let to = match file {
            None => Destination::Stdout(BufWriter::new(CheckedStdout::default())),
            Some(path) => {
                let name = path.display().to_string();
                let file = AtomicFile::create(path);
                let file = file.map_err(|error| format!("cannot write `{name}`: {error}"))?;
                Destination::File(name, BufWriter::new(file))
            }
        };
        Ok(Self {
            redactor: secrets::redactor([]),
            to,
        })
    }

    fn write(&mut self, json: &str) -> Result<(), String> {
        let clean = redact_json(json, &self.redactor);
        let line = visible(clean.as_deref().unwrap_or(json));
        match &mut self.to {
            Destination::Stdout(stdout) => {
                // The error of standard output is kept for the end of the process.
                let _ = writeln!(stdout, "{line}");
                Ok(())
            }
            Destination::File(name, file) => {
                writeln!(file, "{line}").map_err(|error| format!("cannot write `{name}`: {error}"))
            }
        }
    }

    fn finish(self) -> Result<(), String> {
        match self.to {
            Destination::Stdout(mut stdout) => {
                let _ = stdout.flush();
                Ok(())
            }
            Destination::File(name, file) => file
                .into_inner()
                .map_err(|error| error.into_error())
                .and_then(AtomicFile::commit)
                .map_err(|error| format!("cannot write `{name}`: {error}")),
        }
    }
}

/// Calls a function for each trace of the input, in order. Broken lines are reported; the exit code
/// is then not 0.
fn each_trace(
    input: &TraceInputArgs,
    output: &Output,
    take: &mut dyn FnMut(Trace) -> Result<(), String>,
) -> Result<ExitCode, Failure> {
    let redactor = secrets::redactor([]);
    let files = trace_files(&input.files)?;
    let format = trace_format(&input.format.format, input.format.map.as_deref())?;
    let mut failure = None;
    let read = mcptest_runner::each_trace(&files, input.strict, &format, &mut |trace| {
        let taken = take(trace);
        failure = taken.err();
        failure.is_none()
    });
    let broken = read.map_err(|error| redactor.text(&error.to_string()))?;
    if let Some(message) = failure {
        return Err(message.into());
    }
    for line in &broken.first {
        let BrokenLine {
            file,
            line,
            message,
            ..
        } = line;
        output.warning(&redactor.text(&format!("{file}:{line}: skipped: {message}")));
    }
    let more = broken.count - broken.first.len() as u64;
    if more > 0 {
        output.warning(&format!("{more} more lines were skipped"));
    }
    Ok(match broken.count {
        0 => ExitCode::Passed,
        _ => ExitCode::NoEvidence,
    })
}

/// Writes what the traces have in common as a suite. Its bounds are the figures of a first version
/// without bounds, so the suite passes on these traces.
fn infer(args: &InferArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let copy = folder.path().join("traces.jsonl");
    let mut lines = Lines::create(Some(&copy))?;
    let mut inference = Inference::default();
    let mut count = 0_u64;
    let code = each_trace(&args.input, output, &mut |trace| {
        inference.observe(&trace);
        count += 1;
        lines.write(&trace.to_json())
    })?;
    lines.finish()?;
    let suite = inference.finish(args.min_support);
    if suite.tests.is_empty() {
        let message = match count {
            0 => "the input has no trace",
            _ => "no trace is usable: none of the runs could be completed",
        };
        return Err(message.to_owned().into());
    }
    let draft = folder.path().join("mcptest.yml");
    let without_bounds = suite.to_yaml(&|_: &str, _: &str| None);
    mcptest_files::write(&draft, &without_bounds).map_err(|error| error.to_string())?;
    let loaded = suites::load_one(&draft, Purpose::Score, gates)?;
    let redactor = secrets::redactor([]);
    let settings = ScoreSettings::default();
    let scored =
        mcptest_runner::score(&loaded.suite, &[copy], &settings, &redactor, &mut |_| Ok(0));
    let scored = scored.map_err(|error| redactor.text(&error.to_string()))?;
    let figure = |test: &str, target: &str| {
        let cases = scored.cases.iter().filter(|case| case.id.name == test);
        let gates = cases.flat_map(|case| &case.gates);
        let figures = gates.filter_map(|gate| gate.values.get(target)?.as_f64());
        // Of several models, the one that reaches less.
        figures.min_by(f64::total_cmp)
    };
    let yaml = redactor.text(&suite.to_yaml(&figure));
    match &args.out {
        None => output.result(&yaml),
        Some(path) => mcptest_files::write(path, &yaml)
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?,
    }
    Ok(code)
}
