//! The tests of a report as the reporters for machines list them, and their texts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use mcptest_events::{CaseId, Kind, RunRecord};
use mcptest_json::text::{one_line, shorten};
use mcptest_json::visible::{VisibleJson, visible};
use mcptest_numbers::random::seed_of;
use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::report::{Report, TestReport};
use crate::row::RunRow;
use crate::server_output::server_output;
use crate::store::StoreError;
use crate::verdict_word::verdict_word;

/// The longest name, in characters.
const MAX_NAME: usize = 300;
/// The longest reason, in characters.
const MAX_REASON: usize = 400;
/// The longest value within a reason, in characters.
const MAX_VALUE: usize = 120;
/// The number of runs whose records are read for the reasons of a test.
const MAX_RUNS: usize = 3;

/// A test of the report, or one that was planned and did not run.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) id: &'a CaseId,
    /// The report of the test; `None` if it did not run.
    pub(crate) test: Option<&'a TestReport>,
    /// The number of earlier entries with the same suite, name and model.
    pub(crate) repeated: usize,
    /// For a test that did not run: true if it was planned with several models.
    several_models: bool,
    /// For a test that did not run: the file of its suite, where other tests of it have run.
    suite_file: Option<&'a str>,
}

/// Every test of a report, then those that did not run.
pub(crate) fn entries(report: &Report) -> impl Iterator<Item = Entry<'_>> {
    let run = report.tests.iter().map(|test| (&test.id, Some(test)));
    let not_run = report.not_run.iter().map(|id| (id, None));
    let mut seen: BTreeMap<&CaseId, usize> = BTreeMap::new();
    let planned = Planned::of(report);
    run.chain(not_run).map(move |(id, test)| {
        let count = seen.entry(id).or_default();
        *count += 1;
        Entry {
            id,
            test,
            repeated: *count - 1,
            several_models: test.is_none() && planned.has_several_models(id),
            suite_file: planned.files.get(id.suite.as_str()).copied().flatten(),
        }
    })
}

/// The label that a test that did not run would have had.
fn label(id: &CaseId, several_models: bool) -> String {
    match &id.model {
        Some(model) if several_models => format!("{} [{model}]", id.name),
        _ => id.name.clone(),
    }
}

/// Facts about tests that did not run, from all tests of the report.
struct Planned<'a> {
    /// The models of the tests by suite and name, where tests did not run.
    models: BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>,
    /// The file of each suite; `None` if its tests are from several.
    files: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> Planned<'a> {
    fn of(report: &'a Report) -> Self {
        let mut planned = Self {
            models: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        if report.not_run.is_empty() {
            return planned;
        }
        let run = report.tests.iter().map(|test| &test.id);
        for id in run.chain(&report.not_run) {
            let key = (id.suite.as_str(), id.name.as_str());
            planned
                .models
                .entry(key)
                .or_default()
                .extend(id.model.as_deref());
        }
        for test in &report.tests {
            let file = test.file.as_deref();
            let known = planned.files.entry(&test.id.suite).or_insert(file);
            if *known != file {
                *known = None;
            }
        }
        planned
    }

    fn has_several_models(&self, id: &CaseId) -> bool {
        let models = self.models.get(&(id.suite.as_str(), id.name.as_str()));
        models.is_some_and(|models| models.len() > 1)
    }
}

