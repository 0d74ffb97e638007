//! The error type of this crate.

use mcptest_http::text::quote;

/// The length of a message.
const MAX_CHARS: usize = 1500;

/// The reason why a server gets no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AuthError {
    /// The failed step, the answer, and what to do about it.
    pub message: String,
    /// True if the same request may succeed later: a connection failed, or a server was busy.
    pub is_temporary: bool,
}

impl AuthError {
    pub(crate) fn new(message: impl AsRef<str>) -> Self {
        Self::lasting(message, false)
    }

    /// An error whose message may quote a server. It becomes one line of bounded length.
    pub(crate) fn lasting(message: impl AsRef<str>, is_temporary: bool) -> Self {
        Self {
            message: quote(message.as_ref(), MAX_CHARS),
            is_temporary,
        }
    }

    /// Adds a sentence.
    pub(crate) fn note(mut self, sentence: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(sentence);
        self
    }
}
