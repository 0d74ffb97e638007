//! A comparison for a pull-request comment that is updated in place: the table first, then the
//! results of the current report.

use std::io::Write;

use super::markdown::write_table;
use super::{Comparison, Style};
use crate::markdown::Bounded;
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::pr::{MARKER, headline, write_results};

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let mut page = Bounded::new();
    page.line(MARKER);
    let headline = headline(current);
    page.line(&format!(
        "## mcptest: {headline}, compared with the baseline"
    ));
    page.line("");
    write_table(&mut page, comparison);
    page.line("");
    write_results(&mut page, current)?;
    Ok(out.write_all(page.finish().as_bytes())?)
}
