//! Reports for the tests of this crate, in their written form.

use std::io::Write;

use mcptest_trace::expect::Assertion;
use mcptest_trace::outcome::GateOutcome;
use mcptest_trace::trace::{Conversation, Tokens, Trace};
use mcptest_trace::verdict::{ErrorKind, RunError, Verdict};
use serde_json::{Map, Value, json};

use crate::exit_code::ExitCode;
use crate::model::{
    CaseId, FloorReport, Kind, Report, RunReport, RunTiming, SCHEMA_VERSION, Spend, TestReport,
    Timing,
};

/// A report with this number of tests, of which every third fails, each with a run, a gate and
/// times.
pub fn report(tests: usize) -> Report {
    let tests: Vec<TestReport> = (0..tests)
        .map(|at| {
            let verdict = if at % 3 == 2 {
                Verdict::Fail
            } else {
                Verdict::Pass
            };
            let mut test = test(&format!("test {at}"), Some("model-a"), verdict);
            test.gates.push(floor(
                verdict,
                if verdict == Verdict::Pass { 100 } else { 50 },
            ));
            test
        })
        .collect();
    let runs = tests
        .iter()
        .flat_map(|test| &test.runs)
        .map(|run| RunTiming {
            name: run.name.clone(),
            duration_ms: 10,
        })
        .collect();
    let mut report = Report::conclude(tests, false);
    report.timing = Some(Timing {
        tests: Vec::new(),
        replayed: None,
        duration_ms: 99,
        runs,
    });
    report
}

/// The report of these tests.
pub fn concluded(tests: Vec<TestReport>) -> crate::Report {
    crate::Report::from(&Report::conclude(tests, false))
}

/// A report with a test of each verdict, and one that did not run. It has no times.
pub fn every_verdict() -> crate::Report {
    let mut report = concluded(vec![
        test("passes", None, Verdict::Pass),
        test("fails", Some("m"), Verdict::Fail),
        test("breaks", None, Verdict::Error),
        test("looks", None, Verdict::NoEvidence),
    ]);
    report.not_run = vec![CaseId {
        suite: "sample".to_owned(),
        name: "never".to_owned(),
        model: None,
    }];
    report
}

