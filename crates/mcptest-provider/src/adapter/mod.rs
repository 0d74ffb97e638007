//! The APIs of the providers, apart from sending.

mod anthropic;
mod api_error;
mod conversation;
mod gemini;
mod names;
mod openai_chat;
mod openai_responses;
mod results;
mod stream;
#[cfg(test)]
mod tests;
mod traits;

pub use anthropic::Anthropic;
pub use api_error::{ApiError, ApiErrorKind};
pub use gemini::Gemini;
pub use openai_chat::OpenAiChat;
pub use openai_responses::OpenAiResponses;
pub use traits::{Adapter, Assembler, ProviderRequest};
