//! The command line of `schema`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest schema > mcptest.schema.json
  # first line of a suite, for editors that use yaml-language-server:
  # yaml-language-server: $schema=./mcptest.schema.json")]
pub struct SchemaArgs {
    /// `suite`, `mock`, `report`, `comparison`, `trend`, `tool-bench`, `trace`, `score-row`.
    #[arg(value_enum, default_value_t = SchemaOf::Suite, value_name = "WHAT",
          hide_default_value = true, hide_possible_values = true)]
    pub of: SchemaOf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// Suite files.
    Suite,
    /// Manifests of `mcptest mock`.
    Mock,
    /// The JSON report.
    Report,
    /// The JSON output of `mcptest report --compare`.
    Comparison,
    /// The JSON output of `mcptest report trend`.
    Trend,
    /// Specs of `mcptest tool-bench`.
    ToolBench,
    /// A recorded trace.
    Trace,
    /// A line of `mcptest score --out`.
    ScoreRow,
}
