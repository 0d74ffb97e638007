//! `mcptest tool-bench`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use mcptest_catalog::tool_bench::{
    self, BenchReport, BenchSpec, Confusion, Mutation, MutationReport, Problem, Quality, Score,
    Tdqs,
};
use mcptest_json::text::{one_line, shorten};
use mcptest_numbers::percent;
use mcptest_report::ExitCode;
use mcptest_trace::catalog::Tool;
use mcptest_yaml::{Diagnostic, Diagnostics, Document, suggest};
use serde_json::{Value, json};

use crate::catalogs;
use crate::cli::{Format, ToolBenchArgs, ToolBenchCommand, ToolBenchRunArgs};
use crate::failure::Failure;
use crate::files;
use crate::gates::Gates;
use crate::output::Output;
use crate::sources::{self, Source};

pub fn tool_bench(
    args: &ToolBenchArgs,
    gates: Gates,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match &args.command {
        ToolBenchCommand::Run(args) => run(args, gates, output),
    }
}

fn run(args: &ToolBenchRunArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let sources = sources::named(&args.catalog, gates, output)?;
    let bench = load(args, &sources, output)?;
    output.problems(&bench.warnings);
    let mut mutations = bench.mutations;
    let listed = mutations.len();
    if args.all_mutations {
        mutations.extend(tool_bench::all_mutations(&bench.tools, &mutations));
    }
    let report = tool_bench::run(&bench.tools, &bench.spec.intents, &mutations, &Tdqs);
    let reached = args.min_drop.map(|least| report.reaches(least));
    if args.json || args.how.format == Format::Json {
        output.result(&format!("{:#}\n", machine(&report, args, reached)));
    } else {
        output.result(&pretty(&report, listed, args, reached));
    }
    Ok(match reached {
        None | Some(Some(true)) => ExitCode::Passed,
        Some(Some(false)) => ExitCode::Failed,
        Some(None) => ExitCode::NoEvidence,
    })
}

struct Loaded {
    spec: BenchSpec,
    tools: Vec<Tool>,
    mutations: Vec<Mutation>,
    warnings: Diagnostics,
}

fn load(args: &ToolBenchRunArgs, sources: &[Source], output: &Output) -> Result<Loaded, Failure> {
    let path = &args.spec;
    let name = path.display().to_string();
    let bytes = files::read(path)?;
    let (spec, document) = mcptest_yaml::from_bytes::<BenchSpec>(&name, &bytes)?;
    if let Some(problem) = spec.source_problem().filter(|_| sources.is_empty()) {
        return Err(Diagnostics::from(place(&document, &problem, &[])).into());
    }
    let beside;
    let sources = match (sources, &spec.catalog, &spec.catalog_path) {
        ([], None, Some(file)) => {
            beside = [Source::File(
                path.parent().unwrap_or(Path::new("")).join(file),
            )];
            &beside
        }
        (sources, ..) => sources,
    };
    // Nothing is asked for where the spec itself has the tools.
    let read = catalogs::read(sources, args.catalog.patience.timeout, output)?;
    let (tools, mut warnings) = match (&spec.catalog, read.is_empty()) {
        (Some(catalog), true) => (catalog.0.clone(), Diagnostics::default()),
        _ => read.into_iter().fold(
            Default::default(),
            |(mut tools, mut warnings): (Vec<Tool>, Diagnostics), catalog| {
                tools.extend(catalog.tools);
                warnings.0.extend(catalog.warnings.0);
                (tools, warnings)
            },
        ),
    };
    let mutations = spec.mutations(&tools).map_err(|problems| {
        let placed = problems
            .iter()
            .map(|problem| place(&document, problem, &tools));
        Diagnostics(placed.collect())
    })?;
    let doubts = spec.doubts(&tools);
    let doubts = doubts.iter().map(|doubt| {
        place(&document, doubt, &tools)
            .warning()
            .help("it can never be picked, so it never counts as correct")
    });
    warnings.0.extend(doubts);
    Ok(Loaded {
        spec,
        tools,
        mutations,
        warnings,
    })
}

fn place(document: &Document, problem: &Problem, tools: &[Tool]) -> Diagnostic {
    let diagnostic = document.diagnostic_at(&problem.pointer, &problem.message);
    let near = problem
        .unknown_tool
        .as_deref()
        .and_then(|word| suggest(word, tools.iter().map(Tool::name)));
    match near {
        Some(near) => diagnostic.label(format!("did you mean `{}`?", one_line(near))),
        None => diagnostic,
    }
}

fn machine(report: &BenchReport, args: &ToolBenchRunArgs, reached: Option<Option<bool>>) -> Value {
    let mut value = json!({"schema_version": 1});
    if let (Value::Object(value), Ok(Value::Object(report))) =
        (&mut value, serde_json::to_value(report))
    {
        value.extend(report);
        if let Some(least) = args.min_drop {
            let (above, below) = least.parts();
            value.insert("min_drop".into(), json!(above as f64 / below as f64));
            value.insert("passed".into(), json!(reached.flatten()));
        }
    }
    value
}

