//! Recording and replay together.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use mcptest_agent::{
    AssistantTurn, Future, Message, Model, ModelCall, Offer, Request, Task, ToolReply, Tools,
    ignore_events, run,
};
use mcptest_redact::redact::Redactor;
use mcptest_redact::volatile::Rules;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value, json};

use super::*;

/// Polls a future once; nothing in these tests waits.
fn now<T>(future: impl std::future::Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("the future is pending"),
    }
}

fn uuid(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// A model that creates an item, gets it by its id, then ends. Its own ids are new each time.
struct Creator {
    fresh: u32,
    city: &'static str,
}

impl Model for Creator {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let call = |name: &str, args: Value| AssistantTurn {
            calls: vec![ModelCall {
                id: Some(format!("call_abc{}def0000", self.fresh)),
                wire_name: name.to_owned(),
                args: Some(args),
                caller: None,
            }],
            ..AssistantTurn::default()
        };
        let turn = match request.messages {
            [_] => call(
                "create",
                json!({"city": self.city, "key": uuid(self.fresh)}),
            ),
            [_, _, Message::Results(results)] => {
                let id = results[0]
                    .1
                    .structured
                    .as_ref()
                    .map(|got| got["id"].clone());
                call("get", json!({"id": id}))
            }
            _ => AssistantTurn {
                text: "done, sk-abcdefghijklmnop0123456789".to_owned(),
                ..AssistantTurn::default()
            },
        };
        Box::pin(async move { Ok(turn) })
    }
}

/// Tools that give every item a new id and a timestamp.
struct Shop {
    next: AtomicU32,
    price: u32,
}

impl Tools for Shop {
    fn call<'a>(
        &'a self,
        _: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let reply = if tool == "create" {
            json!({
                "id": uuid(number),
                "for": args["key"],
                "at": format!("2026-07-28T10:00:{:02}Z", number % 60),
            })
        } else {
            json!({"id": args["id"], "price": self.price})
        };
        Box::pin(async move {
            if number == 13 {
                return Err(RunError {
                    kind: ErrorKind::ServerCrash,
                    message: "gone".to_owned(),
                });
            }
            Ok(ToolReply {
                content: json!([{"type": "text", "text": reply.to_string()}]),
                structured: Some(reply),
                ..ToolReply::default()
            })
        })
    }
}

fn catalogs() -> Vec<RecordedCatalog> {
    vec![RecordedCatalog {
        server: "shop".to_owned(),
        tools: vec![
            json!({"name": "create", "inputSchema": {"type": "object"}}),
            json!({"name": "get"}),
        ],
    }]
}

fn subject() -> Subject {
    Subject {
        test: "buys".to_owned(),
        model: "m".to_owned(),
        system: None,
        prompt: "Buy it.".to_owned(),
        servers: vec!["shop".to_owned()],
        settings: Map::new(),
    }
}

fn agent(model: &dyn Model, tools: &dyn Tools) -> Trace {
    let listed = catalogs()
        .iter()
        .map(|one| (one.server.clone(), one.tools()))
        .collect();
    let task = Task {
        system: None,
        prompt: "Buy it.",
        turns: &[],
        max_turns: 5,
        max_tokens: None,
    };
    now(run(
        &task,
        model,
        &Offer::new(listed),
        tools,
        &ignore_events,
    ))
}

fn recording(dir: &tempfile::TempDir, planned: u32) -> Arc<Recording> {
    Recording::new(RecordingSpec {
        suite: "s".to_owned(),
        subject: subject(),
        planned,
        path: dir.path().join("c.json"),
        rules: Arc::new(Rules::new(&[]).unwrap()),
        redactor: Arc::new(Redactor::default()),
    })
}

/// Records runs in this order of finishing and returns their traces by number.
fn record(recording: &Arc<Recording>, order: &[u32], first_id: u32) -> Vec<Trace> {
    let mut traces: Vec<(u32, Trace)> = order
        .iter()
        .map(|number| {
            let recorder = recording.run(*number);
            recorder.record_catalogs(catalogs());
            let shop = Shop {
                next: AtomicU32::new(first_id + number * 2),
                price: *number,
            };
            let model = recorder.model(
                ModelRole::Agent,
                Box::new(Creator {
                    fresh: first_id + 100 * number,
                    city: "Rome",
                }),
            );
            let trace = agent(model.as_ref(), &recorder.tools(&shop));
            recorder.finish();
            (*number, trace)
        })
        .collect();
    traces.sort_by_key(|(number, _)| *number);
    traces.into_iter().map(|(_, trace)| trace).collect()
}

