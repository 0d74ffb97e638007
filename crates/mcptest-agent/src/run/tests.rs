use std::io;
use std::sync::{Arc, Mutex};

use mcptest_trace::catalog::Tool;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::trace::ToolCall;
use mcptest_trace::user_turn::UnsaidTurn;
use mcptest_trace::verdict::ErrorKind;
use serde_json::json;

use super::*;
use crate::event::ignore_events;
use crate::model::{AssistantTurn, Future, Usage};

/// A model with fixed turns, which keeps the results it receives.
struct Fixed(
    Mutex<Vec<Result<AssistantTurn, RunError>>>,
    Mutex<Vec<String>>,
);

impl Model for Fixed {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        if let Some(Message::Results(results)) = request.messages.last() {
            let texts = results.iter().map(|(_, reply)| reply.text());
            self.1.lock().unwrap().extend(texts);
        }
        let next = self.0.lock().unwrap().remove(0);
        Box::pin(async move { next })
    }
}

struct Echo;

impl Tools for Echo {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        Box::pin(async move {
            if tool == "dies" {
                return Err(RunError {
                    kind: ErrorKind::ServerCrash,
                    message: "gone".into(),
                });
            }
            Ok(ToolReply {
                content: json!([{"type": "text", "text": format!("{server} {tool} {args}")}]),
                ..ToolReply::default()
            })
        })
    }
}

fn call(wire_name: &str, args: Value) -> ModelCall {
    ModelCall {
        id: None,
        wire_name: wire_name.into(),
        args: Some(args),
        caller: None,
    }
}

fn turn(text: &str, calls: Vec<ModelCall>) -> Result<AssistantTurn, RunError> {
    Ok(AssistantTurn {
        text: text.into(),
        calls,
        usage: Some(Usage {
            input: 10,
            output: 5,
            ..Usage::default()
        }),
        ..AssistantTurn::default()
    })
}

fn offer(servers: &[&str]) -> Offer {
    Offer::new(
        servers
            .iter()
            .map(|server| {
                let tools = ["get", "dies"]
                    .iter()
                    .filter_map(|name| Tool::from_listing(Some(server), &json!({"name": name})));
                ((*server).to_owned(), tools.collect())
            })
            .collect(),
    )
}

async fn play(
    servers: &[&str],
    max_turns: u32,
    turns: Vec<Result<AssistantTurn, RunError>>,
) -> (Trace, Vec<String>) {
    converse(servers, max_turns, &[], turns).await
}

async fn converse(
    servers: &[&str],
    max_turns: u32,
    further: &[UserTurn],
    turns: Vec<Result<AssistantTurn, RunError>>,
) -> (Trace, Vec<String>) {
    let model = Fixed(Mutex::new(turns), Mutex::new(Vec::new()));
    let task = Task {
        system: None,
        prompt: "do it",
        turns: further,
        max_turns,
        max_tokens: None,
    };
    let trace = run(&task, &model, &offer(servers), &Echo, &ignore_events).await;
    (trace, model.1.into_inner().unwrap())
}

