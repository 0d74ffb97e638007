//! The command line of `agents`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::FormatArgs;
use super::shared::duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # the agents that a suite can name as `agent: { preset: NAME }`:
  mcptest agents list
  # a preset as a file, to copy into a suite and change:
  mcptest agents show codex
  # is it installed, which version, does one turn work without network and key:
  mcptest agents check claude-code")]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub command: AgentsCommand,
}

#[derive(Debug, Subcommand)]
pub enum AgentsCommand {
    /// List the presets of agents.
    List(AgentsListArgs),
    /// Print a preset as the YAML mapping that a suite can have.
    Show(AgentsShowArgs),
    /// Check agents: installed, version, one turn with a stand-in for the model.
    Check(AgentsCheckArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest agents list
  mcptest agents list --format json")]
pub struct AgentsListArgs {
    #[command(flatten)]
    pub how: FormatArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest agents show codex
  mcptest agents show claude-code > agent.yml")]
pub struct AgentsShowArgs {
    /// The preset's name.
    #[arg(value_name = "NAME")]
    pub name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcptest agents check claude-code
  mcptest agents check codex opencode --timeout 2m")]
pub struct AgentsCheckArgs {
    /// The presets' names.
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Limit of the turn.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub timeout: Duration,
    #[command(flatten)]
    pub how: FormatArgs,
}