/// The output of a reporter.
pub fn rendered(
    render: fn(&crate::Report, crate::Style, &mut dyn Write) -> Result<(), crate::RenderError>,
    report: &crate::Report,
) -> String {
    let mut out = Vec::new();
    render(report, crate::Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A test with one run, both with this verdict.
pub fn test(name: &str, model: Option<&str>, verdict: Verdict) -> TestReport {
    TestReport {
        interrupted: false,
        name: name.to_owned(),
        kind: Kind::Agent,
        model: model.map(Into::into),
        label: model.map_or_else(|| name.to_owned(), |model| format!("{name} [{model}]")),
        suite: "sample".to_owned(),
        file: Some("sample.yml".to_owned()),
        line: Some(3),
        tags: Vec::new(),
        verdict,
        runs: vec![run(1, name, verdict, Some(1000))],
        run_totals: None,
        gates: Vec::new(),
        no_evidence: (verdict == Verdict::NoEvidence)
            .then(|| "the test expects nothing".to_owned()),
        saved_runs: None,
        spend: None,
    }
}

/// A run with this verdict.
pub fn run(index: u64, name: &str, verdict: Verdict, tokens: Option<u64>) -> RunReport {
    let error = (verdict == Verdict::Error).then(|| RunError {
        kind: ErrorKind::Timeout,
        message: "no answer".to_owned(),
    });
    RunReport {
        index,
        name: name.to_owned(),
        verdict,
        trace: Trace {
            conversation: Conversation {
                tokens: tokens.map(|total| Tokens {
                    total: Some(total),
                    ..Tokens::default()
                }),
                ..Conversation::default()
            },
            error: error.clone(),
            ..Trace::default()
        },
        assertions: if verdict == Verdict::Fail {
            vec![assertion(
                "tool_calls[0].name",
                json!({"exact": "search"}),
                json!("fetch"),
                false,
            )]
        } else {
            Vec::new()
        },
        error,
    }
}

/// The outcome of an expectation.
pub fn assertion(target: &str, matcher: Value, actual: Value, passed: bool) -> Assertion {
    let why_not = (!passed).then(|| "the values differ".to_owned());
    Assertion::new(target, matcher, actual, why_not)
}

/// A `tool_selection:` floor with this rate.
pub fn floor(verdict: Verdict, rate: u64) -> GateOutcome {
    let passed = verdict == Verdict::Pass;
    let values: Map<String, Value> = [
        ("floor.selection_rate", json!(rate)),
        ("floor.pass_hat_k", json!(rate)),
        ("floor.tokens_median", Value::Null),
        ("floor.passed", json!(u64::from(passed))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let mut detail = Map::new();
    detail.insert("passed".to_owned(), json!(passed));
    detail.insert("selection_rate".to_owned(), json!(rate));
    GateOutcome {
        block: "tool_selection".to_owned(),
        verdict,
        values,
        detail: detail.into(),
        assertions: vec![assertion(
            "floor.passed",
            json!({">=": 1}),
            json!(u64::from(passed)),
            passed,
        )],
        summary: format!("selection {rate}%"),
        findings: Vec::new(),
        more_findings: 0,
        notes: Vec::new(),
        advisories: Vec::new(),
        no_evidence: (verdict == Verdict::NoEvidence)
            .then(|| "no run was carried through".to_owned()),
        status_lines: Vec::new(),
    }
}

impl Report {
    /// Computes the verdict, the exit code, the floors and the spend from the tests.
    #[must_use]
    pub fn conclude(tests: Vec<TestReport>, interrupted: bool) -> Self {
        let verdict = Verdict::worst(tests.iter().map(|test| test.verdict));
        let mut codes: Vec<ExitCode> = tests.iter().map(exit_code_of).collect();
        if interrupted {
            codes.push(ExitCode::Interrupted);
        }
        Self {
            schema_version: SCHEMA_VERSION,
            verdict,
            exit_code: ExitCode::first_of(codes),
            interrupted,
            tool_selection: floors(&tests),
            distractors: Vec::new(),
            spend: Spend::total(tests.iter().filter_map(|test| test.spend)),
            tests,
            not_run: Vec::new(),
            broken_lines: None,
            shard: None,
            timing: None,
        }
    }
}

impl From<&Report> for crate::report::Report {
    /// The same report with its records in a store.
    fn from(report: &Report) -> Self {
        let mut records = crate::read::Records::default();
        let mut tests = Vec::new();
        for written in &report.tests {
            let store = std::sync::Arc::new(crate::store::RunStore::Memory(Vec::new()));
            let id = CaseId {
                suite: written.suite.clone(),
                name: written.name.clone(),
                model: written.model.clone(),
            };
            let (kind, label) = (written.kind, written.label.clone());
            let mut test = crate::report::TestReport::new(id, kind, label, store);
            test.verdict = written.verdict;
            test.gates.clone_from(&written.gates);
            test.no_evidence.clone_from(&written.no_evidence);
            test.saved_runs = written.saved_runs;
            test.spend = written.spend;
            test.tags.clone_from(&written.tags);
            test.file.clone_from(&written.file);
            test.line = written.line;
            for run in &written.runs {
                records.push(&mut test, run).unwrap();
            }
            tests.push(test);
        }
        let timing = report.timing.clone();
        let timing = timing.map(|timing| crate::read::timed(&mut tests, timing));
        records.finish(&mut tests).unwrap();
        Self {
            replayed: report.timing.as_ref().and_then(|timing| timing.replayed),
            verdict: report.verdict,
            exit_code: report.exit_code,
            interrupted: report.interrupted,
            tests,
            not_run: report.not_run.clone(),
            broken_lines: report.broken_lines.clone(),
            shard: report.shard.clone(),
            spend: report.spend,
            timing,
        }
    }
}

fn exit_code_of(test: &TestReport) -> ExitCode {
    let capped = test.runs.iter().any(|run| {
        run.error
            .as_ref()
            .is_some_and(|error| error.kind == ErrorKind::Budget)
    });
    match test.verdict {
        _ if capped => ExitCode::Capped,
        Verdict::Pass => ExitCode::Passed,
        Verdict::Fail => ExitCode::Failed,
        Verdict::NoEvidence => ExitCode::NoEvidence,
        Verdict::Error => ExitCode::CouldNotRun,
    }
}

fn floors(tests: &[TestReport]) -> Vec<FloorReport> {
    let mut floors = Vec::new();
    for test in tests {
        for gate in test
            .gates
            .iter()
            .filter(|gate| gate.block == "tool_selection")
        {
            floors.push(FloorReport {
                test: test.name.clone(),
                model: test.model.clone(),
                figures: gate.detail.to_map(),
            });
        }
    }
    floors
}

/// Logs of invocations.
pub mod log {
    use mcptest_events::log::encode;
    use mcptest_events::{
        Begun, CaseId, CaseJudged, Ended, Event, PlannedCase, RunFacts, RunFinished, VERSION,
    };
    use mcptest_redact::redact::Redactor;

    use super::{Kind, RunReport, Verdict, floor, run};

    /// The encoded lines of events, one after the other.
    pub fn encoded(events: &[Event]) -> String {
        let redactor = Redactor::default();
        events
            .iter()
            .map(|event| encode(event, &redactor))
            .collect()
    }

    /// The plan of a case.
    pub fn planned(at: usize, runs: u32) -> PlannedCase {
        PlannedCase {
            tags: vec!["slow".to_owned()],
            file: Some("sample.yml".to_owned()),
            line: u32::try_from(at + 1).ok(),
            id: CaseId {
                suite: "sample".to_owned(),
                name: format!("test {at}"),
                model: Some("m".to_owned()),
            },
            kind: Kind::Agent,
            label: format!("test {at}"),
            runs,
            position: at as u64,
        }
    }

    /// The record of a run as its row is called.
    pub fn record(plan: &PlannedCase, number: u32, verdict: Verdict) -> RunReport {
        let name = if plan.runs > 1 {
            format!("{} #{number}", plan.label)
        } else {
            plan.label.clone()
        };
        run(number.into(), &name, verdict, Some(100 + u64::from(number)))
    }

    /// The end of a run.
    pub fn finished(case: usize, record: RunReport) -> Event {
        Event::RunFinished(RunFinished {
            case,
            run: u32::try_from(record.index).unwrap(),
            calls: record.trace.tool_calls.len() as u64,
            errors: 0,
            tokens: record.trace.total_tokens(),
            duration_ms: 10 * record.index,
            facts: RunFacts {
                verdict: record.verdict,
                counted: record.verdict,
                fails_case: false,
                expectations_held: None,
                error: record.error.as_ref().map(|error| error.kind),
            },
            spend: None,
            record: Some(record),
        })
    }

    /// The judgement on a case, with a floor.
    pub fn judged(case: usize, verdict: Verdict) -> Event {
        Event::CaseJudged(CaseJudged {
            duration_ms: None,
            replayed: None,
            case,
            verdict,
            complete: true,
            gates: vec![floor(verdict, 50)],
            no_evidence: None,
            saved_runs: None,
            spend: None,
            status_lines: vec![format!("line of case {case}")],
        })
    }

    /// The first event of a log.
    pub fn begun() -> Event {
        Event::Begun(Begun {
            version: VERSION,
            id: "20261117T183012Z-3fa9".to_owned(),
            mcptest: "0.1.0".to_owned(),
            started_ms: 1,
            command_line: vec!["run".to_owned()],
            inputs: Vec::new(),
        })
    }

    /// A whole invocation. The second run of each case fails, and so does the case.
    pub fn invocation(cases: usize, runs: u32) -> Vec<Event> {
        let plans: Vec<PlannedCase> = (0..cases).map(|at| planned(at, runs)).collect();
        let mut events = vec![
            begun(),
            Event::Planned {
                cases: plans.clone(),
                shard: None,
            },
        ];
        for (case, plan) in plans.iter().enumerate() {
            for run in 1..=runs {
                events.push(Event::RunStarted { case, run });
                let verdict = if run == 2 {
                    Verdict::Fail
                } else {
                    Verdict::Pass
                };
                events.push(finished(case, record(plan, run, verdict)));
            }
            events.push(judged(case, Verdict::Fail));
        }
        events.push(Event::Ended(Ended {
            interrupted: false,
            panicked: false,
            duration_ms: 1234,
        }));
        events
    }
}
