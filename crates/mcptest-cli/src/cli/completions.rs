//! The command line of `completions`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest completions bash > ~/.local/share/bash-completion/completions/mcptest
  mcptest completions zsh > ~/.zfunc/_mcptest")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
