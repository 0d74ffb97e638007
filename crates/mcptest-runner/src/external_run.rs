//! Making one run of an agent under test: its folders, its proxied servers, its evidence.
//!
//! Calls, results and the catalog come from the proxies, which see what really happened. Texts,
//! tokens and cost come from the agent's own output. A run is evidence only if the agent ended
//! without an error and every server was asked for its tools.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcptest_agent::Usage;
use mcptest_agents::{
    AgentOutcome, AgentTask, KeepFile, RunFolders, ServerLaunch, TransportFile, TurnRole,
};
use mcptest_attack::AttackRun;
use mcptest_catalog::distractors::plan_injection;
use mcptest_catalog::prices::Usd;
use mcptest_proxy::{
    DistractorPlan, ProxiedServer, RunProxy, RunProxyOptions, RunRecord, RunServer, ServerRecord,
};
use mcptest_suite::suite::{AgentTest, AgentUnderTest, BUILTIN_SERVER};
use mcptest_trace::catalog::Tool;
use mcptest_trace::fault::FaultState;
use mcptest_trace::server_messages;
use mcptest_trace::trace::{Tokens, ToolCall, ToolResult, Trace, Turn};
use mcptest_trace::user_turn::{UNSAID_TURN_KEY, UnsaidTurn};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value, json};

use crate::agent_attacks;
use crate::agent_shared::{AgentRun, check_name_free, planned_run};
use crate::cassette_plans::RunCassette;
use crate::run_context::{CaseRef, RunContext};
use crate::run_state;
use crate::run_tools::RunTools;
use crate::state_calls::StateRun;
use crate::stop_signal::StopSignal;
use crate::workspace_files::{WorkspaceState, changed_files};

/// The name of the socket in the run's folder. Short, because the path of a socket is limited.
const SOCKET: &str = "s";

/// The stderr lines of a server that a failed run shows.
const MAX_STDERR_LINES: usize = 10;

