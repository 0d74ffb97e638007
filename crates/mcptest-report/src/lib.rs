//! The report model and its reporters.
//!
//! A [`Report`] is all that a reporter sees: how a run happened and how it was scored is decided
//! before. One file per reporter, one list of them ([`REPORTERS`]). Everything that leaves through
//! here is redacted, and text from servers and models is made harmless for terminals.

pub mod compare;
pub mod doctor;
pub mod exit_code;
pub mod markdown;
mod matrix;
pub mod merge;
pub mod model;
mod read;
mod reporter;
#[cfg(test)]
mod samples;

pub use exit_code::ExitCode;
pub use mcptest_redact::redact::Redactor;
pub use model::Report;
pub use read::{ReadError, read};
pub use reporter::pretty::row as pretty_row;
pub use reporter::{REPORTERS, Style, find, render};

/// The JSON Schema of the JSON report.
#[must_use]
pub fn report_schema() -> serde_json::Value {
    schema_of::<Report>("report")
}

/// The JSON Schema of what `mcptest report --compare` gives as JSON.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    schema_of::<compare::Comparison>("comparison")
}

fn schema_of<T: schemars::JsonSchema>(name: &str) -> serde_json::Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    schema["title"] = format!("mcptest {name}").into();
    schema["$id"] = format!("https://mcptest.sh/schema/{name}.v1.json").into();
    schema
}
