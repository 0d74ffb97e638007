//! `junit`: XML for CI systems, in the form that Surefire and Jenkins publish.
//!
//! A test with one model is one `testcase`, and every run of it an attempt, because the verdict is
//! the test's: a CI that counts tests counts what the suite declares, and one that knows about
//! retries shows them.
//!
//! | test | in the `testcase` |
//! |---|---|
//! | passed, all runs too | nothing |
//! | passed, though some runs failed or broke | `flakyFailure`, `flakyError` for each of those |
//! | failed | `failure`, and `rerunFailure`, `rerunError` for each run that failed or broke |
//! | broke | `error`, and the same |
//! | no evidence, not run | `skipped` |
//!
//! What all runs and gates said is the text of `failure` and `error`, else of `system-out`.

use std::fmt::Write as _;

use mcptest_json::text::{lines, one_line, shorten};
use mcptest_trace::verdict::Verdict;

use super::{Style, pretty};
use crate::compare::verdict_word;
use crate::model::{CaseId, Report, RunReport, RunTiming, TestReport};

/// Longest text of one element; the JSON report has everything.
const LONGEST: usize = 20_000;
/// Longest `message` attribute.
const LONGEST_MESSAGE: usize = 300;

pub(crate) fn render(report: &Report, _: Style) -> String {
    let times = report.timing_by_test();
    let mut suites: Vec<(&str, Vec<TestCase>)> = Vec::new();
    let mut put = |suite, case| match suites.iter_mut().find(|(known, _)| *known == suite) {
        Some((_, cases)) => cases.push(case),
        None => suites.push((suite, vec![case])),
    };
    for (at, test) in report.tests.iter().enumerate() {
        let times = times
            .as_ref()
            .and_then(|times| times.get(at).copied())
            .unwrap_or_default();
        put(&test.suite, TestCase::of(test, times));
    }
    for id in &report.not_run {
        put(&id.suite, TestCase::not_run(id));
    }
    let sum = |of: fn(&TestCase) -> usize| {
        suites
            .iter()
            .flat_map(|(_, cases)| cases)
            .map(of)
            .sum::<usize>()
    };
    let whole = report
        .timing
        .as_ref()
        .map_or(0, |timing| timing.duration_ms);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"mcptest\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        sum(|_| 1),
        sum(|case| usize::from(case.outcome == Outcome::Failure)),
        sum(|case| usize::from(case.outcome == Outcome::Error)),
        seconds(whole)
    );
    for (suite, cases) in &suites {
        write_suite(&mut out, suite, cases);
    }
    out.push_str("</testsuites>\n");
    out
}

fn write_suite(out: &mut String, suite: &str, cases: &[TestCase]) {
    let count = |outcome: Outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        attribute(suite),
        cases.len(),
        count(Outcome::Failure),
        count(Outcome::Error),
        count(Outcome::Skipped),
        seconds(cases.iter().map(|case| case.duration_ms).sum())
    );
    for case in cases {
        let _ = writeln!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\">",
            attribute(&case.name),
            attribute(suite),
            seconds(case.duration_ms)
        );
        for element in &case.elements {
            let _ = writeln!(out, "      {element}");
        }
        out.push_str("    </testcase>\n");
    }
    out.push_str("  </testsuite>\n");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    Error,
    Skipped,
}

struct TestCase {
    name: String,
    duration_ms: u64,
    outcome: Outcome,
    /// In the order that Surefire's schema asks for.
    elements: Vec<String>,
}

