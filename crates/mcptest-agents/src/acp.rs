//! Agents that speak the Agent Client Protocol (version 1) on their standard streams.
//!
//! The client offers no files and no terminal. One process has one session; further messages of the
//! user are further prompts in it. What an agent asks for beyond permissions is refused.

mod connection;
mod permission;
mod session;

use std::time::Duration;

use mcptest_http::text::quote;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{IsolatedCommand, IsolatedProcess};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::agent::Agent;
use crate::command::{exit_of, mcp_prefixes};
use crate::failure::{
    Facts, Limit, error, error_of, kind_of_status, kind_of_text, not_started, remedy,
};
use crate::file::{ServersByFile, UsageFile};
use crate::outcome::{AgentOutcome, AgentTurn, TurnRole};
use crate::prepare;
use crate::task::{AgentTask, ServerLaunch};
use connection::{Connection, Failure, Reply};
use session::SessionState;

/// The version of the protocol. Version 2 is a draft.
const PROTOCOL_VERSION: u64 = 1;

/// Time for the answer to `session/close`, and for the end of a cancelled prompt.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest answer that can be an error message in place of an answer.
const MAX_ERROR_CHARS: usize = 500;

/// Runs an ACP agent.
pub(crate) async fn run(agent: &Agent, mut task: AgentTask<'_>) -> AgentOutcome {
    let values = prepare::values(agent, task.servers, &task);
    let mut outcome = AgentOutcome::default();
    if let Err(error) = prepare::write_files(agent, &task, &values) {
        outcome.error = Some(not_started(agent, &error.to_string()));
        return outcome;
    }
    let command = IsolatedCommand {
        argv: values.argv(),
        env: prepare::environment(agent, &task, &values),
        cwd: task.folders.cwd(),
        folder: task.folders.run_dir().to_owned(),
        stdin: true,
    };
    let (mut process, streams) = match IsolatedProcess::start(agent.name(), &command) {
        Ok(started) => started,
        Err(error) => {
            outcome.error = Some(not_started(agent, &error.detail));
            return outcome;
        }
    };
    let deadline = Instant::now() + agent.timeout;
    let mode = agent.mode.as_ref().map(|mode| values.text(mode));
    let mut connection = Connection::new(streams, agent.idle_timeout);
    let mut state = SessionState::new(agent, task.servers, mcp_prefixes(agent, &values));
    let result = converse(
        agent,
        &mut task,
        mode.filter(|mode| !mode.is_empty()),
        &mut connection,
        &mut state,
        &mut outcome,
        deadline,
    )
    .await;
    connection.close_stdin();
    if let Err(failure) = result {
        if matches!(failure, Failure::Closed) {
            // The exit status is more informative than the end of the stream.
            let _ = timeout(CLOSE_TIMEOUT, process.wait()).await;
            connection.rest_of_stderr().await;
            outcome.exit = process.exit_status().and_then(exit_of);
        }
        outcome.stderr_tail = connection.stderr_lines();
        outcome.error = Some(run_error(agent, failure, &outcome));
        outcome.ended = false;
    }
    process.end().await;
    outcome.stderr_tail = connection.stderr_lines();
    outcome.tokens = state.tokens();
    outcome.cost_usd = state.cost();
    outcome.builtin_calls = state.builtin_calls();
    (outcome.stream, outcome.stream_truncated) = connection.into_stream();
    outcome
}

