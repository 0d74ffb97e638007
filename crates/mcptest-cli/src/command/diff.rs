//! `mcptest diff`.

use std::fmt::Write as _;

use mcptest_catalog::diff::{self, CatalogDiff, Class, Delta, DescriptionChange, ToolChange};
use mcptest_catalog::tool_bench::Tdqs;
use mcptest_json::text::{one_line, shorten};
use mcptest_report::ExitCode;
use mcptest_report::markdown::plain;
use serde_json::{Value, json};

use crate::catalogs;
use crate::cli::{DiffArgs, DiffFormat};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::secrets;
use crate::sources::{self, ServerList, Source};

/// Number of characters shown of a description.
const SHOWN: usize = 160;

pub fn diff(args: &DiffArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let list = match (&args.suite, &args.from) {
        (Some(suite), _) => Some(ServerList::of_suite(suite, gates, output)?),
        (None, Some(config)) => Some(ServerList::of_config(config)?),
        (None, None) => None,
    };
    let old = sources::side(&args.old, list.as_ref(), &args.header, &args.auth)?;
    let new = match &args.new {
        Some(new) => sources::side(new, list.as_ref(), &args.header, &args.auth)?,
        None => Source::command(&args.command),
    };
    secrets::hide(sources::secrets_of(&args.header));
    let mut found = catalogs::read(&[old, new], args.patience.timeout, output)?;
    let (Some(new), Some(old)) = (found.pop(), found.pop()) else {
        return Err(Failure::Message("two catalogs are compared".to_owned()));
    };
    output.problems(&old.warnings);
    output.problems(&new.warnings);
    let found = diff::diff(&old.tools, &new.tools, &Tdqs);
    let text = match args.format {
        DiffFormat::Pretty => pretty(&found),
        DiffFormat::Markdown => markdown(&found),
        DiffFormat::Json => format!("{:#}\n", machine(&found, args)),
    };
    output.result(&text);
    // A difference may be in what was not compared, so there is no answer.
    Ok(match (found.not_compared_count, found.breaking) {
        (1.., _) => ExitCode::CouldNotRun,
        (0, true) => ExitCode::Failed,
        (0, false) => ExitCode::Passed,
    })
}

fn machine(found: &CatalogDiff, args: &DiffArgs) -> Value {
    let mut value = json!({
        "schema_version": 1,
        "old": sources::shown(&args.old),
        "new": args.new.as_deref().map_or_else(|| args.command.join(" "), sources::shown),
    });
    if let (Value::Object(value), Ok(Value::Object(found))) =
        (&mut value, serde_json::to_value(found))
    {
        value.extend(found);
    }
    value
}

fn class_word(class: Class) -> &'static str {
    match class {
        Class::Breaking => "BREAKING",
        Class::NotCompared => "NOT COMPARED",
        Class::Compatible => "compatible",
    }
}

/// `12 → 20 tokens (+8)`.
fn tokens(delta: Delta) -> String {
    format!("{} → {} tokens ({:+})", delta.old, delta.new, delta.delta)
}

fn summary(found: &CatalogDiff) -> String {
    if found.is_empty() {
        return "no difference".to_owned();
    }
    let not_compared = match found.not_compared_count {
        0 => String::new(),
        count => format!(", {count} not compared"),
    };
    format!(
        "{} breaking, {} compatible{not_compared}; catalog {}",
        found.breaking_count,
        found.compatible_count,
        tokens(found.tokens)
    )
}

fn pretty(found: &CatalogDiff) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    for tool in &found.removed {
        let _ = writeln!(
            out,
            "removed {} ({} tokens): BREAKING",
            one_line(&tool.name),
            tool.tokens
        );
    }
    for tool in &found.renamed {
        let _ = writeln!(
            out,
            "renamed {} → {}: BREAKING",
            one_line(&tool.from),
            one_line(&tool.to)
        );
    }
    for tool in &found.added {
        let _ = writeln!(
            out,
            "added {} ({} tokens)",
            one_line(&tool.name),
            tool.tokens
        );
    }
    for tool in &found.changed {
        let _ = writeln!(
            out,
            "changed {}: {}",
            one_line(&tool.tool),
            tokens(tool.tokens)
        );
        for change in &tool.changes {
            let _ = writeln!(
                out,
                "  {} {}\n    {}; {}",
                class_word(change.class),
                one_line(&change.pointer),
                change.message,
                change.reason
            );
        }
        if let Some(description) = &tool.description {
            let _ = writeln!(out, "  description {}", description_figures(description));
            for (sign, text) in [("-", &description.old), ("+", &description.new)] {
                let text = text.as_deref().map_or_else(|| "(none)".to_owned(), shown);
                let _ = writeln!(out, "    {sign} {text}");
            }
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", summary(found));
    out
}

fn description_figures(description: &DescriptionChange) -> String {
    let mut figures = tokens(description.tokens);
    if let Some(score) = description.tdqs {
        let _ = write!(figures, ", TDQS {:.2} → {:.2}", score.old, score.new);
    }
    figures
}

fn shown(text: &str) -> String {
    shorten(&one_line(text), SHOWN)
}

/// For pull requests: what breaks stands above, words that servers wrote cannot become markup.
fn markdown(found: &CatalogDiff) -> String {
    let mut out = format!("## Catalog: {}\n", plain(&summary(found)));
    let mut rows: Vec<[String; 4]> = Vec::new();
    for tool in &found.removed {
        rows.push(row("**breaking**", &tool.name, "", "the tool is gone"));
    }
    for tool in &found.renamed {
        rows.push(row(
            "**breaking**",
            &tool.from,
            "",
            &format!("renamed to {}", tool.to),
        ));
    }
    let of_class = |class: Class| {
        let tools = found.changed.iter();
        tools.flat_map(move |tool: &ToolChange| {
            let changes = tool
                .changes
                .iter()
                .filter(move |change| change.class == class);
            changes.map(|change| (tool.tool.as_str(), change))
        })
    };
    for (tool, change) in of_class(Class::Breaking) {
        let words = format!("{}; {}", change.message, change.reason);
        rows.push(row("**breaking**", tool, &change.pointer, &words));
    }
    for (tool, change) in of_class(Class::NotCompared) {
        let words = format!("{}; {}", change.message, change.reason);
        rows.push(row("**not compared**", tool, &change.pointer, &words));
    }
    for tool in &found.added {
        rows.push(row(
            "compatible",
            &tool.name,
            "",
            &format!("new, {} tokens", tool.tokens),
        ));
    }
    for (tool, change) in of_class(Class::Compatible) {
        let words = format!("{}; {}", change.message, change.reason);
        rows.push(row("compatible", tool, &change.pointer, &words));
    }
    if !rows.is_empty() {
        out.push_str("\n| class | tool | place | change |\n|---|---|---|---|\n");
        for cells in &rows {
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    let described = || {
        found
            .changed
            .iter()
            .filter_map(|tool| Some((tool, tool.description.as_ref()?)))
    };
    if described().next().is_some() {
        out.push_str("\n| description of | cost | before | after |\n|---|---|---|---|\n");
        for (tool, description) in described() {
            let text = |text: &Option<String>| {
                text.as_deref()
                    .map_or_else(|| "(none)".to_owned(), |text| plain(&shown(text)))
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} |",
                plain(&tool.tool),
                plain(&description_figures(description)),
                text(&description.old),
                text(&description.new)
            );
        }
    }
    out
}

fn row(class: &str, tool: &str, place: &str, words: &str) -> [String; 4] {
    [class.to_owned(), plain(tool), plain(place), plain(words)]
}
