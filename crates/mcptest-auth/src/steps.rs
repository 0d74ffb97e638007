//! The steps of an authorization, so that a failure can be explained.

use std::sync::{Mutex, PoisonError};

use mcptest_http::text::quote;
use serde::Serialize;

/// The maximum length of an action or a detail, in characters.
const MAX_CHARS: usize = 600;

/// The number of steps that are kept; a server that refuses forever would add more.
const MAX_STEPS: usize = 40;

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It succeeded.
    Ok,
    /// It had no result, and another step was tried.
    Skipped,
    /// The authorization failed here.
    Failed,
}

/// One step of an authorization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuthStep {
    /// The action, such as `GET https://example.com/.well-known/…`.
    pub action: String,
    /// Its outcome.
    pub outcome: StepOutcome,
    /// The answer.
    pub detail: String,
}

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Steps(Mutex<Vec<AuthStep>>);

impl Steps {
    pub(crate) fn ok(&self, action: impl Into<String>, detail: impl Into<String>) {
        self.push(action.into(), StepOutcome::Ok, detail.into());
    }

    pub(crate) fn skipped(&self, action: impl Into<String>, detail: impl Into<String>) {
        self.push(action.into(), StepOutcome::Skipped, detail.into());
    }

    pub(crate) fn failed(&self, action: impl Into<String>, detail: impl Into<String>) {
        self.push(action.into(), StepOutcome::Failed, detail.into());
    }

    /// Adds a step. Action and detail may quote a server; they become lines of bounded length.
    fn push(&self, action: String, outcome: StepOutcome, detail: String) {
        let (action, detail) = (quote(&action, MAX_CHARS), quote(&detail, MAX_CHARS));
        tracing::info!(target: "mcptest::auth", %action, ?outcome, %detail, "step");
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() < MAX_STEPS {
            steps.push(AuthStep {
                action,
                outcome,
                detail,
            });
        }
    }

    pub(crate) fn all(&self) -> Vec<AuthStep> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.clone()
    }
}
