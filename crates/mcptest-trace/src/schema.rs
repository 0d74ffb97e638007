//! The published JSON Schema of a trace.

use mcptest_json::schema::join_description_lines;
use serde_json::Value;

use crate::trace::Trace;

/// The JSON Schema of a recorded trace.
#[must_use]
pub fn trace_schema() -> Value {
    let mut schema = schemars::schema_for!(Trace).to_value();
    join_description_lines(&mut schema);
    schema
}