fn clean(trace: &Trace) -> Value {
    let mut value = serde_json::to_value(trace).unwrap();
    Redactor::default().value(&mut value);
    value
}

fn player(path: &std::path::Path) -> Arc<Player> {
    Player::new(load(path).unwrap(), Arc::new(Redactor::default())).unwrap()
}

#[test]
fn a_replay_equals_the_run_in_any_order_of_finishing() {
    let texts: Vec<String> = [[1, 2, 3], [3, 1, 2]]
        .iter()
        .map(|order| {
            let dir = tempfile::tempdir().unwrap();
            let recording = recording(&dir, 3);
            let traces = record(&recording, order, 20);
            assert_eq!(recording.finish().unwrap(), RecordingOutcome::Written);
            let player = player(recording.path());
            // Replayed in reverse order: no run depends on another.
            for number in [3, 2, 1] {
                let replay = player.run(number).unwrap();
                let again = agent(replay.model(ModelRole::Agent).as_ref(), &replay.tools());
                let live = &traces[number as usize - 1];
                assert_eq!(live.error, None);
                assert_eq!(clean(&again), clean(live));
                assert_eq!(live.tool_calls.len(), 2);
            }
            let from_file = super::traces(load(recording.path()).unwrap()).unwrap();
            for (live, stored) in traces.iter().zip(&from_file) {
                assert_eq!(clean(live)["tool_results"], clean(stored)["tool_results"]);
                assert_eq!(clean(live)["conversation"], clean(stored)["conversation"]);
            }
            assert_eq!(verify(player.cassette(), &Redactor::default()), []);
            let mut cassette = player.cassette().clone();
            cassette
                .volatile
                .iter_mut()
                .for_each(|of| of.duration_ms = 0);
            cassette.to_text()
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
    assert!(
        texts[0].contains("<uuid:1>")
            && texts[0].contains("<timestamp:1>")
            && texts[0].contains("<id:1>")
    );
    assert!(texts[0].contains("done, [redacted]") && !texts[0].contains("sk-abc"));
}

#[test]
fn two_recordings_of_a_case_differ_only_in_volatile_values() {
    let texts: Vec<String> = [20, 500]
        .iter()
        .map(|first_id| {
            let dir = tempfile::tempdir().unwrap();
            let recording = recording(&dir, 2);
            record(&recording, &[1, 2], *first_id);
            recording.finish().unwrap();
            let text = load(recording.path()).unwrap().to_text();
            text.split("\"volatile\"").next().unwrap().to_owned()
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn live_tools_with_new_ids_match_the_recorded_model() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 1);
    record(&recording, &[1], 20);
    recording.finish().unwrap();
    let player = player(recording.path());
    let replay = player.run(1).unwrap();
    let shop = Shop {
        next: AtomicU32::new(900),
        price: 1,
    };
    let trace = agent(replay.model(ModelRole::Agent).as_ref(), &shop);
    assert_eq!(trace.error, None);
    // The recorded model uses the id that the live server has just made.
    assert_eq!(trace.tool_calls[1].args(), Some(&json!({"id": uuid(900)})));
    // A different price is a mismatch.
    let replay = player.run(1).unwrap();
    let shop = Shop {
        next: AtomicU32::new(900),
        price: 7,
    };
    let error = agent(replay.model(ModelRole::Agent).as_ref(), &shop)
        .error
        .unwrap();
    assert_eq!(error.kind, ErrorKind::StaleCassette);
    assert!(
        error
            .message
            .contains("result 1 of the turn before differs")
            && error
                .message
                .contains("at /structured/price: recorded 1, now 7"),
        "{}",
        error.message
    );
}

#[test]
fn a_live_model_with_new_ids_matches_the_recorded_tools() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 1);
    record(&recording, &[1], 20);
    recording.finish().unwrap();
    let player = player(recording.path());
    let tools = player.run(1).unwrap().tools();
    let live = |fresh, city| Creator { fresh, city };
    let trace = agent(&live(777, "Rome"), &tools);
    assert_eq!(trace.error, None);
    // The replayed server returns the key that was sent now, not the recorded one.
    let reply = &trace.tool_results[0].extra["structured_content"];
    assert_eq!(reply["for"], json!(uuid(777)));
    let error = agent(&live(777, "Oslo"), &player.run(1).unwrap().tools())
        .error
        .unwrap();
    assert!(
        error.message.contains("the nearest recorded one is")
            && error.message.contains("recorded \"Rome\", now \"Oslo\""),
        "{}",
        error.message
    );
    // Each recorded call is replayed once.
    let error = agent(&live(777, "Rome"), &tools).error.unwrap();
    assert!(
        error.message.contains("which has been used up"),
        "{}",
        error.message
    );
}

#[test]
fn errors_are_recorded_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 2);
    let recorder = recording.run(1);
    recorder.record_failure(&RunError {
        kind: ErrorKind::Auth,
        message: "no key at 2026-07-28T10:00:00Z".to_owned(),
    });
    recorder.finish();
    // The shop crashes with the 13th item.
    let traces = record(&recording, &[2], 9);
    assert_eq!(
        traces[0].error.as_ref().map(|error| error.kind),
        Some(ErrorKind::ServerCrash)
    );
    assert_eq!(recording.finish().unwrap(), RecordingOutcome::Written);
    let player = player(recording.path());
    let first = player.run(1).unwrap().error().unwrap();
    assert_eq!(first.message, "no key at 2026-07-28T10:00:00Z");
    let replay = player.run(2).unwrap();
    let again = agent(replay.model(ModelRole::Agent).as_ref(), &replay.tools());
    assert_eq!(clean(&again), clean(&traces[0]));
    let findings = verify(player.cassette(), &Redactor::default());
    assert!(
        findings.iter().all(|finding| !finding.error),
        "{findings:?}"
    );
    assert_eq!(findings.len(), 2);
    assert_eq!(player.run(3).unwrap_err().kind, ErrorKind::StaleCassette);
}

