//! Tasks: tool calls whose result is fetched later.
//!
//! A task advances when it is polled, not by a clock: the mock stays a function of its messages. In
//! 2025-11-25 the client asks for a task, polls it by `tasks/get` and fetches its result by
//! `tasks/result`. In the extension of 2026-07-28 the server makes one for every client that
//! declares the extension; the result comes with the status, and requests to the client are
//! answered by `tasks/update`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcptest_protocol::{Revision, is_terminal, meta as meta_keys};
use serde_json::{Map, Value, json};

use crate::ask::{is_declared, requests, send};
use crate::callable_tool::{CallableTool, respond};
use crate::caller::Caller;
use crate::deferred::{CallContext, Continuation, Schedule, Work};
use crate::jsonrpc::{
    METHOD_NOT_FOUND, MISSING_CAPABILITY, RpcError, clip, string_param, write_json,
};
use crate::listed::{Listed, Outcome, ResultKind, members};
use crate::manifest::{TaskSpec, TaskSupport};

/// The largest number of tasks that are kept; the oldest is forgotten first.
const MAX_TASKS: usize = 1000;

/// The time of every task. A clock would make answers differ.
const TIME: &str = "2026-01-01T00:00:00Z";

/// The tasks of a server.
#[derive(Debug, Default)]
pub(crate) struct TaskStore {
    /// True if a tool can be called as a task.
    pub(crate) enabled: bool,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    created: u64,
    by_id: BTreeMap<String, Task>,
    order: VecDeque<String>,
}

#[derive(Debug, Clone)]
struct Task {
    tool: String,
    arguments: Value,
    spec: TaskSpec,
    status: &'static str,
    /// The number of polls until it continues.
    polls_left: u32,
    /// True if it never ends.
    hangs: bool,
    /// The round of requests to the client that is next or open.
    round: usize,
    answers: Map<String, Value>,
    /// The outcome: the members of a result, or an error.
    outcome: Option<Result<Vec<u8>, RpcError>>,
    context: CallContext,
}

/// Returns true if a call creates a task.
///
/// # Errors
/// The tool needs a task and the client does not ask for one, or the other way round.
pub(crate) fn wants_task(
    spec: Option<TaskSpec>,
    tasks: &TaskStore,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
) -> Result<bool, RpcError> {
    let required = spec.is_some_and(|spec| spec.support == TaskSupport::Required);
    if caller.revision.is_stateless() {
        if required && !declares_tasks(caller) {
            return Err(missing_extension());
        }
        return Ok(spec.is_some() && declares_tasks(caller));
    }
    let name = params.get("name").and_then(Value::as_str);
    let refuse = |what: &str| {
        let name = clip(name.unwrap_or_default());
        RpcError::new(METHOD_NOT_FOUND, format!("Tool {name} {what}"))
    };
    let asked = caller.revision >= Revision::V2025_11_25
        && params.get("task").is_some_and(Value::is_object);
    match (spec, asked) {
        (Some(_), true) => Ok(true),
        // A server without tasks ignores the parameter.
        (None, true) if tasks.enabled => Err(refuse("cannot be called as a task")),
        (Some(_), false) if required => Err(refuse("requires a task")),
        _ => Ok(false),
    }
}

fn declares_tasks(caller: &Caller<'_>) -> bool {
    let extensions = caller.capabilities.and_then(|all| all.get("extensions"));
    extensions.is_some_and(|all| all.get(meta_keys::TASKS_EXTENSION).is_some())
}

fn missing_extension() -> RpcError {
    let required = json!({"extensions": {meta_keys::TASKS_EXTENSION: {}}});
    RpcError::new(MISSING_CAPABILITY, "Missing required client capability")
        .with_data(json!({ "requiredCapabilities": required }))
}

