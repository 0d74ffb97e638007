//! A trend for people: a sparkline per figure, and the flaky tests.

use std::io::{self, Write};

use anstyle::Style as Paint;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::verdict::Verdict;

use super::{FlakyTest, Trend, TrendPoint};
use crate::reporter::Style;
use crate::reporter::sparkline::{greatest, sparkline};
use crate::reporter::terminal::{colour, line, paint};

/// The width without a display, in columns.
const DEFAULT_WIDTH: usize = 100;
/// The columns of a row without its sparkline.
const ROW_COLUMNS: usize = 50;
/// The most flaky tests that are listed.
const MAX_FLAKY: usize = 20;
/// The longest name of a report, in characters.
const MAX_NAME: usize = 40;

/// A figure of a point.
struct Figure {
    name: &'static str,
    /// The full height of the sparkline; without one, that of the greatest value.
    most: Option<f64>,
    of: fn(&TrendPoint) -> Option<f64>,
    write: fn(f64) -> String,
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

const FIGURES: [Figure; 6] = [
    Figure {
        name: "tests passed",
        most: Some(1.0),
        of: |point| point.pass_rate,
        write: percent,
    },
    Figure {
        name: "runs passed",
        most: Some(1.0),
        of: |point| point.run_pass_rate,
        write: percent,
    },
    Figure {
        name: "selection F1",
        most: Some(100.0),
        of: |point| point.f1,
        write: |value| format!("{value:.1}"),
    },
    Figure {
        name: "flaky tests",
        most: Some(1.0),
        of: |point| point.flakiness,
        write: percent,
    },
    Figure {
        name: "tokens per run",
        most: None,
        of: |point| point.tokens_per_run,
        write: |value| format!("{value:.0}"),
    },
    Figure {
        name: "cost",
        most: None,
        of: |point| point.usd,
        write: |value| {
            let usd = mcptest_numbers::usd::Usd::from_f64(value);
            usd.map_or_else(|| format!("${value}"), |usd| usd.to_string())
        },
    },
];

pub(super) fn render(trend: &Trend, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = style.width.map_or(DEFAULT_WIDTH, usize::from);
    let (Some(first), Some(last)) = (trend.points.first(), trend.points.last()) else {
        return line(out, "no reports");
    };
    let name = |point: &TrendPoint| shorten(&one_line(&point.name), MAX_NAME);
    let title = match trend.points.len() {
        1 => format!("1 report: {}", name(first)),
        count => format!("{count} reports: {} to {}", name(first), name(last)),
    };
    line(out, &paint(style, Paint::new().bold(), &title))?;
    let room = width.saturating_sub(ROW_COLUMNS).max(10);
    let from = trend.points.len().saturating_sub(room);
    for figure in &FIGURES {
        write_figure(out, figure, trend, from)?;
    }
    if from > 0 {
        line(out, &format!("  The charts show the last {room} reports."))?;
    }
    if !trend.same_tests {
        let text = "  Not all reports have the same tests: figures may differ because of that.";
        line(out, text)?;
    }
    write_flaky(out, trend, style, width)
}

/// `  tests passed    ▇▇▅█  100.0 %  (80.0 % to 100.0 %)`.
fn write_figure(
    out: &mut dyn Write,
    figure: &Figure,
    trend: &Trend,
    from: usize,
) -> io::Result<()> {
    let values: Vec<Option<f64>> = trend.points.iter().map(figure.of).collect();
    let known = || values.iter().flatten().copied();
    let Some(last) = known().next_back() else {
        return Ok(());
    };
    let most = figure.most.unwrap_or_else(|| greatest(&values));
    let chart = sparkline(&values[from..], most);
    let (least, most) = (known().fold(last, f64::min), known().fold(last, f64::max));
    let range = match (figure.write)(least) == (figure.write)(most) {
        true => String::new(),
        false => format!("  ({} to {})", (figure.write)(least), (figure.write)(most)),
    };
    let last = (figure.write)(last);
    line(
        out,
        &format!("  {:<14}  {chart}  {last}{range}", figure.name),
    )
}

fn write_flaky(out: &mut dyn Write, trend: &Trend, style: Style, width: usize) -> io::Result<()> {
    writeln!(out)?;
    if trend.flaky.is_empty() {
        return line(out, "no flaky tests");
    }
    line(out, &paint(style, Paint::new().bold(), "flaky tests"))?;
    // Half of the row for the verdicts, so that names stay readable.
    let room = (width / 2).saturating_sub(8).max(8);
    for test in trend.flaky.iter().take(MAX_FLAKY) {
        write_test(out, test, style, room)?;
    }
    match trend.flaky.len().saturating_sub(MAX_FLAKY) {
        0 => Ok(()),
        1 => line(out, "  and 1 more; `--reporter json` has it"),
        more => line(
            out,
            &format!("  and {more} more; `--reporter json` has all"),
        ),
    }
}

/// `  ✓✓✗✓✗  3 flips in 5 reports  weather [m]`.
fn write_test(out: &mut dyn Write, test: &FlakyTest, style: Style, room: usize) -> io::Result<()> {
    let from = test.verdicts.len().saturating_sub(room);
    let marks: String = test.verdicts[from..]
        .iter()
        .map(|verdict| match verdict {
            None => " ".to_owned(),
            Some(verdict) => paint(style, colour(*verdict), mark(*verdict)),
        })
        .collect();
    let plural = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let flips = plural(test.flips, "flip");
    let mut facts = format!("{flips} in {}", plural(test.judged, "report"));
    if test.mixed > 0 {
        facts.push_str(&format!(", only some runs passed in {}", test.mixed));
    }
    let name = crate::compare::test_name(&test.id);
    line(out, &format!("  {marks}  {name}: {facts}"))
}

/// A verdict as one character.
fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::NoEvidence => "-",
        Verdict::Error => "!",
    }
}
