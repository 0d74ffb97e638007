//! What all runs of a suite share while it is carried out.

use std::sync::Arc;

use mcptest_agent::Model;
use mcptest_core::verdict::RunError;
use mcptest_suite::Suite;
use mcptest_suite::suite::ScriptTurn;

use crate::event::Event;
use crate::limits::SuiteLimits;
use crate::models::Models;
use crate::sessions::Sessions;

/// The suite, its servers, its models, and whoever wants to know.
pub(crate) struct Stage {
    pub suite: Arc<Suite>,
    pub sessions: Sessions,
    pub models: Models,
    pub limits: SuiteLimits,
    /// Whether judges are asked.
    pub judges: bool,
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Stage {
    /// Opens a model for one run of a case, on the case's accounts.
    pub fn open_model(
        &self,
        case: usize,
        id: &str,
        script: &[Vec<ScriptTurn>],
        run: u32,
    ) -> Result<Box<dyn Model>, RunError> {
        let model = self.models.open(id, script, run)?;
        self.limits.meter(case, id, &self.suite.prices, model)
    }

    /// Tells whoever listens.
    pub fn tell(&self, event: Event) {
        (self.on_event)(event);
    }
}
