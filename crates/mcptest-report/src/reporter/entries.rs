//! The tests of a report as the reporters for machines list them, and their texts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use mcptest_events::{CaseId, Kind};
use mcptest_json::text::{one_line, shorten};
use mcptest_numbers::random::seed_of;
use mcptest_trace::expect::Assertion;
use mcptest_trace::verdict::Verdict;
use serde::Serialize;
use serde_json::Value;

use crate::report::{Report, TestReport};
use crate::row::RunRow;
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
pub(super) struct Entry<'a> {
    pub(super) id: &'a CaseId,
    /// The report of the test; `None` if it did not run.
    pub(super) test: Option<&'a TestReport>,
    /// The number of earlier entries with the same suite, name and model.
    pub(super) repeated: usize,
}

/// Every test of a report, then those that did not run.
pub(super) fn entries(report: &Report) -> impl Iterator<Item = Entry<'_>> {
    let run = report.tests.iter().map(|test| (&test.id, Some(test)));
    let not_run = report.not_run.iter().map(|id| (id, None));
    let mut seen: BTreeMap<&CaseId, usize> = BTreeMap::new();
    run.chain(not_run).map(move |(id, test)| {
        let count = seen.entry(id).or_default();
        *count += 1;
        Entry {
            id,
            test,
            repeated: *count - 1,
        }
    })
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
    pub(super) fn label(&self) -> String {
        match (self.test, &self.id.model) {
            (Some(test), _) => name(&test.label),
            (None, Some(model)) => name(&format!("{} [{model}]", self.id.name)),
            (None, None) => name(&self.id.name),
        }
    }

    /// The suite file, relative where it was opened so.
    pub(super) fn file(&self) -> Option<String> {
        let file = self.test?.file.as_deref()?.replace('\\', "/");
        Some(name(file.trim_start_matches("./")))
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
        let model = self.id.model.as_deref().unwrap_or_default();
        let key = format!("{}\0{}\0{model}", self.id.suite, self.id.name);
        let half = |side: u64| seed_of(&key, 2 * self.repeated as u64 + side);
        format!("{:016x}{:016x}", half(0), half(1))
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
        for gate in gates.filter(|gate| gate.verdict != Verdict::Pass) {
            let why = gate.no_evidence.as_ref().unwrap_or(&gate.summary);
            reasons.push(format!("{}: {why}", gate.block));
            let failed = gate.assertions.iter().filter(|one| one.failed());
            reasons.extend(failed.map(assertion));
        }
        for run in failed_runs(test).take(MAX_RUNS) {
            let record = test.details(&run)?;
            let name = &record.name;
            if let Some(error) = &record.error {
                let kind = error.kind.as_str();
                reasons.push(format!("{name}: {kind}: {}", error.message));
            }
            let failed = record.assertions.iter().filter(|one| one.failed());
            reasons.extend(failed.map(|one| format!("{name}: {}", assertion(one))));
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
    pub(super) fn command(&self) -> Option<String> {
        let test = self.test?;
        let mut command = format!("mcptest run {}", quoted(test.file.as_deref()?)?);
        command.push_str(" --filter ");
        command.push_str(&quoted(&self.id.name)?);
        if test.kind == Kind::Agent
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

/// An untrusted string on one line, with at most `max` characters.
pub(super) fn text(text: &str, max: usize) -> String {
    // Of a long string only the beginning is escaped: `max` characters are at most 4 × `max` bytes.
    let head = text.char_indices().nth(max + 1);
    let head = head.map_or(text, |(end, _)| &text[..end]);
    shorten(&one_line(head), max)
}

/// An untrusted name on one line and of bounded length.
pub(super) fn name(untrusted: &str) -> String {
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

/// Writes JSON on one line and a line end. `<` is written as an escape, so the text cannot end a
/// script element of a page that it is put into.
pub(super) fn write_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    writeln!(out, "{}", text.replace('<', "\\u003c"))
}

/// Writes indented JSON, as [`write_json`] does.
pub(super) fn write_pretty_json(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    writeln!(out, "{}", text.replace('<', "\\u003c"))
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
                "a: tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\"",
            ]
        );
        assert!(found[1].reasons().unwrap().is_empty());
        assert_eq!(
            found[0].reason().unwrap(),
            "tool_selection: selection 50% (and 2 more)"
        );
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
    fn fingerprints_tell_repeated_tests_apart_and_never_change() {
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
