//! Making the request of a direct test: with its values filled in, as a task, cancelled, after a
//! change.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcptest_suite::suite::{
    CancelMoment, CancelOn, Completed, DirectRequest, DirectTest, ListKind, TaskSettings,
};
use mcptest_suite::uri_template::plain_text;
use mcptest_trace::server_messages;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{
    CallOptions, CallOutcome, CompletionRef, Subscription, TaskOptions, WantedChanges,
    WireErrorKind,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::direct_answer::{fixture_error, observe, observe_list, observe_other, of_error};
use crate::fixtures::FixtureSession;
use crate::infra_errors::run_error;
use crate::sessions::Session;
use crate::test_client::TestClient;

/// The pause between two looks for an answer to a cancelled call.
const LATE_POLL: Duration = Duration::from_millis(10);

/// A request with its values filled in.
#[derive(Debug)]
pub(crate) enum Filled<'t> {
    Tool {
        tool: &'t str,
        args: Cow<'t, Value>,
        task: Option<TaskSettings>,
    },
    Read {
        uri: String,
    },
    Prompt {
        prompt: &'t str,
        args: Value,
    },
    Complete {
        of: &'t Completed,
        argument: &'t str,
        typed: String,
        others: Map<String, Value>,
    },
    List(ListKind),
}

impl<'t> Filled<'t> {
    /// Inserts saved values into a request.
    pub fn new(request: &'t DirectRequest, session: &FixtureSession<'_>) -> Result<Self, RunError> {
        let object = |value: Cow<'_, Value>| match value.into_owned() {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Ok(match request {
            DirectRequest::Tool { tool, args, task } => Self::Tool {
                tool,
                args: session.fill(args)?,
                task: *task,
            },
            DirectRequest::Read { uri, .. } => {
                let filled = session.fill(uri)?;
                Self::Read {
                    uri: filled.get("uri").map(plain_text).unwrap_or_default(),
                }
            }
            DirectRequest::Expand { template, args, .. } => {
                let values = object(session.fill(args)?);
                let uri = template.expand(&values);
                let uri = uri.map_err(|error| fixture_error(error.to_string()))?;
                Self::Read { uri }
            }
            DirectRequest::Prompt { prompt, args } => Self::Prompt {
                prompt,
                args: texts(object(session.fill(args)?)).into(),
            },
            DirectRequest::Complete {
                of,
                argument,
                typed,
                args,
            } => Self::Complete {
                of,
                argument,
                typed: object(session.fill(typed)?)
                    .get(argument)
                    .map(plain_text)
                    .unwrap_or_default(),
                others: texts(object(session.fill(args)?)),
            },
            DirectRequest::List(kind) => Self::List(*kind),
        })
    }

    /// The method and the parameters, as a trace records them.
    pub fn recorded(&self) -> (&'static str, Value) {
        match self {
            Self::Tool { tool, args, .. } => {
                ("tools/call", json!({"name": tool, "arguments": args}))
            }
            Self::Read { uri } => ("resources/read", json!({ "uri": uri })),
            Self::Prompt { prompt, args } => {
                ("prompts/get", json!({"name": prompt, "arguments": args}))
            }
            Self::Complete {
                of,
                argument,
                typed,
                others,
            } => {
                let of = match of {
                    Completed::Prompt(name) => json!({"prompt": name}),
                    Completed::Template(template) => json!({"template": template}),
                };
                let params = json!({
                    "ref": of, "argument": {"name": argument, "value": typed}, "arguments": others,
                });
                ("completion/complete", params)
            }
            Self::List(kind) => (kind.method(), json!({})),
        }
    }
}

/// Arguments as text, which is what prompts and templates take. `null` is not a value.
fn texts(args: Map<String, Value>) -> Map<String, Value> {
    let given = args.into_iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name, plain_text(&value).into()))
        .collect()
}

/// The outcome of a request.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    /// The answer as assertions see it: `result` and `error`, and `task` and `cancellation`, where
    /// there are any.
    pub seen: Map<String, Value>,
    /// True for the answer of a tool, which the trace keeps as a result.
    pub is_of_tool: bool,
    /// The time from the request to its answer, without that of a credential.
    pub took: Duration,
}

impl Answered {
    fn of(seen: Value, took: Duration) -> Self {
        let seen = match seen {
            Value::Object(seen) => seen,
            _ => Map::new(),
        };
        Self {
            seen,
            is_of_tool: false,
            took,
        }
    }

    fn of_tool(outcome: CallOutcome, took: Duration) -> Self {
        Self {
            is_of_tool: true,
            ..Self::of(observe(outcome), took)
        }
    }

