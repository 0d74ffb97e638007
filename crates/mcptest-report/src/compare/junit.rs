//! A comparison as JUnit's XML: a test case per test that differs. A regression is a failure, a
//! test that can no longer be judged is skipped.

use std::io::Write;

use super::changed::{Changed, Outcome, changed};
use super::pretty::totals;
use super::{Comparison, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::junit::{attribute, escape};

pub(super) fn render(
    comparison: &Comparison,
    current: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let tests = changed(comparison, current);
    let count = |wanted: Outcome| tests.iter().filter(|it| it.outcome() == wanted).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\"",
        tests.len(),
        count(Outcome::Failed)
    );
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"mcptest compared\" {counts} time=\"0.000\">\n  \
         <testsuite name=\"{}\" {counts} skipped=\"{}\" time=\"0.000\">",
        attribute(&totals(comparison)),
        count(Outcome::NotJudged)
    )?;
    for test in &tests {
        write_case(out, test)?;
    }
    Ok(writeln!(out, "  </testsuite>\n</testsuites>")?)
}

fn write_case(out: &mut dyn Write, test: &Changed<'_>) -> Result<(), RenderError> {
    let (word, facts) = (test.word(), test.facts());
    writeln!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"0.000\">",
        attribute(&test.name()),
        attribute(&test.suite())
    )?;
    match test.outcome() {
        Outcome::Failed => {
            let again = test.command();
            let again = again.map_or_else(String::new, |it| format!("again: {it}"));
            writeln!(
                out,
                "      <failure message=\"{}\" type=\"{word}\">{}</failure>",
                attribute(&facts),
                escape(&again)
            )?;
        }
        Outcome::NotJudged => {
            let message = attribute(&format!("{word}: {facts}"));
            writeln!(out, "      <skipped message=\"{message}\"/>")?;
        }
        Outcome::Passed => {
            let text = attribute(&format!("{word}: {facts}"));
            writeln!(out, "      <system-out>{text}</system-out>")?;
        }
    }
    Ok(writeln!(out, "    </testcase>")?)
}