#[tokio::test]
async fn parallel_calls_keep_their_order_with_one_result_each() {
    let turns = vec![
        turn(
            "",
            vec![call("get", json!({"n": 1})), call("get", json!({"n": 2}))],
        ),
        turn("Done.", vec![]),
    ];
    let (trace, fed) = play(&["s"], 10, turns).await;
    assert_eq!(trace.tool_calls.len(), 2);
    assert_eq!(trace.tool_results[1].call_id, trace.tool_calls[1].id);
    assert_eq!(trace.final_response.as_deref(), Some("Done."));
    assert_eq!(trace.total_tokens(), Some(30));
    assert_eq!(fed, [r#"s get {"n":1}"#, r#"s get {"n":2}"#]);
    assert_eq!(trace.extra["stop_reason"], "end");
}

#[tokio::test]
async fn the_observer_receives_each_answer_in_order() {
    let turns = vec![
        turn(
            "",
            vec![call("get", json!({})), call("invented", json!({}))],
        ),
        Ok(AssistantTurn::default()),
    ];
    let model = Fixed(Mutex::new(turns), Mutex::new(Vec::new()));
    let task = Task {
        system: None,
        prompt: "do it",
        turns: &[],
        max_turns: 3,
        max_tokens: None,
    };
    let seen = Mutex::new(Vec::new());
    let observer = |event| seen.lock().unwrap().push(event);
    let trace = run(&task, &model, &offer(&["s"]), &Echo, &observer).await;
    let called = |id: &str, tool: &str, is_error| AgentEvent::ToolCalled {
        turn: 1,
        id: id.to_owned(),
        tool: tool.to_owned(),
        is_error,
    };
    let usage = Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let answered = |turn, usage| AgentEvent::ModelAnswered { turn, usage };
    assert_eq!(
        seen.into_inner().unwrap(),
        [
            answered(1, Some(usage)),
            called("c1", "s.get", false),
            called("c2", "s.invented", true),
            answered(2, None),
        ]
    );
    let ids: Vec<_> = trace.tool_calls.iter().map(ToolCall::full_id).collect();
    assert_eq!(ids, ["s.get", "s.invented"]);
}

#[tokio::test]
async fn mistakes_of_the_model_are_recorded_not_errors() {
    let turns = vec![
        turn(
            "",
            vec![
                call("invented", json!({})),
                call("get", json!("{broken")),
                call("get", json!([1])),
            ],
        ),
        turn("ok", vec![]),
    ];
    let (trace, fed) = play(&["s"], 10, turns).await;
    assert_eq!(trace.error, None);
    assert_eq!(trace.tool_calls[0].full_id(), "s.invented");
    assert_eq!(trace.tool_calls[1].args(), Some(&json!("{broken")));
    assert!(
        trace
            .tool_results
            .iter()
            .all(|result| result.is_error == Some(true))
    );
    assert!(fed[0].contains("Unknown tool: invented. Known tools: get, dies"));
}

#[tokio::test]
async fn reaching_max_turns_ends_the_run_and_keeps_the_trace() {
    let turns = vec![
        turn("a", vec![call("get", json!({}))]),
        turn("b", vec![call("get", json!({}))]),
    ];
    let (trace, _) = play(&["s"], 2, turns).await;
    assert_eq!(trace.tool_results.len(), 2);
    assert_eq!(trace.final_response, None);
    assert_eq!(trace.extra["stop_reason"], "max_turns");
}

fn ends(text: &str, end: TurnEnd) -> Result<AssistantTurn, RunError> {
    turn(text, vec![]).map(|turn| AssistantTurn { end, ..turn })
}

#[tokio::test]
async fn a_paused_turn_continues_and_counts() {
    let turns = || {
        vec![
            ends("Looking.", TurnEnd::Paused),
            turn("", vec![call("get", json!({}))]),
            ends("Still.", TurnEnd::Paused),
            turn("Done.", vec![]),
        ]
    };
    let (trace, fed) = play(&["s"], 10, turns()).await;
    assert_eq!(trace.final_response.as_deref(), Some("Done."));
    assert_eq!((fed.len(), trace.tool_calls[0].turn), (1, Some(2)));
    assert_eq!(trace.extra["stop_reason"], "end");
    assert_eq!(trace.total_tokens(), Some(60), "every request costs");
    let (trace, _) = play(&["s"], 3, turns()).await;
    assert_eq!(trace.extra["stop_reason"], "max_turns");
    assert_eq!(trace.final_response, None);
}

#[tokio::test]
async fn a_truncated_turn_is_not_a_final_response() {
    for (end, word) in [
        (TurnEnd::OutOfTokens, "max_tokens"),
        (TurnEnd::Withheld, "withheld"),
        (TurnEnd::MalformedCall, "malformed_call"),
    ] {
        let (trace, _) = play(&["s"], 10, vec![ends("The answer is", end)]).await;
        assert_eq!(trace.error, None, "recorded, not an error");
        assert_eq!(trace.final_response, None);
        assert_eq!(trace.extra["stop_reason"], word);
    }
    // Complete calls of such a turn are executed.
    let cut = turn("", vec![call("get", json!({}))]).map(|turn| AssistantTurn {
        end: TurnEnd::OutOfTokens,
        ..turn
    });
    let (trace, _) = play(&["s"], 10, vec![cut, turn("Done.", vec![])]).await;
    assert_eq!(trace.final_response.as_deref(), Some("Done."));
}

#[tokio::test]
async fn an_infrastructure_error_keeps_earlier_calls() {
    let turns = vec![turn(
        "",
        vec![call("a__get", json!({})), call("b__dies", json!({}))],
    )];
    let (trace, _) = play(&["a", "b"], 10, turns).await;
    assert_eq!(trace.error.as_ref().unwrap().kind, ErrorKind::ServerCrash);
    assert_eq!(trace.tool_calls[1].full_id(), "b.dies");
    assert_eq!(trace.tool_results.len(), 1);
}

#[tokio::test]
async fn usage_is_unknown_if_one_turn_reports_none() {
    let silent = Ok(AssistantTurn {
        text: "ok".into(),
        ..AssistantTurn::default()
    });
    let (trace, _) = play(
        &["s"],
        10,
        vec![turn("", vec![call("get", json!({}))]), silent],
    )
    .await;
    assert_eq!(trace.conversation.tokens, None);
    let (trace, _) = play(
        &["s"],
        10,
        vec![Err(RunError {
            kind: ErrorKind::Provider,
            message: "x".into(),
        })],
    )
    .await;
    assert_eq!(trace.conversation.tokens, None);
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn tracing_shows_turns_calls_and_the_stop_reason() {
    let turns = || {
        vec![
            turn("", vec![call("get", json!({}))]),
            turn("", vec![call("dies", json!({}))]),
        ]
    };
    for level in [tracing::Level::DEBUG, tracing::Level::INFO] {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        play(&["s"], 5, turns()).await;
        // The second log counts: an event that another thread meets first, where no subscriber is,
        // stays disabled for all threads until the cache is rebuilt.
        captured.0.lock().unwrap().clear();
        tracing::callsite::rebuild_interest_cache();
        play(&["s"], 5, turns()).await;
        drop(guard);
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        let has = |part: &str| text.lines().any(|line| line.contains(part));
        assert!(text.lines().all(|line| line.contains("mcptest::agent")));
        assert!(has("tool call failed: gone"), "{text}");
        assert!(
            has("run failed: gone calls=2 stop_reason=\"error\""),
            "{text}"
        );
        let is_debug = level == tracing::Level::DEBUG;
        assert_eq!(has("turn started turn=2"), is_debug, "{text}");
        assert_eq!(
            has("tool called turn=1 id=\"c1\" tool=\"s.get\""),
            is_debug,
            "{text}"
        );
    }
}

fn say(text: &str, when: Option<Value>) -> UserTurn {
    let when = when.map(|when| Expectation::compile(&WrittenExpectation(when), "").unwrap());
    UserTurn {
        say: text.to_owned(),
        when,
    }
}

fn texts(trace: &Trace) -> Vec<(String, String)> {
    let turns = trace.conversation.turns.as_deref().unwrap_or_default();
    turns
        .iter()
        .map(|turn| {
            (
                turn.role.as_deref().unwrap_or_default().to_owned(),
                turn.text(),
            )
        })
        .collect()
}

#[tokio::test]
async fn the_user_continues_while_the_conditions_hold() {
    let further = [
        say("Yes.", Some(json!({"final_response": {"contains": "?"}}))),
        say("Thanks.", Some(json!({"tool_names": ["get"]}))),
    ];
    let turns = vec![
        turn("Shall I?", vec![]),
        turn("", vec![call("get", json!({}))]),
        turn("Done.", vec![]),
        turn("You are welcome.", vec![]),
    ];
    let (trace, _) = converse(&["s"], 4, &further, turns).await;
    let said = [
        ("user", "do it"),
        ("assistant", "Shall I?"),
        ("user", "Yes."),
        ("assistant", ""),
        ("assistant", "Done."),
        ("user", "Thanks."),
        ("assistant", "You are welcome."),
    ];
    assert_eq!(
        texts(&trace),
        said.map(|(role, text)| (role.to_owned(), text.to_owned()))
    );
    assert_eq!(trace.final_response.as_deref(), Some("You are welcome."));
    assert_eq!(trace.tool_calls[0].turn, Some(2));
    assert_eq!(trace.total_tokens(), Some(60));
    assert_eq!(trace.extra["stop_reason"], "end");
    assert_eq!(UnsaidTurn::of(&trace), None);
}

#[tokio::test]
async fn a_condition_that_does_not_hold_ends_the_run() {
    let further = [
        say("Yes.", Some(json!({"final_response": {"contains": "?"}}))),
        say("Thanks.", None),
    ];
    let turns = vec![turn("Done.", vec![]), turn("never", vec![])];
    let (trace, _) = converse(&["s"], 4, &further, turns).await;
    assert_eq!(texts(&trace).len(), 2);
    assert_eq!(trace.final_response.as_deref(), Some("Done."));
    assert_eq!(trace.error, None);
    let unsaid = UnsaidTurn::of(&trace).unwrap();
    assert_eq!(unsaid.turn, 0);
    assert_eq!(unsaid.when.unwrap().actual, "Done.");
}

#[tokio::test]
async fn max_turns_counts_over_all_messages() {
    let further = [say("More.", None), say("More.", None)];
    let turns = vec![turn("a", vec![]), turn("b", vec![]), turn("c", vec![])];
    let (trace, _) = converse(&["s"], 2, &further, turns).await;
    assert_eq!(trace.extra["stop_reason"], "max_turns");
    assert_eq!(trace.final_response, None);
    assert_eq!(UnsaidTurn::of(&trace), None, "both were said");
    let turns = vec![turn("", vec![call("get", json!({}))])];
    let (trace, _) = converse(&["s"], 1, &further, turns).await;
    let unsaid = UnsaidTurn::of(&trace).unwrap();
    assert_eq!((unsaid.turn, unsaid.when), (0, None));
}

#[tokio::test]
async fn an_answer_that_did_not_finish_is_not_answered() {
    let cut = AssistantTurn {
        text: "I will".to_owned(),
        end: TurnEnd::OutOfTokens,
        ..AssistantTurn::default()
    };
    let (trace, _) = converse(&["s"], 3, &[say("Continue.", None)], vec![Ok(cut)]).await;
    assert_eq!(trace.extra["stop_reason"], "max_tokens");
    assert!(
        UnsaidTurn::of(&trace)
            .unwrap()
            .reason
            .contains("max_tokens")
    );
}
