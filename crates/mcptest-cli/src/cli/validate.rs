//! The command line of `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Format;
use super::shared::OUTPUT;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest validate                       mcptest.yaml, then mcptest.yml
  mcptest validate suite.yml
  mcptest validate suites/*.yml --format json
  mcptest validate gates.yml --for score")]
pub struct ValidateArgs {
    /// Suite files or folders; default: mcptest.yaml, then mcptest.yml.
    #[arg(value_name = "SUITE")]
    pub suites: Vec<PathBuf>,
    /// `run` (default), or `score`, which needs no servers and models.
    #[arg(long = "for", value_enum, default_value_t = Purpose::Run, value_name = "PURPOSE",
          hide_default_value = true, hide_possible_values = true)]
    pub purpose: Purpose,
    /// Treat warnings as errors.
    #[arg(long)]
    pub deny_warnings: bool,
    /// Output format.
    #[arg(long, help_heading = OUTPUT, value_enum, default_value_t = Format::Pretty, value_name = "FORMAT")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Purpose {
    Run,
    Score,
}