impl TestCase {
    fn of(test: &TestReport, times: &[RunTiming]) -> Self {
        let outcome = match test.verdict {
            Verdict::Pass => Outcome::Passed,
            Verdict::Fail => Outcome::Failure,
            Verdict::Error => Outcome::Error,
            Verdict::NoEvidence => Outcome::Skipped,
        };
        // With one run the attempt is the test, and is not told twice.
        let attempts: &[RunReport] = if test.runs.len() > 1 { &test.runs } else { &[] };
        let prefix = if outcome == Outcome::Passed {
            "flaky"
        } else {
            "rerun"
        };
        let of_kind = |verdict: Verdict, kind: &str| -> Vec<String> {
            let broken = attempts.iter().filter(|run| run.verdict == verdict);
            broken
                .map(|run| attempt(&format!("{prefix}{kind}"), run))
                .collect()
        };
        let mut elements = Vec::new();
        if outcome == Outcome::Failure {
            elements.push(element("failure", &reason(test), "fail", &details(test)));
        }
        // Whoever tells nothing has no attempts to be rerun.
        if outcome != Outcome::Skipped {
            elements.extend(of_kind(Verdict::Fail, "Failure"));
        }
        if outcome == Outcome::Skipped {
            elements.push(format!(
                "<skipped message=\"{}\"/>",
                attribute(&reason(test))
            ));
        }
        if outcome == Outcome::Error {
            let kind = test.runs.iter().find_map(|run| run.error.as_ref());
            let kind = kind.map_or("error", |error| error.kind.as_str());
            elements.push(element("error", &reason(test), kind, &details(test)));
        }
        if outcome != Outcome::Skipped {
            elements.extend(of_kind(Verdict::Error, "Error"));
        }
        // Whoever failed has said it all above.
        if matches!(outcome, Outcome::Passed | Outcome::Skipped) {
            elements.push(format!(
                "<system-out>{}</system-out>",
                content(&details(test))
            ));
        }
        Self {
            name: test.label.clone(),
            duration_ms: times.iter().map(|time| time.duration_ms).sum(),
            outcome,
            elements,
        }
    }

    fn not_run(id: &CaseId) -> Self {
        let name = match &id.model {
            Some(model) => format!("{} [{model}]", id.name),
            None => id.name.clone(),
        };
        Self {
            name,
            duration_ms: 0,
            outcome: Outcome::Skipped,
            elements: vec!["<skipped message=\"not run\"/>".to_owned()],
        }
    }
}