impl Entry<'_> {
    pub(super) fn verdict(&self) -> Verdict {
        self.test.map_or(Verdict::NoEvidence, |test| test.verdict)
    }

    /// The verdict in a word; `not_run` and `interrupted` for tests without one.
    pub(super) fn word(&self) -> &'static str {
        match self.test {
            None => "not_run",
            Some(test) if test.is_undecided() => "interrupted",
            Some(test) => verdict_word(test.verdict),
        }
    }

    /// The name in rows, on one line and bounded.
    pub(crate) fn label(&self) -> String {
        match self.test {
            Some(test) => name(&test.label),
            None => name(&label(self.id, self.several_models)),
        }
    }

    /// The suite file, relative where it was opened so.
    pub(crate) fn file(&self) -> Option<String> {
        let file = self.written_file()?.replace('\\', "/");
        Some(name(file.trim_start_matches("./")))
    }

    /// The line of the test in the suite file.
    pub(crate) fn line(&self) -> Option<u32> {
        self.test.and_then(|test| test.line)
    }

    fn written_file(&self) -> Option<&str> {
        match self.test {
            Some(test) => test.file.as_deref(),
            None => self.suite_file,
        }
    }

    /// True for a test that passed with runs that did not, or failed with runs that passed.
    pub(super) fn is_flaky(&self) -> bool {
        self.test.is_some_and(|test| {
            let passed = test.passed_runs();
            passed > 0 && passed < test.run_count()
        })
    }

    /// The number that identifies the test in every report, as 32 hexadecimal digits.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(self.id, self.repeated)
    }

    /// The reasons why the test did not pass, each on one line: those of the test, of its gates,
    /// then of its first runs that did not pass. Never empty unless the test passed.
    pub(super) fn reasons(&self) -> Result<Vec<String>, StoreError> {
        let Some(test) = self.test else {
            return Ok(vec!["not run".to_owned()]);
        };
        let mut reasons = Vec::new();
        if test.verdict == Verdict::Pass {
            return Ok(reasons);
        }
        reasons.extend(test.no_evidence.clone());
        let gates = test.gates.iter();
        // A gate of an interrupted test has no reason of its own.
        let open = |gate: &&GateOutcome| match gate.verdict {
            Verdict::Pass => false,
            Verdict::NoEvidence => !test.interrupted,
            Verdict::Fail | Verdict::Error => true,
        };
        for gate in gates.filter(open) {
            let why = gate.no_evidence.as_ref().unwrap_or(&gate.summary);
            reasons.push(format!("{}: {why}", gate.block));
            let failed = gate.assertions.iter().filter(|one| one.failed());
            reasons.extend(failed.map(assertion));
        }
        for run in failed_runs(test).take(MAX_RUNS) {
            let record = test.details(&run)?;
            // The only run of a test has its name.
            let name = match &record.name {
                name if *name == test.label || *name == test.id.name => String::new(),
                name => format!("{name}: "),
            };
            if let Some(error) = &record.error {
                let kind = error.kind.as_str();
                reasons.push(format!("{name}{kind}: {}", error.message));
            }
            let mut said = said(&record);
            let failed = record.assertions.iter().filter(|one| one.failed());
            reasons.extend(failed.map(|one| {
                let said = said.take().unwrap_or_default();
                format!("{name}{}{said}", assertion(one))
            }));
        }
        if reasons.is_empty() {
            reasons.push(verdict_word(test.verdict).to_owned());
        }
        let reasons = reasons.into_iter();
        Ok(reasons.map(|reason| text(&reason, MAX_REASON)).collect())
    }

    /// The first reason, and the number of the others.
    pub(super) fn reason(&self) -> Result<String, StoreError> {
        let mut reasons = self.reasons()?.into_iter();
        let first = reasons.next().unwrap_or_default();
        Ok(match reasons.len() {
            0 => first,
            more => format!("{first} (and {more} more)"),
        })
    }

    /// The command that runs the test again, for a shell; `None` if the suite file is not known or
    /// the name cannot be written on one line.
    pub(crate) fn command(&self) -> Option<String> {
        let mut command = format!("mcptest run {}", quoted(self.written_file()?)?);
        command.push_str(" --filter ");
        command.push_str(&quoted(&self.id.name)?);
        if self.test.is_none_or(|test| test.kind == Kind::Agent)
            && let Some(model) = &self.id.model
        {
            command.push_str(" --model ");
            command.push_str(&quoted(model)?);
        }
        (command.chars().count() <= 2 * MAX_NAME).then_some(command)
    }
}

/// The runs that did not pass and have a record.
pub(super) fn failed_runs(test: &TestReport) -> impl Iterator<Item = RunRow> {
    let runs = test.runs.iter();
    runs.filter(|run| run.verdict() != Verdict::Pass && run.record_len() > 0)
}

/// The first line of the first failed call of a run, to stand behind its first reason.
fn said(record: &RunRecord) -> Option<String> {
    let (title, lines) = server_output(record).into_iter().next()?;
    let line = lines.first()?;
    Some(format!("; {title} {line}"))
}

/// A failed assertion in a few words.
fn assertion(assertion: &Assertion) -> String {
    let value = |value: &Value| text(&value.to_string(), MAX_VALUE);
    let judged = if assertion.judged { " (judged)" } else { "" };
    format!(
        "{}{judged}: expected {}, actual {}",
        assertion.target,
        value(&assertion.matcher),
        value(&assertion.actual)
    )
}

/// The number that identifies a test in every report, as 32 hexadecimal digits. `repeated` is the
/// number of tests before it with the same name.
pub(crate) fn fingerprint(id: &CaseId, repeated: usize) -> String {
    let model = id.model.as_deref().unwrap_or_default();
    let key = format!("{}\0{}\0{model}", id.suite, id.name);
    let half = |side: u64| seed_of(&key, 2 * repeated as u64 + side);
    format!("{:016x}{:016x}", half(0), half(1))
}

/// An untrusted string on one line, with at most `max` characters.
pub(crate) fn text(text: &str, max: usize) -> String {
    // Of a long string only the beginning is escaped: `max` characters are at most 4 × `max` bytes.
    let head = text.char_indices().nth(max + 1);
    let head = head.map_or(text, |(end, _)| &text[..end]);
    shorten(&one_line(head), max)
}

/// An untrusted name on one line and of bounded length.
pub(crate) fn name(untrusted: &str) -> String {
    text(untrusted, MAX_NAME)
}

/// A word for a POSIX shell; `None` if it has characters that cannot be shown.
fn quoted(word: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=,".contains(c);
    if one_line(word) != word {
        return None;
    }
    Some(
        match word.chars().all(is_plain) && !word.is_empty() && !word.starts_with('-') {
            true => word.to_owned(),
            // `--` would not help: the word is the value of an option.
            false => format!("'{}'", word.replace('\'', r"'\''")),
        },
    )
}

