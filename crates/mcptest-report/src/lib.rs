//! The report of a run and its reporters.
//!
//! A [`Report`] is all that a reporter sees; how tests run and how they are scored is decided
//! elsewhere. Each reporter is one file, and [`REPORTERS`] lists them. Untrusted strings from
//! servers and models are escaped before they reach a terminal.

mod broken_lines;
pub mod compare;
mod complexity;
pub mod doctor;
pub mod exit_code;
mod fold;
mod gate_meaning;
pub mod line_diff;
pub mod markdown;
mod matrix;
pub mod merge;
pub mod model;
mod packed_rows;
mod read;
mod report;
mod reporter;
mod row;
#[cfg(test)]
mod samples;
mod server_output;
mod store;
mod summary;
pub mod trend;
mod uri_path;
mod verdict_word;

pub use broken_lines::{BrokenLine, BrokenLines, MAX_PLACES};
pub use complexity::{ComplexityGroup, CurvePoint, DistractorResult};
pub use exit_code::{ExitCode, UnknownExitCode};
pub use fold::{ReportFold, read_log};
pub use gate_meaning::GateMeaning;
pub use mcptest_redact::redact::Redactor;
pub use packed_rows::{PackedRows, Rows};
pub use read::{ReadError, read};
pub use report::{Report, TestReport, Timing};
pub use reporter::allure::results as allure_results;
pub use reporter::html::{LiveState, live_page, write_live, write_part};
pub use reporter::pretty::row as pretty_row;
pub use reporter::{REPORTERS, RenderError, Style, find, render};
pub use row::{RunRow, ScoredRow};
pub use store::{RunStore, Spool, StoreError};
pub use summary::{RunSummary, VerdictCounts, summarise, write_list, write_list_json};

/// The JSON Schema of the JSON report.
#[must_use]
pub fn report_schema() -> serde_json::Value {
    schema_of::<model::Report>("report")
}

/// The JSON Schema of the JSON output of `mcptest report --compare`.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    schema_of::<compare::Comparison>("comparison")
}

/// The JSON Schema of the JSON output of `mcptest report trend`.
#[must_use]
pub fn trend_schema() -> serde_json::Value {
    schema_of::<trend::Trend>("trend")
}

fn schema_of<T: schemars::JsonSchema>(name: &str) -> serde_json::Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    mcptest_json::schema::join_description_lines(&mut schema);
    schema["title"] = format!("mcptest {name}").into();
    schema["$id"] = format!("https://mcptest.sh/schema/{name}.v1.json").into();
    schema
}