    /// A request that has no answer, because it was cancelled.
    fn none(took: Duration) -> Self {
        Self::of(json!({"result": null, "error": null}), took)
    }
}

/// Subscribes to the changes that a test listens to. A server that refuses it has answered.
pub(crate) async fn subscribe(
    test: &DirectTest,
    request: &Filled<'_>,
    session: &Session,
) -> Result<Result<Option<Subscription>, Answered>, RunError> {
    let mut wanted = WantedChanges::default();
    match request {
        Filled::Read { uri } if test.request.subscribes() => wanted.resources.push(uri.clone()),
        Filled::List(kind) if !test.trigger.is_empty() => wanted.lists.push(kind.changed()),
        // Other tests may listen to changes, too.
        _ if test.expects("list_changed") || test.expects("notifications") => {
            wanted.lists = vec!["tools", "resources", "prompts"];
            if !session.client.server().revision.is_stateless() {
                session.client.wait_until_listening().await;
                return Ok(Ok(None));
            }
        }
        _ => return Ok(Ok(None)),
    }
    let explicit = test.request.subscribes() || !test.trigger.is_empty();
    match session.client.subscribe(&wanted).await {
        Ok(Ok(subscription)) => Ok(Ok(Some(subscription))),
        // Not what the test is about.
        Ok(Err(_)) if !explicit => Ok(Ok(None)),
        Ok(Err(error)) => Ok(Err(Answered::of(of_error(&error), Duration::ZERO))),
        Err(error) => Err(run_error(&error)),
    }
}

/// Waits for the change that a test listens to.
pub(crate) async fn wait_for_change(test: &DirectTest, request: &Filled<'_>, client: &TestClient) {
    let (root, wanted) = match request {
        Filled::Read { uri } if test.request.subscribes() => ("updates", uri.as_str()),
        Filled::List(kind) if !test.trigger.is_empty() => ("list_changed", kind.changed()),
        _ => return,
    };
    let wanted = Value::from(wanted);
    let has_changed = |messages: &[Value]| {
        let changes = server_messages::view(messages, root);
        changes.is_some_and(|changes| {
            changes
                .as_array()
                .is_some_and(|changes| changes.contains(&wanted))
        })
    };
    // Without it, the request shows the state nevertheless.
    client.wait_for(test.wait, has_changed).await;
}

/// Makes a request.
pub(crate) async fn make(
    test: &DirectTest,
    request: &Filled<'_>,
    session: &Session,
    client: Option<&Arc<TestClient>>,
) -> Result<Answered, RunError> {
    let began = Instant::now();
    let options = session.call_options(test.timeout);
    let wire = &session.client;
    let failed = |error| run_error(&error);
    let (seen, waited) = match request {
        Filled::Tool { tool, args, task } => {
            if task.is_some() || test.cancel.is_some() {
                let call = (*tool, &**args, *task);
                return Box::pin(call_specially(test, call, session, client, options)).await;
            }
            let called = wire.call_tool_raw(tool, args, &options).await;
            let called = called.map_err(failed)?;
            let took = began.elapsed().saturating_sub(called.credential_wait);
            return Ok(Answered::of_tool(called.outcome, took));
        }
        Filled::Read { uri } => {
            let read = Box::pin(wire.read_resource(uri, &options)).await;
            let read = read.map_err(failed)?;
            (observe_other(read.outcome, Some(uri)), read.credential_wait)
        }
        Filled::Prompt { prompt, args } => {
            let got = Box::pin(wire.get_prompt(prompt, args, &options)).await;
            let got = got.map_err(failed)?;
            (observe_other(got.outcome, None), got.credential_wait)
        }
        Filled::Complete {
            of,
            argument,
            typed,
            others,
        } => {
            let of = match of {
                Completed::Prompt(name) => CompletionRef::Prompt(name.clone()),
                Completed::Template(template) => CompletionRef::Resource(template.clone()),
            };
            let completed = wire.complete(&of, argument, typed, Some(others), &options);
            let completed = Box::pin(completed).await.map_err(failed)?;
            (
                observe_other(completed.outcome, None),
                completed.credential_wait,
            )
        }
        Filled::List(kind) => {
            let listed = Box::pin(wire.list_pages(kind.method(), kind.key())).await;
            let listed = listed.map_err(failed)?;
            let waited = listed.as_ref().map(|list| list.credential_wait);
            let waited = waited.unwrap_or_default();
            (observe_list(*kind, listed), waited)
        }
    };
    Ok(Answered::of(seen, began.elapsed().saturating_sub(waited)))
}

