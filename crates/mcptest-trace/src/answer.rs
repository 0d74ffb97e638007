//! Answers of models that are asked for JSON.

use std::fmt;

use serde_json::Value;

/// The reason why a model's answer cannot be read, as a message for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableAnswer(String);

impl UnreadableAnswer {
    /// The reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for UnreadableAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnreadableAnswer {}

/// Reads a JSON object or a JSON list, which may be in a code fence.
pub(crate) fn object_or_list(answer: &str) -> Result<Value, UnreadableAnswer> {
    let mut text = answer.trim();
    if let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    {
        text = inner.strip_prefix("json").unwrap_or(inner).trim();
    }
    match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(value),
        _ => Err(UnreadableAnswer::new("the answer is not a JSON object")),
    }
}
