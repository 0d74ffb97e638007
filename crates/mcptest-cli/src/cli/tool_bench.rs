//! The command line of `tool-bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use mcptest_numbers::percent::Rate;

use super::shared::OUTPUT;
use super::{CatalogArgs, FormatArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest tool-bench run bench.yml
  mcptest tool-bench run bench.yml --min-drop 0.2     fail if no edit lowers accuracy by 20 points")]
pub struct ToolBenchArgs {
    #[command(subcommand)]
    pub command: ToolBenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum ToolBenchCommand {
    /// Pick a tool for every intent, then edit descriptions one at a time and pick again.
    Run(ToolBenchRunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
A spec has a catalog (`catalog` or `catalog_path`), `intents` (each a `query` with the correct `gold`
tools) and `mutations` (each a `tool` and a `kind`: blank, genericize, truncate with `chars`,
drop_keyword with `word`). A catalog on the command line overrides the spec's. Tools are picked by
shared words, not by a model: the same spec always gives the same figures.

Examples:
  mcptest tool-bench run bench.yml
  mcptest tool-bench run bench.yml --min-drop 0.2     fail if no edit lowers accuracy by 20 points
  mcptest tool-bench run bench.yml --all-mutations    try every edit of every description
  mcptest tool-bench run bench.yml --url http://127.0.0.1:3000/mcp    the catalog of a live server
  mcptest tool-bench run bench.yml --json")]
pub struct ToolBenchRunArgs {
    /// The spec.
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// Exit with 1 if the largest drop is below this, 0 to 1.
    #[arg(long, value_name = "FRACTION", value_parser = rate)]
    pub min_drop: Option<Rate>,
    /// Also try every mutation of every description.
    #[arg(long)]
    pub all_mutations: bool,
    /// The same as `--format json`.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    #[command(flatten)]
    pub how: FormatArgs,
}

fn rate(text: &str) -> Result<Rate, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .and_then(Rate::from_f64)
        .ok_or_else(|| "expected a fraction from 0 to 1, for example 0.2".to_owned())
}
