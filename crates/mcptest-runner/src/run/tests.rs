use std::collections::BTreeMap;
use std::sync::Mutex;

use mcptest_events::{Begun, Event, RunRecord, VERSION, log};
use mcptest_redact::redact::Redactor;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::verdicts::counter;
use crate::{Filter, plan, testing};

/// Agents with gates, with early stopping, with failing runs, and direct tests that cannot run.
const SUITE: &str = r#"
name: events
prices:
  builtin/scripted: { input_per_mtok: 1, output_per_mtok: 2 }
servers:
  gone: { command: ["/nonexistent/server"] }
  weather:
    lifecycle: initialize
    command: ["sh", "server.sh"]
agents:
  - name: three runs
    model: builtin/scripted
    servers: [weather]
    prompt: go
    runs: 3
    script:
      - - { calls: [{ tool: find, args: {} }], usage: { input: 10, output: 2 } }
        - { say: sunny, usage: { input: 20, output: 3 } }
      - - { say: sunny, usage: { input: 7, output: 1 } }
    expect:
      - final_response: { contains: sunny }
    tool_selection:
      expected_tool: find
      min_selection_rate: 0.3
  - name: decided early
    model: builtin/scripted
    servers: [weather]
    prompt: go
    runs: { max: 9, stop: decided }
    script:
      - - { calls: [{ tool: find, args: {} }] }
        - { say: found }
    expect:
      - final_response: { contains: found }
    reliability:
      tolerate_failed_runs: true
      expect:
        - reliability.runs: { ">=": 3 }
  - name: fails
    model: builtin/scripted
    servers: [weather]
    prompt: go
    runs: 2
    script:
      - - { say: sunny }
      - - { say: rain }
    expect:
      - final_response: { contains: sunny }
  - name: last
    model: builtin/scripted
    servers: [weather]
    prompt: go
    script: [[{ say: done }]]
    expect:
      - final_response: { contains: done }
tools:
  - { name: direct, server: weather, tool: find, args: {} }
  - { name: direct without a server, server: gone, tool: find, args: {} }
tool_quality:
  - { name: quality, server: weather }
  - { name: quality without a server, server: gone }
"#;

/// A server with one tool.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"find","description":"Find the weather.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call","params":{"name":"complain"'*)
      echo "no such city" >&2
      result='{"content":[{"type":"text","text":"failed"}],"isError":true}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"sunny"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

struct Invocation {
    folder: TempDir,
    suite: Arc<Suite>,
    cases: Vec<Case>,
}

/// The options that differ between tests.
#[derive(Clone, Copy, Default)]
struct Options {
    fail_fast: bool,
    jobs: Option<u32>,
    max_tokens: Option<u64>,
    /// Interrupt after this number of finished runs.
    interrupt_after: Option<usize>,
    /// Record cassettes.
    record: bool,
}

impl Invocation {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("server.sh"), SERVER).expect("a file");
        let suite = testing::suite(folder.path(), text);
        let cases = plan(&suite, &Filter::default());
        Self {
            folder,
            suite,
            cases,
        }
    }

    /// Runs the suite, and returns the events with the outcome and the number of judgements.
    fn run(&self, resume: Resume, options: Options) -> (Vec<Event>, SuiteOutcome, u64) {
        let events = Arc::new(Mutex::new(Vec::new()));
        let cancel = CancellationToken::new();
        let emit = {
            let (events, cancel) = (Arc::clone(&events), cancel.clone());
            let finished = Mutex::new(0);
            Arc::new(move |event: Event| {
                if matches!(event, Event::RunFinished(_)) {
                    let mut finished = finished.lock().expect("a count");
                    *finished += 1;
                    if Some(*finished) == options.interrupt_after {
                        cancel.cancel();
                    }
                }
                events.lock().expect("a list").push(event);
            })
        };
        let settings = RunSettings {
            fail_fast: options.fail_fast,
            timeout: None,
            jobs: options.jobs,
            budget: Budget::new(None, options.max_tokens, None),
            no_judges: false,
            snapshots: SnapshotMode::default(),
            this_program: PathBuf::new(),
            credentials: ServerCredentials::default(),
            cancel,
            cassettes: CassetteSettings {
                mode: if options.record {
                    CassetteMode::Record
                } else {
                    CassetteMode::Live
                },
                folder: Some(self.folder.path().join("cassettes")),
                replay: None,
                redactor: Arc::new(Redactor::default()),
                listing: Arc::new(|_| None),
                names: Arc::new(|_| None),
                entries: Arc::new(|_| None),
            },
            resume: Arc::new(resume),
            emit,
        };
        counter::take();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let outcome = runtime.block_on(run(Arc::clone(&self.suite), &self.cases, 0, &settings));
        let judgements = counter::take();
        let events = std::mem::take(&mut *events.lock().expect("a list"));
        (events, outcome, judgements)
    }
}

fn finished(events: &[Event]) -> Vec<(usize, u32)> {
    let runs = events.iter().filter_map(|event| match event {
        Event::RunFinished(run) => Some((run.case, run.run)),
        _ => None,
    });
    runs.collect()
}