#[test]
fn a_complete_cassette_is_never_replaced_by_a_worse_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.json");
    let good = recording(&dir, 2);
    record(&good, &[1, 2], 20);
    good.save().unwrap();
    assert!(!path.exists() && load(&partial_path(&path)).unwrap().is_complete());
    assert_eq!(good.finish().unwrap(), RecordingOutcome::Written);
    let before = std::fs::read(&path).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);

    let interrupted = recording(&dir, 2);
    record(&interrupted, &[2], 20);
    let outcome = interrupted.finish().unwrap();
    assert!(
        matches!(outcome, RecordingOutcome::Partial { finished: 1, .. }),
        "{outcome:?}"
    );
    let found = verify(&load(&partial_path(&path)).unwrap(), &Redactor::default());
    assert_eq!(found[0].message, "1 of 2 runs are recorded");

    let failing = recording(&dir, 2);
    record(&failing, &[1, 2], 9);
    let outcome = failing.finish().unwrap();
    assert!(
        matches!(outcome, RecordingOutcome::KeptExisting { failed: 1, .. }),
        "{outcome:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(
        recording(&dir, 2).finish().unwrap(),
        RecordingOutcome::Nothing
    );
}

#[test]
fn a_case_is_written_as_soon_as_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 2);
    assert_eq!(recording.finish().unwrap(), RecordingOutcome::Nothing);
    assert!(!recording.is_finished(), "no run is recorded yet");
    record(&recording, &[1, 2], 20);
    assert_eq!(recording.finish().unwrap(), RecordingOutcome::Written);
    assert!(recording.is_finished());
    // A second call writes nothing: the removed file stays removed.
    std::fs::remove_file(recording.path()).unwrap();
    assert_eq!(recording.finish().unwrap(), RecordingOutcome::Written);
    assert!(!recording.path().exists());
}

