//! Tool calls that the server executes as tasks.
//!
//! In 2025-11-25 (experimental) the client asks for a task: the call is answered with a task, whose
//! status is polled by `tasks/get` and whose result is requested by `tasks/result`. In the
//! extension of 2026-07-28 the server decides: `resultType: "task"` is a task, whose result comes
//! with its status, and whose questions are answered by `tasks/update`.

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use mcptest_protocol::{is_terminal, malformed_tool_result, task_of};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::calls::{InputCall, Unanswered};
use crate::client::Client;
use crate::connection::Action;
use crate::error::{WireError, WireErrorKind};
use crate::handshake::show_error;
use crate::jsonrpc::{CallOutcome, Params, Response, RpcError};
use crate::options::CallOptions;
use crate::time::{after, show_duration};
use mcptest_http::text::quote;

/// The bounds of the pause between two polls; within them it is the server's.
const MIN_POLL: Duration = Duration::from_millis(10);
const MAX_POLL: Duration = Duration::from_secs(60);

/// The pause where the server sets none.
const DEFAULT_POLL: Duration = Duration::from_millis(100);

/// The largest number of statuses that are kept. A server could alternate between two.
const MAX_STATUSES: usize = 1000;

/// The time for the answer to `tasks/cancel` after the call has timed out.
const CANCEL_WAIT: Duration = Duration::from_secs(1);

/// Settings for a call as a task.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskOptions {
    /// The time that the server should keep the task (2025-11-25).
    pub ttl: Option<Duration>,
    /// The time to wait for the end of a task after it was cancelled.
    pub after_cancel: Duration,
}

/// A tool call as a task, when it has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskCall {
    /// The answer to the call; none if the task was cancelled before it ended.
    pub outcome: Option<CallOutcome>,
    /// The task; none if the server answered without one.
    pub task: Option<TaskRecord>,
}

/// The life of a task, as far as it was seen.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The statuses in order, each once in a row.
    pub statuses: Vec<String>,
    /// The task as the server described it last, without its result.
    pub last: Map<String, Value>,
    /// The answer to `tasks/cancel`, if it was sent.
    pub cancel: Option<CallOutcome>,
}

impl TaskRecord {
    /// The last status.
    #[must_use]
    pub fn status(&self) -> &str {
        self.statuses.last().map_or("", String::as_str)
    }
}

/// A task that is in progress.
struct Task<'a> {
    client: &'a Client,
    action: Action<'a>,
    id: String,
    record: TaskRecord,
    /// The names of questions that have been answered.
    answered: HashSet<String>,
    /// The request for the result (2025-11-25).
    result: Option<JoinHandle<Result<Response, WireError>>>,
}

impl Client {
    /// Calls a tool as a task. Without a capability of the server for tasks, it is an ordinary call
    /// that still asks for one: the server's reaction is what a test wants to see.
    ///
    /// If [`CallOptions::cancel`] is cancelled, the task is cancelled by `tasks/cancel` as soon as
    /// it has been created.
    pub async fn call_tool_as_task(
        &self,
        name: &str,
        args: &Value,
        task_options: &TaskOptions,
        options: &CallOptions,
    ) -> Result<TaskCall, WireError> {
        let action = format!("calling tool `{}` as a task", quote(name, 120));
        self.check_annotation(name, &action)?;
        let limit = options.timeout.unwrap_or(self.options().call_timeout);
        let deadline = after(limit);
        let stateless = self.server().revision.is_stateless();
        let mut params = json!({ "name": name });
        if !args.is_null() {
            params["arguments"] = args.clone();
        }
        if !stateless {
            params["task"] = match task_options.ttl {
                Some(ttl) => json!({ "ttl": millis(ttl) }),
                None => json!({}),
            };
        }
        let call = InputCall {
            method: "tools/call",
            params: Params::Value(params),
            action: &action,
            malformed: malformed_created_task,
            also: stateless.then_some("task"),
        };
        let creating = CallOptions {
            cancel: None,
            ..options.clone()
        };
        let response = self.request_with_input(call, Some(name), &creating).await?;
        let result = match &response.outcome {
            CallOutcome::Result(result) => result,
            CallOutcome::Error(_) => return Ok(without_task(response.outcome)),
        };
        let created = match stateless {
            true if result.get("resultType").and_then(Value::as_str) == Some("task") => {
                Some(result)
            }
            true => None,
            false => result.get("task"),
        };
        let Some(created) = created else {
            self.check_form(malformed_tool_result, result, &action)?;
            return Ok(without_task(response.outcome));
        };
        let mut task = Task::new(self, &action, created)?;
        let ended = timeout(
            deadline.saturating_duration_since(Instant::now()),
            task.follow(options, task_options),
        )
        .await;
        match ended {
            Ok(outcome) => Ok(TaskCall {
                outcome: outcome?,
                task: Some(task.record.clone()),
            }),
            Err(_) => {
                let status = task.record.status().to_owned();
                // The server must not continue work whose result is not read.
                let _ = timeout(CANCEL_WAIT, task.request("tasks/cancel")).await;
                Err(self.failure(
                    WireErrorKind::Timeout,
                    &action,
                    format!(
                        "the task did not end within {}; its last status is `{status}`",
                        show_duration(limit)
                    ),
                ))
            }
        }
    }
}