impl TaskStore {
    pub(crate) fn new(tools: Option<&Listed<CallableTool>>) -> Self {
        let mut callable = tools.into_iter().flat_map(|tools| tools.by_name.values());
        Self {
            enabled: callable.any(|tool| tool.task.is_some()),
            tasks: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        // A panic elsewhere leaves the map usable.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a task.
    pub(crate) fn create<'a>(
        &self,
        (tool, spec): (&str, TaskSpec),
        caller: &Caller<'_>,
        arguments: &Value,
        answers: Map<String, Value>,
        hangs: bool,
    ) -> Outcome<'a> {
        let has_answers = !answers.is_empty();
        let task = Task {
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            spec,
            status: "working",
            polls_left: spec.polls,
            hangs,
            // What was asked before is not asked again.
            round: if has_answers { usize::MAX } else { 0 },
            answers,
            outcome: None,
            context: caller.context(),
        };
        let mut tasks = self.lock();
        tasks.created += 1;
        let id = format!("task-{}", tasks.created);
        let described = describe(&id, &task, caller.revision);
        tasks.by_id.insert(id.clone(), task);
        tasks.order.push_back(id);
        if tasks.order.len() > MAX_TASKS
            && let Some(oldest) = tasks.order.pop_front()
        {
            tasks.by_id.remove(&oldest);
        }
        drop(tasks);
        let result = match caller.revision.is_stateless() {
            true => described,
            false => json!({ "task": described }),
        };
        Outcome::of(ResultKind::Task, members(&result))
    }