/// Writes JSON on one line and a line end. Hidden characters are written as escapes, and so is `<`:
/// the text cannot end a script element of a page that it is put into.
pub(crate) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    writeln!(out, "{}", visible(&text).replace('<', "\\u003c"))
}

/// Writes indented JSON piece by piece, as [`write_json`] does.
pub(crate) fn write_pretty_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut text = VisibleJson::new(WithoutMarkup(&mut *out));
    serde_json::to_writer_pretty(&mut text, value)?;
    writeln!(out)
}

/// A writer of JSON text that passes it on with `<` as an escape, as [`write_json`] does.
struct WithoutMarkup<'a>(&'a mut dyn Write);

impl Write for WithoutMarkup<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (index, piece) in bytes.split(|byte| *byte == b'<').enumerate() {
            if index > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(piece)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A list in JSON whose items are made while they are written, once.
pub(crate) struct OneByOne<I>(RefCell<Option<I>>);

impl<I> OneByOne<I> {
    pub(crate) fn new(items: I) -> Self {
        Self(RefCell::new(Some(items)))
    }
}

impl<I: Iterator<Item: Serialize>> Serialize for OneByOne<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.take().into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn reasons_are_those_of_gates_and_runs() {
        let mut failed = samples::test("a", None, Verdict::Fail);
        failed.gates.push(samples::floor(Verdict::Fail, 50));
        let report = samples::concluded(vec![failed, samples::test("b", None, Verdict::Pass)]);
        let found: Vec<_> = entries(&report).collect();
        assert_eq!(
            found[0].reasons().unwrap(),
            [
                "tool_selection: selection 50%",
                "floor.passed: expected {\">=\":1}, actual 0",
                "tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\"",
            ]
        );
        assert!(found[1].reasons().unwrap().is_empty());
        assert_eq!(
            found[0].reason().unwrap(),
            "tool_selection: selection 50% (and 2 more)"
        );
    }

    #[test]
    fn a_test_that_did_not_run_is_named_as_if_it_had() {
        let id = |name: &str, model: &str| CaseId {
            suite: "sample".to_owned(),
            name: name.to_owned(),
            model: Some(model.to_owned()),
        };
        let mut run = samples::test("a", Some("m/1"), Verdict::Pass);
        run.file = Some("./a b.yml".to_owned());
        let mut report = samples::concluded(vec![run]);
        report.not_run = vec![id("b", "m/1"), id("c", "m/1"), id("c", "m/2")];
        let found: Vec<_> = entries(&report).skip(1).collect();
        let labels: Vec<String> = found.iter().map(Entry::label).collect();
        assert_eq!(labels, ["b", "c [m/1]", "c [m/2]"]);
        assert_eq!(found[0].file().as_deref(), Some("a b.yml"));
        let command = found[2].command().unwrap();
        assert_eq!(command, "mcptest run './a b.yml' --filter c --model m/2");
        // Where the suite is in several files, none of them is named.
        let mut other = samples::test("x", None, Verdict::Pass);
        other.file = Some("other.yml".to_owned());
        let mut run = samples::test("a", Some("m/1"), Verdict::Pass);
        run.file = Some("a.yml".to_owned());
        let mut report = samples::concluded(vec![run, other]);
        report.not_run = vec![id("b", "m/1")];
        assert_eq!(entries(&report).last().unwrap().file(), None);
    }

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let mut test = samples::test("it's $(here)", Some("m/1"), Verdict::Fail);
        test.file = Some("a b.yml".to_owned());
        let mut odd = samples::test("rings\u{7}", None, Verdict::Fail);
        odd.file = Some("a.yml".to_owned());
        let report = samples::concluded(vec![test, odd]);
        let commands: Vec<_> = entries(&report).map(|entry| entry.command()).collect();
        assert_eq!(
            commands,
            [
                Some(r"mcptest run 'a b.yml' --filter 'it'\''s $(here)' --model m/1".to_owned()),
                None
            ]
        );
        assert_eq!(quoted("-x").as_deref(), Some("'-x'"));
    }

    #[test]
    fn fingerprints_distinguish_repeated_tests_and_never_change() {
        let twice = vec![samples::test("a", None, Verdict::Fail); 2];
        let report = samples::concluded(twice);
        let prints: Vec<String> = entries(&report).map(|entry| entry.fingerprint()).collect();
        assert_ne!(prints[0], prints[1]);
        assert_eq!(prints[0].len(), 32);
        let again = samples::concluded(vec![samples::test("a", None, Verdict::Pass)]);
        let again = entries(&again).next().unwrap().fingerprint();
        assert_eq!(again, prints[0], "the verdict is not part of the identity");
    }

    #[test]
    fn long_texts_are_cut_before_they_are_escaped() {
        let long = "\u{1b}".repeat(1_000_000);
        assert_eq!(text(&long, 10).chars().count(), 10);
        assert_eq!(text("short", 5), "short");
        assert_eq!(text("longer", 5), "long…");
    }
}