fn without_task(outcome: CallOutcome) -> TaskCall {
    TaskCall {
        outcome: Some(outcome),
        task: None,
    }
}

/// Accepts a task as well as a tool result.
fn malformed_created_task(result: &Value) -> Option<String> {
    match result.get("task") {
        Some(_) => None,
        None => malformed_tool_result(result),
    }
}

impl<'a> Task<'a> {
    fn new(client: &'a Client, action: Action<'a>, created: &Value) -> Result<Self, WireError> {
        let mut task = Self {
            client,
            action,
            id: String::new(),
            record: TaskRecord {
                statuses: Vec::new(),
                last: Map::new(),
                cancel: None,
            },
            answered: HashSet::new(),
            result: None,
        };
        let (id, _) = task_of(created).map_err(|problem| task.malformed(problem, created))?;
        task.id = id.to_owned();
        task.observe(created)?;
        Ok(task)
    }

    fn malformed(&self, problem: impl Display, task: &Value) -> WireError {
        let shown = quote(&task.to_string(), 300);
        let detail = format!("the task is malformed: {problem}: {shown}");
        self.client.protocol_error(self.action, detail)
    }

    /// Records a description of the task, and returns its status.
    fn observe(&mut self, task: &Value) -> Result<String, WireError> {
        let (id, status) = task_of(task).map_err(|problem| self.malformed(problem, task))?;
        if id != self.id {
            return Err(self.malformed("it has another `taskId` than was asked for", task));
        }
        let status = status.to_owned();
        if self.record.statuses.last() != Some(&status) {
            if self.record.statuses.len() >= MAX_STATUSES {
                let detail = format!("the task changed its status more than {MAX_STATUSES} times");
                return Err(self.client.protocol_error(self.action, detail));
            }
            self.record.statuses.push(status.clone());
        }
        let hidden = ["result", "error", "inputRequests", "resultType", "_meta"];
        let members = task.as_object().into_iter().flatten();
        self.record.last = members
            .filter(|(key, _)| !hidden.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        Ok(status)
    }

    /// Follows the task to its end, and cancels it when it is asked to.
    async fn follow(
        &mut self,
        options: &CallOptions,
        task_options: &TaskOptions,
    ) -> Result<Option<CallOutcome>, WireError> {
        let Some(cancel) = options.cancel.clone() else {
            return self.poll().await;
        };
        tokio::select! {
            biased;
            outcome = self.poll() => return outcome,
            () = cancel.cancelled() => {}
        }
        let response = self.request("tasks/cancel").await?;
        if let CallOutcome::Result(result) = &response.outcome
            && result.get("status").is_some()
        {
            self.observe(result)?;
        }
        self.record.cancel = Some(response.outcome);
        match timeout(task_options.after_cancel, self.poll()).await {
            Ok(outcome) => outcome,
            // Cancellation is cooperative: the task may continue.
            Err(_) => Ok(None),
        }
    }

    /// Polls until the task has ended.
    async fn poll(&mut self) -> Result<Option<CallOutcome>, WireError> {
        let stateless = self.client.server().revision.is_stateless();
        loop {
            let status = self.record.status().to_owned();
            // The status that the cancellation, or the creation, was answered with.
            if is_terminal(&status) && !stateless {
                return self.result_of(&status).await;
            }
            if status == "input_required" && !stateless {
                // The questions come while the result is awaited.
                self.await_result();
            }
            if !self.record.statuses.is_empty() {
                self.pause().await;
            }
            let response = self.request("tasks/get").await?;
            let task = match response.outcome {
                CallOutcome::Result(task) => task,
                CallOutcome::Error(error) => return Err(self.refused("tasks/get", &error)),
            };
            let status = self.observe(&task)?;
            if !stateless {
                continue;
            }
            match status.as_str() {
                "completed" => {
                    let result = task.get("result").cloned().unwrap_or_default();
                    self.client
                        .check_form(malformed_tool_result, &result, self.action)?;
                    return Ok(Some(CallOutcome::Result(result)));
                }
                "failed" => return self.error_of(&task).map(Some),
                "cancelled" => return Ok(None),
                "input_required" => {
                    if let Some(error) = self.answer(&task).await? {
                        // Nobody waits for it any more.
                        let _ = self.request("tasks/cancel").await;
                        return Ok(Some(CallOutcome::Error(error)));
                    }
                }
                _ => {}
            }
        }
    }

    /// Waits for the next poll, but not longer than until the result is there.
    async fn pause(&mut self) {
        let interval = ["pollIntervalMs", "pollInterval"]
            .iter()
            .find_map(|key| self.record.last.get(*key)?.as_u64());
        let pause = interval.map_or(DEFAULT_POLL, Duration::from_millis);
        let pause = sleep(pause.clamp(MIN_POLL, MAX_POLL));
        match &self.result {
            Some(result) if !result.is_finished() => {
                tokio::pin!(pause);
                let mut tick = tokio::time::interval(MIN_POLL);
                loop {
                    tokio::select! {
                        () = &mut pause => return,
                        _ = tick.tick() => if result.is_finished() {
                            return;
                        },
                    }
                }
            }
            _ => pause.await,
        }
    }

    /// Requests the result, unless that has been done. It comes when the task has ended.
    fn await_result(&mut self) {
        if self.result.is_some() {
            return;
        }
        let client = self.client.clone();
        let params = json!({ "taskId": self.id });
        let action = self.action.to_string();
        let limit = client.options().call_timeout;
        self.result = Some(tokio::spawn(async move {
            let params = Params::Value(params);
            client
                .send("tasks/result", params, limit, None, &action)
                .await
        }));
    }

    /// The result of a task that has ended.
    async fn result_of(&mut self, status: &str) -> Result<Option<CallOutcome>, WireError> {
        if status == "cancelled" {
            return Ok(None);
        }
        self.await_result();
        let Some(result) = self.result.take() else {
            return Ok(None);
        };
        let response = match result.await {
            Ok(response) => response?,
            // The task of the runtime panicked.
            Err(_) => {
                let detail = "the result was lost".to_owned();
                return Err(self.client.protocol_error(self.action, detail));
            }
        };
        if let CallOutcome::Result(result) = &response.outcome {
            self.client
                .check_form(malformed_tool_result, result, self.action)?;
        }
        Ok(Some(response.outcome))
    }

    /// The error of a task that has failed (2026-07-28).
    fn error_of(&self, task: &Value) -> Result<CallOutcome, WireError> {
        let error = task.get("error");
        let code = error.and_then(|error| error.get("code")?.as_i64());
        let message = error.and_then(|error| error.get("message")?.as_str());
        match (code, message) {
            (Some(code), Some(message)) => Ok(CallOutcome::Error(RpcError {
                code,
                message: message.to_owned(),
                data: error.and_then(|error| error.get("data").cloned()),
            })),
            _ => Err(self.malformed("a failed task needs an `error`", task)),
        }
    }

    /// Answers the questions of a task that were not answered before (2026-07-28). Returns the
    /// error with which the client refuses one.
    async fn answer(&mut self, task: &Value) -> Result<Option<RpcError>, WireError> {
        let Some(questions) = task.get("inputRequests").and_then(Value::as_object) else {
            return Err(self.malformed("`inputRequests` is not an object", task));
        };
        let new: Map<String, Value> = questions
            .iter()
            .filter(|(name, _)| !self.answered.contains(name.as_str()))
            .map(|(name, question)| (name.clone(), question.clone()))
            .collect();
        if new.is_empty() {
            return Ok(None);
        }
        self.answered.extend(new.keys().cloned());
        if self.answered.len() > MAX_STATUSES {
            let detail = format!("the task asked more than {MAX_STATUSES} questions");
            return Err(self.client.protocol_error(self.action, detail));
        }
        let questions = Value::Object(new);
        let answers = match self.client.answer_questions(&questions, self.action).await {
            Ok(answers) => answers,
            Err(Unanswered::Failed(error)) => return Err(error),
            Err(Unanswered::Refused(error)) => return Ok(Some(error)),
        };
        let params = json!({ "taskId": self.id, "inputResponses": answers });
        match self.send("tasks/update", params).await?.outcome {
            CallOutcome::Result(_) => Ok(None),
            CallOutcome::Error(error) => Err(self.refused("tasks/update", &error)),
        }
    }

    async fn request(&self, method: &str) -> Result<Response, WireError> {
        self.send(method, json!({ "taskId": self.id })).await
    }

    async fn send(&self, method: &str, params: Value) -> Result<Response, WireError> {
        let limit = self.client.options().call_timeout;
        let params = Params::Value(params);
        self.client
            .send(method, params, limit, None, self.action)
            .await
    }

    fn refused(&self, method: &str, error: &RpcError) -> WireError {
        let detail = format!("the server answered {method} with {}", show_error(error));
        self.client.protocol_error(self.action, detail)
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if let Some(result) = &self.result {
            result.abort();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