/// Runs an agent under test once. Returns its output, too.
pub(crate) async fn external_run(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    under_test: &AgentUnderTest,
    (cassette, stop): (&RunCassette, StopSignal<'_>),
) -> (AgentRun, Vec<u8>) {
    let made = prepare_and_run(context, case, test, under_test, (cassette, stop)).await;
    made.unwrap_or_else(|error| {
        let trace = Trace {
            error: Some(error),
            ..Trace::default()
        };
        (AgentRun::of(trace), Vec::new())
    })
}

async fn prepare_and_run(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    under_test: &AgentUnderTest,
    (cassette, stop): (&RunCassette, StopSignal<'_>),
) -> Result<(AgentRun, Vec<u8>), RunError> {
    let listed = list(context, test).await?;
    let distractors = check_and_plan(context, case, test, listed)?;
    let workspace = under_test.workspace.as_deref();
    let folders =
        RunFolders::create(&std::env::temp_dir(), workspace).map_err(|error| RunError {
            kind: ErrorKind::NotStarted,
            message: format!("cannot prepare the folders of the run: {error}"),
        })?;
    let before = WorkspaceState::of(&folders.cwd());
    let socket = folders.run_dir().join(SOCKET);
    // The sessions of `setup:` and `after:` are beside those of the agent, and share their state.
    let mut tools = RunTools::new(FaultState::new(&[][..], None), None, AttackRun::default());
    let mut state = StateRun::new(&test.state);
    let startup = &case.meter.startup;
    let dir = folders.run_dir();
    let ready = run_state::set_up_beside(
        test,
        &context.sessions,
        startup,
        dir,
        &mut tools,
        &mut state,
    )
    .await;
    if let Err(error) = ready {
        let mut trace = Trace {
            error: Some(error),
            ..Trace::default()
        };
        run_state::clean_up(context, test, stop, &tools, &mut state, &mut trace).await;
        tools.release().await;
        return Ok((AgentRun::of(trace), Vec::new()));
    }
    let http = under_test.agent.transport() == TransportFile::Http && !test.servers.is_empty();
    let proxy = start_proxy(context, (test, case.run), &folders, http, distractors)?;
    let program = context
        .sessions
        .this_program()
        .to_string_lossy()
        .into_owned();
    let launch = |name: &String| match proxy.address(name) {
        Some(url) => ServerLaunch::Http {
            name: name.clone(),
            url,
            headers: Vec::new(),
        },
        None => ServerLaunch::Stdio {
            name: name.clone(),
            argv: vec![
                program.clone(),
                "proxy".to_owned(),
                "--connect".to_owned(),
                socket.to_string_lossy().into_owned(),
                "--server".to_owned(),
                name.clone(),
            ],
            env: Vec::new(),
        },
    };
    let servers: Vec<ServerLaunch> = test.servers.iter().map(launch).collect();
    // Absolute, because the agent has another working directory.
    let suite_dir = std::path::absolute(&under_test.dir).unwrap_or_else(|_| under_test.dir.clone());
    let variables = |name: &str| under_test.variables.get(name).cloned();
    let further = FurtherTurns::default();
    let mut next = |answer: String| -> BoxedTurn<'_> {
        Box::pin(std::future::ready(further.next(test, &proxy, &answer)))
    };
    let task = AgentTask {
        prompt: &test.prompt,
        system: test.system.as_deref(),
        model: None,
        test: &test.name,
        run: case.run,
        servers: &servers,
        turns: (!test.turns.is_empty()).then_some(&mut next),
        suite_dir: &suite_dir,
        folders: &folders,
        variables: &variables,
    };
    let mut outcome = mcptest_agents::run(&under_test.agent, task).await;
    let stream = std::mem::take(&mut outcome.stream);
    let record = proxy.finish().await;
    charge(context, case, &outcome);
    let stderr = stderr_of(&record);
    let version = context.agent_versions.of(under_test).await;
    let mut trace = trace_of(test, under_test, outcome, record, version);
    listened(test, &mut trace);
    further.record_unsaid(test, &mut trace);
    run_state::look_after(test, cassette, &tools, &mut state, &mut trace).await;
    run_state::clean_up(context, test, stop, &tools, &mut state, &mut trace).await;
    tools.release().await;
    let files = changed_files(&folders.cwd(), &before);
    if !files.is_empty() || under_test.workspace.is_some() {
        trace.extra.insert("workspace", json!({"files": files}));
    }
    let keeps = under_test.agent.keep() != KeepFile::Never;
    let run = AgentRun {
        trace,
        stderr,
        folders: keeps.then_some(folders),
    };
    Ok((run, stream))
}

/// Marks a run whose messages of servers are expected: the proxies saw all of them. Those beyond
/// the bounds cannot be judged.
fn listened(test: &AgentTest, trace: &mut Trace) {
    let mut roots = test.expect.iter().map(|one| one.target.root());
    if !roots.any(|root| server_messages::ROOTS.contains(&root)) {
        return;
    }
    if trace.extra.get(server_messages::KEY).is_none() {
        let none: Vec<serde_json::Value> = Vec::new();
        trace.extra.insert(server_messages::KEY, none);
    }
    if trace.extra.get(server_messages::OMITTED_KEY).is_some() {
        trace.error.get_or_insert(RunError {
            kind: ErrorKind::Protocol,
            message:
                "servers sent more messages by themselves than are recorded of a run, so they \
                      cannot be judged"
                    .to_owned(),
        });
    }
}

type BoxedTurn<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// The further messages of the user.
#[derive(Default)]
struct FurtherTurns(Mutex<TurnState>);

#[derive(Default)]
struct TurnState {
    /// The number of messages that were sent.
    said: usize,
    /// The message whose condition did not hold.
    unsaid: Option<UnsaidTurn>,
}

impl FurtherTurns {
    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message after an answer of the agent.
    fn next(&self, test: &AgentTest, proxy: &RunProxy, answer: &str) -> Option<String> {
        let mut state = self.state();
        let turn = test.turns.get(state.said)?;
        let mut seen = proxy.trace();
        seen.final_response = Some(answer.to_owned().into());
        state.unsaid = turn.unsaid(state.said, seen.observable());
        if state.unsaid.is_some() {
            return None;
        }
        state.said += 1;
        Some(turn.say.clone())
    }

    /// Adds the first message that was not sent to the trace of a run that is evidence.
    fn record_unsaid(self, test: &AgentTest, trace: &mut Trace) {
        let TurnState { said, unsaid } =
            self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if trace.error.is_some() || said >= test.turns.len() {
            return;
        }
        let unsaid = unsaid.unwrap_or_else(|| UnsaidTurn::without_answer(said, "ended"));
        if let Ok(unsaid) = serde_json::to_value(unsaid) {
            trace.extra.insert(UNSAID_TURN_KEY, unsaid);
        }
    }
}

/// The tools of each server of the test, listed once for all runs of the suite. A server that does
/// not start is found here, before an agent is started in vain.
async fn list(
    context: &RunContext,
    test: &AgentTest,
) -> Result<Vec<(String, Vec<Tool>)>, RunError> {
    let mut listed = Vec::new();
    for name in &test.servers {
        let tools = context.sessions.listing_of(name).await.map_err(|error| {
            let kind = match error.kind {
                ErrorKind::Auth => ErrorKind::Auth,
                _ => ErrorKind::ServerMissing,
            };
            RunError {
                kind,
                message: error.message,
            }
        })?;
        let tools = mcptest_cassette::RecordedCatalog {
            server: name.clone(),
            tools,
        };
        listed.push((name.clone(), tools.tools()));
    }
    Ok(listed)
}

/// Checks the names in the suite against the listed tools, and plans the distractors of the run, by
/// server.
fn check_and_plan(
    context: &RunContext,
    case: CaseRef<'_>,
    test: &AgentTest,
    listed: Vec<(String, Vec<Tool>)>,
) -> Result<BTreeMap<String, DistractorPlan>, RunError> {
    let warn = |text| context.warn(text);
    let checks = &context.tool_names;
    checks.check((case.test, test), &context.servers, &warn, &listed)?;
    let real: Vec<Tool> = listed.into_iter().flat_map(|(_, tools)| tools).collect();
    check_name_free(context, test, case.run, &real)?;
    let Some(block) = &test.distractors else {
        return Ok(BTreeMap::new());
    };
    let planned = planned_run(block, test, case.run);
    let fakes =
        plan_injection(block, &real, planned.count, planned.seed).map_err(|error| RunError {
            kind: ErrorKind::Protocol,
            message: error.to_string(),
        })?;
    let mut by_server: BTreeMap<String, Vec<Tool>> = BTreeMap::new();
    for name in &test.servers {
        by_server.insert(name.clone(), Vec::new());
    }
    for fake in fakes {
        // A distractor of no server is one of the first.
        let server = fake.server().map(str::to_owned);
        let server = server.filter(|server| by_server.contains_key(server));
        let server = server.or_else(|| test.servers.first().cloned());
        if let Some(tools) = server.and_then(|server| by_server.get_mut(&server)) {
            tools.push(fake);
        }
    }
    Ok(by_server
        .into_iter()
        .map(|(server, tools)| (server, DistractorPlan::of_tools(tools, planned.seed)))
        .collect())
}

fn start_proxy(
    context: &RunContext,
    (test, run): (&AgentTest, u32),
    folders: &RunFolders,
    http: bool,
    mut distractors: BTreeMap<String, DistractorPlan>,
) -> Result<RunProxy, RunError> {
    let failed = |message: String| RunError {
        kind: ErrorKind::NotStarted,
        message,
    };
    let mut servers = Vec::new();
    for name in &test.servers {
        let Some((mut target, call_timeout)) = context.sessions.proxied(name) else {
            return Err(failed(format!("unknown server `{name}`")));
        };
        if let ProxiedServer::Command(command) = &mut target
            && !test.state.is_empty()
        {
            let shared = run_state::shared_state(folders.run_dir(), name);
            command.env.push(shared);
        }
        servers.push(RunServer {
            name: name.clone(),
            target,
            call_timeout,
            distractors: distractors.remove(name),
        });
    }
    let socket = folders.run_dir().join(SOCKET);
    RunProxy::start(RunProxyOptions {
        socket: socket.clone(),
        http,
        servers,
        faults: test.faults.clone(),
        attacks: (!test.attacks.is_empty()).then(|| agent_attacks::of_run(test, run)),
        max_detection_ms: test.detection_budget_ms,
    })
    .map_err(|error| failed(format!("cannot listen on `{}`: {error}", socket.display())))
}

/// Counts the usage and the cost that the agent reports.
fn charge(context: &RunContext, case: CaseRef<'_>, outcome: &AgentOutcome) {
    // An agent that failed without a report may never have asked its model.
    if outcome.error.is_some() && outcome.tokens.is_none() && outcome.cost_usd.is_none() {
        return;
    }
    let usage = outcome.tokens.and_then(|tokens| {
        Some(Usage {
            input: tokens.input?,
            output: tokens.output?,
            cached_input: tokens.cached,
            ..Usage::default()
        })
    });
    let number = outcome.cost_usd.and_then(serde_json::Number::from_f64);
    let usd = number.as_ref().and_then(Usd::from_number);
    context
        .budget
        .charge_reported(case.case, case.meter, usage, usd);
}

/// The last stderr lines of the servers that failed or had a failed call, by server.
fn stderr_of(record: &RunRecord) -> Map<String, Value> {
    let results = record.trace.results_by_call();
    let failed_call = |name: &str| {
        let calls = record.trace.tool_calls.iter().zip(&results);
        calls
            .filter(|(call, _)| call.server.as_deref() == Some(name))
            .any(|(_, result)| {
                result.is_some_and(|result| {
                    result.is_error == Some(true) && result.extra("fault").is_none()
                })
            })
    };
    record
        .servers
        .iter()
        .filter(|server| server.failure.is_some() || !server.listed || failed_call(&server.name))
        .filter_map(|server| {
            let lines = last_lines(server);
            (!lines.is_empty()).then(|| (server.name.clone(), lines.into()))
        })
        .collect()
}

fn last_lines(server: &ServerRecord) -> Vec<String> {
    let skipped = server.stderr.len().saturating_sub(MAX_STDERR_LINES);
    server.stderr[skipped..].to_vec()
}

/// The trace of a run: calls from the proxies, texts from the agent.
fn trace_of(
    test: &AgentTest,
    under_test: &AgentUnderTest,
    outcome: AgentOutcome,
    record: RunRecord,
    version: Option<String>,
) -> Trace {
    let mut trace = record.trace;
    // The proxies report a server that violated the protocol.
    trace.error = error_of(&outcome, &record.servers).or(trace.error);
    let mut times = record.call_times;
    for call in outcome.builtin_calls {
        let id = Value::from(format!("agent_{}", trace.tool_calls.len() + 1));
        // Its place among the calls that the proxies saw is that of its time.
        let place = times.partition_point(|time| *time <= call.at);
        let place = place.min(trace.tool_calls.len());
        times.insert(place.min(times.len()), call.at);
        let made = ToolCall {
            id: Some(id.clone().into()),
            raw_name: call.name.as_str().into(),
            server: Some(BUILTIN_SERVER.into()),
            args: Some(call.args.into()),
            ..ToolCall::default()
        };
        trace.tool_calls.insert(place, made);
        if call.result.is_some() || call.is_error.is_some() {
            let content = call.result.map(|result| match result {
                Value::String(text) => json!([{"type": "text", "text": text}]),
                other => other,
            });
            trace.tool_results.push(ToolResult {
                call_id: Some(id.into()),
                is_error: call.is_error,
                content: content.map(Into::into),
                ..ToolResult::default()
            });
        }
    }
    let mut turns = vec![Turn {
        role: Some("user".into()),
        content: Some(test.prompt.clone().into()),
        ..Turn::default()
    }];
    let spoken = outcome.turns.into_iter().map(|turn| Turn {
        role: Some(match turn.role {
            TurnRole::User => "user".into(),
            TurnRole::Assistant => "assistant".into(),
        }),
        content: Some(turn.content.into()),
        ..Turn::default()
    });
    let mut spoken = spoken.peekable();
    // The agent may or may not repeat the prompt.
    let repeats = spoken
        .peek()
        .is_some_and(|first| first.role.as_deref() == Some("user") && first.text() == test.prompt);
    turns.extend(spoken.skip(usize::from(repeats)));
    trace.conversation.turns = Some(turns);
    trace.conversation.tokens = outcome.tokens.map(|tokens| {
        let total = tokens.total.or_else(|| {
            let (input, output) = (tokens.input?, tokens.output?);
            Some(input.saturating_add(output))
        });
        let mut known = Tokens {
            input: tokens.input,
            output: tokens.output,
            total,
            ..Tokens::default()
        };
        if let Some(cached) = tokens.cached {
            known.extra.insert("cached", cached);
        }
        known
    });
    trace.final_response = outcome.final_response.map(Into::into);
    let mut agent = json!({"name": under_test.agent.name()});
    if let Some(model) = under_test.agent.model() {
        agent["model"] = model.into();
    }
    if let Some(version) = outcome.version.or(version) {
        agent["version"] = version.into();
    }
    trace.extra.insert("agent", agent);
    if let Some(cost) = outcome.cost_usd {
        trace.extra.insert("cost_usd", cost);
    }
    if let Some(stop) = outcome.stop {
        trace.extra.insert("stop_reason", stop);
    }
    trace
}

/// The reason why a run cannot be judged, if there is one.
fn error_of(outcome: &AgentOutcome, servers: &[ServerRecord]) -> Option<RunError> {
    let server_error = server_error(servers);
    if let Some(error) = &outcome.error {
        // The failure of a server explains why an agent ended early; an agent that ended before it
        // started its servers does not.
        let general = matches!(
            error.kind,
            ErrorKind::Crashed | ErrorKind::NoEnd | ErrorKind::ServerMissing
        );
        let has_failed = servers
            .iter()
            .any(|server| server.failure.is_some() || server.auth_failure.is_some());
        return match server_error {
            Some(cause) if general && has_failed => Some(cause),
            _ => Some(error.clone()),
        };
    }
    if !outcome.ended {
        return server_error.or_else(|| {
            Some(RunError {
                kind: ErrorKind::NoEnd,
                message: "the agent ended without reporting the end of its work".to_owned(),
            })
        });
    }
    server_error
}

/// The error of the first server that gave the agent no tools, or stopped working.
fn server_error(servers: &[ServerRecord]) -> Option<RunError> {
    servers.iter().find_map(|server| {
        let ServerRecord {
            name,
            connections,
            listed,
            failure,
            unresponsive,
            distractor_failure,
            ..
        } = server;
        if let Some(reason) = &server.auth_failure {
            return Some(RunError {
                kind: ErrorKind::Auth,
                message: format!("server `{name}` is not authorized: {reason}"),
            });
        }
        let tail = match last_lines(server) {
            lines if lines.is_empty() => String::new(),
            lines => format!("; its stderr: {}", lines.join(" | ")),
        };
        if !listed {
            let reason = match (failure, connections) {
                (Some(failure), _) => format!("server `{name}` did not start: {failure}"),
                (None, 0) => format!(
                    "the agent never started or reached server `{name}`: check how its settings list \
                     servers"
                ),
                (None, _) => format!("the agent never listed the tools of server `{name}`"),
            };
            return Some(RunError {
                kind: ErrorKind::ServerMissing,
                message: format!("{reason}{tail}"),
            });
        }
        if let Some(failure) = failure {
            return Some(RunError {
                kind: ErrorKind::ServerCrash,
                message: format!("server `{name}`: {failure}{tail}"),
            });
        }
        if *unresponsive {
            return Some(RunError {
                kind: ErrorKind::Timeout,
                message: format!("server `{name}` stopped answering{tail}"),
            });
        }
        distractor_failure.as_ref().map(|reason| RunError {
            kind: ErrorKind::Protocol,
            message: format!("no distractors were added to the tools of `{name}`: {reason}"),
        })
    })
}
