//! The command line of `man`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest man ~/.local/share/man/man1
  man mcptest-run")]
pub struct ManArgs {
    /// The folder, which is made if it is missing.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
