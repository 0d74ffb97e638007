//! A model's reading of closing messages, which a gate requests.

use serde_json::Value;

/// The request to ask a model, after each run, for the claims in the closing message. The answer is
/// recorded in the trace ([`mcptest_trace::claims`]).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReadingRequest {
    /// The model to ask; `None` for the test's own.
    pub model: Option<String>,
    /// The answers of `builtin/scripted`, as written.
    pub script: Option<Value>,
    /// The place of the request, from the block.
    pub at: &'static str,
}

impl ReadingRequest {
    /// A request to a model, or to the test's own. `at` is the JSON pointer of the request in the
    /// block.
    #[must_use]
    pub fn new(model: Option<String>, script: Option<Value>, at: &'static str) -> Self {
        Self { model, script, at }
    }
}
