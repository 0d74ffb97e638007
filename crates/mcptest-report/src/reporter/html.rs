//! `html`: one file that works from disk, with every run, figure and plot.
//!
//! The page itself (`page/report.html`, made of the sources beside it by `cargo xtask generate`)
//! is constant. The data are inserted at its end:
//!
//! - the *head*, as JSON: everything that lists, filters and plots need, with one compact entry
//!   per test ([`head`]),
//! - *blocks*: the gates and the records of a test's runs, as deflated JSON in base64 ([`blocks`]).
//!   The page inflates a block when somebody opens the test, so its size does not slow the start.
//!
//! A page that is served while tests run gets the same head from an address, and fetches single
//! records; see [`write_live`].

mod blocks;
mod escape;
mod head;
mod reasons;

use std::io::Write;

use mcptest_events::CaseId;
use serde::Serialize;

use self::blocks::Layout;
use self::escape::ScriptSafe;
use super::{RenderError, Style};
use crate::report::Report;

/// The page without data.
const PAGE: &str = include_str!("../../page/report.html");
/// The place of the data in the page.
const DATA: &str = "<!-- data -->";
/// The rule of the page's policy that a served page relaxes.
const NO_CONNECTIONS: &str = "connect-src 'none'";

/// Writes the page with all data of a report.
pub(crate) fn render(
    report: &Report,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    render_compared(report, None::<&()>, style, out)
}

/// Writes the page with all data of a report, and its comparison with baselines.
pub(crate) fn render_compared(
    report: &Report,
    comparison: Option<&impl Serialize>,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let layout = Layout::of(report);
    write_page_with(
        out,
        |out| head::write(report, Some(&layout), comparison, style, out),
        |out| blocks::write(report, &layout, out),
    )
}

/// Writes the page with a head and no blocks.
pub(crate) fn write_page(
    out: &mut dyn Write,
    head: impl FnOnce(&mut dyn Write) -> Result<(), RenderError>,
) -> Result<(), RenderError> {
    write_page_with(out, head, |_| Ok(()))
}

fn write_page_with(
    out: &mut dyn Write,
    head: impl FnOnce(&mut dyn Write) -> Result<(), RenderError>,
    blocks: impl FnOnce(&mut dyn Write) -> Result<(), RenderError>,
) -> Result<(), RenderError> {
    let (before, after) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
    out.write_all(before.as_bytes())?;
    out.write_all(b"<script type=\"application/json\" id=\"head\">")?;
    head(&mut ScriptSafe::new(&mut *out))?;
    out.write_all(b"</script>\n")?;
    blocks(out)?;
    Ok(out.write_all(after.as_bytes())?)
}

/// The page for a report that is served: it has no data, and fetches them from `address`.
#[must_use]
pub fn live_page(address: &str) -> String {
    let data = serde_json::json!({ "live": address }).to_string();
    let data = data.replace('<', "\\u003c");
    PAGE.replacen(NO_CONNECTIONS, "connect-src 'self'", 1)
        .replacen(
            DATA,
            &format!("<script type=\"application/json\" id=\"head\">{data}</script>"),
            1,
        )
}

/// The state of an invocation, for a page that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LiveState {
    /// Grows with every change.
    pub version: u64,
    /// True if the invocation has ended.
    pub ended: bool,
    /// The number of runs that are planned.
    pub planned_runs: u64,
    /// The number of them that are finished.
    pub finished_runs: u64,
}

/// Writes the state of an invocation and the head of its report so far, as JSON.
///
/// # Errors
/// A record that cannot be read.
pub fn write_live(
    report: &Report,
    state: LiveState,
    style: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    out.write_all(b"{\"state\":")?;
    serde_json::to_writer(&mut *out, &state).map_err(std::io::Error::from)?;
    out.write_all(b",\"report\":")?;
    head::write(report, None, None::<&()>, style, out)?;
    Ok(out.write_all(b"}")?)
}

/// Writes the gates of a test, or the record of one of its runs, as JSON: the answer to a page
/// that follows an invocation. Returns false if there is no such test or run.
///
/// # Errors
/// A record that cannot be read.
pub fn write_part(
    report: &Report,
    id: &CaseId,
    run: Option<u64>,
    out: &mut dyn Write,
) -> Result<bool, RenderError> {
    let Some(test) = report.tests.iter().find(|test| test.id == *id) else {
        return Ok(false);
    };
    let Some(number) = run else {
        blocks::write_gates(test, out)?;
        return Ok(true);
    };
    let Some(row) = test.runs.iter().find(|row| row.index() == number) else {
        return Ok(false);
    };
    blocks::write_record(test, &row, out)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
