//! What all runs of a suite share while it is carried out.

use std::sync::Arc;

use mcptest_agent::Model;
use mcptest_cassette::Role;
use mcptest_core::redact::Redactor;
use mcptest_core::verdict::RunError;
use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Replay};

use crate::cassettes::{Decks, Tape};
use crate::event::Event;
use crate::models::Models;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;

/// The suite, its servers, its models, and whoever wants to know.
pub(crate) struct Stage {
    pub suite: Arc<Suite>,
    pub sessions: Sessions,
    pub models: Models,
    pub decks: Decks,
    pub redactor: Arc<Redactor>,
    pub snapshots: Snapshots,
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Stage {
    /// Opens a model for a run. Every model comes from here, the agent's and the judges', so that a cassette has them all.
    pub fn open_model(
        &self,
        tape: &Tape,
        role: Role,
        id: &str,
        test: &AgentTest,
        run: u32,
    ) -> Result<Box<dyn Model>, RunError> {
        match tape {
            Tape::Replay(replay, Replay::Both | Replay::Model) => Ok(replay.model(role)),
            Tape::Record(recorder, _) => Ok(recorder.model(role, self.models.open(&self.suite, id, test, run)?)),
            Tape::Off | Tape::Replay(_, Replay::Tools) => self.models.open(&self.suite, id, test, run),
        }
    }

    /// Tells whoever listens.
    pub fn tell(&self, event: Event) {
        (self.on_event)(event);
    }
}