#[test]
fn judges_are_recorded_beside_the_agent() {
    struct Judge(Mutex<Vec<String>>);
    impl Model for Judge {
        fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
            if let Some(Message::User(text)) = request.messages.first() {
                self.0.lock().unwrap().push(text.clone());
            }
            Box::pin(async {
                Ok(AssistantTurn {
                    text: "8/10".to_owned(),
                    ..AssistantTurn::default()
                })
            })
        }
    }
    let ask = |model: &dyn Model, text: &str| {
        let messages = [Message::User(text.to_owned())];
        now(model.next(Request {
            system: Some("Judge."),
            messages: &messages,
            tools: &[],
            max_tokens: None,
        }))
    };
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 1);
    let recorder = recording.run(1);
    for number in [1, 2] {
        let judge = recorder.model(ModelRole::Judge(number), Box::new(Judge(Mutex::default())));
        ask(judge.as_ref(), "Is it good?").unwrap();
    }
    recorder.finish();
    recording.finish().unwrap();
    let replay = player(recording.path()).run(1).unwrap();
    assert_eq!(
        ask(replay.model(ModelRole::Judge(2)).as_ref(), "Is it good?")
            .unwrap()
            .text,
        "8/10"
    );
    let error = ask(replay.model(ModelRole::Judge(1)).as_ref(), "Is it bad?").unwrap_err();
    assert!(
        error
            .message
            .contains("its prompt differs\n  recorded  Is it good?\n  now       Is it bad?"),
        "{}",
        error.message
    );
    let error = ask(replay.model(ModelRole::Judge(3)).as_ref(), "x").unwrap_err();
    assert!(
        error
            .message
            .contains("the recording of run 1 ends after 0"),
        "{}",
        error.message
    );
}

#[test]
fn merged_runs_are_renumbered_and_replay() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let cassettes: Vec<Cassette> = dirs
        .iter()
        .zip([20, 60])
        .map(|(dir, first_id)| {
            let recording = recording(dir, 2);
            record(&recording, &[1, 2], first_id);
            recording.finish().unwrap();
            load(recording.path()).unwrap()
        })
        .collect();
    let merged = merge(&cassettes[0], &cassettes[1]).unwrap();
    assert!(merged.is_complete() && merged.runs.len() == 4);
    assert_eq!(verify(&merged, &Redactor::default()), []);
    assert!(diff(&cassettes[0], &cassettes[1]).is_empty());
    let more = diff(&cassettes[0], &merged);
    assert_eq!((more.only_second, more.runs.len()), (vec![3, 4], 0));
    let mut other = cassettes[1].clone();
    other.subject.prompt = "Sell it.".to_owned();
    let error = merge(&cassettes[0], &other).unwrap_err();
    assert_eq!(error.0, ["prompt: was \"Buy it.\", is \"Sell it.\""]);
}

#[test]
fn manual_edits_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let recording = recording(&dir, 1);
    record(&recording, &[1], 20);
    recording.finish().unwrap();
    let good = load(recording.path()).unwrap();
    let found = |change: &dyn Fn(&mut Cassette)| {
        let mut cassette = good.clone();
        change(&mut cassette);
        let findings = verify(&cassette, &Redactor::new(["hunter2hunter2".to_owned()]));
        findings
            .into_iter()
            .map(|finding| finding.message)
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert_eq!(found(&|_| {}), "");
    assert!(found(&|cassette| cassette.subject.prompt.push('!')).contains("the file was edited"));
    assert!(
        found(&|cassette| cassette.volatile.clear())
            .contains("no recorded value for <id:1>, <uuid:1>")
    );
    assert!(
        found(&|cassette| cassette.runs[0].calls[0].args = json!({}))
            .contains("run 1 does not replay")
    );
    assert!(
        found(&|cassette| cassette.suite = "hunter2hunter2".to_owned())
            .contains("secrets in line 4")
    );
}

#[test]
fn hidden_characters_are_written_as_escapes() {
    let text = include_str!("../tests/fixtures/v1.json");
    let mut cassette = parse("v1.json", text.as_bytes()).unwrap();
    cassette.suite = "a\u{202e}\u{9b}31m".to_owned();
    let text = cassette.to_text();
    assert!(text.contains(r"a\u202e\u009b31m"), "{text}");
    assert_eq!(parse("v1.json", text.as_bytes()).unwrap(), cassette);
}

#[test]
fn version_1_keeps_loading() {
    let text = include_str!("../tests/fixtures/v1.json");
    let cassette = parse("v1.json", text.as_bytes()).unwrap();
    assert_eq!(cassette.to_text(), text);
    assert_eq!(verify(&cassette, &Redactor::default()), []);
    let shown = show(&cassette, Some(1));
    assert!(
        shown.contains("called   shop.create") && shown.contains("<uuid:1> = "),
        "{shown}"
    );
}
