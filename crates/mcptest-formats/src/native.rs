//! The native format: see `docs/traces.md`.

use mcptest_trace::trace::{self, Trace, TraceSyntaxError};
use serde_json::Value;

use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::{Detection, Format, Grouping, Reader, by_document};

/// The reader of native traces. It exists for detection and for small inputs; programs that score
/// long files use `mcptest_trace::trace` directly, which does not build values.
pub(crate) struct Native;

static FORMAT: Format = Format {
    name: "native",
    reads: "an object with `tool_calls`, an array of them, or JSON Lines",
    versions: "this version of mcptest (`mcptest schema trace`)",
    unknown: "nothing",
};

impl Reader for Native {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_document(input, |document| match &document.value {
            Value::Array(items) => Detection::of_all(items.iter().map(detect)),
            other => detect(other),
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Document
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for document in input.documents() {
            let error = |error: TraceSyntaxError| wrong(document, error.message);
            // Positions are those of the text, which is not at hand: the line is the document's.
            let text = document.value.to_string();
            traces.extend(trace::read(&text).map_err(error)?);
        }
        Ok(traces)
    }
}

fn wrong(document: &Document, message: String) -> FormatError {
    document.wrong(FORMAT.name, &document.value, message)
}

/// A native trace has `tool_calls`; so have messages of other formats, but those have a role or a
/// type.
fn detect(value: &Value) -> Detection {
    let Some(calls) = value.get("tool_calls") else {
        return Detection::No;
    };
    if value.get("role").is_some() || value.get("type").is_some() {
        return Detection::No;
    }
    if !calls.is_array() {
        return Detection::close("`tool_calls` is not an array");
    }
    Detection::Match
}
