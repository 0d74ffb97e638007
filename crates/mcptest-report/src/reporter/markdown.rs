//! `markdown`: for a job's summary or a comment on a pull request. Short: failures and figures; the
//! JSON report has everything.

use std::io::Write;

use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::verdict::Verdict;
use serde_json::Number;

use super::json::{Floor, floors};
use super::pretty::{count_words, spent};
use super::{RenderError, Style};
use crate::complexity::{self, ComplexityGroup, DistractorResult};
use crate::markdown::{Bounded, cell, code, plain};
use crate::matrix::{Matrix, matrices};
use crate::report::{Report, TestReport};
use crate::server_output::server_output;
use crate::verdict_word::verdict_word;

/// The number of lines about one test that did not pass.
const MAX_REASONS: usize = 10;

pub(crate) fn render(report: &Report, _: Style, out: &mut dyn Write) -> Result<(), RenderError> {
    let mut page = Bounded::new();
    let verdict = match report.interrupted {
        true => "interrupted",
        false => words(report.verdict),
    };
    page.line(&format!("## mcptest: {verdict}"));
    page.line("");
    page.line(&format!("{}.", count_words(report)));
    if let Some(spent) = spent(report) {
        page.line("");
        // As code: a dollar sign could begin a formula.
        page.line(&format!("{}.", code(&spent)));
    }
    let open: Vec<&TestReport> = report
        .tests
        .iter()
        .filter(|test| test.verdict != Verdict::Pass)
        .collect();
    if !open.is_empty() {
        page.line("");
        page.line("### Not passed");
        page.line("");
        let entries = open.into_iter().map(reasons);
        let entries: Vec<String> = entries.collect::<Result<_, _>>()?;
        page.entries(entries.into_iter(), "tests that did not pass");
    }
    write_advisories(&mut page, report);
    for matrix in matrices(report) {
        write_matrix(&mut page, &matrix);
    }
    if floors(report).next().is_some() {
        page.line("");
        page.line("### Floors");
        page.line("");
        page.table(&[
            "test",
            "model",
            "floor",
            "selection",
            "pass^k",
            "tokens (median / max)",
        ]);
        page.rows(floors(report).map(|one| floor(&one)), "floors");
    }
    let groups = complexity::groups(report);
    if !groups.is_empty() {
        page.line("");
        page.line("### Distractors");
        page.line("");
        page.table(&[
            "complexity",
            "test",
            "model",
            "accuracy",
            "by count",
            "chose nothing",
            "certified",
        ]);
        let rows = groups.iter().flat_map(|group| {
            let tests = group.tests.iter();
            tests.map(|test| distractors_row(group, test))
        });
        page.rows(rows, "results among distractors");
    }
    if !report.tests.is_empty() {
        page.line("");
        page.line("### Tests");
        page.line("");
        page.table(&["test", "suite", "verdict", "runs", "gates"]);
        page.rows(report.tests.iter().map(row), "tests");
    }
    if !report.not_run.is_empty() {
        page.line("");
        page.line("### Not run");
        page.line("");
        page.entries(
            report
                .not_run
                .iter()
                .map(|id| format!("- {}", code(&id.to_string()))),
            "tests that were not run",
        );
    }
    if let Some(broken) = &report.broken_lines {
        page.line("");
        page.line("### Broken lines");
        page.line("");
        page.line(&format!("{}.", broken.words()));
        page.line("");
        let places = broken
            .first
            .iter()
            .map(|place| format!("- {}", code(&place.to_string())));
        page.entries(places, "broken lines");
        if broken.unlisted() > 0 {
            page.line(&format!("- and {} more", broken.unlisted()));
        }
    }
    Ok(out.write_all(page.finish().as_bytes())?)
}

/// Writes the opinions of models, which decide nothing.
fn write_advisories(page: &mut Bounded, report: &Report) {
    let mut entries = report
        .tests
        .iter()
        .flat_map(|test| {
            let gates = test.gates.iter().filter(|gate| !gate.advisories.is_empty());
            gates.map(move |gate| (test, gate))
        })
        .map(|(test, gate)| {
            let mut lines = Reasons::default();
            lines.extend(gate.advisories.iter().map(|advisory| code(advisory)));
            let mut entry = format!("- {} {}", code(&test.label), code(&gate.block));
            for line in lines.lines() {
                entry.push_str("\n  - ");
                entry.push_str(&line);
            }
            entry
        })
        .peekable();
    if entries.peek().is_none() {
        return;
    }
    page.line("");
    page.line("### Judged by a model, advisory");
    page.line("");
    page.entries(entries, "readings of a model");
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::NoEvidence => "no evidence",
        Verdict::Fail => "failed",
        Verdict::Error => "error",
    }
}

