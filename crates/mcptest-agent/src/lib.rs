//! The agent loop: sends a model its tools and conversation, executes its calls, records them.
//!
//! The loop knows neither gates nor reports, nor how tools are reached: it takes a [`Model`] and
//! [`Tools`] and returns a [`Trace`](mcptest_trace::trace::Trace). Mistakes of the model (a tool
//! that does not exist, arguments that are not JSON, a run that never ends) become part of the
//! trace. Only failures of the infrastructure (a server that crashed, a timeout) end the run with
//! an error.
//!
//! While a run is in progress, an [`Observer`] receives [`AgentEvent`]s, and `tracing` events with
//! the target `mcptest::agent` describe each step.

pub mod budget;
pub mod builtin;
mod event;
mod model;
mod offer;
mod run;
mod trace_builder;

pub use event::{AgentEvent, Observer, ignore_events};
pub use model::{
    AssistantTurn, Future, Message, Model, ModelCall, Request, ToolReply, Tools, TurnEnd, Usage,
    text_of_blocks,
};
pub use offer::{Offer, OfferedTool};
pub use run::{Task, run};

/// The `tracing` target of the agent loop.
const TARGET: &str = "mcptest::agent";
