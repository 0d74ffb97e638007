//! Reading JSON reports.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use mcptest_events::{CaseId, Kind, RunRecord, RunTotals, Spend};
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::broken_lines::BrokenLines;
use crate::exit_code::ExitCode;
use crate::model::{self, SCHEMA_VERSION, Shard};
use crate::report::{Report, TestReport, Timing};
use crate::row::RunRow;
use crate::store::{RecordRange, RunStore, Spool, parse_record};

/// The deepest nesting of a readable report. A server's answer may be nested to the limit of its
/// reader (128), and is some levels deep in a report.
const MAX_DEPTH: usize = 512;

/// A string that is not a readable report.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not a report.
    #[error("{line}:{column}: not a report of mcptest: {message}")]
    NotAReport {
        /// The line of the defect, from 1.
        line: usize,
        /// The column of the defect, from 1.
        column: usize,
        /// A description of the defect.
        message: String,
    },
    /// The records cannot be kept in a temporary file.
    #[error("cannot keep the records of the report: {0}")]
    Storage(String),
    /// A report of another version.
    #[error(
        "the report has schema version {found}, and this mcptest reads version {SCHEMA_VERSION}"
    )]
    OtherVersion {
        /// Its version.
        found: u64,
    },
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The position has its own fields.
        let message = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(message, _)| message);
        Self::NotAReport {
            line: error.line(),
            column: error.column(),
            message: message.to_owned(),
        }
    }
}

/// Reads the output of the `json` reporter. The records are kept as compact JSON, in a temporary
/// file if they are many.
///
/// # Errors
/// A string that is not a report, a report of another version, or a temporary file that cannot be
/// written.
pub fn read(text: impl Into<String>) -> Result<Report, ReadError> {
    read_text(text.into())
}

fn read_text(text: String) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }
    if let Some((line, column)) = too_deep(&text) {
        return Err(ReadError::NotAReport {
            line,
            column,
            message: format!("nested deeper than {MAX_DEPTH} levels"),
        });
    }
    // First: another version may have another shape, and errors about the shape would mislead.
    let version: Version = parse(&text)?;
    if version.schema_version != u64::from(SCHEMA_VERSION) {
        return Err(ReadError::OtherVersion {
            found: version.schema_version,
        });
    }
    let WrittenReport {
        verdict,
        exit_code,
        interrupted,
        tests: written,
        _tool_selection: _,
        not_run,
        broken_lines,
        shard,
        spend,
        timing,
    } = parse(&text)?;
    let ranges: Vec<Range<usize>> = written
        .iter()
        .map(|test| {
            let start = test.get().as_ptr() as usize - text.as_ptr() as usize;
            start..start + test.get().len()
        })
        .collect();
    let mut records = Records::default();
    let no_records = Arc::new(RunStore::Memory(Vec::new()));
    let mut tests = Vec::with_capacity(ranges.len());
    let mut ranges = ranges.into_iter().peekable();
    // One test at a time, and the text of those that were read is given back: together, they would
    // take a multiple of the memory of the report.
    for piece in pieces(text, ranges.clone().map(|range| range.start)) {
        let end = piece.start + piece.text.len();
        while let Some(range) = ranges.next_if(|range| range.start < end) {
            let test = &piece.text[range.start - piece.start..range.end - piece.start];
            let mut test: WrittenTest<'_> =
                parse(test).map_err(|error| piece.within(test, error))?;
            let runs = std::mem::take(&mut test.runs);
            let mut test = test.without_runs(&no_records);
            for run in runs {
                let record = parse_record(run.get());
                let record = record.map_err(|error| piece.within(run.get(), error))?;
                records.push(&mut test, &record)?;
            }
            tests.push(test);
        }
    }
    let replayed = timing.as_ref().and_then(|timing| timing.replayed);
    let timing = timing.map(|timing| timed(&mut tests, timing));
    records.finish(&mut tests)?;
    Ok(Report {
        verdict,
        exit_code,
        interrupted,
        tests,
        not_run,
        broken_lines,
        shard,
        spend,
        timing,
        replayed,
    })
}

/// The least size of a piece, in bytes.
const PIECE: usize = 1 << 20;

/// A part of a report's text that begins and ends between two tests.
struct Piece {
    text: String,
    /// The bytes before it.
    start: usize,
    /// The line ends before it.
    lines: usize,
    /// The bytes before it on its first line.
    column: usize,
}

/// Cuts a text before some of these places. Only one piece is in memory twice.
fn pieces(mut text: String, places: impl Iterator<Item = usize>) -> Vec<Piece> {
    let (mut cuts, mut last) = (Vec::new(), 0);
    for place in places.filter(|place| *place > 0) {
        if place - last >= PIECE {
            cuts.push(place);
            last = place;
        }
    }
    let mut tails = Vec::with_capacity(cuts.len());
    for cut in cuts.into_iter().rev() {
        tails.push(text.split_off(cut));
        text.shrink_to_fit();
    }
    let (mut start, mut lines, mut column) = (0, 0, 0);
    std::iter::once(text)
        .chain(tails.into_iter().rev())
        .map(|text| {
            let piece = Piece {
                start,
                lines,
                column,
                text,
            };
            start += piece.text.len();
            lines += piece.text.matches('\n').count();
            column = match piece.text.rfind('\n') {
                Some(end) => piece.text.len() - end - 1,
                None => column + piece.text.len(),
            };
            piece
        })
        .collect()
}

