//! External agents under test: command-line agents, ACP agents, and agents behind HTTP.
//!
//! An agent is data ([`AgentFile`]): its command, environment and settings files with values of the
//! run inserted, and rules that read answers, tokens, errors and the end of its work from its
//! output. [`presets`] has such files for the agents that people use. [`Agent::resolve`] checks
//! one, [`RunFolders`] has the folders of a run, and [`run`] gives an [`AgentOutcome`].
//!
//! Calls of MCP tools are not read from the agent's output: the caller's recording proxies, which
//! the agent starts or reaches as its servers ([`ServerLaunch`]), see them as they are.
//!
//! The crate knows neither suites nor gates nor reports.

mod acp;
mod agent;
mod check;
mod command;
mod failure;
pub mod file;
#[doc(hidden)]
pub mod fuzzing;
mod http_agent;
mod merge;
mod outcome;
mod prepare;
mod presets;
mod reader;
mod resolve;
mod rules;
mod run;
mod run_folders;
mod stand_in;
mod task;
mod template;
mod values;

pub use agent::{Agent, AgentKind};
pub use check::{CheckReport, check, version};
pub use file::{AgentFile, KeepFile, PermissionsFile, TransportFile};
pub use outcome::{AgentExit, AgentOutcome, AgentTokens, AgentTurn, BuiltinCall, TurnRole};
pub use presets::{Preset, preset, presets};
pub use run::run;
pub use run_folders::RunFolders;
pub use stand_in::StandIn;
pub use task::{AgentTask, NextTurn, ServerLaunch};

#[cfg(test)]
mod tests;
