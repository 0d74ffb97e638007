//! `json`: the whole report, byte-stable for the same input. Records are written one at a time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mcptest_events::Kind;
use mcptest_json::layout::PrettyWriter;
use mcptest_trace::detail::Detail;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{RenderError, Style};
use crate::complexity;
use crate::model::{RunTiming, SCHEMA_VERSION};
use crate::report::{Report, TestReport, Timing};

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut pretty = PrettyWriter::new(&mut *out);
    write_report(report, &mut pretty)?;
    Ok(writeln!(pretty.finish()?)?)
}

/// Writes indented JSON and a line end: people diff reports too.
pub(crate) fn write_pretty(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

fn write_report(report: &Report, out: &mut impl Write) -> Result<(), RenderError> {
    let mut object = Object::open(out)?;
    object.entry("schema_version", &SCHEMA_VERSION)?;
    object.entry("verdict", &report.verdict)?;
    object.entry("exit_code", &report.exit_code)?;
    if report.interrupted {
        object.entry("interrupted", &true)?;
    }
    let with_file = report.timing.is_some();
    object.list("tests", &report.tests, |test, out| {
        write_test(test, with_file, out)
    })?;
    object.list("tool_selection", floors(report), write_floor)?;
    let distractors = complexity::groups(report);
    if !distractors.is_empty() {
        object.entry("distractors", &distractors)?;
    }
    if !report.not_run.is_empty() {
        object.entry("not_run", &report.not_run)?;
    }
    object.optional("broken_lines", &report.broken_lines)?;
    object.optional("shard", &report.shard)?;
    object.optional("spend", &report.spend)?;
    object.optional(
        "timing",
        &report
            .timing
            .as_ref()
            .map(|timing| Times { timing, report }),
    )?;
    object.close()
}

/// Writes a test. A recorded trace has no times and no suite file, so `with_file` follows the
/// times: without them, a run and its scored traces have the same bytes.
fn write_test(test: &TestReport, with_file: bool, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut object = Object::open(out)?;
    object.entry("name", &test.id.name)?;
    object.entry("kind", &test.kind)?;
    object.entry("model", &test.id.model)?;
    object.entry("label", &test.label)?;
    object.entry("suite", &test.id.suite)?;
    object.optional("file", &test.file.as_ref().filter(|_| with_file))?;
    object.optional("line", &test.line.filter(|_| with_file))?;
    if !test.tags.is_empty() {
        object.entry("tags", &test.tags)?;
    }
    object.entry("verdict", &test.verdict)?;
    let mut buffer = Vec::new();
    object.list("runs", &test.runs, |run, out| {
        let text = test.record_text(&run, &mut buffer)?;
        Ok(out.write_all(text.as_bytes())?)
    })?;
    object.optional("run_totals", &test.run_totals)?;
    object.list("gates", &test.gates, write_gate)?;
    object.optional("no_evidence", &test.no_evidence)?;
    if test.interrupted {
        object.entry("interrupted", &true)?;
    }
    object.optional("saved_runs", &test.saved_runs)?;
    object.optional("spend", &test.spend)?;
    object.close()
}

/// Writes a gate as it is serialised, with its detail piece by piece.
fn write_gate(gate: &GateOutcome, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut object = Object::open(out)?;
    object.entry("block", &gate.block)?;
    object.entry("verdict", &gate.verdict)?;
    object.entry("values", &gate.values)?;
    object.key("detail")?;
    gate.detail.write_to(&mut object.out)?;
    object.entry("assertions", &gate.assertions)?;
    object.entry("summary", &gate.summary)?;
    if !gate.findings.is_empty() {
        object.entry("findings", &gate.findings)?;
    }
    if gate.more_findings > 0 {
        object.entry("more_findings", &gate.more_findings)?;
    }
    if !gate.notes.is_empty() {
        object.entry("notes", &gate.notes)?;
    }
    if !gate.advisories.is_empty() {
        object.entry("advisories", &gate.advisories)?;
    }
    object.optional("no_evidence", &gate.no_evidence)?;
    object.close()
}

/// Writes the test of a floor, and then the entries of the gate's detail.
fn write_floor(floor: Floor<'_>, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut object = Object::open(out)?;
    object.entry("test", &floor.test.id.name)?;
    object.entry("model", &floor.test.id.model)?;
    if floor.detail.is_empty() {
        return object.close();
    }
    object.out.write_all(b",")?;
    Ok(floor.detail.write_to(&mut WithoutBrace {
        out: object.out,
        passed: false,
    })?)
}

/// Leaves out the first byte: the opening brace of an object.
struct WithoutBrace<'o> {
    out: &'o mut dyn Write,
    passed: bool,
}