fn pretty(
    report: &BenchReport,
    listed: usize,
    args: &ToolBenchRunArgs,
    reached: Option<Option<bool>>,
) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let plural =
        |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let _ = writeln!(
        out,
        "{}, {}",
        plural(report.tools, "tool"),
        plural(report.intents, "intent")
    );
    let _ = writeln!(
        out,
        "accuracy {}",
        accuracy(&report.baseline, report.intents)
    );
    let _ = writeln!(out, "catalog {} words", report.baseline.whitespace_tokens);
    if let Some(quality) = &report.baseline.quality {
        let _ = writeln!(out, "{}", quality_line(quality));
    }
    out.push_str("\nintended → picked\n");
    for cell in &report.confusion {
        confusion(&mut out, cell);
    }
    if !report.mutations.is_empty() {
        out.push_str("\nmutations\n");
    }
    let mut quiet = 0;
    for (index, one) in report.mutations.iter().enumerate() {
        // Nobody wants to read a thousand generated edits that did nothing.
        if index >= listed && one.moved.is_empty() {
            quiet += 1;
        } else {
            mutation(&mut out, one, report);
        }
    }
    if quiet > 0 {
        let _ = writeln!(out, "  {quiet} more moved no pick");
    }
    match (report.max_drop, args.min_drop) {
        (None, None) => {}
        (None, Some(_)) => {
            out.push_str("\nno mutations: nothing shows that descriptions matter for the choice\n")
        }
        (Some(_), least) => {
            let lowest = report.mutations.iter().map(|one| one.score.correct).min();
            let drop = drop_words(report, lowest.unwrap_or(report.baseline.correct));
            let _ = match (least, reached.flatten()) {
                (Some(least), Some(reached)) => {
                    let least = least.percent_text();
                    let verdict = if reached { "PASS" } else { "FAIL" };
                    writeln!(out, "\n{verdict} largest {drop}, wanted at least {least}%")
                }
                _ => writeln!(out, "\nlargest {drop}"),
            };
        }
    }
    out
}

/// `75% (3 of 4), 95% interval 30.1% to 95.4%`.
fn accuracy(score: &Score, intents: u64) -> String {
    format!(
        "{}% ({} of {intents}), 95% interval {:.1}% to {:.1}%",
        percent::down(score.correct, intents).unwrap_or(0),
        score.correct,
        score.wilson.lower * 100.0,
        score.wilson.upper * 100.0
    )
}

fn quality_line(quality: &Quality) -> String {
    let mut line = format!(
        "TDQS mean {:.2}, min {:.2}",
        quality.tdqs_mean, quality.tdqs_min
    );
    if !quality.smells.is_empty() {
        let _ = write!(line, "; smells: {}", counted(&quality.smells));
    }
    line
}

fn counted(smells: &BTreeMap<String, u64>) -> String {
    let smells: Vec<String> = smells
        .iter()
        .map(|(smell, count)| format!("{smell} {count}"))
        .collect();
    smells.join(", ")
}

fn confusion(out: &mut String, cell: &Confusion) {
    let mark = if cell.correct { "    " } else { "MISS" };
    let picked = picked(cell.picked.as_deref());
    let intended = one_line(&cell.intended);
    let _ = writeln!(out, "  {mark} {intended} → {picked}  {}×", cell.count);
    if cell.correct {
        let _ = writeln!(out, "       by {}", words(&cell.picked_words));
        return;
    }
    for query in &cell.queries {
        let _ = writeln!(out, "       \"{}\"", shorten(&one_line(query), 100));
    }
    let _ = writeln!(out, "       {intended} has {}", words(&cell.intended_words));
    if cell.picked.is_some() {
        let _ = writeln!(out, "       {picked} has {}", words(&cell.picked_words));
    }
}

fn words(words: &BTreeSet<String>) -> String {
    if words.is_empty() {
        return "none of the words".to_owned();
    }
    let words: Vec<String> = words.iter().map(|word| one_line(word)).collect();
    words.join(", ")
}

fn picked(name: Option<&str>) -> String {
    name.map_or_else(|| "nothing".to_owned(), one_line)
}

fn mutation(out: &mut String, one: &MutationReport, report: &BenchReport) {
    let _ = write!(
        out,
        "  {}: {}, {} of {} correct",
        one.mutation,
        drop_words(report, one.score.correct),
        one.score.correct,
        report.intents
    );
    let _ = match one.tokens_removed {
        0 => Ok(()),
        removed @ 1.. => write!(out, ", words -{removed}"),
        added => write!(out, ", words +{}", added.unsigned_abs()),
    };
    if let Some(smells) = one
        .smells_introduced
        .as_ref()
        .filter(|smells| !smells.is_empty())
    {
        let _ = write!(out, ", smells introduced: {}", counted(smells));
    }
    if let Some(quality) = &one.score.quality {
        let _ = write!(
            out,
            ", TDQS mean {:.2}, min {:.2}",
            quality.tdqs_mean, quality.tdqs_min
        );
    }
    out.push('\n');
    if !one.changed {
        out.push_str("    it changes nothing in this catalog\n");
    }
    for moved in &one.moved {
        let _ = writeln!(
            out,
            "    \"{}\": {} → {}",
            shorten(&one_line(&moved.query), 80),
            picked(moved.from.as_deref()),
            picked(moved.to.as_deref())
        );
    }
}

/// `drop 50%`, or `gain 50%` for an edit that helped.
fn drop_words(report: &BenchReport, correct: u64) -> String {
    let before = report.baseline.correct;
    let share = percent::down(before.abs_diff(correct), report.intents).unwrap_or(0);
    let word = if correct > before { "gain" } else { "drop" };
    format!("{word} {share}%")
}
