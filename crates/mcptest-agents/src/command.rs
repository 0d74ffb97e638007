//! Command-line agents: one process per message of the user.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use mcptest_wire::{IsolatedCommand, IsolatedProcess, IsolatedStreams, StderrTail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use crate::agent::Agent;
use crate::failure::{Facts, Limit, error_of, not_started};
use crate::file::{FormatFile, StdinFile};
use crate::outcome::{AgentExit, AgentOutcome, AgentTurn, TurnRole};
use crate::prepare;
use crate::reader::Reader;
use crate::task::AgentTask;
use crate::values::Values;

/// Time for the rest of the output after the process has exited: a background process may keep the
/// stream open.
const REST_OF_OUTPUT: Duration = Duration::from_millis(300);

/// Time to exit after the event that reports the end.
const AFTER_END: Duration = Duration::from_secs(10);

/// The lines and bytes of standard error that are kept.
pub(crate) const STDERR_LINES: usize = 40;
pub(crate) const STDERR_BYTES: usize = 16 * 1024;

/// The bytes of the output that an error message may show, and that its rules search.
const OUTPUT_TAIL: usize = 2000;

/// Runs a command-line agent.
pub(crate) async fn run(agent: &Agent, mut task: AgentTask<'_>) -> AgentOutcome {
    let mut values = prepare::values(agent, task.servers, &task);
    let mut outcome = AgentOutcome::default();
    if let Err(error) = prepare::write_files(agent, &task, &values) {
        outcome.error = Some(not_started(agent, &error.to_string()));
        return outcome;
    }
    let deadline = Instant::now() + agent.timeout;
    let mut prompt = task.prompt.to_owned();
    let prefixes = mcp_prefixes(agent, &values);
    let mut reader = Reader::new(&agent.output, prefixes);
    loop {
        outcome.turns.push(AgentTurn {
            role: TurnRole::User,
            content: prompt.clone(),
        });
        let texts_before = reader.found.texts.len();
        let command = IsolatedCommand {
            argv: values.argv(),
            env: prepare::environment(agent, &task, &values),
            cwd: task.folders.cwd(),
            folder: task.folders.run_dir().to_owned(),
            stdin: agent.stdin == StdinFile::Prompt,
        };
        let end = match Turn::run(agent, &command, &prompt, deadline, &mut reader).await {
            Ok(end) => end,
            Err(detail) => {
                outcome.error = Some(not_started(agent, &detail));
                break;
            }
        };
        if let Some(file) = &agent.output.file
            && let Ok(text) = std::fs::read(values.text(file))
            && let Ok(event) = serde_json::from_slice(&text)
        {
            reader.event(&event);
        }
        outcome.exit = end.exit;
        outcome.stderr_tail = end.stderr;
        outcome.ended = reader.has_ended() && end.limit.is_none();
        outcome.final_response = reader.final_response();
        let known: Vec<(String, String)> = reader
            .found
            .failed_servers
            .iter()
            .filter(|(name, _)| task.servers.iter().any(|server| server.name() == name))
            .cloned()
            .collect();
        let facts = Facts {
            error: reader.error(),
            limit: end.limit,
            exit: end.exit,
            ended: outcome.ended,
            failed_servers: &known,
            stderr: &outcome.stderr_tail,
            output: tail(&reader.found.stream),
        };
        outcome.error = error_of(agent, &facts);
        outcome.failed_servers = known;
        let texts = &reader.found.texts[texts_before..];
        let texts = if texts.is_empty() {
            outcome.final_response.as_slice()
        } else {
            texts
        };
        outcome.turns.extend(texts.iter().map(|text| AgentTurn {
            role: TurnRole::Assistant,
            content: text.clone(),
        }));
        if outcome.error.is_some() {
            break;
        }
        let Some(turns) = task.turns.as_mut() else {
            break;
        };
        let answer = outcome.final_response.clone().unwrap_or_default();
        let Some(next) = turns(answer).await else {
            break;
        };
        values.set("session", reader.session());
        values.set("prompt", next.as_str());
        reader.next_turn();
        prompt = next;
    }
    outcome.tokens = reader.tokens();
    outcome.cost_usd = reader.cost();
    outcome.stop = reader.stop();
    outcome.builtin_calls = std::mem::take(&mut reader.found.calls);
    outcome.stream = std::mem::take(&mut reader.found.stream);
    outcome.stream_truncated = reader.found.truncated;
    outcome
}

