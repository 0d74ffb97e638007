//! The agent loop.

use std::borrow::Cow;

use mcptest_trace::trace::Trace;
use mcptest_trace::user_turn::UserTurn;
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value};

use crate::TARGET;
use crate::event::{AgentEvent, Observer};
use crate::model::{Message, Model, ModelCall, Request, ToolReply, Tools, TurnEnd};
use crate::offer::Offer;
use crate::trace_builder::TraceBuilder;

/// The input of one run.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The system prompt.
    pub system: Option<&'a str>,
    /// The prompt.
    pub prompt: &'a str,
    /// The messages that the user sends after answers, in order.
    pub turns: &'a [UserTurn],
    /// The limit of assistant turns.
    pub max_turns: u32,
    /// The limit of output tokens per turn.
    pub max_tokens: Option<u32>,
}

/// Runs the model until it ends by itself or reaches `max_turns`, and returns the trace.
///
/// A turn without calls is an answer. If the user has a further message whose condition holds, it
/// is sent and the run continues; else the answer ends the run.
///
/// The calls of one turn are executed one after the other, in the order in which the model made
/// them, so that a run against a server with state gives the same trace each time. `observer`
/// receives each answer of the model and of a tool as soon as it arrives.
pub async fn run(
    task: &Task<'_>,
    model: &dyn Model,
    offer: &Offer,
    tools: &dyn Tools,
    observer: Observer<'_>,
) -> Trace {
    let mut trace = TraceBuilder::new(task.prompt, task.turns, offer);
    let mut messages = vec![Message::User(task.prompt.to_owned())];
    let mut offer = Cow::Borrowed(offer);
    for number in 1..=task.max_turns {
        if number > 1
            && let Some(relisted) = tools.relist(trace.calls())
        {
            trace.offered(&relisted);
            offer = Cow::Owned(relisted);
        }
        let offer = offer.as_ref();
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
            Err(error) => return trace.failed(error),
        };
        trace.turn(&turn);
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
            let Some(message) = trace.next_message(&turn) else {
                return trace.ended(turn);
            };
            messages.push(Message::Assistant(turn));
            messages.push(Message::User(message.to_owned()));
            continue;
        }
        let mut results = Vec::new();
        for call in &turn.calls {
            let (id, tool) = trace.call(call, offer, number);
            let started = tracing::enabled!(target: TARGET, tracing::Level::INFO)
                .then(std::time::Instant::now);
            match dispatch(call, offer, tools).await {
                Ok(reply) => {
                    trace.result(&reply);
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
                    return trace.failed(error);
                }
            }
        }
        messages.push(Message::Assistant(turn));
        messages.push(Message::Results(results));
    }
    trace.out_of_turns()
}

/// The milliseconds since `started`, which is `None` unless a subscriber is interested.
fn elapsed_ms(started: Option<std::time::Instant>) -> u64 {
    started.map_or(0, |started| {
        u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
    })
}

/// Executes a call. One that cannot be dispatched is answered with an error result, which the
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

#[cfg(test)]
mod tests;
