//! `agent`: for a coding agent: the verdict, a line per failure and the command that reproduces it,
//! in at most 4 kB.

use std::io::Write;

use mcptest_trace::verdict::Verdict;

use super::entries::{Entry, entries, text};
use super::pretty::{count_words, spent};
use super::{RenderError, Style};
use crate::report::Report;
use crate::verdict_word::verdict_word;

/// The largest output in bytes.
const MAX_BYTES: usize = 4096;
/// The bytes reserved for the last line.
const LAST_LINE: usize = 120;
/// The longest text of one failure, in characters.
const MAX_LINE: usize = 240;

/// Writes the verdict, then failures and errors, then tests without evidence, while they fit.
pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let word = match report.interrupted {
        true => "INTERRUPTED".to_owned(),
        false => verdict_word(report.verdict).to_uppercase(),
    };
    let code = u8::from(report.exit_code);
    let mut page = Page::new(&format!(
        "mcptest {word} (exit {code}): {}",
        count_words(report)
    ));
    if let Some(spent) = spent(report) {
        page.line(&spent);
    }
    if let Some(broken) = &report.broken_lines {
        page.line(&broken.words());
    }
    let grave = |entry: &Entry<'_>| matches!(entry.verdict(), Verdict::Fail | Verdict::Error);
    let open = || entries(report).filter(|entry| entry.verdict() != Verdict::Pass);
    let first = open().filter(grave);
    let others = open().filter(|entry| !grave(entry));
    for entry in first.chain(others) {
        page.add(&lines(&entry)?);
    }
    Ok(out.write_all(page.finish("that did not pass").as_bytes())?)
}

/// A page of bounded size: a headline, and entries while they fit.
pub(crate) struct Page {
    text: String,
    omitted: usize,
}

impl Page {
    pub(crate) fn new(headline: &str) -> Self {
        let mut page = Self {
            text: String::new(),
            omitted: 0,
        };
        page.line(headline);
        page
    }

    /// Adds a line below the headline.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(&text(line, MAX_LINE));
        self.text.push('\n');
    }

    /// Adds an entry if it fits. After the first omitted entry all others are omitted: a list with
    /// gaps misleads.
    pub(crate) fn add(&mut self, entry: &str) {
        if self.omitted == 0 && self.text.len() + entry.len() + LAST_LINE <= MAX_BYTES {
            self.text.push_str(entry);
        } else {
            self.omitted += 1;
        }
    }

    /// The page. `what` describes the entries.
    pub(crate) fn finish(mut self, what: &str) -> String {
        if self.omitted > 0 {
            let omitted = self.omitted;
            self.text.push_str(&format!(
                "and {omitted} more {what}; the JSON report has all of them\n"
            ));
        }
        self.text
    }
}

fn lines(entry: &Entry<'_>) -> Result<String, RenderError> {
    let word = entry.word().to_uppercase();
    let reason = entry.reason()?;
    // `INTERRUPTED` and `NOT_RUN` say it already.
    let row = match reason.as_str() {
        "not run" => format!("{word} {}", entry.label()),
        reason => format!(
            "{word} {}: {}",
            entry.label(),
            reason.strip_prefix("interrupted: ").unwrap_or(reason)
        ),
    };
    let mut lines = format!("{}\n", text(&row, MAX_LINE));
    if let Some(command) = entry.command() {
        lines.push_str(&format!("  {command}\n"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_verdict_comes_first_and_failures_have_commands() {
        assert_eq!(
            rendered(render, &samples::every_verdict()),
            "mcptest ERROR (exit 2): 4 tests: 1 passed, 1 failed, 1 without evidence, 1 with errors, 1 not run\n\
             FAIL fails [m]: tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\"\n  \
             mcptest run sample.yml --filter fails --model m\n\
             ERROR breaks: timeout: no answer\n  \
             mcptest run sample.yml --filter breaks\n\
             NO_EVIDENCE looks: the test expects nothing\n  \
             mcptest run sample.yml --filter looks\n\
             NOT_RUN never\n  \
             mcptest run sample.yml --filter never\n"
        );
    }

    #[test]
    fn a_report_that_passed_is_one_line() {
        let report = samples::concluded(vec![samples::test("a", None, Verdict::Pass)]);
        assert_eq!(
            rendered(render, &report),
            "mcptest PASS (exit 0): 1 test: 1 passed\n"
        );
    }

    proptest! {
        #[test]
        fn it_fits(name in "\\PC{0,400}", tests in 1_usize..60) {
            let tests = vec![samples::test(&name, Some("天"), Verdict::Fail); tests];
            let count = tests.len();
            let text = rendered(render, &samples::concluded(tests));
            prop_assert!(text.len() <= MAX_BYTES, "{}", text.len());
            let shown = text.lines().filter(|line| line.starts_with("FAIL ")).count();
            let rest = text.lines().last().and_then(|line| line.strip_prefix("and ")?.split(' ').next()?.parse().ok());
            prop_assert_eq!(shown + rest.unwrap_or(0_usize), count);
        }
    }
}
