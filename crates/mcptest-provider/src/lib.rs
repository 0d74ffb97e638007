//! Model providers over plain HTTP.
//!
//! An [`Adapter`] is pure: it turns a request into a JSON body, and a JSON answer (or a stream of
//! events) into a turn. Its tests need recorded bodies only. Sending, waiting and retrying is the
//! same for all adapters: [`Provider`]. The [`registry`] maps a model to its provider. Nothing is
//! connected before a live model is opened.
//!
//! `tracing` events with the target `mcptest::provider` describe what is sent: failures, retries
//! and rate-limit pauses at level info, one line per request and response at debug, bodies at
//! trace. Keys are masked.
//!
//! | module | concern |
//! |---|---|
//! | `adapter` | the providers' APIs |
//! | `provider`, `settings` | a provider, its settings, and the retry loop of a request |
//! | `attempt` | one attempt: request, response, stream |
//! | `limiter` | the number of requests in flight |
//! | `retry`, `retry_after` | the waits between attempts |
//! | `send_failure` | the failure of an attempt, and its message |
//! | `registry` | the known providers |

pub mod adapter;
mod attempt;
pub mod limiter;
mod provider;
pub mod registry;
pub mod retry;
mod retry_after;
mod send_failure;
mod settings;

pub use adapter::{
    Adapter, Anthropic, ApiError, ApiErrorKind, Assembler, Gemini, OpenAiChat, OpenAiResponses,
    ProviderRequest,
};
pub use provider::{LiveModel, Provider};
pub use settings::{DEFAULT_TIMEOUT, ProviderSettings};

/// The `tracing` target of this crate.
const TARGET: &str = "mcptest::provider";

/// Returns a duration in whole milliseconds, for events.
fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
