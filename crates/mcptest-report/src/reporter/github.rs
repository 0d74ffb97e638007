//! `github`: tests that did not pass as workflow commands, which GitHub Actions shows beside the
//! suite files of a pull request.

use std::io::Write;

use mcptest_trace::verdict::Verdict;

use super::entries::{Entry, entries, name};
use super::{RenderError, Style};
use crate::report::Report;

/// The number of commands. GitHub shows ten of each level per step.
pub(crate) const MAX_COMMANDS: usize = 1000;

/// Writes one command per test that did not pass, errors and failures first.
pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let open = || entries(report).filter(|entry| entry.verdict() != Verdict::Pass);
    let is_grave = |entry: &Entry<'_>| matches!(entry.verdict(), Verdict::Fail | Verdict::Error);
    let grave = open().filter(is_grave);
    let others = open().filter(|entry| !is_grave(entry));
    for entry in grave.chain(others).take(MAX_COMMANDS) {
        let level = if is_grave(&entry) { "error" } else { "warning" };
        let title = format!("mcptest {}: {}", entry.word(), entry.label());
        let mut properties = String::new();
        if let Some(file) = entry.file() {
            properties = location(&file, entry.line());
        }
        let mut message = format!("{}: {}", entry.label(), entry.reason()?);
        if let Some(command) = entry.command() {
            message.push_str("; again: ");
            message.push_str(&command);
        }
        writeln!(
            out,
            "::{level} {properties}title={}::{}",
            property(&title),
            data(&message)
        )?;
    }
    let omitted = open().count().saturating_sub(MAX_COMMANDS);
    if omitted > 0 {
        writeln!(
            out,
            "::warning title=mcptest::{omitted} more tests did not pass"
        )?;
    }
    if let Some(broken) = &report.broken_lines {
        let words = data(&name(&broken.words()));
        writeln!(out, "::warning title=mcptest broken lines::{words}")?;
    }
    if report.interrupted {
        writeln!(
            out,
            "::warning title=mcptest interrupted::only finished runs are reported"
        )?;
    }
    Ok(())
}

/// The properties of a place in a suite file.
pub(crate) fn location(file: &str, line: Option<u32>) -> String {
    let file = property(file);
    line.map_or_else(
        || format!("file={file},"),
        |line| format!("file={file},line={line},"),
    )
}

/// Escapes a message, which ends with its line. A second `::` confuses readers.
pub(crate) fn data(text: &str) -> String {
    text.replace('%', "%25").replace("::", ":%3A")
}

/// Escapes a property of a command. Line ends are escaped in all texts already.
pub(crate) fn property(text: &str) -> String {
    text.replace('%', "%25")
        .replace(':', "%3A")
        .replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_commands_of_each_verdict() {
        let mut report = samples::every_verdict();
        report.interrupted = true;
        assert_eq!(
            rendered(render, &report),
            "::error file=sample.yml,line=3,title=mcptest fail%3A fails [m]::fails [m]: tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\"; again: mcptest run sample.yml --filter fails --model m\n\
             ::error file=sample.yml,line=3,title=mcptest error%3A breaks::breaks: timeout: no answer; again: mcptest run sample.yml --filter breaks\n\
             ::warning file=sample.yml,line=3,title=mcptest no_evidence%3A looks::looks: the test expects nothing; again: mcptest run sample.yml --filter looks\n\
             ::warning file=sample.yml,title=mcptest not_run%3A never::never: not run; again: mcptest run sample.yml --filter never\n\
             ::warning title=mcptest interrupted::only finished runs are reported\n"
        );
    }

    #[test]
    fn no_name_can_begin_another_command() {
        let hostile = "a,b:c%\r\n::error title=x::y";
        let report = samples::concluded(vec![samples::test(hostile, None, Verdict::Fail)]);
        let text = rendered(render, &report);
        assert_eq!(text.lines().count(), 1);
        let (properties, message) = text[2..].split_once("::").unwrap();
        assert_eq!(
            properties,
            "error file=sample.yml,line=3,title=mcptest fail%3A a%2Cb%3Ac%25\\r\\n%3A%3Aerror title=x%3A%3Ay"
        );
        assert!(!message.contains("::"), "{message}");
    }

    #[test]
    fn many_failures_are_bounded() {
        let tests = vec![samples::test("a", None, Verdict::Fail); MAX_COMMANDS + 7];
        let text = rendered(render, &samples::concluded(tests));
        assert_eq!(text.lines().count(), MAX_COMMANDS + 1);
        assert!(text.ends_with("::7 more tests did not pass\n"));
    }
}
