use std::io::{Seek as _, Write as _};

use mcptest_events::log::encode;
use mcptest_events::{Ended, Event, RunRecord, RunSpend, ShardPlan};
use mcptest_numbers::usd::Usd;
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::{ErrorKind, RunError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::samples::log::{begun, encoded, finished, invocation, judged, planned, record};
use crate::{REPORTERS, Spool, Style, render};

/// The report of lines that are folded while they are written.
fn live(text: &str) -> Report {
    let mut fold = ReportFold::new();
    let mut spool = Spool::new();
    for line in text.split_inclusive('\n') {
        let offset = spool.append(line).unwrap();
        fold.line(line, offset).unwrap();
    }
    fold.finish(spool.into_store().unwrap())
}

/// The report of events that are folded as they are, while their lines are written.
fn live_events(events: &[Event]) -> Report {
    let mut fold = ReportFold::new();
    let mut spool = Spool::new();
    for event in events {
        let line = encode(event, &Redactor::default());
        let offset = spool.append(&line).unwrap();
        fold.encoded(event, &line, offset);
    }
    fold.finish(spool.into_store().unwrap())
}

/// The report of the same lines in a log file.
fn from_file(text: &str) -> Report {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    read_log(file).unwrap()
}

fn rendered(name: &str, report: &Report) -> String {
    let mut out = Vec::new();
    render(name, report, Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(report: &Report) -> Value {
    serde_json::from_str(&rendered("json", report)).unwrap()
}

fn plan_of(cases: Vec<mcptest_events::PlannedCase>) -> Event {
    Event::Planned { cases, shard: None }
}

#[test]
fn a_folded_report_equals_one_made_from_records() {
    let text = encoded(&invocation(2, 3));
    let report = live(&text);
    let written: crate::model::Report = serde_json::from_value(json(&report)).unwrap();
    assert_eq!(written.tests.len(), 2);
    assert_eq!(written.tests[0].runs[1].name, "test 0 #2");
    assert_eq!(written.tool_selection.len(), 2);
    let times: Vec<u64> = written
        .timing
        .iter()
        .flat_map(|timing| &timing.runs)
        .map(|time| time.duration_ms)
        .collect();
    assert_eq!(times, [10, 20, 30, 10, 20, 30]);
    let again = Report::from(&written);
    for (name, ..) in REPORTERS {
        assert_eq!(rendered(name, &report), rendered(name, &again), "{name}");
    }
    // The bytes are those of the serialised records.
    assert_eq!(
        rendered("json", &report),
        serde_json::to_string_pretty(&written).unwrap() + "\n"
    );
    assert_eq!(report.tests[0].status_lines, ["line of case 0"]);
}

#[test]
fn facts_of_rows_equal_those_of_their_records() {
    let plan = planned(0, 9);
    let mut early = record(&plan, 1, Verdict::Pass);
    early
        .trace
        .extra
        .insert("stop_reason".to_owned(), json!("max_turns"));
    let mut ordinary = record(&plan, 2, Verdict::Pass);
    ordinary
        .trace
        .extra
        .insert("stop_reason".to_owned(), json!("end_turn"));
    // A word of another level.
    ordinary
        .trace
        .extra
        .insert("inner".to_owned(), json!({"stop_reason": "max_turns"}));
    let mut skipped = record(&plan, 3, Verdict::Pass);
    let mut assertion = crate::samples::assertion("result", json!({}), json!(1), true);
    assertion.skipped = Some("no judges".to_owned());
    skipped.assertions.push(assertion);
    let mut renamed = record(&plan, 4, Verdict::Pass);
    renamed.name = "another \"name\"".to_owned();
    let failed = record(&plan, 5, Verdict::Fail);
    let broken = record(&plan, 6, Verdict::Error);
    let records = [early, ordinary, skipped, renamed, failed, broken];
    let mut events = vec![begun(), plan_of(vec![plan])];
    events.extend(records.iter().map(|record| finished(0, record.clone())));
    let report = live(&encoded(&events));
    let test = &report.tests[0];
    assert_eq!(test.runs.len(), records.len() as u64);
    for (row, record) in test.runs.iter().zip(&records) {
        let range = RecordRange { offset: 0, len: 0 };
        let wanted = RunRow::of_record("test 0", record, row.duration_ms(), range);
        let facts = |row: &RunRow| {
            (
                (row.index(), row.verdict(), row.error(), row.calls()),
                (row.tokens(), row.early_end(), row.has_details()),
                test.row_name(row).into_owned(),
            )
        };
        assert_eq!(facts(&row), facts(&wanted), "{}", record.name);
        assert_eq!(&test.record(&row).unwrap(), record);
    }
    let pretty = rendered("pretty", &report);
    assert!(
        pretty.contains("test 0 #1  (0 calls, 101 tokens, out of turns)"),
        "{pretty}"
    );
    assert!(
        pretty.contains("test 0 #2  (0 calls, 102 tokens)\n"),
        "{pretty}"
    );
    assert!(pretty.contains("skipped: result, no judges"), "{pretty}");
}

#[test]
fn runs_that_never_started_share_a_row() {
    let plan = planned(0, 4);
    let mut events = vec![begun(), plan_of(vec![plan.clone()])];
    events.push(finished(0, record(&plan, 1, Verdict::Pass)));
    for number in 2..=4 {
        let mut capped = record(&plan, number, Verdict::Error);
        capped.error = Some(RunError {
            kind: ErrorKind::Budget,
            message: "never started: $1 is spent".to_owned(),
        });
        events.push(finished(0, capped));
    }
    events.push(judged(0, Verdict::Error));
    events.push(Event::Ended(Ended::default()));
    let report = live(&encoded(&events));
    let pretty = rendered("pretty", &report);
    assert!(
        pretty.contains("ERROR  test 0 #2 to #4\n         budget: never started: $1 is spent\n"),
        "{pretty}"
    );
    assert_eq!(u8::from(report.exit_code), 4);
}

#[test]
fn a_killed_run_is_interrupted_and_lists_its_finished_runs() {
    let text = encoded(&invocation(3, 3));
    // After two runs of the second case.
    let end = text.match_indices("\n{\"run_finished\"").nth(5).unwrap().0;
    let report = from_file(&format!("{}{{\"run_finished\":{{\"case", &text[..=end]));
    assert!(report.interrupted);
    assert_eq!(u8::from(report.exit_code), 130);
    let names: Vec<&str> = report
        .tests
        .iter()
        .map(|test| test.label.as_str())
        .collect();
    assert_eq!(names, ["test 0", "test 1"]);
    let second = &report.tests[1];
    assert_eq!(second.runs.len(), 2);
    assert_eq!(second.verdict, Verdict::Fail, "its second run failed");
    assert_eq!(
        second.no_evidence.as_deref(),
        Some("interrupted: 2 of 3 runs finished")
    );
    assert_eq!(report.not_run[0].name, "test 2");
    assert_eq!(
        report.timing.as_ref().unwrap().duration_ms,
        10 + 20 + 30 + 10 + 20
    );
}

#[test]
fn the_spend_of_a_killed_run_is_that_of_its_finished_runs() {
    let plan = planned(0, 3);
    let mut events = vec![begun(), plan_of(vec![plan.clone()])];
    for number in 1..=2 {
        let mut event = finished(0, record(&plan, number, Verdict::Pass));
        if let Event::RunFinished(finished) = &mut event {
            finished.spend = Some(RunSpend {
                requests: 1,
                input_tokens: 10,
                usd: Usd::from_f64(0.1).unwrap(),
                ..RunSpend::default()
            });
        }
        events.push(event);
    }
    let report = live(&encoded(&events));
    let spend = report.spend.unwrap();
    assert_eq!((spend.requests, spend.usd), (2, Some(0.2)));
    assert_eq!(report.tests[0].verdict, Verdict::NoEvidence);
}

#[test]
fn a_resumed_run_replaces_what_it_repeats() {
    let mut events = invocation(1, 2);
    events.pop();
    events.push(Event::Ended(Ended {
        interrupted: true,
        ..Ended::default()
    }));
    let interrupted = live(&encoded(&events));
    assert!(interrupted.interrupted);
    let plan = planned(0, 2);
    events.push(Event::Resumed { started_ms: 2 });
    events.push(finished(0, record(&plan, 2, Verdict::Pass)));
    let resumed = live(&encoded(&events));
    assert!(resumed.interrupted, "there is no end yet");
    assert_eq!(
        resumed.tests[0].no_evidence.as_deref(),
        Some("interrupted: 2 of 2 runs finished"),
        "the old judgement does not hold for the new run"
    );
    events.push(judged(0, Verdict::Pass));
    events.push(Event::Ended(Ended::default()));
    let whole = live(&encoded(&events));
    assert!(!whole.interrupted);
    assert_eq!(whole.tests[0].runs.len(), 2);
    assert_eq!(whole.tests[0].passed_runs(), 2);
    assert_eq!(u8::from(whole.exit_code), 0);
}

#[test]
fn a_damaged_record_is_an_error_with_its_line() {
    let text = encoded(&invocation(1, 1));
    let at = text.find("\"record\":{").unwrap();
    let damaged = format!(
        "{}{}",
        &text[..at],
        text[at..].replacen("\"name\"", "\"nake\"", 1)
    );
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(damaged.as_bytes()).unwrap();
    file.rewind().unwrap();
    let line = 1 + text[..at].matches('\n').count();
    let error = read_log(file).unwrap_err().to_string();
    let expected = format!("line {line}: the record of a run is damaged: missing field `name`");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_panic_is_an_error_of_ours() {
    let mut events = invocation(1, 1);
    events.pop();
    events.push(Event::Ended(Ended {
        interrupted: true,
        panicked: true,
        duration_ms: 1,
    }));
    assert_eq!(u8::from(live(&encoded(&events)).exit_code), 2);
}

#[test]
fn a_shard_has_the_positions_of_its_tests() {
    let mut cases = vec![planned(0, 1), planned(1, 1), planned(2, 1)];
    for (case, position) in cases.iter_mut().zip([1, 4, 5]) {
        case.position = position;
    }
    let shard = Some(ShardPlan {
        number: 2,
        of: 2,
        total: 6,
    });
    let events = [
        begun(),
        Event::Planned {
            cases: cases.clone(),
            shard,
        },
        finished(1, record(&cases[1], 1, Verdict::Pass)),
        judged(1, Verdict::Pass),
        Event::Ended(Ended::default()),
    ];
    let shard = live(&encoded(&events)).shard.unwrap();
    assert_eq!((shard.number, shard.of, shard.total), (2, 2, 6));
    assert_eq!((shard.tests, shard.not_run), (vec![4], vec![1, 5]));
}

/// 100,000 runs must fit in 64 MiB together with the rest of the process.
#[test]
fn rows_are_small() {
    const RUNS: u32 = 100_000;
    let plan = planned(0, RUNS);
    let mut fold = ReportFold::new();
    fold.line(&encoded(&[plan_of(vec![plan.clone()])]), 0)
        .unwrap();
    let redactor = Redactor::default();
    let mut spool = Spool::new();
    let template = encode(
        &finished(0, record(&plan, 77_777, Verdict::Pass)),
        &redactor,
    );
    for number in 1..=RUNS {
        let line = template.replace("77777", &number.to_string());
        let offset = spool.append(&line).unwrap();
        fold.line(&line, offset).unwrap();
    }
    let held = fold.cases[0].runs.capacity() * size_of::<Run>();
    assert!(held <= 16 << 20, "{held} bytes while the runs end");
    let report = fold.finish(spool.into_store().unwrap());
    let runs = &report.tests[0].runs;
    assert_eq!(runs.len(), u64::from(RUNS));
    let bytes = runs.held_bytes() / RUNS as usize;
    assert!(bytes <= 12, "{bytes} bytes per run");
    assert!(matches!(*report.tests[0].store, RunStore::File(_)));
    // The reporters keep nothing either: they write to the end without their own buffer.
    let mut counted = Counted::default();
    for name in ["pretty", "json"] {
        render(name, &report, Style::default(), &mut counted).unwrap();
    }
    assert!(
        counted.largest < 64 << 10,
        "one write of {} bytes",
        counted.largest
    );
    assert!(counted.bytes > 20 << 20);
}

/// A writer that keeps nothing.
#[derive(Default)]
struct Counted {
    bytes: usize,
    largest: usize,
}

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        self.largest = self.largest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Pass),
        Just(Verdict::Fail),
        Just(Verdict::NoEvidence),
        Just(Verdict::Error)
    ]
}

/// Any events of three cases in any order.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let run = |case, number, verdict| {
        let plan = planned(case % 3, 4);
        let record: RunRecord = record(&plan, number, verdict);
        finished(case, record)
    };
    let event = prop_oneof![
        6 => (0..4_usize, 1..5_u32, verdicts())
            .prop_map(move |(case, number, verdict)| run(case, number, verdict)),
        2 => (0..4_usize, verdicts()).prop_map(|(case, verdict)| judged(case, verdict)),
        1 => Just(Event::Resumed { started_ms: 1 }),
        1 => any::<bool>().prop_map(|interrupted| {
            Event::Ended(Ended { interrupted, ..Ended::default() })
        }),
        1 => "[a-z\u{1b}\"]{0,5}".prop_map(|text| Event::Note { text }),
    ];
    proptest::collection::vec(event, 0..20).prop_map(|rest| {
        let mut events = vec![
            begun(),
            plan_of((0..3).map(|case| planned(case, 4)).collect()),
        ];
        events.extend(rest);
        events
    })
}