/// The beginnings of the names of MCP tools in the agent's output.
pub(crate) fn mcp_prefixes(agent: &Agent, values: &Values<'_>) -> Vec<String> {
    let template = agent
        .output
        .calls
        .as_ref()
        .and_then(|rules| rules.mcp_prefix.as_ref());
    template.map_or_else(Vec::new, |template| values.for_each_server(template))
}

fn tail(stream: &[u8]) -> String {
    let from = stream.len().saturating_sub(OUTPUT_TAIL);
    String::from_utf8_lossy(&stream[from..]).into_owned()
}

pub(crate) fn exit_of(status: ExitStatus) -> Option<AgentExit> {
    status
        .code()
        .map(AgentExit::Code)
        .or_else(|| status.signal().map(AgentExit::Signal))
}

/// The end of one process.
struct TurnEnd {
    exit: Option<AgentExit>,
    limit: Option<Limit>,
    stderr: Vec<String>,
}

/// One process of an agent.
struct Turn;

impl Turn {
    /// Starts the process, reads its output, and ends it with everything that it started.
    async fn run(
        agent: &Agent,
        command: &IsolatedCommand,
        prompt: &str,
        deadline: Instant,
        reader: &mut Reader<'_>,
    ) -> Result<TurnEnd, String> {
        let (mut process, streams) =
            IsolatedProcess::start(agent.name(), command).map_err(|error| error.detail.clone())?;
        let IsolatedStreams {
            stdin,
            mut stdout,
            mut stderr,
        } = streams;
        let mut tail = StderrTail::bounded(STDERR_LINES, STDERR_BYTES);
        let mut write = std::pin::pin!(async {
            if let Some(mut stdin) = stdin {
                // An agent that does not read its input is not wrong for that.
                let _ = stdin.write_all(prompt.as_bytes()).await;
                let _ = stdin.shutdown().await;
            }
        });
        let started = Instant::now();
        let startup = (agent.output.format == FormatFile::Jsonl)
            .then(|| started + agent.startup_timeout)
            .filter(|at| *at < deadline);
        let (mut written, mut out_open, mut err_open) = (false, true, true);
        let mut last_output = started;
        let mut end_seen: Option<Instant> = None;
        let events_before = reader.found.events;
        let mut out = vec![0; 64 * 1024];
        let mut err = vec![0; 8 * 1024];
        let mut limit = None;
        let mut exit = None;
        loop {
            let idle = agent.idle_timeout.map(|idle| last_output + idle);
            let silent = reader.found.events == events_before;
            let (wake, reason) = [
                end_seen.map(|seen| (seen + AFTER_END, None)),
                startup
                    .filter(|_| silent)
                    .map(|at| (at, Some(Limit::Startup(agent.startup_timeout)))),
                idle.map(|at| (at, agent.idle_timeout.map(Limit::Idle))),
                Some((deadline, Some(Limit::Run(agent.timeout)))),
            ]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
            .unwrap_or((deadline, Some(Limit::Run(agent.timeout))));
            tokio::select! {
                read = stdout.read(&mut out), if out_open => match read {
                    Ok(0) | Err(_) => out_open = false,
                    Ok(count) => {
                        last_output = Instant::now();
                        reader.push(&out[..count]);
                        if end_seen.is_none() && reader.has_end_event() {
                            end_seen = Some(last_output);
                        }
                    }
                },
                read = stderr.read(&mut err), if err_open => match read {
                    Ok(0) | Err(_) => err_open = false,
                    Ok(count) => {
                        last_output = Instant::now();
                        tail.push(&err[..count]);
                    }
                },
                () = &mut write, if !written => written = true,
                status = process.wait() => {
                    exit = status.ok().and_then(exit_of);
                    break;
                }
                () = sleep_until(wake) => {
                    limit = reason;
                    break;
                }
            }
        }
        let _ = timeout(REST_OF_OUTPUT, async {
            while out_open || err_open {
                tokio::select! {
                    read = stdout.read(&mut out), if out_open => match read {
                        Ok(0) | Err(_) => out_open = false,
                        Ok(count) => reader.push(&out[..count]),
                    },
                    read = stderr.read(&mut err), if err_open => match read {
                        Ok(0) | Err(_) => err_open = false,
                        Ok(count) => tail.push(&err[..count]),
                    },
                }
            }
        })
        .await;
        reader.finish();
        // Nothing is read after this: a process that still writes gets an error instead of waiting.
        drop((stdout, stderr));
        process.end().await;
        Ok(TurnEnd {
            exit,
            limit,
            stderr: tail.lines(),
        })
    }
}