    /// Answers a request about tasks; `None` for other methods.
    pub(crate) fn request<'a>(
        &self,
        tools: Option<&Listed<CallableTool>>,
        caller: &Caller<'_>,
        method: &str,
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Option<Result<Outcome<'a>, RpcError>> {
        let stateless = caller.revision.is_stateless();
        let is_known = match method {
            "tasks/get" | "tasks/cancel" => true,
            "tasks/update" => stateless,
            "tasks/result" | "tasks/list" => !stateless,
            _ => false,
        };
        let has_tasks = stateless || caller.revision >= Revision::V2025_11_25;
        let tools = tools.filter(|_| is_known && has_tasks && self.enabled)?;
        Some(match method {
            _ if stateless && !declares_tasks(caller) => Err(missing_extension()),
            "tasks/get" => self.get(tools, caller, params),
            "tasks/result" => self.result(tools, caller, params, schedule),
            "tasks/update" => self.update(tools, caller, params),
            "tasks/cancel" => self.cancel(caller, params),
            _ => Ok(self.list(caller)),
        })
    }

    /// The status of a task, which advances by it.
    fn get<'a>(
        &self,
        tools: &Listed<CallableTool>,
        caller: &Caller<'_>,
        params: &Map<String, Value>,
    ) -> Result<Outcome<'a>, RpcError> {
        let id = string_param(params, "taskId")?;
        let mut tasks = self.lock();
        let task = tasks.by_id.get_mut(id).ok_or_else(unknown)?;
        let tool = tools.by_name.get(&task.tool).ok_or_else(unknown)?;
        if task.status == "working" && !task.hangs {
            if task.polls_left > 0 {
                task.polls_left -= 1;
            } else if task.has_questions(tool, caller) {
                task.status = "input_required";
            } else {
                task.finish(tool, caller);
            }
        }
        let mut described = describe(id, task, caller.revision);
        if !caller.revision.is_stateless() {
            return Ok(Outcome::fresh(members(&described)));
        }
        match &task.outcome {
            Some(Ok(result)) => {
                let mut text = b"{".to_vec();
                text.extend_from_slice(result);
                text.push(b'}');
                described["result"] = serde_json::from_slice(&text).unwrap_or_default();
            }
            Some(Err(error)) => described["error"] = error_of(error),
            None if task.status == "input_required" => {
                let mut text = b"{".to_vec();
                let pending = task.pending(tool, caller);
                text.extend(requests(pending, &task.arguments, &task.answers));
                text.push(b'}');
                described["inputRequests"] = serde_json::from_slice(&text).unwrap_or_default();
            }
            None => {}
        }
        Ok(Outcome::fresh(members(&described)))
    }

    /// The result of a task (2025-11-25). One that is in progress ends now, after the client has
    /// answered its requests.
    fn result<'a>(
        &self,
        tools: &Listed<CallableTool>,
        caller: &Caller<'_>,
        params: &Map<String, Value>,
        schedule: &mut Schedule,
    ) -> Result<Outcome<'a>, RpcError> {
        let id = string_param(params, "taskId")?;
        let mut tasks = self.lock();
        let task = tasks.by_id.get_mut(id).ok_or_else(unknown)?;
        let tool = tools.by_name.get(&task.tool).ok_or_else(unknown)?;
        if task.outcome.is_none() && task.hangs && task.status == "working" {
            schedule.never = true;
            return Ok(Outcome::fresh(Vec::new()));
        }
        if !is_terminal(task.status) && task.has_questions(tool, caller) {
            task.status = "input_required";
            let meta = json!({meta_keys::RELATED_TASK: {"taskId": id}});
            let asks = tool.ask.iter().flatten();
            let sent = send(asks, caller, &task.arguments, Some(&meta), schedule);
            let asked = match sent {
                Ok(asked) => asked,
                Err(refused) => return Ok(refused),
            };
            schedule.rest = Some(Box::new(Continuation {
                work: Work::TaskResult(id.to_owned()),
                asked,
                answers: Map::new(),
                context: caller.context(),
            }));
            return Ok(Outcome::fresh(Vec::new()));
        }
        if !is_terminal(task.status) {
            task.finish(tool, caller);
        }
        task.related_result(id)
    }

    /// The result of a task whose requests the client has answered.
    pub(crate) fn resume<'a>(
        &self,
        tools: &Listed<CallableTool>,
        caller: &Caller<'_>,
        id: &str,
        answers: Map<String, Value>,
    ) -> Result<Outcome<'a>, RpcError> {
        let mut tasks = self.lock();
        let task = tasks.by_id.get_mut(id).ok_or_else(unknown)?;
        let tool = tools.by_name.get(&task.tool).ok_or_else(unknown)?;
        if !is_terminal(task.status) {
            task.answers.extend(answers);
            task.round = usize::MAX;
            task.finish(tool, caller);
        }
        task.related_result(id)
    }

    /// Keeps answers of the client (2026-07-28).
    fn update<'a>(
        &self,
        tools: &Listed<CallableTool>,
        caller: &Caller<'_>,
        params: &Map<String, Value>,
    ) -> Result<Outcome<'a>, RpcError> {
        let id = string_param(params, "taskId")?;
        let Some(given) = params.get("inputResponses").and_then(Value::as_object) else {
            return Err(RpcError::invalid_params(
                "Invalid params: inputResponses is not an object",
            ));
        };
        let mut tasks = self.lock();
        let task = tasks.by_id.get_mut(id).ok_or_else(unknown)?;
        let tool = tools.by_name.get(&task.tool).ok_or_else(unknown)?;
        if task.status == "input_required" {
            let open: Vec<String> = task
                .pending(tool, caller)
                .map(|ask| ask.key.clone())
                .collect();
            // Others were never asked, or are answered.
            for key in open {
                if let Some(answer) = given.get(&key) {
                    task.answers.insert(key, answer.clone());
                }
            }
            if task.pending(tool, caller).next().is_none() {
                task.round += 1;
                task.status = "working";
            }
        }
        Ok(Outcome::fresh(Vec::new()))
    }

    fn cancel<'a>(
        &self,
        caller: &Caller<'_>,
        params: &Map<String, Value>,
    ) -> Result<Outcome<'a>, RpcError> {
        let id = string_param(params, "taskId")?;
        let mut tasks = self.lock();
        let task = tasks.by_id.get_mut(id).ok_or_else(unknown)?;
        let has_ended = is_terminal(task.status);
        if !has_ended {
            task.status = "cancelled";
        }
        if caller.revision.is_stateless() {
            return Ok(Outcome::fresh(Vec::new()));
        }
        if has_ended {
            return Err(RpcError::invalid_params(format!(
                "Cannot cancel task: it is {}",
                task.status
            )));
        }
        Ok(Outcome::fresh(members(&describe(
            id,
            task,
            caller.revision,
        ))))
    }

    fn list<'a>(&self, caller: &Caller<'_>) -> Outcome<'a> {
        let tasks = self.lock();
        let listed = tasks.order.iter().filter_map(|id| {
            let task = tasks.by_id.get(id)?;
            Some(describe(id, task, caller.revision))
        });
        let listed: Vec<Value> = listed.collect();
        Outcome::fresh(members(&json!({ "tasks": listed })))
    }
}