/// The conversation: opens a session and sends all messages.
async fn converse(
    agent: &Agent,
    task: &mut AgentTask<'_>,
    mode: Option<String>,
    connection: &mut Connection,
    state: &mut SessionState<'_>,
    outcome: &mut AgentOutcome,
    deadline: Instant,
) -> Result<(), Failure> {
    let startup_deadline = Instant::now() + agent.startup_timeout;
    let startup = if startup_deadline < deadline {
        (startup_deadline, Limit::Startup(agent.startup_timeout))
    } else {
        (deadline, Limit::Run(agent.timeout))
    };
    let hello = json!({
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        },
        "clientInfo": {"name": "mcptest", "title": "mcptest", "version": env!("CARGO_PKG_VERSION")},
    });
    let info = connection
        .call("initialize", &hello, state, startup)
        .await?;
    outcome.version = info["agentInfo"]["version"].as_str().map(str::to_owned);
    if info["protocolVersion"].as_u64() != Some(PROTOCOL_VERSION) {
        return Err(Failure::Protocol(format!(
            "it speaks version {} of ACP; version {PROTOCOL_VERSION} is supported",
            info["protocolVersion"]
        )));
    }
    let servers: Vec<Value> = match agent.servers_by {
        ServersByFile::Session => task.servers.iter().map(server).collect(),
        ServersByFile::Files => Vec::new(),
    };
    let opened = json!({"cwd": task.folders.cwd(), "mcpServers": servers});
    let opened = connection
        .call("session/new", &opened, state, startup)
        .await?;
    let Some(session) = opened["sessionId"].as_str().map(str::to_owned) else {
        return Err(Failure::Protocol(
            "its answer to session/new has no `sessionId`".to_owned(),
        ));
    };
    if let Some(mode) = mode {
        let params = json!({"sessionId": session, "modeId": mode});
        connection
            .call("session/set_mode", &params, state, startup)
            .await
            .map_err(|failure| match failure {
                Failure::Refused(reply) => Failure::Mode {
                    mode: mode.clone(),
                    known: mode_names(&opened),
                    reply,
                },
                other => other,
            })?;
    }
    let mut prompt = prepare::values(agent, task.servers, task).text_of("prompt");
    let mut said = task.prompt.to_owned();
    let run_limit = (deadline, Limit::Run(agent.timeout));
    loop {
        outcome.turns.push(AgentTurn {
            role: TurnRole::User,
            content: said.clone(),
        });
        state.begin_turn();
        let params = json!({
            "sessionId": session,
            "prompt": [{"type": "text", "text": prompt}],
        });
        let answer = connection
            .call("session/prompt", &params, state, run_limit)
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                if matches!(failure, Failure::Limit(_)) {
                    cancel(connection, &session, state).await;
                }
                take_answer(state, outcome);
                return Err(failure);
            }
        };
        state.end_turn(&answer);
        take_answer(state, outcome);
        let stop = answer["stopReason"].as_str().unwrap_or_default();
        outcome.stop = Some(stop.to_owned()).filter(|stop| !stop.is_empty());
        outcome.ended = !matches!(stop, "" | "cancelled");
        if !outcome.ended {
            return Err(Failure::NotEnded(stop.to_owned()));
        }
        if let Some(text) = error_as_answer(agent, state, &answer, outcome) {
            return Err(Failure::Reported(text));
        }
        let Some(turns) = task.turns.as_mut() else {
            break;
        };
        let Some(next) = turns(outcome.final_response.clone().unwrap_or_default()).await else {
            break;
        };
        prompt.clone_from(&next);
        said = next;
    }
    if info["agentCapabilities"]["sessionCapabilities"]["close"].is_object() {
        let params = json!({"sessionId": session});
        let limit = (Instant::now() + CLOSE_TIMEOUT, Limit::Run(CLOSE_TIMEOUT));
        // The process is ended anyway.
        let _ = connection
            .call("session/close", &params, state, limit)
            .await;
    }
    Ok(())
}

/// Moves the agent's messages of a turn to the outcome.
fn take_answer(state: &SessionState<'_>, outcome: &mut AgentOutcome) {
    outcome.final_response = state.final_response();
    outcome
        .turns
        .extend(state.messages().into_iter().map(|content| AgentTurn {
            role: TurnRole::Assistant,
            content,
        }));
}

/// Asks the agent to stop, and gives it a moment to answer the prompt.
async fn cancel(connection: &mut Connection, session: &str, state: &mut SessionState<'_>) {
    let params = json!({"sessionId": session});
    if connection.notify("session/cancel", &params).await.is_ok() {
        let limit = (Instant::now() + CLOSE_TIMEOUT, Limit::Run(CLOSE_TIMEOUT));
        let _ = connection.last_answer(state, limit).await;
    }
}

/// A server in the form of ACP.
fn server(server: &ServerLaunch) -> Value {
    let pairs = |pairs: &[(String, String)]| -> Value {
        pairs
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect()
    };
    match server {
        ServerLaunch::Stdio { name, argv, env } => json!({
            "name": name,
            "command": argv.first(),
            "args": argv.get(1..).unwrap_or_default(),
            "env": pairs(env),
        }),
        ServerLaunch::Http { name, url, headers } => json!({
            "type": "http",
            "name": name,
            "url": url,
            "headers": pairs(headers),
        }),
    }
}

