//! `junit`: XML for CI systems, in the form that Surefire and Jenkins publish.
//!
//! A test with one model is one `testcase`, and each of its runs is an attempt, because the verdict
//! belongs to the test: a CI that counts tests counts what the suite declares, and one that knows
//! retries shows them.
//!
//! | test | in the `testcase` |
//! |---|---|
//! | passed, all runs too | nothing |
//! | passed, but some runs failed or ended with an error | `flakyFailure`, `flakyError` for each |
//! | failed | `failure`, and `rerunFailure`, `rerunError` for each run that did not pass |
//! | error | `error`, and the same |
//! | no evidence, not run | `skipped` |
//!
//! The output of all runs and gates is the text of `failure` and `error`, else of `system-out`.

use std::io::{self, Write};

use mcptest_json::text::{lines, one_line, shorten};
use mcptest_trace::verdict::{ErrorKind, Verdict};

use super::entries::entries;
use super::{RenderError, Style, pretty};
use crate::broken_lines::BrokenLines;
use crate::complexity;
use crate::report::{Report, TestReport};
use crate::row::RunRow;
use crate::server_output::server_output;
use crate::verdict_word::verdict_word;

/// The longest text of one element, in characters; the JSON report has everything.
const MAX_TEXT: usize = 20_000;
/// The longest `message` attribute, in characters.
const MAX_MESSAGE: usize = 300;

/// A test of the report, with the duration of its runs, or one that was not run.
enum TestCase<'a> {
    Run(&'a TestReport, u64),
    NotRun(String),
}

/// The counts in the attributes of `testsuites` and `testsuite`.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    duration_ms: u64,
}

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let suites = suites(report);
    let all = Counts::of(suites.iter().flat_map(|(_, cases)| cases));
    let duration_ms = report
        .timing
        .as_ref()
        .map_or(0, |timing| timing.duration_ms);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuites name=\"mcptest\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        all.tests + usize::from(report.broken_lines.is_some()),
        all.failures,
        all.errors,
        seconds(duration_ms)
    )?;
    for (suite, cases) in &suites {
        write_suite(out, suite, cases)?;
    }
    if let Some(broken) = &report.broken_lines {
        write_broken_lines(out, broken)?;
    }
    Ok(writeln!(out, "</testsuites>")?)
}

/// The test cases by suite, in the order of the report.
fn suites(report: &Report) -> Vec<(&str, Vec<TestCase<'_>>)> {
    let is_timed = report.is_timed();
    let mut suites: Vec<(&str, Vec<TestCase<'_>>)> = Vec::new();
    let mut add = |suite, case| match suites.iter_mut().find(|(known, _)| *known == suite) {
        Some((_, cases)) => cases.push(case),
        None => suites.push((suite, vec![case])),
    };
    for test in &report.tests {
        let duration_ms = if is_timed { test.duration_ms() } else { 0 };
        add(test.id.suite.as_str(), TestCase::Run(test, duration_ms));
    }
    for entry in entries(report).filter(|entry| entry.test.is_none()) {
        add(entry.id.suite.as_str(), TestCase::NotRun(entry.label()));
    }
    suites
}

impl Counts {
    fn of<'a>(cases: impl IntoIterator<Item = &'a TestCase<'a>>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            counts.duration_ms = counts.duration_ms.saturating_add(case.duration_ms());
            match case.verdict() {
                Verdict::Pass => {}
                Verdict::Fail => counts.failures += 1,
                Verdict::Error => counts.errors += 1,
                Verdict::NoEvidence => counts.skipped += 1,
            }
        }
        counts
    }
}

fn write_suite(
    out: &mut dyn Write,
    suite: &str,
    cases: &[TestCase<'_>],
) -> Result<(), RenderError> {
    let counts = Counts::of(cases);
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
         time=\"{}\">",
        attribute(suite),
        counts.tests,
        counts.failures,
        counts.errors,
        counts.skipped,
        seconds(counts.duration_ms)
    )?;
    write_properties(out, cases)?;
    for case in cases {
        writeln!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\" time=\"{}\">",
            attribute(&case.name()),
            attribute(suite),
            seconds(case.duration_ms())
        )?;
        case.write_elements(out)?;
        writeln!(out, "    </testcase>")?;
    }
    Ok(writeln!(out, "  </testsuite>")?)
}