impl Task {
    /// The requests of the open round that are not answered.
    fn pending<'t>(
        &'t self,
        tool: &'t CallableTool,
        caller: &'t Caller<'_>,
    ) -> impl Iterator<Item = &'t crate::compile::Ask> {
        let round = tool.ask.get(self.round).into_iter().flatten();
        round
            .filter(|ask| is_declared(ask, caller))
            .filter(|ask| !self.answers.contains_key(&ask.key))
    }

    /// Returns true if it waits for the client. A round of which the client can answer nothing is
    /// left out.
    fn has_questions(&mut self, tool: &CallableTool, caller: &Caller<'_>) -> bool {
        while self.round < tool.ask.len() {
            if self.pending(tool, caller).next().is_some() {
                return true;
            }
            self.round += 1;
        }
        false
    }

    /// Ends it with the answer of its tool.
    fn finish(&mut self, tool: &CallableTool, caller: &Caller<'_>) {
        let nothing = Map::new();
        // Messages before the answer have no place in a task; changes happen nevertheless.
        let mut schedule = Schedule::default();
        let answers = Value::Object(self.answers.clone());
        let database = caller.database.map(|(image, _)| image);
        let caller = Caller {
            database: database.zip(self.context.database.as_ref()),
            changes: &self.context.changes,
            ..*caller
        };
        let outcome = respond(
            tool,
            &caller,
            &nothing,
            &self.arguments,
            &answers,
            &mut schedule,
        );
        let outcome = outcome.map(|outcome| outcome.members.into_owned());
        self.status = match &outcome {
            Err(_) => "failed",
            Ok(result) if !caller.revision.is_stateless() && is_error(result) => "failed",
            Ok(_) => "completed",
        };
        self.outcome = Some(outcome);
    }

    /// The answer to `tasks/result`, which names the task.
    fn related_result<'a>(&self, id: &str) -> Result<Outcome<'a>, RpcError> {
        let result = match &self.outcome {
            Some(Ok(result)) => result,
            Some(Err(error)) => return Err(error.clone()),
            None => {
                return Err(RpcError::invalid_params(format!(
                    "The task has no result: it is {}",
                    self.status
                )));
            }
        };
        let mut text = result.clone();
        text.extend_from_slice(br#","_meta":"#);
        write_json(&mut text, &json!({meta_keys::RELATED_TASK: {"taskId": id}}));
        Ok(Outcome::fresh(text))
    }
}

/// Returns true if the members of a result have `isError`.
fn is_error(result: &[u8]) -> bool {
    let mut text = b"{".to_vec();
    text.extend_from_slice(result);
    text.push(b'}');
    let result: Value = serde_json::from_slice(&text).unwrap_or_default();
    result.get("isError") == Some(&Value::Bool(true))
}

/// A task as clients see it.
fn describe(id: &str, task: &Task, revision: Revision) -> Value {
    let (ttl, interval) = match revision.is_stateless() {
        true => ("ttlMs", "pollIntervalMs"),
        false => ("ttl", "pollInterval"),
    };
    json!({
        "taskId": id, "status": task.status, "createdAt": TIME, "lastUpdatedAt": TIME,
        ttl: task.spec.ttl_ms, interval: task.spec.poll_interval_ms,
    })
}

fn error_of(error: &RpcError) -> Value {
    let mut value = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        value["data"] = data.clone();
    }
    value
}

fn unknown() -> RpcError {
    RpcError::invalid_params("Failed to retrieve task: Task not found")
}
