//! Model providers over plain HTTP.
//!
//! An [`Adapter`] is pure: it turns a request into a JSON body and a JSON answer (or a stream of events) into a turn. It is tested from recorded
//! bodies alone. What sends, waits, retries and gives up is shared by all of them.

pub mod adapter;

pub use adapter::{Adapter, Anthropic, Ask, Assembler, Failure, FailureKind, Gemini, OpenAiChat, OpenAiResponses};
