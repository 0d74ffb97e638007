//! Cassettes: agent runs that were recorded once and can be replayed exactly, as often as wanted,
//! with no model, no server and no network.
//!
//! A cassette holds one agent test with one model and all its runs. The model's side and the
//! servers' side are apart, so that either can be replayed against the other one live. Recording
//! wraps a [`Model`](mcptest_agent::Model) and [`Tools`](mcptest_agent::Tools); replay stands in
//! for them.
//!
//! | module | what it does |
//! |---|---|
//! | `format` | the file as types, with its version |
//! | `file` | names, bounded reading, atomic writing |
//! | `record` | writing down what passes; secrets go here |
//! | `replay` | answering what was recorded, and telling what was not |
//! | `compare` | what changed since the recording |
//! | `diff`, `show`, `verify`, `merge`, `traces` | what can be done with cassettes |
//!
//! Nothing here knows gates, reports or suite files.

mod compare;
mod diff;
mod digest;
mod file;
mod format;
mod merge;
mod record;
mod replay;
mod role;
mod scrub;
mod show;
#[cfg(test)]
mod tests;
mod told;
mod traces;
mod verify;

pub use compare::{Change, catalog_changes, changes};
pub use diff::{CassetteDiff, diff};
pub use digest::digest;
pub use file::{
    LoadError, MOST_BYTES, durations, find, is_partial, load, parse, partial_place, place, safe,
    write,
};
pub use format::{
    Answer, Asked, CallAnswer, CallExchange, Cassette, Catalog, Distractor, Distractors, FORMAT,
    Fed, Marker, ModelExchange, RecordedRun, Subject, Version, VolatileOfRun,
};
pub use merge::{MergeError, merge};
pub use record::{Outcome, Recording, RecordingSpec, RecordingTools, RunRecorder};
pub use replay::{Player, REMEDY, ReplayTools, RunReplay};
pub use role::Role;
pub use show::show;
pub use traces::traces;
pub use verify::{Finding, verify};