/// A test that did not pass, with its reasons.
fn reasons(test: &TestReport) -> Result<String, RenderError> {
    let mut reasons = Reasons::default();
    reasons.extend(test.no_evidence.as_deref().map(code));
    for gate in test
        .gates
        .iter()
        .filter(|gate| gate.verdict != Verdict::Pass)
        .filter(|gate| !test.interrupted || gate.verdict != Verdict::NoEvidence)
    {
        reasons.push(format!(
            "{} {}: {}",
            code(&gate.block),
            words(gate.verdict),
            code(gate.no_evidence.as_ref().unwrap_or(&gate.summary))
        ));
        reasons.extend(
            gate.assertions
                .iter()
                .filter(|one| one.failed())
                .map(assertion),
        );
    }
    for row in test
        .runs
        .iter()
        .filter(|run| run.verdict() != Verdict::Pass)
    {
        let run = test.details(&row)?;
        if let Some(error) = &run.error {
            let message = format!("{}: {}", error.kind.as_str(), error.message);
            reasons.push(format!("{} {}", code(&run.name), code(&message)));
        }
        let failed = run.assertions.iter().filter(|one| one.failed());
        reasons.extend(failed.map(|one| format!("{} {}", code(&run.name), assertion(one))));
        for (title, lines) in server_output(&run) {
            reasons.push(format!("{} {}", code(&title), code(&lines.join(" / "))));
        }
    }
    let word = if test.is_undecided() {
        "interrupted"
    } else {
        words(test.verdict)
    };
    let mut entry = format!("- **{word}** {}", code(&test.label));
    for reason in reasons.lines() {
        entry.push_str("\n  - ");
        entry.push_str(&reason);
    }
    Ok(entry)
}

/// The first [`MAX_REASONS`] reasons, and the number of the others.
#[derive(Default)]
struct Reasons {
    first: Vec<String>,
    more: usize,
}

impl Reasons {
    fn push(&mut self, reason: String) {
        if self.first.len() < MAX_REASONS {
            self.first.push(reason);
        } else {
            self.more += 1;
        }
    }

    fn extend(&mut self, reasons: impl IntoIterator<Item = String>) {
        reasons.into_iter().for_each(|reason| self.push(reason));
    }

    fn lines(self) -> impl Iterator<Item = String> {
        let more = (self.more > 0).then(|| format!("and {} more", self.more));
        self.first.into_iter().chain(more)
    }
}

fn assertion(assertion: &Assertion) -> String {
    let judged = if assertion.judged { " (judged)" } else { "" };
    format!(
        "{}{judged}: expected {}, actual {}",
        code(&assertion.target),
        code(&assertion.matcher.to_string()),
        code(&assertion.actual.to_string())
    )
}

fn write_matrix(page: &mut Bounded, matrix: &Matrix<'_>) {
    page.line("");
    page.line(&format!("### Models: {}", code(matrix.suite)));
    page.line("");
    let mut heads = vec!["test".to_owned()];
    heads.extend(matrix.models.iter().map(|model| cell(model)));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    page.table(&heads);
    let rows = matrix.rows.iter().map(|(name, cells)| {
        let cells = cells.iter().map(|cell| match cell {
            Some(cell) => format!("{} {}", verdict_word(cell.verdict), cell.figure),
            None => String::new(),
        });
        std::iter::once(cell(name)).chain(cells).collect()
    });
    page.rows(rows, "tests by model");
}

fn distractors_row(group: &ComplexityGroup, test: &DistractorResult) -> Vec<String> {
    vec![
        plain(group.name()),
        cell(&test.test),
        test.model.as_deref().map(cell).unwrap_or_default(),
        format!("{} %", test.accuracy),
        test.points(),
        format!("{} of {}", test.chose_nothing, test.runs),
        format!("{} %", test.certified_lower),
    ]
}

