//! A comparison for a coding agent: the counts, a line per test that differs and the command that
//! runs it again, in at most 4 kB.

use std::io::Write;

use super::changed::changed;
use super::pretty::{notes, totals};
use super::{Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::agent::Page;
use crate::reporter::entries::text;

/// The longest line about a test, in characters.
const MAX_LINE: usize = 400;

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let code = u8::from(comparison.exit_code);
    let totals = totals(comparison);
    let mut page = Page::new(&format!("mcptest compare (exit {code}): {totals}"));
    if !comparison.population.same {
        let note = notes(comparison).into_iter().next().unwrap_or_default();
        page.line(&note);
    }
    for changed in changed(comparison, current) {
        let word = changed.word().to_uppercase();
        let line = format!("{word} {}: {}", changed.name(), changed.facts());
        let mut lines = format!("{}\n", text(&line, MAX_LINE));
        if let Some(command) = changed.command() {
            lines.push_str(&format!("  {command}\n"));
        }
        page.add(&lines);
    }
    Ok(out.write_all(page.finish("that differ").as_bytes())?)
}
