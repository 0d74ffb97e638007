//! `json`: everything, for programs.

use std::io::{self, Write};

use mcptest_catalog::doctor::DoctorReport;

pub(super) fn render(report: &DoctorReport, out: &mut dyn Write) -> io::Result<()> {
    crate::reporter::json::write_pretty(report, out)
}