/// The last event of each run and case, as reports fold them, without times.
fn folded(events: &[Event]) -> BTreeMap<(usize, Option<u32>), Value> {
    let mut last = BTreeMap::new();
    for event in events {
        let mut event = event.clone();
        let key = match &mut event {
            Event::RunFinished(run) => {
                run.duration_ms = 0;
                (run.case, Some(run.run))
            }
            Event::CaseJudged(judged) => {
                judged.duration_ms = None;
                (judged.case, None)
            }
            _ => continue,
        };
        last.insert(key, serde_json::to_value(&event).expect("it serialises"));
    }
    last
}

/// The state that a log with these events gives.
fn resume_from(events: &[Event]) -> Resume {
    let begun: Event<RunRecord> = Event::Begun(Begun {
        version: VERSION,
        id: String::new(),
        mcptest: String::new(),
        started_ms: 0,
        command_line: Vec::new(),
        inputs: Vec::new(),
    });
    let redactor = Redactor::default();
    let lines = std::iter::once(&begun).chain(events);
    let text: String = lines.map(|event| log::encode(event, &redactor)).collect();
    Resume::read(text.as_bytes()).expect("a log")
}

#[test]
fn each_run_is_judged_once() {
    let invocation = Invocation::new(SUITE);
    for options in [
        Options::default(),
        Options {
            fail_fast: true,
            ..Options::default()
        },
        Options {
            jobs: Some(1),
            max_tokens: Some(40),
            ..Options::default()
        },
    ] {
        let (events, _, judgements) = invocation.run(Resume::default(), options);
        let mut runs = finished(&events);
        assert_eq!(judgements, runs.len() as u64);
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(judgements, runs.len() as u64, "no run finishes twice");
    }
}

#[test]
fn cases_are_judged_by_their_runs() {
    let invocation = Invocation::new(SUITE);
    let (events, outcome, _) = invocation.run(Resume::default(), Options::default());
    assert_eq!(outcome.verdict, Verdict::Error);
    assert!(!outcome.interrupted);
    let judged: BTreeMap<usize, _> = events
        .iter()
        .filter_map(|event| match event {
            Event::CaseJudged(judged) => Some((judged.case, judged)),
            _ => None,
        })
        .collect();
    let verdicts: Vec<Verdict> = judged.values().map(|case| case.verdict).collect();
    use Verdict::{Error, Fail, Pass};
    assert_eq!(verdicts, [Pass, Pass, Fail, Pass, Pass, Error, Fail, Error]);
    assert!(judged.values().all(|case| case.complete));
    assert_eq!(judged[&1].saved_runs, Some(6), "three of nine runs decide");
    assert_eq!(judged[&0].saved_runs, None);
    let spend = judged[&0].spend.expect("a price is known");
    assert_eq!((spend.requests, spend.input_tokens), (4, Some(44)));
    assert_eq!(spend.usd, Some(0.000_058));
    let saved = Event::RunsSaved { case: 1, runs: 6 };
    assert!(events.contains(&saved));
    let answers = events
        .iter()
        .filter(|event| matches!(event, Event::ModelAnswered { case: 0, .. }));
    assert_eq!(answers.count(), 4);
    let called = Event::ToolCalled {
        case: 0,
        run: 1,
        tool: "weather.find".to_owned(),
        is_error: false,
    };
    assert!(events.contains(&called));
}

/// Kills the invocation after every event, and resumes it.
fn resumes_from_every_prefix(options: Options) {
    let invocation = Invocation::new(SUITE);
    let (whole, expected, _) = invocation.run(Resume::default(), options);
    let undisturbed = folded(&whole);
    for cut in 0..=whole.len() {
        let before = &whole[..cut];
        let (after, outcome, judgements) = invocation.run(resume_from(before), options);
        let all: Vec<Event> = before.iter().chain(&after).cloned().collect();
        assert_eq!(folded(&all), undisturbed, "cut after {cut} events");
        assert_eq!(outcome, expected, "cut after {cut} events");
        assert_eq!(judgements, finished(&after).len() as u64);
        for run in finished(&after) {
            // A catalog leaves no evidence in the log, so it is listed again until it is judged.
            let catalog = run == (6, 1);
            assert!(
                catalog || !finished(before).contains(&run),
                "{run:?} was repeated"
            );
        }
    }
}

#[test]
fn a_killed_invocation_resumes_from_every_event() {
    resumes_from_every_prefix(Options::default());
}

#[test]
fn a_killed_invocation_with_fail_fast_resumes_from_every_event() {
    resumes_from_every_prefix(Options {
        fail_fast: true,
        jobs: Some(1),
        ..Options::default()
    });
}

#[test]
fn a_killed_invocation_with_a_budget_resumes_from_every_event() {
    resumes_from_every_prefix(Options {
        jobs: Some(1),
        max_tokens: Some(20),
        ..Options::default()
    });
}

