//! A comparison for people.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Paint};
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::verdict::Verdict;
use serde_json::Value;

use super::statistics::short;
use super::{CaseChange, Change, Comparison, Delta, Flip, MeanChange, Nature, Pair};
use crate::reporter::Style;
use crate::reporter::terminal::{line, paint};
use crate::verdict_word::verdict_word;

/// The longest value shown in full, in characters.
const MAX_VALUE: usize = 120;

pub(super) fn render(comparison: &Comparison, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut suite = None;
    for case in &comparison.cases {
        if suite != Some(&case.id.suite) {
            if suite.is_some() {
                writeln!(out)?;
            }
            let name = paint(style, Paint::new().bold(), &one_line(&case.id.suite));
            line(out, &name)?;
            suite = Some(&case.id.suite);
        }
        write_case(out, case, style)?;
    }
    if !comparison.is_empty() {
        writeln!(out)?;
    }
    line(out, &totals(comparison))?;
    for text in notes(comparison) {
        line(out, &text)?;
    }
    Ok(())
}

/// The facts about the comparison as a whole.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    let population = &comparison.population;
    if !population.same {
        let differences = population.differences.join(", ");
        notes.push(format!("not the same population: {differences}"));
    }
    if comparison.baselines > 1 {
        notes.push(format!(
            "the runs of {} baselines are pooled",
            comparison.baselines
        ));
    }
    let means = comparison.means.iter();
    notes.extend(means.filter(|mean| mean.statistics.significant).map(mean));
    notes
}

/// `tokens per run of weather [m]  2006 -> 3990: +1984 (95 %: …)`.
fn mean(change: &MeanChange) -> String {
    let test = match &change.id {
        Some(id) => format!(" of {}", name(id)),
        None => String::new(),
    };
    let side = |side: Option<f64>| side.map_or_else(|| "none".to_owned(), |it| short(it, false));
    format!(
        "{} per run{test}  {} -> {}: {}",
        change.mean,
        side(change.means.old),
        side(change.means.new),
        change.statistics.mean_words()
    )
}

/// The name of a test with its model.
pub(crate) fn name(id: &mcptest_events::CaseId) -> String {
    one_line(&match &id.model {
        Some(model) => format!("{} [{model}]", id.name),
        None => id.name.clone(),
    })
}

/// The words for the kind of a regression.
pub(super) fn nature(nature: Nature) -> &'static str {
    match nature {
        Nature::Deterministic => "cannot be noise",
        Nature::Noisy => "may be noise",
    }
}

fn write_case(out: &mut dyn Write, case: &CaseChange, style: Style) -> io::Result<()> {
    let word = format!("{:<9}", word(case.change).to_uppercase());
    let word = paint(style, colour(case.change).bold(), &word);
    let verdicts_of_case = verdicts(&case.verdict);
    let kind = case.nature.map(|kind| format!("  ({})", nature(kind)));
    let kind = kind.unwrap_or_default();
    line(
        out,
        &format!("  {word}  {}  {verdicts_of_case}{kind}", name(&case.id)),
    )?;
    for delta in &case.figures {
        line(out, &format!("             {}", figure(delta)))?;
    }
    for gate in &case.gates {
        let flip = gate
            .flip
            .map(|flip| format!("  {}", flag(flip, style)))
            .unwrap_or_default();
        let block = one_line(&gate.block);
        let text = format!("             {block}: {}{flip}", verdicts(&gate.verdict));
        line(out, &text)?;
        for delta in &gate.values {
            line(out, &format!("               {}", figure(delta)))?;
        }
        for bound in &gate.bounds {
            let matcher = shorten(&one_line(&bound.matcher.to_string()), MAX_VALUE);
            let target = one_line(&bound.target);
            let flag = flag(bound.flip, style);
            line(out, &format!("               {target} {matcher}  {flag}"))?;
        }
    }
    Ok(())
}

/// `90 -> 70 (-20)`.
pub(super) fn figure(delta: &Delta) -> String {
    if let Some(statistics) = &delta.statistics {
        let percent = |value: &Value| match value.as_f64() {
            // A gate has percents, and the rate of all runs is a fraction.
            Some(rate) if delta.name == super::statistics::PASSED => {
                format!("{:.0} %", rate * 100.0)
            }
            Some(percent) => format!("{percent} %"),
            None => "none".to_owned(),
        };
        return format!(
            "{}  {} -> {}: {}",
            one_line(&delta.name),
            percent(&delta.old),
            percent(&delta.new),
            statistics.rate_words()
        );
    }
    let value = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        other => shorten(&one_line(&other.to_string()), MAX_VALUE),
    };
    let signed = delta.delta.as_ref().map(signed).unwrap_or_default();
    format!(
        "{}  {} -> {}{signed}",
        one_line(&delta.name),
        value(&delta.old),
        value(&delta.new)
    )
}

fn signed(number: &serde_json::Number) -> String {
    let text = number.to_string();
    if text.starts_with('-') {
        format!(" ({text})")
    } else {
        format!(" (+{text})")
    }
}

pub(super) fn verdicts(pair: &Pair<Verdict>) -> String {
    let word = |verdict: Option<Verdict>| verdict.map_or("none", verdict_word);
    if pair.old == pair.new {
        word(pair.new).to_owned()
    } else {
        format!("{} -> {}", word(pair.old), word(pair.new))
    }
}

pub(super) fn word(change: Change) -> &'static str {
    match change {
        Change::Regressed => "regressed",
        Change::Lost => "lost",
        Change::Fixed => "fixed",
        Change::Regained => "regained",
        Change::Changed => "changed",
        Change::Added => "added",
        Change::Removed => "removed",
    }
}

pub(super) fn flip_word(flip: Flip) -> &'static str {
    match flip {
        Flip::Regressed => "regressed",
        Flip::Lost => "lost",
        Flip::Fixed => "fixed",
        Flip::Regained => "regained",
    }
}

fn flag(flip: Flip, style: Style) -> String {
    let colour = match flip {
        Flip::Regressed => AnsiColor::Red,
        Flip::Lost => AnsiColor::Yellow,
        Flip::Fixed | Flip::Regained => AnsiColor::Green,
    };
    let paint_with = Paint::new().fg_color(Some(colour.into())).bold();
    paint(
        style,
        paint_with,
        &format!("[{}]", flip_word(flip).to_uppercase()),
    )
}

fn colour(change: Change) -> Paint {
    let colour = match change {
        Change::Regressed => AnsiColor::Red,
        Change::Lost => AnsiColor::Yellow,
        Change::Fixed | Change::Regained => AnsiColor::Green,
        Change::Changed | Change::Added | Change::Removed => AnsiColor::Cyan,
    };
    Paint::new().fg_color(Some(colour.into()))
}

/// `5 tests: 1 regressed, 4 unchanged`.
pub(super) fn totals(comparison: &Comparison) -> String {
    let counts = comparison.counts;
    let parts = [
        (counts.regressed, "regressed"),
        (counts.lost, "lost"),
        (counts.fixed, "fixed"),
        (counts.regained, "regained"),
        (counts.changed, "changed"),
        (counts.added, "added"),
        (counts.removed, "removed"),
        (counts.unchanged, "unchanged"),
    ];
    let total: usize = parts.iter().map(|(count, _)| count).sum();
    let plural = if total == 1 { "test" } else { "tests" };
    let shown: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    if shown.is_empty() {
        "0 tests".to_owned()
    } else {
        format!("{total} {plural}: {}", shown.join(", "))
    }
}
