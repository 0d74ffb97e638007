//! The turn loop.

use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::{Conversation, Extra, ToolCall, ToolResult, Trace, Turn};
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value};

use crate::event::{AgentEvent, Observer};
use crate::model::{
    AssistantTurn, Message, Model, ModelCall, Request, ToolReply, Tools, TurnEnd, Usage,
};
use crate::offer::Offer;

/// The `tracing` target of the agent loop.
const TARGET: &str = "mcptest::agent";

/// The input of one run.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The prompt.
    pub prompt: &'a str,
    /// The limit of assistant turns.
    pub max_turns: u32,
    /// The limit of output tokens per turn.
    pub max_tokens: Option<u32>,
}

/// Runs the model until it ends by itself or reaches `max_turns`, and returns the trace.
///
/// The calls of one turn are carried out one after the other, in the order in which the model made
/// them, so that a run against a server with state gives the same trace each time. `observer`
/// receives each answer of the model and of a tool as soon as it is there.
pub async fn run(
    task: &Task<'_>,
    model: &dyn Model,
    offer: &Offer,
    tools: &dyn Tools,
    observer: Observer<'_>,
) -> Trace {
    let mut recorder = Recorder::new(task, offer);
    let mut messages = vec![Message::User(task.prompt.to_owned())];
    for number in 1..=task.max_turns {
        tracing::debug!(
            target: TARGET,
            turn = number,
            messages = messages.len(),
            tools = offer.tools().len(),
            "turn started"
        );
        let request = Request {
            system: task.system,
            messages: &messages,
            tools: offer.tools(),
            max_tokens: task.max_tokens,
        };
        let turn = match model.next(request).await {
            Ok(turn) => turn,
            Err(error) => return recorder.failed(error),
        };
        recorder.turn(&turn);
        observer(AgentEvent::ModelAnswered {
            turn: number,
            usage: turn.usage,
        });
        if turn.calls.is_empty() {
            if turn.end == TurnEnd::Paused {
                // A paused turn counts, so that a provider that always pauses reaches `max_turns`.
                messages.push(Message::Assistant(turn));
                continue;
            }
            return recorder.ended(turn);
        }
        let mut results = Vec::new();
        for call in &turn.calls {
            let (id, tool) = recorder.call(call, offer, number);
            let started = tracing::enabled!(target: TARGET, tracing::Level::INFO)
                .then(std::time::Instant::now);
            match dispatch(call, offer, tools).await {
                Ok(reply) => {
                    recorder.result(&reply);
                    tracing::debug!(
                        target: TARGET,
                        turn = number,
                        id,
                        tool,
                        is_error = reply.is_error,
                        ms = elapsed_ms(started),
                        "tool called"
                    );
                    observer(AgentEvent::ToolCalled {
                        turn: number,
                        id,
                        tool,
                        is_error: reply.is_error,
                    });
                    results.push((call.clone(), reply));
                }
                Err(error) => {
                    tracing::info!(
                        target: TARGET,
                        turn = number,
                        id,
                        tool,
                        ms = elapsed_ms(started),
                        "tool call failed: {}",
                        error.message
                    );
                    return recorder.failed(error);
                }
            }
        }
        messages.push(Message::Assistant(turn));
        messages.push(Message::Results(results));
    }
    recorder.out_of_turns()
}

/// The milliseconds since `started`, which is `None` unless a subscriber is interested.
fn elapsed_ms(started: Option<std::time::Instant>) -> u64 {
    started.map_or(0, |started| {
        u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
    })
}

/// Carries out a call. One that cannot be dispatched is answered with an error result, which the
/// model receives like any other.
async fn dispatch(
    call: &ModelCall,
    offer: &Offer,
    tools: &dyn Tools,
) -> Result<ToolReply, RunError> {
    let Some(found) = offer.find(&call.wire_name) else {
        let known: Vec<&str> = offer
            .tools()
            .iter()
            .map(|tool| tool.wire_name.as_str())
            .collect();
        return Ok(ToolReply::refusal(format!(
            "Unknown tool: {}. Known tools: {}",
            call.wire_name,
            known.join(", ")
        )));
    };
    if let Some(answer) = &found.refusal {
        return Ok(ToolReply::refusal(answer));
    }
    let empty = Value::Object(Map::new());
    let args = match &call.args {
        None | Some(Value::Null) => &empty,
        Some(args @ Value::Object(_)) => args,
        Some(Value::String(_)) => {
            return Ok(ToolReply::refusal("The arguments are not valid JSON."));
        }
        Some(_) => return Ok(ToolReply::refusal("The arguments must be a JSON object.")),
    };
    tools.call(&found.server, found.tool.name(), args).await
}

