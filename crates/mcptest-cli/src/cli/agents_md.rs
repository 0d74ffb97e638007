//! The command line of `agents-md`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Put the text where a coding agent reads it: AGENTS.md, CLAUDE.md, or a skill.

Examples:
  mcptest agents-md
  mcptest agents-md >> AGENTS.md")]
pub struct AgentsMdArgs {}
