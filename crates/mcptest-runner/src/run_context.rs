//! The state that all runs of a suite share.

use std::sync::Arc;

use mcptest_agent::Model;
use mcptest_cassette::ModelRole;
use mcptest_events::Event;
use mcptest_numbers::random::seed_of;
use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::suite::{Replay, ScriptTurn};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::agent_recordings::AgentRecordings;
use crate::agent_versions::AgentVersions;
use crate::budget::{RunMeter, SuiteBudget};
use crate::cassette_plans::{CassettePlans, RunCassette};
use crate::models::Models;
use crate::providers::is_live;
use crate::resume::Resume;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;
use crate::tool_names::NameChecks;
use crate::verdicts::JudgeContext;

/// A receiver of events.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// A suite that is being run: its servers, models, budgets, and the receiver of its events.
pub(crate) struct RunContext {
    pub suite: Arc<Suite>,
    /// The servers that its tests may use.
    pub servers: KnownServers,
    pub sessions: Sessions,
    pub models: Models,
    pub budget: SuiteBudget,
    /// True if judges are asked.
    pub judges: bool,
    /// True if no model is asked that costs money.
    pub replay_only: bool,
    pub cassettes: CassettePlans,
    /// The recordings of agents under test.
    pub agent_recordings: AgentRecordings,
    /// The versions of agents under test.
    pub agent_versions: AgentVersions,
    /// The comparisons of the suite's tool names with the listed tools.
    pub tool_names: NameChecks,
    pub redactor: Arc<Redactor>,
    pub snapshots: Snapshots,
    pub emit: EventSink,
    /// The index of the suite's first case in the plan of the invocation.
    pub first_case: usize,
    /// The part of the invocation that finished before it was resumed.
    pub earlier: Arc<Resume>,
}

/// The run that work is done for.
#[derive(Clone, Copy)]
pub(crate) struct CaseRef<'a> {
    /// Index of the case in the suite.
    pub case: usize,
    /// Index into the suite's tests.
    pub test: usize,
    /// The model that acts.
    pub model: &'a str,
    /// The number of the run, from 1.
    pub run: u32,
    /// The spending of the run.
    pub meter: &'a RunMeter,
}

impl<'a> CaseRef<'a> {
    /// A model for the run. `script_run` is the run of a script that is played.
    pub fn model_slot(
        self,
        role: ModelRole,
        id: &'a str,
        script: &'a [Vec<ScriptTurn>],
        script_run: u32,
    ) -> ModelSlot<'a> {
        ModelSlot {
            case: self,
            role,
            id,
            script,
            script_run,
        }
    }
}

/// A model that a run needs, and its role.
pub(crate) struct ModelSlot<'a> {
    pub case: CaseRef<'a>,
    pub role: ModelRole,
    /// The model's id.
    pub id: &'a str,
    /// The script of `builtin/scripted`.
    pub script: &'a [Vec<ScriptTurn>],
    /// The run of the script, from 1.
    pub script_run: u32,
}

impl RunContext {
    /// Opens a model for a run. Every model is opened here, the agent's and the judges', so that a
    /// cassette has them all and every live request is paid for. Replayed answers are only counted:
    /// they were paid when they were recorded.
    pub fn open_model(
        &self,
        slot: &ModelSlot<'_>,
        cassette: &RunCassette,
    ) -> Result<Box<dyn Model>, RunError> {
        let case = slot.case;
        let prices = &self.suite.prices;
        let live = || {
            let test = self.suite.tests[case.test].name();
            let seed = seed_of(test, u64::from(slot.script_run));
            let model =
                self.models
                    .open(&self.suite, slot.id, slot.script, slot.script_run, seed)?;
            self.budget
                .meter(case.case, case.meter, slot.id, prices, model)
        };
        match cassette {
            RunCassette::Replay(replay, Replay::Both | Replay::Model) => {
                let model = replay.model(slot.role.clone());
                Ok(self.budget.count_replay(case.meter, slot.id, prices, model))
            }
            RunCassette::Record(recorder, _) => Ok(recorder.model(slot.role.clone(), live()?)),
            RunCassette::Off if self.replay_only && is_live(slot.id) => Err(RunError {
                kind: ErrorKind::Protocol,
                message: format!(
                    "`{}` was not asked: with `--replay-only` no model is asked that costs, and \
                     there is no recording of its answer; record one with `mcptest run --record`",
                    slot.id
                ),
            }),
            RunCassette::Off | RunCassette::Replay(_, Replay::Tools) => live(),
        }
    }

    /// Emits an event.
    pub fn emit(&self, event: Event) {
        (self.emit)(event);
    }

    /// Emits a note.
    pub fn note(&self, text: String) {
        self.emit(Event::Note { text });
    }

    /// Emits a warning.
    pub fn warn(&self, text: String) {
        self.emit(Event::Warning { text });
    }

    /// The index of a case in the plan of the invocation.
    pub fn planned(&self, case: usize) -> usize {
        self.first_case + case
    }

    /// The settings for judging.
    pub fn judge_context(&self) -> JudgeContext<'_> {
        JudgeContext {
            servers: &self.servers,
            prices: &self.suite.prices,
            no_evidence: self.suite.options.no_evidence,
            judges: self.judges,
        }
    }
}
