//! A comparison as workflow commands: an error for each test that regressed, a warning for each
//! that was lost, and a notice with the counts.

use std::io::Write;

use super::changed::changed;
use super::pretty::{notes, totals};
use super::{Change, Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::entries::text;
use crate::reporter::github::{MAX_COMMANDS, data, location, property};

/// The longest message, in characters.
const MAX_MESSAGE: usize = 800;

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let worse = changed(comparison, current).into_iter().filter_map(|test| {
        let level = match test.case.change {
            Change::Regressed => "error",
            Change::Lost => "warning",
            _ => return None,
        };
        Some((level, test))
    });
    for (level, test) in worse.take(MAX_COMMANDS) {
        let file = test.file();
        let file = file.map_or_else(String::new, |file| location(&file, test.line()));
        let title = format!("mcptest {}: {}", test.word(), test.name());
        let mut message = format!("{}: {}", test.name(), test.facts());
        if let Some(command) = test.command() {
            message.push_str("; again: ");
            message.push_str(&command);
        }
        writeln!(
            out,
            "::{level} {file}title={}::{}",
            property(&text(&title, MAX_MESSAGE)),
            data(&text(&message, MAX_MESSAGE))
        )?;
    }
    let mut words = vec![totals(comparison)];
    words.extend(notes(comparison));
    let words = text(&words.join("; "), MAX_MESSAGE);
    Ok(writeln!(
        out,
        "::notice title=mcptest compared::{}",
        data(&words)
    )?)
}
