//! Plans and runs suites, and judges the evidence.
//!
//! [`run()`] connects to servers, lets agents act and calls tools; [`score()`] takes recorded
//! traces instead. Both judge through the same pure step (`verdicts`), so a live run and a recorded
//! one cannot be judged differently. Each run is judged once, where it ends. Results leave as
//! [events](mcptest_events::Event); nothing here knows how they are shown.

mod agent_attacks;
mod agent_calls;
mod agent_recordings;
mod agent_run;
mod agent_shared;
mod agent_versions;
mod ask_judges;
mod ask_reading;
mod budget;
mod case_context;
mod cassette_plans;
mod cassettes;
mod client_tasks;
mod concurrency;
mod direct_answer;
mod direct_request;
mod direct_test;
mod doctor;
mod external_run;
mod fail_fast;
mod fixtures;
mod infra_errors;
mod live_server;
mod models;
mod mutate;
mod one_run;
mod outcomes;
mod plan;
mod providers;
mod query_token;
mod resume;
mod run;
mod run_batches;
mod run_case;
mod run_context;
mod run_state;
mod run_tools;
mod sampling;
mod score;
mod server_credentials;
mod server_locks;
mod sessions;
mod shard;
mod snapshots;
mod state_calls;
mod stop_signal;
mod test_client;
#[cfg(test)]
mod testing;
mod tool_list;
mod tool_names;
mod trace_file;
mod verdicts;
mod workspace_files;

pub use budget::Budget;
pub use cassettes::{
    CassetteMode, CassetteSettings, Entries, Listing, cassette_changes, cassette_folder,
    cassette_place, cassette_subject,
};
pub use doctor::{inspect, inspect_server, list_tools};
pub use live_server::{Answer, InspectSettings, LiveServer};
pub use mcptest_agent::builtin::MODELS;
pub use mcptest_provider::registry;
pub use mcptest_wire::kill_all;
pub use mutate::{MutantReport, MutatedTest, MutationReport, mutate};
pub use plan::{Case, Filter, plan};
pub use providers::{built_in_providers, check_model, missing_keys};
pub use resume::{FinishedRun, Resume};
pub use run::{RunSettings, SuiteOutcome, run};
pub use run_context::EventSink;
pub use score::{
    PARTIAL_FORMAT, PartOf, Partial, PartialError, ScoreError, ScoreProgress, ScoreSettings,
    ScoreSinks, Scored, ScoredCase, ScoredRun, ScoredRuns, TraceInput, merge_partials, score,
    score_inputs, score_partial, score_row_schema, score_to,
};
pub use server_credentials::ServerCredentials;
pub use shard::{Candidate, ShardError, ShardOf, Times, Weighed, assign, weigh};
pub use snapshots::SnapshotMode;
pub use tool_names::{warn_of_unknown_entries, warn_of_unknown_tools};
pub use trace_file::{
    BrokenLine, BrokenLines, COMPRESSED, ForeignFormat, FormatSetting, MAX_BROKEN_PLACES,
    TRACE_ENDINGS, TraceFileError, each_trace, read_traces, read_traces_as, trace_files,
};
