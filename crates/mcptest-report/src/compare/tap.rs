//! A comparison as TAP 14: a test point per test that differs. A regression is `not ok`, a test
//! that can no longer be judged is skipped.

use std::io::Write;

use super::changed::{Outcome, changed};
use super::pretty::{notes, totals};
use super::{Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::entries::name;
use crate::reporter::tap::{description, write_pair};

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    writeln!(out, "TAP version 14")?;
    let tests = changed(comparison, current);
    match tests.len() {
        0 => writeln!(out, "1..0 # SKIP no differences")?,
        count => writeln!(out, "1..{count}")?,
    }
    for (at, test) in tests.iter().enumerate() {
        let point = description(&name(&test.name()));
        let (number, word, facts) = (at + 1, test.word(), name(&test.facts()));
        match test.outcome() {
            Outcome::Failed => writeln!(out, "not ok {number} - {point}")?,
            Outcome::NotJudged => {
                let facts = description(&facts);
                writeln!(out, "ok {number} - {point} # SKIP {word}: {facts}")?;
            }
            Outcome::Passed => writeln!(out, "ok {number} - {point}")?,
        }
        writeln!(out, "  ---")?;
        write_pair(out, "suite", &test.suite())?;
        write_pair(out, "change", word)?;
        write_pair(out, "message", &facts)?;
        if let Some(file) = test.file() {
            write_pair(out, "file", &file)?;
            if let Some(line) = test.line() {
                writeln!(out, "  line: {line}")?;
            }
        }
        if let (Outcome::Failed, Some(command)) = (test.outcome(), test.command()) {
            write_pair(out, "again", &command)?;
        }
        writeln!(out, "  ...")?;
    }
    for line in std::iter::once(totals(comparison)).chain(notes(comparison)) {
        writeln!(out, "# {}", name(&line))?;
    }
    Ok(())
}
