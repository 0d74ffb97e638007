//! Cassettes: recorded agent runs that replay exactly, without model, server or network.
//!
//! A cassette holds all runs of one agent test with one model. The model's side and the servers'
//! side are recorded separately, so that either can be replayed against the other one live.
//! Recording wraps a [`Model`](mcptest_agent::Model) and [`Tools`](mcptest_agent::Tools); replay
//! replaces them.
//!
//! A [`Recording`] belongs to one case. [`Recording::save`] keeps the finished runs in a partial
//! file after each run, and [`Recording::finish`] writes the cassette as soon as the case is
//! complete, independent of other cases.
//!
//! | module | concern |
//! |---|---|
//! | `format` | the file as types, with its version |
//! | `file` | file names, bounded reading, atomic writing |
//! | `record` | recording requests, answers and calls; redaction |
//! | `replay` | answering from the recording, and explaining mismatches |
//! | `canonical` | the stable form of a request, for digests |
//! | `map_strings` | visiting every free string of a recorded value |
//! | `compare` | changes since the recording |
//! | `diff`, `show`, `verify`, `merge`, `traces` | operations on cassettes |
//!
//! This crate does not know gates, reports or suite files.

mod canonical;
mod compare;
mod diff;
mod digest;
mod file;
mod format;
mod map_strings;
mod merge;
mod record;
mod replay;
mod role;
mod show;
#[cfg(test)]
mod tests;
mod traces;
mod verify;

pub use compare::{CassetteChange, catalog_changes, changes};
pub use diff::{CassetteDiff, DiffEvent, RunDiff, Side, diff};
pub use digest::digest;
pub use file::{
    FileStamp, LoadError, MAX_BYTES, cassette_path, find, is_partial, load, load_stamped, parse,
    partial_path, recorded_catalogs, recorded_durations, safe_name, write,
};
pub use format::{
    CallAnswer, CallExchange, Cassette, FORMAT, FedResult, FormatMarker, FormatVersion,
    ModelAnswer, ModelExchange, RecordedCatalog, RecordedDistractor, RecordedDistractors,
    RecordedRequest, RecordedRun, Subject, VolatileValues,
};
pub use merge::{CassetteMergeError, merge};
pub use record::{Recording, RecordingOutcome, RecordingSpec, RecordingTools, RunRecorder};
pub use replay::{InvalidRules, Player, REMEDY, ReplayTools, RunReplay};
pub use role::ModelRole;
pub use show::show;
pub use traces::traces;
pub use verify::{CassetteFinding, verify};