impl Write for WithoutBrace<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let skipped = usize::from(!self.passed && !text.is_empty());
        self.passed |= skipped == 1;
        self.out.write_all(&text[skipped..])?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes an object as compact JSON, key by key.
struct Object<'o> {
    out: &'o mut dyn Write,
    first: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut dyn Write) -> Result<Self, RenderError> {
        out.write_all(b"{")?;
        Ok(Self { out, first: true })
    }

    fn key(&mut self, key: &str) -> Result<(), RenderError> {
        let comma = if std::mem::take(&mut self.first) {
            ""
        } else {
            ","
        };
        Ok(write!(self.out, "{comma}\"{key}\":")?)
    }

    fn entry(&mut self, key: &str, value: &impl Serialize) -> Result<(), RenderError> {
        self.key(key)?;
        write_value(value, self.out)
    }

    fn optional(&mut self, key: &str, value: &Option<impl Serialize>) -> Result<(), RenderError> {
        match value {
            Some(value) => self.entry(key, value),
            None => Ok(()),
        }
    }

    /// A list whose items are written one at a time.
    fn list<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut dyn Write) -> Result<(), RenderError>,
    ) -> Result<(), RenderError> {
        self.key(key)?;
        self.out.write_all(b"[")?;
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.write_all(b",")?;
            }
            write(item, self.out)?;
        }
        Ok(self.out.write_all(b"]")?)
    }

    fn close(self) -> Result<(), RenderError> {
        Ok(self.out.write_all(b"}")?)
    }
}

fn write_value(value: &impl Serialize, out: &mut dyn Write) -> Result<(), RenderError> {
    serde_json::to_writer(out, value).map_err(|error| {
        if error.is_io() {
            RenderError::Write(error.into())
        } else {
            RenderError::Record(error.to_string())
        }
    })
}

/// A list whose items are made one at a time.
struct Each<F>(F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// A `tool_selection:` floor with its test: the detail of the gate.
pub(super) struct Floor<'a> {
    pub(super) test: &'a TestReport,
    pub(super) detail: &'a Detail,
}

/// The `tool_selection:` floors of a report. One that was interrupted is not judged.
pub(super) fn floors(report: &Report) -> impl Iterator<Item = Floor<'_>> {
    report.tests.iter().flat_map(|test| {
        let gates = test.gates.iter();
        let is_judged =
            |gate: &GateOutcome| !test.interrupted || gate.verdict != Verdict::NoEvidence;
        let floors = gates.filter(move |gate| gate.block == "tool_selection" && is_judged(gate));
        floors.map(move |gate| Floor {
            test,
            detail: &gate.detail,
        })
    })
}

impl Floor<'_> {
    /// The figures, each still as JSON text.
    pub(super) fn figures(&self) -> BTreeMap<String, Box<RawValue>> {
        serde_json::from_str(&self.detail.text()).unwrap_or_default()
    }
}

/// The times of a report and its runs.
struct Times<'a> {
    timing: &'a Timing,
    report: &'a Report,
}

impl Serialize for Times<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Timing", 4)?;
        map.serialize_field("duration_ms", &self.timing.duration_ms)?;
        match &self.timing.unmatched {
            Some(runs) => map.serialize_field("runs", runs)?,
            None => {
                map.serialize_field("runs", &Each(|| run_times(self.report)))?;
                if self.report.tests.iter().any(|test| test.wall_ms.is_some()) {
                    map.serialize_field("tests", &Each(|| test_times(self.report)))?;
                }
            }
        }
        if let Some(replayed) = &self.report.replayed {
            map.serialize_field("replayed", replayed)?;
        }
        map.end()
    }
}

/// The time of each test, in the order of the report.
fn test_times(report: &Report) -> impl Iterator<Item = RunTiming> {
    report.tests.iter().map(|test| RunTiming {
        name: test.label.clone(),
        duration_ms: test.duration_ms(),
    })
}

/// The time of each run, in the order of the report.
fn run_times(report: &Report) -> impl Iterator<Item = RunTiming> {
    report.tests.iter().flat_map(|test| {
        let is_catalog = test.kind == Kind::ToolQuality;
        let catalog = is_catalog.then(|| RunTiming {
            name: test.label.clone(),
            duration_ms: test.work_ms(),
        });
        let runs = test.runs.iter().filter(move |_| !is_catalog);
        catalog.into_iter().chain(runs.map(|run| RunTiming {
            name: test.row_name(&run).into_owned(),
            duration_ms: run.duration_ms(),
        }))
    })
}