proptest! {
    #[test]
    fn every_prefix_lists_exactly_its_finished_runs(
        events in events(),
        end in any::<prop::sample::Index>(),
    ) {
        let events = &events[..=end.index(events.len())];
        let mut wanted: Vec<(usize, u32)> = events
            .iter()
            .filter_map(|event| match event {
                Event::RunFinished(run) if run.case < 3 => Some((run.case, run.run)),
                _ => None,
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let text = encoded(events);
        let report = live(&text);
        let mut listed: Vec<(usize, u32)> = Vec::new();
        for test in &report.tests {
            let case: usize = test.id.name["test ".len()..].parse().unwrap();
            for run in &test.runs {
                prop_assert_eq!(test.record(&run).unwrap().index, run.index());
                listed.push((case, u32::try_from(run.index()).unwrap()));
            }
        }
        prop_assert_eq!(listed, wanted);
        let (file, undecoded) = (from_file(&text), live_events(events));
        for (name, ..) in REPORTERS {
            prop_assert_eq!(rendered(name, &report), rendered(name, &file), "{}", name);
            prop_assert_eq!(rendered(name, &undecoded), rendered(name, &file), "{}", name);
        }
    }

    #[test]
    fn a_torn_log_is_the_log_up_to_its_last_line(
        events in events(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = encoded(&events);
        let cut = cut.index(text.len());
        let cut = (0..=cut).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let torn = &text[..cut];
        if let Some(end) = torn.rfind('\n') {
            let (torn, whole) = (from_file(torn), live(&torn[..=end]));
            prop_assert_eq!(rendered("json", &torn), rendered("json", &whole));
        }
    }

    #[test]
    fn reading_a_written_report_gives_its_bytes(events in events()) {
        let report = live(&encoded(&events));
        let text = rendered("json", &report);
        let again = crate::read(&text).unwrap();
        for (name, ..) in REPORTERS {
            prop_assert_eq!(rendered(name, &report), rendered(name, &again), "{}", name);
        }
    }
}