/// Calls a tool as a task, or cancels its call.
async fn call_specially(
    test: &DirectTest,
    (tool, args, task): (&str, &Value, Option<TaskSettings>),
    session: &Session,
    client: Option<&Arc<TestClient>>,
    mut options: CallOptions,
) -> Result<Answered, RunError> {
    let began = Instant::now();
    let token = CancellationToken::new();
    if test.cancel.is_some() {
        options.cancel = Some(token.clone());
    }
    let cancelling = async {
        match (test.cancel, client) {
            (Some(CancelMoment::After(time)), _) => tokio::time::sleep(time).await,
            (Some(CancelMoment::On(event)), Some(client)) => client.wait_until(event).await,
            _ => std::future::pending().await,
        }
        token.cancel();
        std::future::pending::<()>().await
    };
    let calling = async {
        match task {
            Some(settings) => call_as_task(test, (tool, args, settings), session, &options).await,
            None => call_cancelled(test, (tool, args), session, &options).await,
        }
    };
    let mut answered = tokio::select! {
        answered = calling => answered?,
        () = cancelling => return Err(too_early(test)),
    };
    answered.took = began.elapsed();
    Ok(answered)
}

async fn call_as_task(
    test: &DirectTest,
    (tool, args, settings): (&str, &Value, TaskSettings),
    session: &Session,
    options: &CallOptions,
) -> Result<Answered, RunError> {
    let task_options = TaskOptions {
        ttl: settings.ttl,
        after_cancel: test.wait,
    };
    let called = session
        .client
        .call_tool_as_task(tool, args, &task_options, options)
        .await
        .map_err(|error| run_error(&error))?;
    let cancelled = called.task.as_ref().and_then(|task| task.cancel.as_ref());
    let cancellation = match cancelled {
        Some(outcome) => Some(json!({
            "sent": true,
            "error": match outcome {
                CallOutcome::Error(error) => json!(error),
                CallOutcome::Result(_) => Value::Null,
            },
            "responsive": session.answers().await,
        })),
        None if test.cancel.is_some() => return Err(too_early(test)),
        None => None,
    };
    let mut answered = match called.outcome {
        Some(outcome) => Answered::of_tool(outcome, Duration::ZERO),
        None => Answered::none(Duration::ZERO),
    };
    let task = match called.task {
        Some(record) => {
            let status = record.status().to_owned();
            let mut task = record.last;
            task.insert("status".to_owned(), status.into());
            task.insert("statuses".to_owned(), record.statuses.into());
            Value::Object(task)
        }
        None => Value::Null,
    };
    answered.seen.insert("task".to_owned(), task);
    if let Some(cancellation) = cancellation {
        answered
            .seen
            .insert("cancellation".to_owned(), cancellation);
    }
    Ok(answered)
}

async fn call_cancelled(
    test: &DirectTest,
    (tool, args): (&str, &Value),
    session: &Session,
    options: &CallOptions,
) -> Result<Answered, RunError> {
    let wire = &session.client;
    let late = wire.late_replies();
    match wire.call_tool(tool, args, options).await {
        Ok(_) => return Err(too_early(test)),
        Err(error) if error.kind() == WireErrorKind::Cancelled => {}
        Err(error) => return Err(run_error(&error)),
    }
    let responsive = session.answers().await;
    let until = Instant::now() + test.wait;
    while wire.late_replies() == late && Instant::now() < until {
        tokio::time::sleep(LATE_POLL).await;
    }
    let mut cancellation = json!({"sent": true, "responsive": responsive});
    if !session.is_over_http() {
        cancellation["answered"] = (wire.late_replies() > late).into();
    }
    let mut answered = Answered::none(Duration::ZERO);
    answered
        .seen
        .insert("cancellation".to_owned(), cancellation);
    Ok(answered)
}

/// The error of a call that ended before it could be cancelled: it says nothing about the server.
fn too_early(test: &DirectTest) -> RunError {
    let (moment, remedy) = match test.cancel {
        Some(CancelMoment::After(time)) => (
            format!("it was to be cancelled after {} ms", time.as_millis()),
            "cancel it earlier, or on an event (`cancel_on`)",
        ),
        Some(CancelMoment::On(event)) => {
            let event = match event {
                CancelOn::Progress => "reported progress",
                CancelOn::Log => "sent a log message",
                CancelOn::Request => "asked the client something",
            };
            (
                format!("it was to be cancelled when the server first {event}"),
                "use a call that does, or `cancel_after_ms`",
            )
        }
        None => (String::new(), ""),
    };
    RunError {
        kind: ErrorKind::Suite,
        message: format!("the call was answered before it was cancelled: {moment}; {remedy}"),
    }
}
