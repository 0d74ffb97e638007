//! What all runs of a suite share while it is carried out.

use std::sync::Arc;

use mcptest_agent::Model;
use mcptest_cassette::Role;
use mcptest_numbers::random::seed_of;
use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::suite::{Replay, ScriptTurn};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::verdict::RunError;

use crate::cassettes::{Decks, Tape};
use crate::event::Event;
use crate::limits::SuiteLimits;
use crate::models::Models;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;

/// The suite, its servers, its models, and whoever wants to know.
pub(crate) struct Stage {
    pub suite: Arc<Suite>,
    /// The servers that its tests may talk to.
    pub servers: KnownServers,
    pub sessions: Sessions,
    pub models: Models,
    pub limits: SuiteLimits,
    /// Whether judges are asked.
    pub judges: bool,
    /// Whether no model is asked that costs.
    pub replay_only: bool,
    pub decks: Decks,
    pub redactor: Arc<Redactor>,
    pub snapshots: Snapshots,
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

/// Which case a run belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Index of the case.
    pub case: usize,
    /// Index into the suite's tests.
    pub test: usize,
    /// The model that acts.
    pub model: &'a str,
}

impl<'a> Place<'a> {
    /// A model of a run here.
    pub fn seat(
        self,
        role: Role,
        id: &'a str,
        script: &'a [Vec<ScriptTurn>],
        run: u32,
    ) -> Seat<'a> {
        Seat {
            case: self.case,
            test: self.test,
            role,
            id,
            script,
            run,
        }
    }
}

/// Which model is wanted, and for what.
pub(crate) struct Seat<'a> {
    /// Index of the case that pays.
    pub case: usize,
    /// Index into the suite's tests.
    pub test: usize,
    pub role: Role,
    /// The model's id.
    pub id: &'a str,
    /// What `builtin/scripted` plays.
    pub script: &'a [Vec<ScriptTurn>],
    /// Which of the runs.
    pub run: u32,
}

impl Stage {
    /// Opens a model for a run. Every model comes from here, the agent's and the judges', so that a
    /// cassette has them all and everything that is asked live is paid for. What is replayed is
    /// only counted: it was paid for when it was recorded.
    pub fn open_model(&self, seat: &Seat<'_>, tape: &Tape) -> Result<Box<dyn Model>, RunError> {
        let live = || {
            let test = self.suite.tests[seat.test].name();
            let seed = seed_of(test, u64::from(seat.run));
            let model = self
                .models
                .open(&self.suite, seat.id, seat.script, seat.run, seed)?;
            self.limits
                .meter(seat.case, seat.id, &self.suite.prices, model)
        };
        match tape {
            Tape::Replay(replay, Replay::Both | Replay::Model) => {
                let model = replay.model(seat.role);
                Ok(self
                    .limits
                    .count_replay(seat.case, seat.id, &self.suite.prices, model))
            }
            Tape::Record(recorder, _) => Ok(recorder.model(seat.role, live()?)),
            Tape::Off | Tape::Replay(_, Replay::Tools) => live(),
        }
    }

    /// Tells whoever listens.
    pub fn tell(&self, event: Event) {
        (self.on_event)(event);
    }
}
