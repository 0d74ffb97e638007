//! The command line of `explain`.

use clap::Args;

use super::FormatArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest explain              list all rules
  mcptest explain DESC-009")]
pub struct ExplainArgs {
    /// The rule's id.
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
    #[command(flatten)]
    pub how: FormatArgs,
}