fn floor(floor: &Floor<'_>) -> Vec<String> {
    let figures = floor.figures();
    let figure = |name: &str| {
        let number = figures
            .get(name)
            .and_then(|text| serde_json::from_str::<Number>(text.get()).ok());
        number.map_or_else(|| "–".to_owned(), |number| number.to_string())
    };
    let passed = figures
        .get("passed")
        .and_then(|text| text.get().parse::<bool>().ok());
    vec![
        cell(&floor.test.id.name),
        floor.test.id.model.as_deref().map(cell).unwrap_or_default(),
        match passed {
            Some(true) => "pass".to_owned(),
            Some(false) => "**fail**".to_owned(),
            None => "–".to_owned(),
        },
        format!(
            "{} % ({} of {})",
            figure("selection_rate"),
            figure("selected"),
            figure("runs")
        ),
        format!("{} %", figure("pass_hat_k")),
        format!("{} / {}", figure("tokens_median"), figure("tokens_max")),
    ]
}

fn row(test: &TestReport) -> Vec<String> {
    let passed = test.passed_runs();
    // Figures of some of the runs look like those of all of them.
    let judged = |gate: &&GateOutcome| !test.interrupted || gate.verdict == Verdict::Fail;
    let gates: Vec<String> = test
        .gates
        .iter()
        .filter(judged)
        .map(|gate| format!("{}: {}", cell(&gate.block), cell(&gate.summary)))
        .collect();
    let verdict = match test.is_undecided() {
        true => "interrupted",
        false => verdict_word(test.verdict),
    };
    vec![
        cell(&test.label),
        cell(&test.id.suite),
        match test.verdict {
            Verdict::Pass => verdict.to_owned(),
            _ => format!("**{verdict}**"),
        },
        if test.is_undecided() {
            let why = test.no_evidence.as_deref().unwrap_or_default();
            cell(why.strip_prefix("interrupted: ").unwrap_or(why))
        } else if test.run_count() == 0 {
            String::new()
        } else {
            format!("{passed}/{}", test.run_count())
        },
        gates.join("<br>"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, CaseId};
    use crate::samples;

    fn rendered(report: &model::Report) -> String {
        let mut out = Vec::new();
        render(&report.into(), Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_whole_page() {
        let mut first = samples::test("a|b", Some("m1"), Verdict::Fail);
        first.gates.push(samples::floor(Verdict::Fail, 50));
        let mut report = model::Report::conclude(
            vec![
                first,
                samples::test("a|b", Some("m2"), Verdict::Error),
                samples::test("<script>", None, Verdict::NoEvidence),
            ],
            true,
        );
        report.not_run = vec![CaseId {
            suite: "sample".to_owned(),
            name: "never".to_owned(),
            model: None,
        }];
        assert_eq!(
            rendered(&report),
            r#"## mcptest: interrupted

3 tests: 0 passed, 1 failed, 1 without evidence, 1 with errors, 1 not run (interrupted).

### Not passed

- **failed** `a|b [m1]`
  - `tool_selection` failed: `selection 50%`
  - `floor.passed`: expected `{">=":1}`, actual `0`
  - `a|b` `tool_calls[0].name`: expected `{"exact":"search"}`, actual `"fetch"`
- **error** `a|b [m2]`
  - `a|b` `timeout: no answer`
- **no evidence** `<script>`
  - `the test expects nothing`

### Models: `sample`

| test | `m1` | `m2` |
|---|---|---|
| `a\|b` | fail 50% | error 0/1 |

### Floors

| test | model | floor | selection | pass^k | tokens (median / max) |
|---|---|---|---|---|---|
| `a\|b` | `m1` | **fail** | 50 % (– of –) | – % | – / – |

### Tests

| test | suite | verdict | runs | gates |
|---|---|---|---|---|
| `a\|b [m1]` | `sample` | **fail** | 0/1 | `tool_selection`: `selection 50%` |
| `a\|b [m2]` | `sample` | **error** | 0/1 |  |
| `<script>` | `sample` | **no_evidence** | 0/1 |  |

### Not run

- `sample: never`
"#
        );
    }

    #[test]
    fn the_page_of_a_huge_report_is_bounded() {
        let tests = (0..5_000)
            .map(|at| {
                samples::test(
                    &format!("{at} {}", "@x `|".repeat(200)),
                    None,
                    Verdict::Fail,
                )
            })
            .collect();
        let page = rendered(&model::Report::conclude(tests, false));
        assert!(page.chars().count() < 65_536, "{}", page.len());
        assert!(page.contains("Truncated: "), "{page}");
    }
}
