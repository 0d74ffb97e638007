//! `json`: the whole report, byte-stable for the same input. Records are written one at a time.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mcptest_events::{Kind, Spend};
use mcptest_json::transcode::JsonText;
use mcptest_trace::detail::Detail;
use mcptest_trace::outcome::GateOutcome;
use serde::de::{MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Deserializer as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{RenderError, Style};
use crate::complexity;
use crate::model::{RunTiming, SCHEMA_VERSION};
use crate::report::{Report, TestReport, Timing};

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    serde_json::to_writer_pretty(&mut *out, report).map_err(|error| {
        if error.is_io() {
            RenderError::Write(error.into())
        } else {
            RenderError::Record(error.to_string())
        }
    })?;
    Ok(writeln!(out)?)
}

/// Writes indented JSON and a line end: people diff reports too.
pub(crate) fn write_pretty(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Report", 11)?;
        map.serialize_field("schema_version", &SCHEMA_VERSION)?;
        map.serialize_field("verdict", &self.verdict)?;
        map.serialize_field("exit_code", &self.exit_code)?;
        if self.interrupted {
            map.serialize_field("interrupted", &true)?;
        }
        map.serialize_field("tests", &Each(|| self.tests.iter()))?;
        map.serialize_field("tool_selection", &Each(|| floors(self)))?;
        let distractors = complexity::groups(self);
        if !distractors.is_empty() {
            map.serialize_field("distractors", &distractors)?;
        }
        if !self.not_run.is_empty() {
            map.serialize_field("not_run", &self.not_run)?;
        }
        if let Some(shard) = &self.shard {
            map.serialize_field("shard", shard)?;
        }
        if let Some(spend) = &self.spend {
            map.serialize_field("spend", spend)?;
        }
        if let Some(timing) = &self.timing {
            map.serialize_field(
                "timing",
                &Times {
                    timing,
                    report: self,
                },
            )?;
        }
        map.end()
    }
}

impl Serialize for TestReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("TestReport", 11)?;
        map.serialize_field("name", &self.id.name)?;
        map.serialize_field("kind", &self.kind)?;
        map.serialize_field("model", &self.id.model)?;
        map.serialize_field("label", &self.label)?;
        map.serialize_field("suite", &self.id.suite)?;
        map.serialize_field("verdict", &self.verdict)?;
        map.serialize_field("runs", &Records(self))?;
        map.serialize_field::<Vec<GateOutcome>>("gates", &self.gates)?;
        if let Some(why) = &self.no_evidence {
            map.serialize_field("no_evidence", why)?;
        }
        if let Some(saved) = &self.saved_runs {
            map.serialize_field("saved_runs", saved)?;
        }
        if let Some(spend) = &self.spend {
            map.serialize_field::<Spend>("spend", spend)?;
        }
        map.end()
    }
}

/// A list whose items are made one at a time.
struct Each<F>(F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// The records of a test's runs.
struct Records<'a>(&'a TestReport);

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let runs = &self.0.runs;
        let mut list = serializer.serialize_seq(Some(runs.len()))?;
        let mut buffer = Vec::new();
        for run in runs {
            let text = self.0.record_text(run, &mut buffer);
            let text = text.map_err(S::Error::custom)?;
            list.serialize_element(&JsonText(text))?;
        }
        list.end()
    }
}

/// A `tool_selection:` floor with its test: the detail of the gate.
pub(super) struct Floor<'a> {
    pub(super) test: &'a TestReport,
    pub(super) detail: &'a Detail,
}

/// The `tool_selection:` floors of a report.
pub(super) fn floors(report: &Report) -> impl Iterator<Item = Floor<'_>> {
    report.tests.iter().flat_map(|test| {
        let gates = test.gates.iter();
        let floors = gates.filter(|gate| gate.block == "tool_selection");
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

impl Serialize for Floor<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("test", &self.test.id.name)?;
        map.serialize_entry("model", &self.test.id.model)?;
        let text = self.detail.text();
        let mut detail = serde_json::Deserializer::from_str(&text);
        detail.disable_recursion_limit();
        let copied = detail.deserialize_map(Entries(&mut map));
        copied.map_err(S::Error::custom)?;
        map.end()
    }
}

/// Copies the entries of an object into a map.
struct Entries<'a, M>(&'a mut M);

impl<'de, M: SerializeMap> Visitor<'de> for Entries<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        use serde::de::Error as _;
        while let Some((key, value)) = entries.next_entry::<String, &RawValue>()? {
            let entry = self.0.serialize_entry(&key, &JsonText(value.get()));
            entry.map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// The times of a report and its runs.
struct Times<'a> {
    timing: &'a Timing,
    report: &'a Report,
}

impl Serialize for Times<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("Timing", 2)?;
        map.serialize_field("duration_ms", &self.timing.duration_ms)?;
        match &self.timing.unmatched {
            Some(runs) => map.serialize_field("runs", runs)?,
            None => map.serialize_field("runs", &Each(|| run_times(self.report)))?,
        }
        map.end()
    }
}

/// The time of each run, in the order of the report.
fn run_times(report: &Report) -> impl Iterator<Item = RunTiming> {
    report.tests.iter().flat_map(|test| {
        let is_catalog = test.kind == Kind::ToolQuality;
        let catalog = is_catalog.then(|| RunTiming {
            name: test.label.clone(),
            duration_ms: test.duration_ms(),
        });
        let runs = test.runs.iter().filter(move |_| !is_catalog);
        catalog.into_iter().chain(runs.map(|run| RunTiming {
            name: test.row_name(run).into_owned(),
            duration_ms: run.duration_ms(),
        }))
    })
}
