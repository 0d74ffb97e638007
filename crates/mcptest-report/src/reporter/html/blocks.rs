//! Blocks: the gates and the records of a test, compressed, in their own script elements.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;

use crate::report::{Report, TestReport};
use crate::reporter::RenderError;
use crate::row::RunRow;

/// The size of records at which a block is closed, in bytes of JSON.
const BLOCK_BYTES: u64 = 256 * 1024;
/// The size of all records in a page, in bytes of JSON. Compressed they take about a tenth.
const MAX_RECORD_BYTES: u64 = 256 * 1024 * 1024;

/// The distribution of records over blocks. It follows from their sizes, so the head can refer to
/// blocks before any record is read.
pub(super) struct Layout {
    tests: Vec<TestLayout>,
    /// The bytes of records of runs that passed which still fit. Runs that did not pass come
    /// first.
    passed_bytes: u64,
}

/// The blocks of a test.
pub(super) struct TestLayout {
    /// The number of its first block, from 0.
    pub(super) first: usize,
    /// The position of the first run of each block.
    pub(super) starts: Vec<usize>,
}

impl Layout {
    pub(super) fn of(report: &Report) -> Self {
        Self::with_limits(report, BLOCK_BYTES, MAX_RECORD_BYTES)
    }

    fn with_limits(report: &Report, block_bytes: u64, max_bytes: u64) -> Self {
        let mut next = 0;
        let mut failed_bytes = 0_u64;
        let mut tests = Vec::with_capacity(report.tests.len());
        for test in &report.tests {
            let mut starts = vec![0];
            let mut bytes = 0;
            for (at, run) in test.runs.iter().enumerate() {
                if bytes >= block_bytes {
                    starts.push(at);
                    bytes = 0;
                }
                bytes += run.record_len();
                if run.verdict() != Verdict::Pass {
                    failed_bytes = failed_bytes.saturating_add(run.record_len());
                }
            }
            let first = next;
            next += starts.len();
            tests.push(TestLayout { first, starts });
        }
        Self {
            tests,
            passed_bytes: max_bytes.saturating_sub(failed_bytes),
        }
    }

    pub(super) fn test(&self, at: usize) -> Option<&TestLayout> {
        self.tests.get(at)
    }
}

/// Writes the blocks of all tests, each as a script element.
pub(super) fn write(
    report: &Report,
    layout: &Layout,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let mut budget = RecordBudget {
        failed: MAX_RECORD_BYTES,
        passed: layout.passed_bytes,
    };
    for (test, blocks) in report.tests.iter().zip(&layout.tests) {
        let mut rows = test.runs.iter();
        for (at, start) in blocks.starts.iter().enumerate() {
            let end = blocks.starts.get(at + 1).copied();
            let runs = rows
                .by_ref()
                .take(end.map_or(usize::MAX, |end| end - start));
            let number = blocks.first + at;
            write!(out, "<script type=\"text/plain\" id=\"block-{number}\">")?;
            let base64 = EncoderWriter::new(&mut *out, &STANDARD);
            let mut packed = DeflateEncoder::new(base64, Compression::fast());
            write_block(test, at == 0, runs, &mut budget, &mut packed)?;
            packed.finish()?.finish()?;
            out.write_all(b"</script>\n")?;
        }
    }
    Ok(())
}

/// The bytes of records that still fit into the page.
struct RecordBudget {
    failed: u64,
    passed: u64,
}

impl RecordBudget {
    /// Returns true if the record of a run fits, and takes its bytes.
    fn take(&mut self, run: &RunRow) -> bool {
        let budget = match run.verdict() {
            Verdict::Pass => &mut self.passed,
            _ => &mut self.failed,
        };
        let left = budget.checked_sub(run.record_len());
        *budget = left.unwrap_or(*budget);
        left.is_some()
    }
}

fn write_block(
    test: &TestReport,
    with_gates: bool,
    runs: impl Iterator<Item = RunRow>,
    budget: &mut RecordBudget,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    out.write_all(b"{")?;
    if with_gates {
        out.write_all(b"\"gates\":")?;
        write_gates(test, out)?;
        out.write_all(b",")?;
    }
    out.write_all(b"\"runs\":[")?;
    for (at, run) in runs.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        match budget.take(&run) {
            true => write_record(test, &run, out)?,
            false => out.write_all(b"null")?,
        }
    }
    Ok(out.write_all(b"]}")?)
}

/// Writes the record of a run, or `null` if there is none.
pub(super) fn write_record(
    test: &TestReport,
    row: &RunRow,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    if row.record_len() == 0 {
        return Ok(out.write_all(b"null")?);
    }
    let mut buffer = Vec::new();
    let text = test.record_text(row, &mut buffer)?;
    Ok(out.write_all(text.as_bytes())?)
}

/// Writes the gates of a test without their rows of single runs, which the page does not show.
pub(super) fn write_gates(test: &TestReport, out: &mut dyn Write) -> Result<(), RenderError> {
    let gates = test.gates.iter().map(|gate| GateOutcome {
        detail: gate.detail.without_key("per_run"),
        ..gate.clone()
    });
    let gates: Vec<GateOutcome> = gates.collect();
    serde_json::to_writer(out, &gates).map_err(|error| RenderError::Write(io::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn blocks_are_closed_by_size_and_failures_come_first() {
        let mut written = samples::test("a", None, Verdict::Fail);
        written.runs = (1..=5)
            .map(|at| {
                let verdict = if at == 4 {
                    Verdict::Fail
                } else {
                    Verdict::Pass
                };
                samples::run(at, "a", verdict, Some(1))
            })
            .collect();
        let report = samples::concluded(vec![written, samples::test("b", None, Verdict::Pass)]);
        let rows: Vec<RunRow> = report.tests[0].runs.iter().collect();
        let len = rows[0].record_len();
        assert!(len > 0);
        let layout = Layout::with_limits(&report, 2 * len, 3 * len);
        assert_eq!(layout.tests[0].starts, [0, 2, 4]);
        assert_eq!(
            (layout.tests[1].first, &layout.tests[1].starts),
            (3, &vec![0])
        );
        let failed = rows[3].record_len();
        assert_eq!(layout.passed_bytes, 3 * len - failed);
        let mut budget = RecordBudget {
            failed,
            passed: len,
        };
        let fits: Vec<bool> = rows.iter().map(|run| budget.take(run)).collect();
        assert_eq!(fits, [true, false, false, true, false]);
    }
}
