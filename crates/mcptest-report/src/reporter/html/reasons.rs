//! The first reasons why a test did not pass, for lists and for the search.

use mcptest_json::text::{one_line, shorten};
use mcptest_trace::expect::Assertion;
use mcptest_trace::verdict::Verdict;

use crate::report::TestReport;
use crate::store::StoreError;

/// The number of reasons of a test.
const MAX_REASONS: usize = 3;
/// The longest reason, in characters.
const MAX_REASON: usize = 240;
/// The longest value within a reason, in characters.
const MAX_VALUE: usize = 90;

/// The first reasons why a test did not pass: those of its first run that did not, then those of
/// its gates. Empty for a test that passed.
pub(super) fn reasons(test: &TestReport) -> Result<Vec<String>, StoreError> {
    let mut reasons = Vec::new();
    if test.verdict == Verdict::Pass {
        return Ok(reasons);
    }
    reasons.extend(test.no_evidence.as_deref().map(one_line));
    let mut runs = test.runs.iter();
    if let Some(row) = runs.find(|run| run.verdict() != Verdict::Pass && run.record_len() > 0) {
        let run = test.details(&row)?;
        if let Some(error) = &run.error {
            reasons.push(format!(
                "{}: {}",
                error.kind.as_str(),
                one_line(&error.message)
            ));
        }
        let failed = run.assertions.iter().filter(|one| one.failed());
        reasons.extend(failed.map(assertion));
    }
    for gate in test
        .gates
        .iter()
        .filter(|gate| gate.verdict != Verdict::Pass)
    {
        match &gate.no_evidence {
            Some(why) => reasons.push(format!("{}: {}", gate.block, one_line(why))),
            None => {
                let failed = gate.assertions.iter().filter(|one| one.failed());
                reasons.extend(failed.map(assertion));
            }
        }
    }
    reasons.truncate(MAX_REASONS);
    Ok(reasons
        .into_iter()
        .map(|reason| shorten(&reason, MAX_REASON))
        .collect())
}

fn assertion(assertion: &Assertion) -> String {
    let value = |value: &serde_json::Value| shorten(&one_line(&value.to_string()), MAX_VALUE);
    let expected = match assertion.matcher.as_object() {
        Some(rules) => {
            let rules = rules
                .iter()
                .map(|(key, rule)| format!("{} {}", one_line(key), value(rule)));
            rules.collect::<Vec<_>>().join(" and ")
        }
        None => value(&assertion.matcher),
    };
    format!(
        "{}: expected {expected}, was {}",
        one_line(&assertion.target),
        value(&assertion.actual)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn runs_come_before_gates_and_everything_is_bounded() {
        let mut written = samples::test("a", None, Verdict::Fail);
        written.gates.push(samples::floor(Verdict::Fail, 50));
        let report = samples::concluded(vec![written.clone()]);
        assert_eq!(
            reasons(&report.tests[0]).unwrap(),
            [
                "tool_calls[0].name: expected exact \"search\", was \"fetch\"",
                "floor.passed: expected >= 1, was 0"
            ]
        );
        let long = "\u{1b}[31m".repeat(1_000_000);
        written.runs[0].assertions[0].actual = long.into();
        let report = samples::concluded(vec![written]);
        let reasons = reasons(&report.tests[0]).unwrap();
        assert!(
            reasons
                .iter()
                .all(|text| text.chars().count() <= MAX_REASON)
        );
        assert!(reasons.iter().all(|text| !text.contains('\u{1b}')));
    }

    #[test]
    fn a_test_that_passed_has_none() {
        let report = samples::concluded(vec![samples::test("a", None, Verdict::Pass)]);
        assert!(reasons(&report.tests[0]).unwrap().is_empty());
    }
}
