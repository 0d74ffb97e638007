//! Model providers over plain HTTP.
//!
//! An [`Adapter`] is pure: it turns a request into a JSON body and a JSON answer (or a stream of
//! events) into a turn. It is tested from recorded bodies alone. What sends, waits, retries and
//! gives up is shared by all of them: [`Provider`]. Which provider a model belongs to says
//! [`registry`]. Nothing here is touched before a live model is opened.

pub mod adapter;
mod asked_wait;
pub mod limits;
mod provider;
pub mod registry;
pub mod retry;
mod trouble;

pub use adapter::{
    Adapter, Anthropic, Ask, Assembler, Failure, FailureKind, Gemini, OpenAiChat, OpenAiResponses,
};
pub use provider::{DEFAULT_TIMEOUT, LiveModel, Provider, Settings};