fn mode_names(opened: &Value) -> Vec<String> {
    let modes = opened["modes"]["availableModes"].as_array();
    modes
        .into_iter()
        .flatten()
        .filter_map(|mode| mode["id"].as_str().map(str::to_owned))
        .collect()
}

/// Some agents end a turn normally with an error as their answer. Such a turn reports no tokens,
/// and the agent is known for that; or it made no calls, and its text matches a rule of the agent.
fn error_as_answer(
    agent: &Agent,
    state: &SessionState<'_>,
    answer: &Value,
    outcome: &AgentOutcome,
) -> Option<String> {
    let output_tokens = answer["usage"]["outputTokens"].as_u64().unwrap_or(0);
    let text = outcome.final_response.as_deref().unwrap_or_default();
    let is_error = output_tokens == 0
        && (agent.usage == UsageFile::Required
            || (!state.has_calls()
                && text.chars().count() <= MAX_ERROR_CHARS
                && kind_of_text(agent, text).is_some()));
    is_error.then(|| text.to_owned())
}

/// The error of a run that failed.
fn run_error(agent: &Agent, failure: Failure, outcome: &AgentOutcome) -> RunError {
    let name = agent.name();
    let stderr = &outcome.stderr_tail;
    match failure {
        Failure::Refused(reply) => {
            let (kind, text) = refused(agent, &reply);
            error(
                kind,
                format!(
                    "the agent `{name}` reported an error: {text}{}",
                    remedy(agent, kind)
                ),
            )
        }
        Failure::Mode { mode, known, reply } => {
            let known = match known.as_slice() {
                [] => "it lists no modes".to_owned(),
                known => format!("its modes are {}", known.join(", ")),
            };
            let text = format!(
                "the agent `{name}` refused the mode `{mode}`: {}; {known}",
                quote(&reply.message, 200)
            );
            error(ErrorKind::NotStarted, text)
        }
        Failure::Protocol(detail) => error(
            ErrorKind::Protocol,
            format!("the agent `{name}` cannot be used: {detail}"),
        ),
        Failure::NotEnded(stop) => error(
            ErrorKind::NoEnd,
            format!("the agent `{name}` did not end its turn: its stop reason is `{stop}`"),
        ),
        Failure::Reported(text) => {
            let facts = Facts {
                error: Some((text, None)),
                ..Facts::default()
            };
            fallback(agent, &facts)
        }
        Failure::Limit(limit) => {
            let facts = Facts {
                limit: Some(limit),
                stderr,
                ..Facts::default()
            };
            fallback(agent, &facts)
        }
        Failure::Closed => {
            let facts = Facts {
                exit: outcome.exit,
                stderr,
                ..Facts::default()
            };
            fallback(agent, &facts)
        }
    }
}

fn fallback(agent: &Agent, facts: &Facts<'_>) -> RunError {
    error_of(agent, facts).unwrap_or_else(|| {
        let text = format!("the agent `{}` did not end its work", agent.name());
        error(ErrorKind::NoEnd, text)
    })
}

/// The kind of a JSON-RPC error, and its text.
fn refused(agent: &Agent, reply: &Reply) -> (ErrorKind, String) {
    /// The code of ACP for an agent that needs a login.
    const AUTH_REQUIRED: i64 = -32000;

    let data = match &reply.data {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = format!("{} {data}", reply.message);
    let by_code = u16::try_from(reply.code).ok().and_then(kind_of_status);
    let by_data = match reply.data["errorKind"].as_str() {
        Some("rate_limit") => Some(ErrorKind::RateLimit),
        Some("authentication_failed" | "auth") => Some(ErrorKind::Login),
        _ => None,
    };
    let kind = by_data
        .or(by_code)
        .or_else(|| (reply.code == AUTH_REQUIRED).then_some(ErrorKind::Login))
        .or_else(|| kind_of_text(agent, &text))
        .unwrap_or(ErrorKind::Provider);
    (kind, quote(text.trim(), 500))
}