#[test]
fn a_recording_resumes_case_by_case() {
    let invocation = Invocation::new(SUITE);
    let options = Options {
        record: true,
        ..Options::default()
    };
    let (whole, expected, _) = invocation.run(Resume::default(), options);
    let recorded = notes(&whole)
        .into_iter()
        .find_map(|note| note.strip_prefix("recorded "));
    let cassette = PathBuf::from(recorded.expect("the first case is recorded"));
    assert!(cassette.exists());
    for cut in 0..=whole.len() {
        let before = &whole[..cut];
        let complete: Vec<usize> = before
            .iter()
            .filter_map(|event| match event {
                Event::CaseJudged(judged) if judged.complete => Some(judged.case),
                _ => None,
            })
            .collect();
        let removed = !complete.contains(&0);
        if removed {
            std::fs::remove_file(&cassette).expect("a cassette");
        }
        let (after, outcome, _) = invocation.run(resume_from(before), options);
        assert!(cassette.exists(), "cut after {cut} events");
        let all: Vec<Event> = before.iter().chain(&after).cloned().collect();
        assert_eq!(folded(&all), folded(&whole), "cut after {cut} events");
        assert_eq!(outcome, expected, "cut after {cut} events");
        let repeated = finished(&after);
        assert!(repeated.iter().all(|(case, _)| !complete.contains(case)));
        let runs_of_first = repeated.iter().filter(|(case, _)| *case == 0).count();
        assert_eq!(runs_of_first, if removed { 3 } else { 0 });
    }
}

fn notes(events: &[Event]) -> Vec<&str> {
    let notes = events.iter().filter_map(|event| match event {
        Event::Note { text } | Event::Warning { text } => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

#[test]
fn an_interrupted_case_is_judged_by_its_finished_runs() {
    let invocation = Invocation::new(SUITE);
    let (whole, ..) = invocation.run(Resume::default(), Options::default());
    let all_runs = finished(&whole).len();
    for after in 1..all_runs {
        let options = Options {
            jobs: Some(1),
            interrupt_after: Some(after),
            ..Options::default()
        };
        let (events, outcome, _) = invocation.run(Resume::default(), options);
        assert!(outcome.interrupted, "after {after} runs");
        let runs = finished(&events);
        for (case, planned) in invocation.cases.iter().enumerate() {
            let judged = events.iter().find_map(|event| match event {
                Event::CaseJudged(judged) if judged.case == case => Some(judged),
                _ => None,
            });
            let count = runs.iter().filter(|(of, _)| *of == case).count();
            let started = events
                .iter()
                .any(|event| matches!(event, Event::RunStarted { case: of, .. } if *of == case));
            assert_eq!(
                judged.is_some(),
                started,
                "a case without a run was not run"
            );
            if let Some(judged) = judged {
                let saved = judged.saved_runs.unwrap_or(0) as usize;
                assert_eq!(judged.complete, count + saved == planned.runs as usize);
                // What is missing is never good, and a part of the runs decides no gate.
                let why = format!("interrupted: {count} of {} runs finished", planned.runs);
                let reason = judged.no_evidence.as_ref();
                assert_eq!(reason == Some(&why), !judged.complete);
                if !judged.complete {
                    assert_ne!(judged.verdict, Verdict::Pass);
                    assert!(
                        judged
                            .gates
                            .iter()
                            .all(|gate| gate.verdict != Verdict::Pass)
                    );
                    assert_eq!(judged.status_lines, [""; 0]);
                }
            }
        }
        // And it can be resumed.
        let (rest, ..) = invocation.run(resume_from(&events), Options::default());
        let all: Vec<Event> = events.into_iter().chain(rest).collect();
        assert_eq!(folded(&all), folded(&whole), "after {after} runs");
    }
}

/// The stderr lines of each failed run, and its duration.
fn complaints(jobs: u32) -> Vec<(Vec<String>, u64)> {
    let text = r#"
servers:
  weather: { lifecycle: initialize, command: ["sh", "server.sh"] }
tools:
  - { name: first, server: weather, tool: complain, args: {} }
  - { name: second, server: weather, tool: complain, args: {} }
"#;
    let options = Options {
        jobs: Some(jobs),
        ..Options::default()
    };
    let (events, ..) = Invocation::new(text).run(Resume::default(), options);
    let runs = events.iter().filter_map(|event| match event {
        Event::RunFinished(run) => {
            let trace = serde_json::to_value(&run.record.as_ref()?.trace).ok()?;
            let lines = serde_json::from_value(trace["stderr"]["weather"].clone()).ok()?;
            Some((lines, run.duration_ms))
        }
        _ => None,
    });
    runs.collect()
}

#[test]
fn stderr_of_other_tests_is_marked() {
    let alone = complaints(1);
    assert_eq!(alone.len(), 2);
    assert!(alone.iter().all(|(lines, _)| lines == &["no such city"]));
    // The wait for stderr is not part of the time.
    assert!(alone.iter().any(|(_, ms)| *ms < 20), "{alone:?}");
    let shared = complaints(2);
    assert_eq!(shared.len(), 2);
    for (lines, _) in shared {
        assert!(
            lines[0].starts_with("(other tests used this server"),
            "{lines:?}"
        );
        assert!(lines[1..].iter().all(|line| line == "no such city"));
    }
}