struct Recorder {
    trace: Trace,
    turns: Vec<Turn>,
    /// The sum of all turns; `None` once a turn reports no usage.
    usage: Option<Usage>,
}

impl Recorder {
    fn new(task: &Task<'_>, offer: &Offer) -> Self {
        let user = Turn {
            role: Some("user".into()),
            content: Some(task.prompt.into()),
            ..Turn::default()
        };
        Self {
            trace: Trace {
                catalog: Some(
                    offer
                        .tools()
                        .iter()
                        .map(|offered| offered.tool.clone())
                        .collect(),
                ),
                ..Trace::default()
            },
            turns: vec![user],
            usage: Some(Usage::default()),
        }
    }

    fn turn(&mut self, turn: &AssistantTurn) {
        let mut extra = Extra::default();
        if let Some(reason) = &turn.stop_reason {
            extra.insert("stop_reason", reason.as_str());
        }
        if let Some(native) = &turn.native {
            extra.insert("native", native.clone());
        }
        self.turns.push(Turn {
            role: Some("assistant".into()),
            content: Some(turn.text.as_str().into()),
            extra,
        });
        self.usage = match (self.usage, turn.usage) {
            (Some(sum), Some(more)) => Some(sum.plus(more)),
            _ => None,
        };
    }

    /// Records a call and returns its id and the tool's full id.
    fn call(&mut self, call: &ModelCall, offer: &Offer, turn: u32) -> (String, String) {
        let (server, name) = match offer.find(&call.wire_name) {
            Some(found) => (Some(found.server.as_str()), found.tool.name()),
            None => offer.split_unknown(&call.wire_name),
        };
        let number = self.trace.tool_calls.len() + 1;
        let id = call.id.clone().unwrap_or_else(|| format!("c{number}"));
        let tool = full_id(server, name);
        self.trace.tool_calls.push(ToolCall {
            id: Some(id.clone().into()),
            raw_name: name.into(),
            server: server.map(|server| server.to_owned().into()),
            args: call.args.clone().map(Into::into),
            caller: call.caller.clone().map(Into::into),
            turn: Some(u64::from(turn)),
            extra: Extra::default(),
        });
        (id, tool)
    }

    /// Records the result of the latest call.
    fn result(&mut self, reply: &ToolReply) {
        let mut extra = reply.marks.clone();
        if let Some(structured) = &reply.structured {
            extra.insert("structured_content".to_owned(), structured.clone());
        }
        if let Some(error) = &reply.error {
            extra.insert("error".to_owned(), error.clone());
        }
        self.trace.tool_results.push(ToolResult {
            call_id: self
                .trace
                .tool_calls
                .last()
                .and_then(|call| call.id.clone()),
            is_error: Some(reply.is_error),
            content: Some(reply.content.clone().into()),
            extra: extra.into(),
        });
    }

    fn ended(mut self, turn: AssistantTurn) -> Trace {
        // An empty or truncated turn is not a final response.
        let answered = turn.end == TurnEnd::Finished && !turn.text.is_empty();
        self.trace.final_response = answered.then_some(turn.text.into());
        self.finish(turn.end.as_str())
    }

    fn out_of_turns(self) -> Trace {
        self.finish("max_turns")
    }

    fn failed(mut self, error: RunError) -> Trace {
        self.trace.error = Some(error);
        self.finish("error")
    }

    fn finish(mut self, stop_reason: &str) -> Trace {
        match &self.trace.error {
            Some(error) => tracing::info!(
                target: TARGET,
                calls = self.trace.tool_calls.len(),
                stop_reason,
                "run failed: {}",
                error.message
            ),
            None => tracing::debug!(
                target: TARGET,
                calls = self.trace.tool_calls.len(),
                stop_reason,
                "run ended"
            ),
        }
        let answered = self.turns.len() > 1;
        self.trace.conversation = Conversation {
            turns: Some(self.turns),
            // Without any turn the usage is unknown, not zero.
            tokens: self.usage.filter(|_| answered).map(Usage::into_tokens),
            extra: Extra::default(),
        };
        self.trace.extra.insert("stop_reason", stop_reason);
        self.trace
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use mcptest_trace::catalog::Tool;
    use mcptest_trace::verdict::ErrorKind;
    use serde_json::json;

    use super::*;
    use crate::event::ignore_events;
    use crate::model::Future;

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
                    let tools = ["get", "dies"].iter().filter_map(|name| {
                        Tool::from_listing(Some(server), &json!({"name": name}))
                    });
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
        let model = Fixed(Mutex::new(turns), Mutex::new(Vec::new()));
        let task = Task {
            system: None,
            prompt: "do it",
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
        // Complete calls of such a turn are carried out.
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
}