/// Writes a suite of one skipped test for the lines of trace files that were skipped.
fn write_broken_lines(out: &mut dyn Write, broken: &BrokenLines) -> io::Result<()> {
    let mut places: Vec<String> = broken.first.iter().map(ToString::to_string).collect();
    if broken.unlisted() > 0 {
        places.push(format!("and {} more", broken.unlisted()));
    }
    writeln!(
        out,
        "  <testsuite name=\"traces\" tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\" \
         time=\"0.000\">\n    \
         <testcase name=\"broken lines\" classname=\"traces\" time=\"0.000\">\n      \
         <skipped message=\"{}\"/>\n      <system-out>{}</system-out>\n    </testcase>\n  \
         </testsuite>",
        attribute(&broken.words()),
        escape(&shorten(&lines(&places.join("\n")), MAX_TEXT))
    )
}

/// Writes the results of `distractors:` by complexity, if a test of the suite states one.
fn write_properties(out: &mut dyn Write, cases: &[TestCase<'_>]) -> io::Result<()> {
    let tests = cases.iter().filter_map(|case| match case {
        TestCase::Run(test, _) => Some(*test),
        TestCase::NotRun(_) => None,
    });
    let groups = complexity::groups_of(tests);
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "    <properties>")?;
    for group in &groups {
        for test in &group.tests {
            let name = format!("distractors.{}: {}", group.name(), test.label());
            writeln!(
                out,
                "      <property name=\"{}\" value=\"{}\"/>",
                attribute(&name),
                attribute(&test.line())
            )?;
        }
    }
    writeln!(out, "    </properties>")
}

impl TestCase<'_> {
    fn name(&self) -> String {
        match self {
            Self::Run(test, _) => test.label.clone(),
            Self::NotRun(label) => label.clone(),
        }
    }

    fn duration_ms(&self) -> u64 {
        match self {
            Self::Run(_, duration_ms) => *duration_ms,
            Self::NotRun(_) => 0,
        }
    }

    fn verdict(&self) -> Verdict {
        match self {
            Self::Run(test, _) => test.verdict,
            Self::NotRun(_) => Verdict::NoEvidence,
        }
    }

    /// Writes the elements in the order that Surefire's schema requires.
    fn write_elements(&self, out: &mut dyn Write) -> Result<(), RenderError> {
        let test = match self {
            Self::Run(test, _) => *test,
            Self::NotRun(_) => {
                return Ok(writeln!(out, "      <skipped message=\"not run\"/>")?);
            }
        };
        match test.verdict {
            Verdict::Pass => {
                write_attempts(out, test, Verdict::Fail, "flakyFailure")?;
                write_attempts(out, test, Verdict::Error, "flakyError")?;
                write_output(out, test)
            }
            Verdict::Fail => {
                write_element(out, "failure", "fail", test)?;
                write_attempts(out, test, Verdict::Fail, "rerunFailure")?;
                write_attempts(out, test, Verdict::Error, "rerunError")
            }
            Verdict::Error => {
                write_attempts(out, test, Verdict::Fail, "rerunFailure")?;
                let error = test.runs.iter().find_map(|run| run.error());
                let kind = error.map_or("error", ErrorKind::as_str);
                write_element(out, "error", kind, test)?;
                write_attempts(out, test, Verdict::Error, "rerunError")
            }
            Verdict::NoEvidence => {
                let message = match &test.no_evidence {
                    Some(why) if test.interrupted => attribute(why),
                    _ => attribute(&reason(test)?),
                };
                writeln!(out, "      <skipped message=\"{message}\"/>")?;
                write_output(out, test)
            }
        }
    }
}

