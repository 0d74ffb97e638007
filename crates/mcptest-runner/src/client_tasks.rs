//! Tasks of the client (2025-11-25): requests of a server that it wants to be answered later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_protocol::meta;
use mcptest_wire::{Answering, RpcError};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The time of every task. A clock would make reports differ.
const TIME: &str = "2026-01-01T00:00:00Z";

/// The pause between polls, as servers see it.
const POLL_INTERVAL_MS: u64 = 10;

const INVALID_PARAMS: i64 = -32602;

/// The outcome of a task.
type Outcome = Result<Value, RpcError>;

/// The tasks of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientTasks(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    created: u64,
    by_id: BTreeMap<String, Task>,
}

#[derive(Debug)]
struct Task {
    ttl: Value,
    cancelled: bool,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Task {
    fn status(&self) -> &'static str {
        match &*self.outcome.borrow() {
            _ if self.cancelled => "cancelled",
            None => "working",
            Some(Ok(_)) => "completed",
            Some(Err(_)) => "failed",
        }
    }

    fn describe(&self, id: &str) -> Value {
        json!({
            "taskId": id, "status": self.status(), "createdAt": TIME, "lastUpdatedAt": TIME,
            "ttl": self.ttl, "pollInterval": POLL_INTERVAL_MS,
        })
    }
}

/// Returns true if a server wants a request to be answered as a task.
pub(crate) fn is_wanted(params: Option<&Value>) -> bool {
    params.is_some_and(|params| params.get("task").is_some_and(Value::is_object))
}

impl ClientTasks {
    fn lock(&self) -> MutexGuard<'_, Tasks> {
        // A panic elsewhere leaves the map usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a task of an answer, and returns the answer that names it.
    pub fn create(&self, params: Option<&Value>, answering: Answering) -> Answering {
        let (sender, outcome) = watch::channel(None);
        match answering {
            Answering::Now(answer) => drop(sender.send_replace(Some(answer))),
            Answering::Refuse(error) => drop(sender.send_replace(Some(Err(error)))),
            // Ends with the runtime at the latest.
            Answering::Later(answer) => drop(tokio::spawn(async move {
                let answer = answer.await;
                sender.send_replace(Some(answer));
            })),
            end @ Answering::End(_) => return end,
        }
        let ttl = params.and_then(|params| params.get("task")?.get("ttl"));
        let task = Task {
            ttl: ttl.cloned().unwrap_or_default(),
            cancelled: false,
            outcome,
        };
        let mut tasks = self.lock();
        tasks.created += 1;
        let id = format!("client-task-{}", tasks.created);
        // The server has to see it begin.
        let mut described = task.describe(&id);
        described["status"] = "working".into();
        tasks.by_id.insert(id, task);
        Answering::Now(Ok(json!({ "task": described })))
    }

    /// Answers a request about tasks; `None` for other methods.
    pub fn asked(self: &Arc<Self>, method: &str, params: Option<&Value>) -> Option<Answering> {
        if method == "tasks/list" {
            let tasks = self.lock();
            let listed = tasks.by_id.iter().map(|(id, task)| task.describe(id));
            let listed: Vec<Value> = listed.collect();
            return Some(Answering::Now(Ok(json!({ "tasks": listed }))));
        }
        if !matches!(method, "tasks/get" | "tasks/result" | "tasks/cancel") {
            return None;
        }
        let id = params.and_then(|params| params.get("taskId")?.as_str());
        let id = id.unwrap_or_default();
        let mut tasks = self.lock();
        let Some(task) = tasks.by_id.get_mut(id) else {
            return Some(refuse("Failed to retrieve task: Task not found"));
        };
        Some(match method {
            "tasks/cancel" if task.status() != "working" => {
                refuse("Cannot cancel task: it has ended")
            }
            "tasks/cancel" => {
                task.cancelled = true;
                Answering::Now(Ok(task.describe(id)))
            }
            "tasks/result" if task.cancelled => refuse("The task was cancelled"),
            "tasks/result" => {
                let mut outcome = task.outcome.clone();
                let related = json!({ "taskId": id });
                Answering::Later(Box::pin(async move {
                    let ended = outcome.wait_for(Option::is_some).await;
                    let ended = ended.ok().and_then(|ended| ended.clone());
                    let ended = ended.unwrap_or_else(|| Err(error("The task was lost")));
                    ended.map(|mut result| {
                        result["_meta"] = json!({ meta::RELATED_TASK: related });
                        result
                    })
                }))
            }
            _ => Answering::Now(Ok(task.describe(id))),
        })
    }
}

fn refuse(message: &str) -> Answering {
    Answering::Now(Err(error(message)))
}

fn error(message: &str) -> RpcError {
    RpcError {
        code: INVALID_PARAMS,
        message: message.to_owned(),
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(answering: Answering) -> Outcome {
        match answering {
            Answering::Now(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_request_as_a_task_is_polled_and_fetched() {
        let tasks = Arc::new(ClientTasks::default());
        let params = json!({"task": {"ttl": 500}});
        assert!(is_wanted(Some(&params)) && !is_wanted(Some(&json!({}))));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let later = Answering::Later(Box::pin(async move {
            let _ = released.await;
            Ok(json!({"role": "assistant"}))
        }));
        let created = now(tasks.create(Some(&params), later)).unwrap();
        assert_eq!(created["task"]["status"], "working");
        assert_eq!(created["task"]["ttl"], 500);
        let id = json!({"taskId": created["task"]["taskId"]});
        let ask = |method: &str| tasks.asked(method, Some(&id)).unwrap();
        assert_eq!(now(ask("tasks/get")).unwrap()["status"], "working");
        let Answering::Later(result) = ask("tasks/result") else {
            panic!("the task is in progress");
        };
        release.send(()).unwrap();
        let result = result.await.unwrap();
        assert_eq!(result["role"], "assistant");
        assert_eq!(result["_meta"][meta::RELATED_TASK], id);
        assert_eq!(now(ask("tasks/get")).unwrap()["status"], "completed");
        assert!(now(ask("tasks/cancel")).is_err());
        let listed = now(tasks.asked("tasks/list", None).unwrap()).unwrap();
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1));
        assert!(tasks.asked("roots/list", None).is_none());
        let unknown = json!({"taskId": "x"});
        assert!(now(tasks.asked("tasks/get", Some(&unknown)).unwrap()).is_err());
    }
}
