//! `json`: the whole report, byte-stable for the same input.

use std::io::{self, Write};

use super::Style;
use crate::model::Report;

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> io::Result<()> {
    write_pretty(report, out)
}

/// Writes indented JSON and a line end: people diff reports too.
pub(crate) fn write_pretty(value: &impl serde::Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
