//! The kind of a run that cannot be judged.

use std::time::Duration;

use mcptest_http::text::quote;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::agent::Agent;
use crate::outcome::AgentExit;

/// The facts that decide whether a run is evidence.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The error that the agent reported, with an HTTP status.
    pub(crate) error: Option<(String, Option<u16>)>,
    /// The limit that the run reached.
    pub(crate) limit: Option<Limit>,
    /// The exit of the process, unless we ended it.
    pub(crate) exit: Option<AgentExit>,
    /// True if the output reports the end.
    pub(crate) ended: bool,
    /// The servers that the agent reports as not working.
    pub(crate) failed_servers: &'a [(String, String)],
    /// The last lines of standard error.
    pub(crate) stderr: &'a [String],
    /// The end of the output, for messages that are not events.
    pub(crate) output: String,
}

/// A limit of time that a run reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    Run(Duration),
    Startup(Duration),
    Idle(Duration),
}

/// The error of a run; `None` if it is evidence, as far as the agent itself is concerned.
pub(crate) fn error_of(agent: &Agent, facts: &Facts<'_>) -> Option<RunError> {
    let name = agent.name();
    let stderr = facts.stderr.join("\n");
    if let Some((message, status)) = &facts.error {
        let kind = status
            .and_then(kind_of_status)
            .or_else(|| kind_of_text(agent, message))
            .or_else(|| kind_of_text(agent, &stderr))
            .unwrap_or(ErrorKind::Provider);
        let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
        let shown = quote(message, 500);
        return Some(error(
            kind,
            format!(
                "the agent `{name}` reported an error{status}: {shown}{}",
                remedy(agent, kind)
            ),
        ));
    }
    if let Some(limit) = facts.limit {
        let kind = kind_of_text(agent, &stderr).unwrap_or(ErrorKind::Timeout);
        let (what, key, duration) = match limit {
            Limit::Run(duration) => ("did not end", "timeout", duration),
            Limit::Startup(duration) => ("was not ready", "startup_timeout", duration),
            Limit::Idle(duration) => ("wrote nothing", "idle_timeout", duration),
        };
        let text = format!(
            "the agent `{name}` {what} within {} and was ended (`{key}` of the agent){}",
            show(duration),
            last_lines(facts),
        );
        return Some(error(kind, text));
    }
    if let Some(exit) = facts.exit.filter(|exit| *exit != AgentExit::Code(0)) {
        let kind = kind_of_text(agent, &stderr)
            .or_else(|| kind_of_text(agent, &facts.output).filter(|_| !facts.ended))
            .unwrap_or(ErrorKind::Crashed);
        let how = match exit {
            AgentExit::Code(code) => format!("exited with code {code}"),
            AgentExit::Signal(signal) => format!("was ended by signal {signal}"),
        };
        let remedy = remedy(agent, kind);
        let text = format!("the agent `{name}` {how}{}{remedy}", last_lines(facts));
        return Some(error(kind, text));
    }
    if !facts.ended {
        let kind = kind_of_text(agent, &stderr).unwrap_or(ErrorKind::NoEnd);
        let text = format!(
            "the agent `{name}` exited without reporting the end of its work{}",
            last_lines(facts)
        );
        return Some(error(kind, text));
    }
    if let Some((server, status)) = facts.failed_servers.first() {
        let text = format!(
            "the agent `{name}` ran without the server `{server}`: it reports the state `{}`; if the \
             server starts slowly, set a longer `startup_timeout` of the agent",
            quote(status, 300)
        );
        return Some(error(ErrorKind::ServerMissing, text));
    }
    None
}

/// An agent that could not be started.
pub(crate) fn not_started(agent: &Agent, detail: &str) -> RunError {
    error(
        ErrorKind::NotStarted,
        format!(
            "the agent `{}` could not be started: {detail}",
            agent.name()
        ),
    )
}

pub(crate) fn error(kind: ErrorKind, message: String) -> RunError {
    RunError { kind, message }
}

/// The kind of an HTTP status of the model's provider.
pub(crate) fn kind_of_status(status: u16) -> Option<ErrorKind> {
    match status {
        401 | 403 => Some(ErrorKind::Login),
        429 => Some(ErrorKind::RateLimit),
        500..=599 => Some(ErrorKind::Provider),
        _ => None,
    }
}

/// The kind of the agent's first rule that matches.
pub(crate) fn kind_of_text(agent: &Agent, text: &str) -> Option<ErrorKind> {
    let mut rules = agent.errors.iter();
    rules
        .find(|(pattern, _)| pattern.is_match(text))
        .map(|(_, kind)| *kind)
}

/// The remedy for an error.
pub(crate) fn remedy(agent: &Agent, kind: ErrorKind) -> String {
    match (kind, &agent.api_key_env) {
        (ErrorKind::Login, Some(variable)) => format!(
            "; set {variable}, or name another variable in `api_key_env` of the agent: a run has \
             its own HOME, without your login"
        ),
        _ => String::new(),
    }
}

/// The last lines of standard error or of the output, for a message.
fn last_lines(facts: &Facts<'_>) -> String {
    let from = facts.stderr.len().saturating_sub(3);
    let lines = facts.stderr[from..].join(" | ");
    if !lines.is_empty() {
        return format!("; its standard error ends with: {}", quote(&lines, 500));
    }
    match facts.output.trim() {
        "" => String::new(),
        output => format!("; its output ends with: {}", quote(output, 300)),
    }
}

fn show(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{seconds:.1} s").replace(".0 s", " s")
    }
}
