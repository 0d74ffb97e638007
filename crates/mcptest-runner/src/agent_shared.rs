//! The parts that runs of our own loop and runs of agents under test share.

use mcptest_agents::RunFolders;
use mcptest_catalog::distractors::{Distractors, PlannedRun};
use mcptest_suite::suite::AgentTest;
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value};

use crate::run_context::RunContext;

/// The end of an agent's run.
pub(crate) struct AgentRun {
    /// The trace. A problem that kept the agent from running is its error.
    pub trace: Trace,
    /// The last stderr lines of servers with a failed call. They are for the report only: a
    /// recording does not keep them.
    pub stderr: Map<String, Value>,
    /// The folders of an agent under test, if they may be kept.
    pub folders: Option<RunFolders>,
}

impl AgentRun {
    /// A run that left only a trace.
    pub(crate) fn of(trace: Trace) -> Self {
        Self {
            trace,
            stderr: Map::new(),
            folders: None,
        }
    }
}

/// The distractors of a run: their number and their seed.
pub(crate) fn planned_run(block: &Distractors, test: &AgentTest, run: u32) -> PlannedRun {
    let run = test.attacks_of(run).map_or(run, |block| block.run);
    let schedule = block.schedule(&test.name, test.runs);
    let planned = schedule.get(run as usize - 1).copied();
    planned.unwrap_or(PlannedRun { count: 0, seed: 0 })
}

/// Checks a prompt that is declared name-free against the tools that are offered. The suite's
/// loader knew only some of them.
pub(crate) fn check_name_free(
    context: &RunContext,
    test: &AgentTest,
    run: u32,
    real: &[Tool],
) -> Result<(), RunError> {
    let servers = test.servers.iter().map(String::as_str);
    let Some(problem) =
        test.discovery
            .check(&test.user_text(), servers, real.iter().map(Tool::name))
    else {
        return Ok(());
    };
    let text = format!("test `{}`: {}", test.name, problem.message);
    if problem.warning {
        if run == 1 {
            context.warn(text);
        }
        return Ok(());
    }
    Err(RunError {
        kind: ErrorKind::Protocol,
        message: text,
    })
}