fn write_element(
    out: &mut dyn Write,
    name: &str,
    kind: &str,
    test: &TestReport,
) -> Result<(), RenderError> {
    let message = attribute(&reason(test)?);
    let details = details(test)?;
    writeln!(
        out,
        "      <{name} message=\"{message}\" type=\"{kind}\">{details}</{name}>"
    )?;
    Ok(())
}

fn write_output(out: &mut dyn Write, test: &TestReport) -> Result<(), RenderError> {
    let details = details(test)?;
    Ok(writeln!(out, "      <system-out>{details}</system-out>")?)
}

/// Writes the runs with this verdict. A single run is the test, and is not repeated.
fn write_attempts(
    out: &mut dyn Write,
    test: &TestReport,
    verdict: Verdict,
    name: &str,
) -> Result<(), RenderError> {
    if test.runs.len() < 2 {
        return Ok(());
    }
    for row in test.runs.iter().filter(|run| run.verdict() == verdict) {
        let run = test.details(&row)?;
        let mut text = Head::default();
        pretty::write_run_details(&mut text, &run, Style::default())?;
        let kind = run
            .error
            .as_ref()
            .map_or("fail", |error| error.kind.as_str());
        writeln!(
            out,
            "      <{name} message=\"{}\" type=\"{kind}\"><stackTrace>{}</stackTrace></{name}>",
            attribute(&run.name),
            text.content()
        )?;
    }
    Ok(())
}

/// The reason why a test did not pass, in a line.
fn reason(test: &TestReport) -> Result<String, RenderError> {
    let of_gates = test
        .gates
        .iter()
        .filter(|gate| gate.verdict == test.verdict)
        .map(|gate| {
            let why = gate.no_evidence.as_ref().unwrap_or(&gate.summary);
            format!("{}: {why}", gate.block)
        });
    let mut reasons = test.no_evidence.iter().cloned().chain(of_gates);
    let mut first = reasons.next();
    let mut more = reasons.count();
    for run in test.runs.iter().filter(|run| run.verdict() == test.verdict) {
        match reason_of_run(test, &run)? {
            Some(reason) if first.is_none() => first = Some(reason),
            Some(_) => more += 1,
            None => {}
        }
    }
    Ok(match (first, more) {
        (None, _) => verdict_word(test.verdict).to_owned(),
        (Some(only), 0) => only,
        (Some(first), more) => format!("{first} (and {more} more)"),
    })
}

/// The error of a run, or its first failed assertion.
fn reason_of_run(test: &TestReport, run: &RunRow) -> Result<Option<String>, RenderError> {
    if !run.has_details() {
        return Ok(None);
    }
    let record = test.details(run)?;
    if let Some(error) = &record.error {
        return Ok(Some(format!("{}: {}", record.name, error.message)));
    }
    let failed = record.assertions.iter().find(|one| one.failed());
    let said = server_output(&record).into_iter().next();
    Ok(failed.map(|assertion| {
        let judged = if assertion.judged { " (judged)" } else { "" };
        let said = said.and_then(|(title, lines)| Some(format!("; {title} {}", lines.first()?)));
        format!(
            "{}: {}{judged} did not hold{}",
            record.name,
            assertion.target,
            said.unwrap_or_default()
        )
    }))
}

/// The output of the pretty reporter about a test.
fn details(test: &TestReport) -> Result<String, RenderError> {
    let mut text = Head::default();
    // Each test is shown on its own, so nothing refers to another one.
    let mut shown = pretty::ShownErrors::default();
    pretty::write_test(&mut text, test, Style::default(), &mut shown)?;
    Ok(text.content())
}

/// A writer that keeps as much of its input as an element can show.
#[derive(Default)]
struct Head(Vec<u8>);

impl Head {
    /// Enough bytes for one character more than an element has: so truncation is still visible.
    const MAX_BYTES: usize = 4 * (MAX_TEXT + 1);

    /// The text as the content of an element.
    fn content(&self) -> String {
        let kept = match std::str::from_utf8(&self.0) {
            Ok(text) => text,
            // The last character was cut; it is beyond what is shown.
            Err(error) => std::str::from_utf8(&self.0[..error.valid_up_to()]).unwrap_or_default(),
        };
        escape(&shorten(&lines(kept), MAX_TEXT))
    }
}

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = Self::MAX_BYTES.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