/// Why a test did not pass, in a line.
fn reason(test: &TestReport) -> String {
    let of_run = |run: &RunReport| -> Option<String> {
        match (
            &run.error,
            run.assertions.iter().find(|assertion| assertion.failed()),
        ) {
            (Some(error), _) => Some(format!("{}: {}", run.name, error.message)),
            (None, Some(assertion)) => {
                let judged = if assertion.judged { " (judged)" } else { "" };
                Some(format!(
                    "{}: {}{judged} did not hold",
                    run.name, assertion.target
                ))
            }
            (None, None) => None,
        }
    };
    let wanted = |verdict: Verdict| verdict == test.verdict;
    let of_gates = test
        .gates
        .iter()
        .filter(|gate| wanted(gate.verdict))
        .map(|gate| {
            let why = gate.no_evidence.as_ref().unwrap_or(&gate.summary);
            format!("{}: {why}", gate.block)
        });
    let of_runs = test
        .runs
        .iter()
        .filter(|run| wanted(run.verdict))
        .filter_map(of_run);
    let reasons: Vec<String> = test
        .no_evidence
        .iter()
        .cloned()
        .chain(of_gates)
        .chain(of_runs)
        .collect();
    match reasons.as_slice() {
        [] => verdict_word(test.verdict).to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

/// As the pretty report tells it.
fn details(test: &TestReport) -> String {
    let mut text = String::new();
    pretty::write_test(&mut text, test, Style::default());
    text
}

fn attempt(name: &str, run: &RunReport) -> String {
    let mut text = String::new();
    pretty::write_run_details(&mut text, run, Style::default());
    let kind = run
        .error
        .as_ref()
        .map_or("fail", |error| error.kind.as_str());
    format!(
        "<{name} message=\"{}\" type=\"{kind}\"><stackTrace>{}</stackTrace></{name}>",
        attribute(&run.name),
        content(&text)
    )
}

fn element(name: &str, message: &str, kind: &str, text: &str) -> String {
    format!(
        "<{name} message=\"{}\" type=\"{kind}\">{}</{name}>",
        attribute(message),
        content(text)
    )
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

fn attribute(text: &str) -> String {
    escape(&shorten(&one_line(text), LONGEST_MESSAGE))
}

fn content(text: &str) -> String {
    escape(&shorten(&lines(text), LONGEST))
}

/// Controls are shown as escapes already. What is left that XML cannot have at all is taken out.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{floor, run, test};

    fn rendered(tests: Vec<TestReport>) -> String {
        render(&Report::conclude(tests, false), Style::default())
    }

    fn several(verdict: Verdict, runs: &[Verdict]) -> TestReport {
        let mut test = test("a", Some("m"), verdict);
        test.runs = (1..)
            .zip(runs)
            .map(|(index, verdict)| run(index, &format!("a #{index}"), *verdict, None))
            .collect();
        test
    }

    #[test]
    fn each_verdict_has_its_element() {
        use Verdict::{Error, Fail, NoEvidence, Pass};
        let elements = |test: TestReport| -> Vec<String> {
            let case = TestCase::of(&test, &[]);
            let name = |element: &String| element[1..].split([' ', '>']).next().unwrap().to_owned();
            case.elements.iter().map(name).collect()
        };
        assert_eq!(elements(several(Pass, &[Pass, Pass])), ["system-out"]);
        assert_eq!(
            elements(several(Pass, &[Pass, Fail, Error, Fail])),
            ["flakyFailure", "flakyFailure", "flakyError", "system-out"]
        );
        assert_eq!(
            elements(several(Fail, &[Pass, Fail, Fail])),
            ["failure", "rerunFailure", "rerunFailure"]
        );
        assert_eq!(
            elements(several(Error, &[Fail, Error])),
            ["rerunFailure", "error", "rerunError"]
        );
        assert_eq!(elements(several(Fail, &[Fail])), ["failure"]);
        assert_eq!(
            elements(several(NoEvidence, &[Pass])),
            ["skipped", "system-out"]
        );
    }

    #[test]
    fn the_whole_form() {
        let mut broken = several(Verdict::Fail, &[Verdict::Pass, Verdict::Fail]);
        broken.gates.push(floor(Verdict::Fail, 50));
        let mut report = Report::conclude(
            vec![broken, several(Verdict::Error, &[Verdict::Error])],
            true,
        );
        report.not_run = vec![CaseId {
            suite: "sample".to_owned(),
            name: "never".to_owned(),
            model: None,
        }];
        report.timing = Some(crate::model::Timing {
            duration_ms: 61_002,
            runs: ["a #1", "a #2", "a #1"]
                .map(|name| RunTiming {
                    name: name.to_owned(),
                    duration_ms: 700,
                })
                .to_vec(),
        });
        assert_eq!(
            render(&report, Style::default()),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="mcptest" tests="3" failures="1" errors="1" time="61.002">
  <testsuite name="sample" tests="3" failures="1" errors="1" skipped="1" time="2.100">
    <testcase name="a [m]" classname="sample" time="1.400">
      <failure message="tool_selection: selection 50% (and 1 more)" type="fail">  PASS   a #1  (0 calls)
  FAIL   a #2  (0 calls)
         tool_calls[0].name
           expected  exact &quot;search&quot;
           actual    &quot;fetch&quot;
  FAIL   a [m]: tool_selection  selection 50%
         floor.passed
           expected  &gt;= 1
           actual    0
</failure>
      <rerunFailure message="a #2" type="fail"><stackTrace>         tool_calls[0].name
           expected  exact &quot;search&quot;
           actual    &quot;fetch&quot;
</stackTrace></rerunFailure>
    </testcase>
    <testcase name="a [m]" classname="sample" time="0.700">
      <error message="a #1: no answer" type="timeout">  ERROR  a #1  (0 calls)
         timeout: no answer
</error>
    </testcase>
    <testcase name="never" classname="sample" time="0.000">
      <skipped message="not run"/>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }

    #[test]
    fn an_empty_report_is_a_document_too() {
        assert_eq!(
            rendered(Vec::new()),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mcptest\" tests=\"0\" failures=\"0\" errors=\"0\" time=\"0.000\">\n</testsuites>\n"
        );
    }

    proptest! {
        #[test]
        fn nothing_that_xml_forbids_comes_through(text in any::<String>()) {
            let mut hostile = several(Verdict::Pass, &[Verdict::Error, Verdict::Fail]);
            hostile.label.clone_from(&text);
            hostile.suite.clone_from(&text);
            hostile.runs[0].error.as_mut().unwrap().message = format!("]]></system-out>{text}");
            let xml = rendered(vec![hostile]);
            let allowed = |c: char| matches!(c, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
            prop_assert!(xml.chars().all(allowed));
            prop_assert_eq!(xml.matches("</system-out>").count(), 1);
            prop_assert!(!xml.contains("]]>"));
        }
    }
}
