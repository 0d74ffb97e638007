//! Plans and executes suites, and judges what came of it.
//!
//! [`run`] connects to servers, lets agents act and calls tools; [`score()`] takes recorded traces
//! instead. Both end in the same pure step (`judge`), so a live run and a recorded one cannot be
//! judged differently. Nothing here knows how results are shown: progress goes out as [`Event`]s,
//! the outcome is a [`Report`](mcptest_report::model::Report).

mod agent_run;
mod brake;
mod cassettes;
mod doctor;
mod ending;
mod event;
mod execute;
mod fixtures;
mod judge;
mod judges;
mod lanes;
mod limits;
mod models;
mod mutate;
mod plan;
mod providers;
mod score;
mod sessions;
mod shard;
mod snapshots;
mod stage;
mod tool_call;
mod tool_list;
mod trace_file;
mod turns;
mod waves;

pub use cassettes::{
    CassetteMode, CassetteSettings, Listing, cassette_changes, cassette_folder, cassette_place,
    cassette_subject,
};
pub use doctor::{CheckupSettings, check_up, list_tools};
pub use event::Event;
pub use execute::{RunSettings, run};
pub use limits::Limits;
pub use mcptest_agent::builtin::MODELS;
pub use mcptest_provider::registry;
pub use mcptest_wire::kill_all;
pub use mutate::{MutantReport, MutatedTest, MutationReport, mutate};
pub use plan::{Case, Filter, plan};
pub use providers::{built_in_providers, check_model, missing_keys};
pub use score::{ScoreError, ScoreSettings, score};
pub use shard::{Candidate, ShardOf, Times, Weighed, assign, weigh};
pub use snapshots::SnapshotMode;
pub use trace_file::{TraceFileError, read_traces};
