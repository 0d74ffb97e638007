//! The trace of a run while it is in progress.

use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::{Conversation, Extra, ToolCall, ToolResult, Trace, Turn};
use mcptest_trace::verdict::RunError;

use crate::TARGET;
use crate::model::{AssistantTurn, ModelCall, ToolReply, TurnEnd, Usage};
use crate::offer::Offer;

/// The trace of a run while it is in progress.
pub(crate) struct TraceBuilder {
    trace: Trace,
    turns: Vec<Turn>,
    /// The sum of all turns; `None` once a turn reports no usage.
    usage: Option<Usage>,
}

impl TraceBuilder {
    /// Starts a trace with the prompt and the offered tools.
    pub(crate) fn new(prompt: &str, offer: &Offer) -> Self {
        let user = Turn {
            role: Some("user".into()),
            content: Some(prompt.to_owned().into()),
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

    /// Records a turn of the model.
    pub(crate) fn turn(&mut self, turn: &AssistantTurn) {
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
    pub(crate) fn call(&mut self, call: &ModelCall, offer: &Offer, turn: u32) -> (String, String) {
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
    pub(crate) fn result(&mut self, reply: &ToolReply) {
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

    /// Ends the trace with the last turn of the model.
    pub(crate) fn ended(mut self, turn: AssistantTurn) -> Trace {
        // An empty or truncated turn is not a final response.
        let answered = turn.end == TurnEnd::Finished && !turn.text.is_empty();
        self.trace.final_response = answered.then_some(turn.text.into());
        self.finish(turn.end.as_str())
    }

    /// Ends the trace because `max_turns` is reached.
    pub(crate) fn out_of_turns(self) -> Trace {
        self.finish("max_turns")
    }

    /// Ends the trace with an infrastructure error.
    pub(crate) fn failed(mut self, error: RunError) -> Trace {
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
