//! `pr`: Markdown for a comment on a pull request that is updated in place: a marker to find it by,
//! the comparison first if there is one, failures that can be unfolded.

use std::io::Write;

use mcptest_trace::verdict::Verdict;

use super::entries::{Entry, entries};
use super::pretty::{count_words, spent};
use super::{RenderError, Style};
use crate::markdown::{Bounded, code};
use crate::report::Report;

/// The first line, by which a workflow finds the comment that it wrote before.
pub(crate) const MARKER: &str = "<!-- mcptest: report -->";

/// The number of lines about one test that did not pass.
const MAX_REASONS: usize = 8;

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut page = Bounded::new();
    page.line(MARKER);
    page.line(&format!("## mcptest: {}", headline(report)));
    page.line("");
    write_results(&mut page, report)?;
    Ok(out.write_all(page.finish().as_bytes())?)
}

/// The verdict of a report in words.
pub(crate) fn headline(report: &Report) -> &'static str {
    match report.verdict {
        _ if report.interrupted => "interrupted",
        Verdict::Pass => "passed",
        Verdict::NoEvidence => "no evidence",
        Verdict::Fail => "failed",
        Verdict::Error => "error",
    }
}

/// Writes the counts, the spend, and the tests that did not pass, folded.
pub(crate) fn write_results(page: &mut Bounded, report: &Report) -> Result<(), RenderError> {
    page.line(&format!("{}.", count_words(report)));
    if let Some(spent) = spent(report) {
        page.line("");
        // As code: a dollar sign could begin a formula.
        page.line(&format!("{}.", code(&spent)));
    }
    if let Some(broken) = &report.broken_lines {
        page.line("");
        page.line(&format!("{}.", code(&broken.words())));
    }
    for (verdicts, title) in [
        (&[Verdict::Fail, Verdict::Error][..], "did not pass"),
        (&[Verdict::NoEvidence][..], "without evidence"),
    ] {
        let open = || entries(report).filter(|entry| verdicts.contains(&entry.verdict()));
        let count = open().count();
        if count == 0 {
            continue;
        }
        let plural = if count == 1 { "test" } else { "tests" };
        page.line("");
        page.line(&format!(
            "<details><summary>{count} {plural} {title}</summary>"
        ));
        page.line("");
        let shown = open().map(|entry| item(&entry));
        let shown = shown.collect::<Result<Vec<String>, _>>()?;
        page.entries(shown.into_iter(), &format!("tests {title}"));
        page.line("");
        page.line("</details>");
    }
    Ok(())
}

/// A test that did not pass, with its reasons and its command. All texts are code, so nothing is a
/// mention, a link or markup.
fn item(entry: &Entry<'_>) -> Result<String, RenderError> {
    let word = entry.word().replace('_', " ");
    let mut item = format!("- **{word}** {}", code(&entry.label()));
    let reasons = entry.reasons()?;
    for reason in reasons.iter().take(MAX_REASONS) {
        item.push_str(&format!("\n  - {}", code(reason)));
    }
    let more = reasons.len().saturating_sub(MAX_REASONS);
    if more > 0 {
        item.push_str(&format!("\n  - and {more} more"));
    }
    if let Some(command) = entry.command() {
        item.push_str(&format!("\n  - again: {}", code(&command)));
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn failures_are_folded() {
        assert_eq!(
            rendered(render, &samples::every_verdict()),
            r#"<!-- mcptest: report -->
## mcptest: error

4 tests: 1 passed, 1 failed, 1 without evidence, 1 with errors, 1 not run.

<details><summary>2 tests did not pass</summary>

- **fail** `fails [m]`
  - `tool_calls[0].name: expected {"exact":"search"}, actual "fetch"`
  - again: `mcptest run sample.yml --filter fails --model m`
- **error** `breaks`
  - `timeout: no answer`
  - again: `mcptest run sample.yml --filter breaks`

</details>

<details><summary>2 tests without evidence</summary>

- **no evidence** `looks`
  - `the test expects nothing`
  - again: `mcptest run sample.yml --filter looks`
- **not run** `never`
  - `not run`
  - again: `mcptest run sample.yml --filter never`

</details>
"#
        );
    }

    #[test]
    fn a_comment_fits_and_is_always_closed() {
        let name = format!("@all https://example.com `</details>` {}", "x".repeat(300));
        let tests = vec![samples::test(&name, None, Verdict::Fail); 2000];
        let page = rendered(render, &samples::concluded(tests));
        assert!(page.chars().count() < 65_536, "{}", page.len());
        assert_eq!(page.matches("\n</details>\n").count(), 1);
        assert!(page.contains("Truncated: "), "{page}");
    }
}