impl Piece {
    /// The position of an error in a part of this text, counted from the start of the report.
    fn within(&self, part: &str, error: serde_json::Error) -> ReadError {
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        let before = &self.text[..start];
        let column_before = match before.rfind('\n') {
            Some(end) => start - end - 1,
            None => start + self.column,
        };
        let mut error = ReadError::from(error);
        if let ReadError::NotAReport { line, column, .. } = &mut error {
            if *line <= 1 {
                *column += column_before;
            }
            *line = line.saturating_sub(1) + before.matches('\n').count() + self.lines + 1;
        }
        error
    }
}

/// The JSON form of a report, with the records still as text.
#[derive(Deserialize)]
struct WrittenReport<'a> {
    verdict: Verdict,
    exit_code: ExitCode,
    #[serde(default)]
    interrupted: bool,
    #[serde(borrow)]
    tests: Vec<&'a RawValue>,
    /// Checked only: the gates of the tests have the figures.
    #[serde(rename = "tool_selection")]
    _tool_selection: Vec<WrittenFloor>,
    #[serde(default)]
    not_run: Vec<CaseId>,
    #[serde(default)]
    broken_lines: Option<BrokenLines>,
    #[serde(default)]
    shard: Option<Shard>,
    #[serde(default)]
    spend: Option<Spend>,
    #[serde(default)]
    timing: Option<model::Timing>,
}

#[derive(Deserialize)]
struct WrittenTest<'a> {
    name: String,
    kind: Kind,
    model: Option<String>,
    label: String,
    suite: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    tags: Vec<String>,
    verdict: Verdict,
    #[serde(borrow)]
    runs: Vec<&'a RawValue>,
    #[serde(default)]
    run_totals: Option<RunTotals>,
    gates: Vec<GateOutcome>,
    #[serde(default)]
    no_evidence: Option<String>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    saved_runs: Option<u64>,
    #[serde(default)]
    spend: Option<Spend>,
}

#[derive(Deserialize)]
struct WrittenFloor {
    #[serde(rename = "test")]
    _test: String,
}

impl WrittenTest<'_> {
    fn without_runs(self, no_records: &Arc<RunStore>) -> TestReport {
        let id = CaseId {
            suite: self.suite,
            name: self.name,
            model: self.model,
        };
        let mut test = TestReport::new(id, self.kind, self.label, Arc::clone(no_records));
        test.verdict = self.verdict;
        test.run_totals = self.run_totals;
        test.gates = self.gates;
        // A list that is read has room for four items, and most of these have one.
        test.gates.shrink_to_fit();
        for gate in &mut test.gates {
            gate.assertions.shrink_to_fit();
        }
        test.no_evidence = self.no_evidence;
        test.interrupted = self.interrupted;
        test.saved_runs = self.saved_runs;
        test.spend = self.spend;
        test.tags = self.tags;
        test.file = self.file;
        test.line = self.line;
        test
    }
}

/// Records of several tests that are collected in one store.
#[derive(Default)]
pub(crate) struct Records(Spool);

impl Records {
    /// Adds a run to a test.
    pub(crate) fn push(
        &mut self,
        test: &mut TestReport,
        record: &RunRecord,
    ) -> Result<(), ReadError> {
        // A record consists of strings, numbers, lists and maps with string keys.
        let text = serde_json::to_vec(record).unwrap_or_default();
        let range = RecordRange {
            offset: self.0.append(&text)?,
            len: u32::try_from(text.len()).unwrap_or(u32::MAX),
        };
        test.runs
            .push(&RunRow::of_record(&test.label, record, 0, range));
        Ok(())
    }

    /// Gives the store to the tests.
    pub(crate) fn finish(self, tests: &mut [TestReport]) -> Result<(), ReadError> {
        let store = Arc::new(self.0.into_store()?);
        for test in tests {
            test.store = Arc::clone(&store);
        }
        Ok(())
    }
}

