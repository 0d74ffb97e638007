//! `gitlab`: tests that did not pass as a code quality report of GitLab.

use std::io::Write;

use mcptest_trace::verdict::Verdict;
use serde_json::{Value, json};

use super::entries::{Entry, entries, write_pretty_json};
use super::{RenderError, Style};
use crate::report::Report;

/// The largest number of issues in a report. GitLab reads reports of up to 100 MB.
const MAX_ISSUES: usize = 50_000;
/// The file of a test whose suite file is not known: GitLab needs one.
pub(crate) const UNKNOWN_FILE: &str = "mcptest.yml";

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let open = entries(report).filter(|entry| entry.verdict() != Verdict::Pass);
    let issues = open.take(MAX_ISSUES).map(|entry| issue(&entry));
    let issues = issues.collect::<Result<Vec<Value>, _>>()?;
    Ok(write_pretty_json(&issues, out)?)
}

fn issue(entry: &Entry<'_>) -> Result<Value, RenderError> {
    let severity = match (entry.verdict(), entry.test) {
        (Verdict::Error, _) => "critical",
        (Verdict::Fail, _) => "major",
        (_, Some(_)) => "minor",
        (_, None) => "info",
    };
    let file = entry.file().unwrap_or_else(|| UNKNOWN_FILE.to_owned());
    Ok(json!({
        "description": format!("{}: {}", entry.label(), entry.reason()?),
        "check_name": format!("mcptest/{}", entry.word()),
        "fingerprint": entry.fingerprint(),
        "severity": severity,
        // GitLab needs a line.
        "location": {"path": file, "lines": {"begin": entry.line().unwrap_or(1)}},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{self, rendered};

    #[test]
    fn the_issues_of_each_verdict() {
        let text = rendered(render, &samples::every_verdict());
        let issues: Vec<Value> = serde_json::from_str(&text).unwrap();
        let facts: Vec<[&str; 4]> = issues
            .iter()
            .map(|issue| {
                let text = |value: &'_ Value| value.as_str().unwrap().to_owned().leak() as &str;
                [
                    text(&issue["severity"]),
                    text(&issue["check_name"]),
                    text(&issue["location"]["path"]),
                    text(&issue["description"]),
                ]
            })
            .collect();
        assert_eq!(
            facts,
            [
                [
                    "major",
                    "mcptest/fail",
                    "sample.yml",
                    "fails [m]: tool_calls[0].name: expected {\"exact\":\"search\"}, actual \"fetch\""
                ],
                [
                    "critical",
                    "mcptest/error",
                    "sample.yml",
                    "breaks: timeout: no answer"
                ],
                [
                    "minor",
                    "mcptest/no_evidence",
                    "sample.yml",
                    "looks: the test expects nothing"
                ],
                ["info", "mcptest/not_run", "sample.yml", "never: not run"],
            ]
        );
        let prints: std::collections::BTreeSet<String> = issues
            .iter()
            .map(|issue| issue["fingerprint"].to_string())
            .collect();
        assert_eq!(prints.len(), issues.len());
    }

    #[test]
    fn a_report_that_passed_is_an_empty_list() {
        let report = samples::concluded(vec![samples::test("a", None, Verdict::Pass)]);
        assert_eq!(rendered(render, &report), "[]\n");
    }
}
