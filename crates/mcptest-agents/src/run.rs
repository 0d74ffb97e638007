//! Running an agent.

use crate::agent::{Agent, AgentKind};
use crate::outcome::AgentOutcome;
use crate::task::AgentTask;
use crate::{acp, command, http_agent};

/// Runs an agent once, with all messages of the user.
///
/// It takes at most the agent's `timeout` and the time of its end, and leaves no process behind,
/// also if the future is dropped. Must be called within a tokio runtime with I/O and time enabled.
pub async fn run(agent: &Agent, task: AgentTask<'_>) -> AgentOutcome {
    match agent.kind() {
        AgentKind::Command => command::run(agent, task).await,
        AgentKind::Acp => acp::run(agent, task).await,
        AgentKind::Http => http_agent::run(agent, task).await,
    }
}
