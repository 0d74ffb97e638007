//! The trace of a run while it is in progress.

use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::{Conversation, Extra, ToolCall, ToolResult, Trace, Turn};
use mcptest_trace::user_turn::{UNSAID_TURN_KEY, UnsaidTurn, UserTurn};
use mcptest_trace::verdict::RunError;

use crate::TARGET;
use crate::model::{AssistantTurn, ModelCall, ToolReply, TurnEnd, Usage};
use crate::offer::Offer;

/// The trace of a run while it is in progress.
pub(crate) struct TraceBuilder<'a> {
    trace: Trace,
    turns: Vec<Turn>,
    /// The messages that the user has not sent yet, from number `said` on.
    further: &'a [UserTurn],
    said: usize,
    /// The message whose condition did not hold.
    unsaid: Option<UnsaidTurn>,
    /// The sum of all turns; `None` once a turn reports no usage.
    usage: Option<Usage>,
}

impl<'a> TraceBuilder<'a> {
    /// Starts a trace with the prompt, the further messages of the user and the offered tools.
    pub(crate) fn new(prompt: &str, further: &'a [UserTurn], offer: &Offer) -> Self {
        let mut builder = Self {
            trace: Trace::default(),
            turns: vec![user(prompt)],
            further,
            said: 0,
            unsaid: None,
            usage: Some(Usage::default()),
        };
        builder.offered(offer);
        builder
    }

    /// Records the offered tools, in place of those of an earlier list.
    pub(crate) fn offered(&mut self, offer: &Offer) {
        let tools = offer.tools().iter();
        let tools = tools.map(|offered| offered.tool.clone());
        self.trace.catalog = Some(tools.collect());
    }

    /// The number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.trace.tool_calls.len() as u64
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

    /// Returns the user's next message if there is one and its condition holds after this answer,
    /// and records it.
    pub(crate) fn next_message(&mut self, answer: &AssistantTurn) -> Option<&'a str> {
        let next = self.further.get(self.said)?;
        if answer.end != TurnEnd::Finished {
            return None;
        }
        self.trace.final_response = Some(answer.text.clone().into());
        self.trace.conversation.turns = Some(std::mem::take(&mut self.turns));
        self.unsaid = next.unsaid(self.said, self.trace.observable());
        self.turns = self.trace.conversation.turns.take().unwrap_or_default();
        self.trace.final_response = None;
        if self.unsaid.is_some() {
            return None;
        }
        self.said += 1;
        self.turns.push(user(&next.say));
        tracing::debug!(target: TARGET, message = self.said, "the user continues");
        Some(&next.say)
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
        if self.trace.error.is_none() && self.said < self.further.len() {
            let unsaid = self
                .unsaid
                .unwrap_or_else(|| UnsaidTurn::without_answer(self.said, stop_reason));
            // A struct of strings, numbers and JSON always has a JSON form.
            let unsaid = serde_json::to_value(unsaid).unwrap_or_default();
            self.trace.extra.insert(UNSAID_TURN_KEY, unsaid);
        }
        self.trace
    }
}

fn user(text: &str) -> Turn {
    Turn {
        role: Some("user".into()),
        content: Some(text.to_owned().into()),
        ..Turn::default()
    }
}