pub(crate) fn attribute(text: &str) -> String {
    escape(&shorten(&one_line(text), MAX_MESSAGE))
}

/// Escapes XML. Controls are already escaped; the two other characters that XML forbids are
/// removed.
pub(crate) fn escape(text: &str) -> String {
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
    use crate::model::{self, RunTiming, TestReport};
    use crate::samples::{floor, run, test};
    use mcptest_events::CaseId;

    fn text_of(report: &model::Report) -> String {
        let mut out = Vec::new();
        render(&report.into(), Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn rendered(tests: Vec<TestReport>) -> String {
        text_of(&model::Report::conclude(tests, false))
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
            let mut out = Vec::new();
            let report = crate::samples::concluded(vec![test]);
            let case = TestCase::Run(&report.tests[0], 0);
            case.write_elements(&mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            let elements = text.lines().filter_map(|line| line.strip_prefix("      <"));
            elements
                .map(|element| element.split([' ', '>']).next().unwrap().to_owned())
                .collect()
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
        let mut failed = several(Verdict::Fail, &[Verdict::Pass, Verdict::Fail]);
        failed.gates.push(floor(Verdict::Fail, 50));
        let mut report = model::Report::conclude(
            vec![failed, several(Verdict::Error, &[Verdict::Error])],
            true,
        );
        report.not_run = vec![CaseId {
            suite: "sample".to_owned(),
            name: "never".to_owned(),
            model: None,
        }];
        report.timing = Some(model::Timing {
            tests: Vec::new(),
            replayed: None,
            duration_ms: 61_002,
            runs: ["a #1", "a #2", "a #1"]
                .map(|name| RunTiming {
                    name: name.to_owned(),
                    duration_ms: 700,
                })
                .to_vec(),
        });
        assert_eq!(
            text_of(&report),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="mcptest" tests="3" failures="1" errors="1" time="61.002">
  <testsuite name="sample" tests="3" failures="1" errors="1" skipped="1" time="2.100">
    <testcase name="a [m]" classname="sample" time="1.400">
      <failure message="tool_selection: selection 50% (and 1 more)" type="fail">  PASS   a #1  (0 calls)
  FAIL   a #2  (0 calls)
         tool_calls[0].name  expected exact &quot;search&quot;, actual &quot;fetch&quot;
  FAIL   a [m]: tool_selection  selection 50%
         floor.passed  expected &gt;= 1, actual 0
</failure>
      <rerunFailure message="a #2" type="fail"><stackTrace>         tool_calls[0].name  expected exact &quot;search&quot;, actual &quot;fetch&quot;
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
    fn an_empty_report_is_a_document() {
        assert_eq!(
            rendered(Vec::new()),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"mcptest\" tests=\"0\" failures=\"0\" errors=\"0\" \
             time=\"0.000\">\n</testsuites>\n"
        );
    }

    #[test]
    fn long_output_is_truncated_at_a_character() {
        for text in ["x", "ä", "天", "𝒳"] {
            let long = text.repeat(MAX_TEXT + 5);
            let mut head = Head::default();
            head.write_all(long.as_bytes()).unwrap();
            assert_eq!(head.content(), shorten(&long, MAX_TEXT));
        }
    }

    proptest! {
        #[test]
        fn forbidden_xml_characters_are_removed(text in any::<String>()) {
            let mut hostile = several(Verdict::Pass, &[Verdict::Error, Verdict::Fail]);
            hostile.label.clone_from(&text);
            hostile.suite.clone_from(&text);
            hostile.runs[0].error.as_mut().unwrap().message = format!("]]></system-out>{text}");
            let xml = rendered(vec![hostile]);
            let allowed = |c: char| {
                matches!(c, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
            };
            prop_assert!(xml.chars().all(allowed));
            prop_assert_eq!(xml.matches("</system-out>").count(), 1);
            prop_assert!(!xml.contains("]]>"));
        }
    }
}