/// Moves the times of runs to their rows, if there is one for each of them.
pub(crate) fn timed(tests: &mut [TestReport], timing: model::Timing) -> Timing {
    let mut matched = Timing::new(timing.duration_ms);
    let rows = tests.iter().flat_map(|test| {
        // Reading a catalog has a time, but is not a run.
        let is_catalog = test.kind == Kind::ToolQuality;
        let catalog = is_catalog.then_some(Cow::Borrowed(test.label.as_str()));
        let runs = test.runs.iter().filter(move |_| !is_catalog);
        catalog
            .into_iter()
            .chain(runs.map(|run| test.row_name(&run).into_owned().into()))
    });
    if !rows.eq(timing.runs.iter().map(|time| time.name.as_str())) {
        matched.unmatched = Some(timing.runs);
        return matched;
    }
    let names = timing.tests.iter().map(|time| time.name.as_str());
    if names.eq(tests.iter().map(|test| test.label.as_str())) {
        for (test, time) in tests.iter_mut().zip(&timing.tests) {
            test.wall_ms = Some(time.duration_ms);
        }
    }
    let mut times = timing.runs.into_iter().map(|time| time.duration_ms);
    for test in tests {
        if test.kind == Kind::ToolQuality {
            test.catalog_ms = times.next();
        } else {
            let timed = test.runs.iter().map(|mut run| {
                run.set_duration(times.next().unwrap_or(0));
                run
            });
            test.runs = timed.collect();
        }
    }
    matched
}

/// Parses like `from_str`, without its depth limit: [`too_deep`] has its own.
fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The line and column of the first bracket that is nested too deeply.
fn too_deep(text: &str) -> Option<(usize, usize)> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let (mut line, mut line_start) = (1, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'\n' => (line, line_start) = (line + 1, at + 1),
            b'[' | b'{' if depth == MAX_DEPTH => return Some((line, at - line_start + 1)),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    fn written(report: &Report) -> String {
        let mut out = Vec::new();
        crate::reporter::json::render(report, Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn errors_have_positions() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"schema_version": 7, "tests": 5}"#),
            "the report has schema version 7, and this mcptest reads version 1"
        );
        assert_eq!(
            error("{\n  \"tests\": []}"),
            "2:14: not a report of mcptest: missing field `schema_version`"
        );
        assert_eq!(
            error(r#"{"schema_version": 1, "verdict": "pass"}"#),
            "1:40: not a report of mcptest: missing field `exit_code`"
        );
        assert!(error("").starts_with("1:0: not a report of mcptest: EOF"));
        // Deeper than any report: an error, not a stack overflow.
        assert_eq!(
            error(&format!("\n {}", "[".repeat(100_000))),
            "2:514: not a report of mcptest: nested deeper than 512 levels"
        );
        assert!(error(&format!("\"{}\\\"[\"", "[".repeat(1000))).contains("invalid type: string"));
    }

    #[test]
    fn deep_answers_of_servers_can_be_read_back() {
        let mut report = crate::samples::report(1);
        let mut deep = serde_json::json!("end");
        for _ in 0..200 {
            deep = serde_json::json!([deep]);
        }
        report.tests[0].runs[0]
            .trace
            .extra
            .insert("deep".to_owned(), deep);
        let text = written(&Report::from(&report));
        let again = read(&text).unwrap();
        assert_eq!(written(&again), text);
    }

    #[test]
    fn errors_in_a_run_have_the_position_in_the_file() {
        let text = written(&Report::from(&crate::samples::report(2)));
        let damaged = text.replacen(
            "\"verdict\": \"pass\",\n          \"trace\"",
            "\"verdict\": 7,\n          \"trace\"",
            1,
        );
        assert_ne!(damaged, text);
        let line = 1 + damaged
            .lines()
            .position(|line| line.contains("\"verdict\": 7"))
            .unwrap();
        let error = read(&damaged).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{line}:")),
            "{error}, not in line {line}"
        );
        let compact = serde_json::to_string(&crate::samples::report(2)).unwrap();
        let damaged = compact.replacen("\"index\":1,", "\"index\":-1,", 1);
        let column = damaged.find("-1").unwrap() + 2;
        let error = read(&damaged).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("1:{column}:")),
            "{error}, not in column {column}"
        );
    }

    #[test]
    fn errors_far_into_a_file_have_their_position_too() {
        let mut report = crate::samples::report(2);
        report.tests[0].label = "x".repeat(PIECE);
        report.tests.push(report.tests[1].clone());
        let compact = serde_json::to_string(&report).unwrap();
        let pretty = serde_json::to_string_pretty(&report).unwrap();
        for (text, wanted) in [(compact, "\"index\":1,"), (pretty, "\"index\": 1,")] {
            assert_eq!(read(&text).unwrap().tests.len(), 3);
            let at = text.rfind(wanted).unwrap() + wanted.len() - 2;
            assert!(at > PIECE);
            let damaged = format!("{}-1{}", &text[..at], &text[at + 1..]);
            let line_start = damaged[..at].rfind('\n').map_or(0, |end| end + 1);
            let line = damaged[..at].matches('\n').count() + 1;
            let error = read(damaged).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{line}:{}:", at + 2 - line_start)),
                "{error}, not {line}:{}",
                at + 2 - line_start
            );
        }
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let text = r#"{"schema_version":1,"verdict":"pass","exit_code":0,"tests":[],
            "tool_selection":[],"later":{"a":1}}"#;
        let report = read(text).unwrap();
        assert_eq!(
            written(&report),
            written(&Report::conclude(Vec::new(), false))
        );
    }
}
