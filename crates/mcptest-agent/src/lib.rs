//! The agent: a model that is offered tools, and the loop that carries out its calls and records
//! them.
//!
//! The loop knows neither gates nor reports, and not even how tools are reached: it is given a
//! [`Model`] and [`Tools`], and leaves a [`Trace`](mcptest_trace::trace::Trace). Whatever a model
//! does (a tool that does not exist, arguments that are not JSON, no end) becomes part of the
//! trace; only what is not the model's doing (a server that died, a timeout) ends the run with an
//! error.

pub mod budget;
pub mod builtin;
mod event;
mod model;
mod offer;
mod run;

pub use event::{AgentEvent, Observer, ignore_events};
pub use model::{
    AssistantTurn, Future, Message, Model, ModelCall, Request, ToolReply, Tools, TurnEnd, Usage,
};
pub use offer::{Offer, OfferedTool};
pub use run::{Task, run};
