//! Events that the agent loop emits while a run is in progress.

use crate::model::Usage;

/// A step of a run, reported as soon as it happened. Events are not part of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The model answered a request.
    ModelAnswered {
        /// The number of the assistant turn, from 1.
        turn: u32,
        /// The turn's token usage, if the provider reports it.
        usage: Option<Usage>,
    },
    /// A tool call was answered, by its server or with a refusal of the agent loop.
    ToolCalled {
        /// The number of the assistant turn that made the call, from 1.
        turn: u32,
        /// The call's id, as in the trace.
        id: String,
        /// The tool's full id, such as `weather.get_weather`; need not exist.
        tool: String,
        /// True if the answer is an error result.
        is_error: bool,
    },
}

/// A receiver of [`AgentEvent`]s. It is called within the loop, so it must not block.
pub type Observer<'a> = &'a (dyn Fn(AgentEvent) + Send + Sync);

/// An observer that drops every event.
pub fn ignore_events(_: AgentEvent) {}
