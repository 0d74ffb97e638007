//! Tool calls of agents: as tasks, where tools require them.

use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_wire::{CallOutcome, TaskOptions};
use serde_json::Value;

use crate::infra_errors::run_error;
use crate::sessions::Session;

impl Session {
    /// Calls a tool for an agent: as a task, if it requires one and the suite allows it.
    pub async fn call_for_agent(&self, tool: &str, args: &Value) -> Result<CallOutcome, RunError> {
        let uses_tasks = self
            .test_client
            .as_ref()
            .is_some_and(|one| one.listening.tasks);
        if !uses_tasks || !self.requires_task(tool).await {
            return self.call(tool, args, None).await;
        }
        let options = self.call_options(None);
        let task_options = TaskOptions::default();
        let call = self
            .client
            .call_tool_as_task(tool, args, &task_options, &options);
        let called = Box::pin(call).await.map_err(|error| run_error(&error))?;
        called.outcome.ok_or_else(|| RunError {
            kind: ErrorKind::Protocol,
            message: format!("the task of tool `{tool}` was cancelled by the server"),
        })
    }

    /// Returns true if a tool can be called as a task only. In the stateless revision the server
    /// decides about every call, so every tool may need one.
    async fn requires_task(&self, tool: &str) -> bool {
        if self.client.server().revision.is_stateless() {
            return true;
        }
        let listed = self.listing().await.unwrap_or_default();
        listed.iter().any(|entry| {
            entry.get("name").and_then(Value::as_str) == Some(tool)
                && task_support(entry) == Some("required")
        })
    }
}

/// The support of a listed tool for tasks: `required`, `optional` or `forbidden`.
pub(crate) fn task_support(tool: &Value) -> Option<&str> {
    tool.get("execution")?.get("taskSupport")?.as_str()
}
