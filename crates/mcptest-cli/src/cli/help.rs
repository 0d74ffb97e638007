//! The command line of `help`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest help                  list the commands and the topics
  mcptest help gates            one line for each gate
  mcptest help tool_selection   one gate: its targets and keys
  mcptest help report merge     the same as `mcptest report merge --help`")]
pub struct HelpArgs {
    /// A topic, a gate, or a command; default: the list of them.
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}
