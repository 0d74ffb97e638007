//! `tap`: TAP 14, one test point per test and model, with YAML diagnostics.
//!
//! Runs are not subtests: the verdict belongs to the test, and a test may pass though a run did
//! not.

use std::io::{self, Write};

use mcptest_trace::verdict::Verdict;
use serde_json::Value;

use super::entries::{Entry, entries, name};
use super::{RenderError, Style};
use crate::report::Report;

/// The number of reasons of a test.
const MAX_REASONS: usize = 20;

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let tests = report.tests.len() + report.not_run.len();
    let total = tests + usize::from(report.broken_lines.is_some());
    writeln!(out, "TAP version 14\n1..{total}")?;
    for (at, entry) in entries(report).enumerate() {
        write_point(out, at + 1, &entry, report.is_timed())?;
    }
    if let Some(broken) = &report.broken_lines {
        let words = description(&name(&broken.words()));
        writeln!(out, "ok {total} - broken lines # SKIP {words}")?;
    }
    if report.interrupted {
        writeln!(out, "Bail out! interrupted")?;
    }
    Ok(())
}

fn write_point(
    out: &mut dyn Write,
    number: usize,
    entry: &Entry<'_>,
    is_timed: bool,
) -> Result<(), RenderError> {
    let ok = match entry.verdict() {
        Verdict::Pass | Verdict::NoEvidence => "ok",
        Verdict::Fail | Verdict::Error => "not ok",
    };
    write!(out, "{ok} {number} - {}", description(&entry.label()))?;
    if entry.verdict() == Verdict::NoEvidence {
        let word = entry.word().replace('_', " ");
        let reason = entry.reason()?;
        // The reason often begins with the word.
        let prefix = if reason.starts_with(&word) {
            String::new()
        } else {
            format!("{word}: ")
        };
        write!(out, " # SKIP {prefix}{}", description(&reason))?;
    } else if is_timed && let Some(test) = entry.test {
        write!(out, " # time={}ms", test.duration_ms())?;
    }
    writeln!(out)?;
    if entry.verdict() == Verdict::Pass && !entry.is_flaky() {
        return Ok(());
    }
    writeln!(out, "  ---")?;
    write_pair(out, "suite", &name(&entry.id.suite))?;
    write_pair(out, "verdict", entry.word())?;
    if let Some(file) = entry.file() {
        write_pair(out, "file", &file)?;
        if let Some(line) = entry.line() {
            writeln!(out, "  line: {line}")?;
        }
    }
    if let Some(test) = entry.test.filter(|test| test.run_count() > 0) {
        writeln!(out, "  runs: {}", test.run_count())?;
        writeln!(out, "  passed_runs: {}", test.passed_runs())?;
    }
    let reasons = entry.reasons()?;
    if !reasons.is_empty() {
        write_pair(out, "message", &entry.reason()?)?;
        writeln!(out, "  reasons:")?;
        for reason in reasons.iter().take(MAX_REASONS) {
            writeln!(out, "    - {}", Value::from(reason.as_str()))?;
        }
    }
    if let Some(command) = entry.command().filter(|_| !reasons.is_empty()) {
        write_pair(out, "again", &command)?;
    }
    Ok(writeln!(out, "  ...")?)
}

/// Writes a key with a string in double quotes, which is the same in YAML and JSON.
pub(crate) fn write_pair(out: &mut dyn Write, key: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {key}: {}", Value::from(text))
}

/// Escapes a description: `#` would begin a directive.
pub(crate) fn description(text: &str) -> String {
    text.replace('\\', r"\\").replace('#', r"\#")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_points_of_each_verdict() {
        let mut report = samples::every_verdict();
        report.interrupted = true;
        assert_eq!(
            rendered(render, &report),
            r##"TAP version 14
1..5
ok 1 - passes
not ok 2 - fails [m]
  ---
  suite: "sample"
  verdict: "fail"
  file: "sample.yml"
  line: 3
  runs: 1
  passed_runs: 0
  message: "tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""
  reasons:
    - "tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""
  again: "mcptest run sample.yml --filter fails --model m"
  ...
not ok 3 - breaks
  ---
  suite: "sample"
  verdict: "error"
  file: "sample.yml"
  line: 3
  runs: 1
  passed_runs: 0
  message: "timeout: no answer"
  reasons:
    - "timeout: no answer"
  again: "mcptest run sample.yml --filter breaks"
  ...
ok 4 - looks # SKIP no evidence: the test expects nothing
  ---
  suite: "sample"
  verdict: "no_evidence"
  file: "sample.yml"
  line: 3
  runs: 1
  passed_runs: 0
  message: "the test expects nothing"
  reasons:
    - "the test expects nothing"
  again: "mcptest run sample.yml --filter looks"
  ...
ok 5 - never # SKIP not run
  ---
  suite: "sample"
  verdict: "not_run"
  file: "sample.yml"
  message: "not run"
  reasons:
    - "not run"
  again: "mcptest run sample.yml --filter never"
  ...
Bail out! interrupted
"##
        );
    }

    #[test]
    fn a_name_cannot_become_a_directive_or_a_line() {
        let hostile = "a # SKIP\nok 2\\";
        let report = samples::concluded(vec![samples::test(hostile, None, Verdict::Pass)]);
        assert_eq!(
            rendered(render, &report),
            "TAP version 14\n1..1\nok 1 - a \\# SKIP\\\\nok 2\\\\\n"
        );
    }
}
