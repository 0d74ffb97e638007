//! The typed events of an invocation, their log, and the history of logs.
//!
//! A run emits [`Event`]s. [`log::encode`] writes each as one line of JSON without secrets, and
//! [`log::decode`] reads it back. Progress, reports, `--rerun-failed` and `--resume` are folds over
//! these lines, so a report made while a suite runs and one made from the history cannot differ.
//!
//! This crate does not know how a run happens, how a report looks, what a suite or a gate is.

mod case;
pub mod digest;
mod event;
pub mod history;
pub mod log;
mod record;
mod run_totals;
#[cfg(test)]
mod samples;
mod spend;

pub use case::{CaseId, Kind, PlannedCase, ShardPlan};
pub use event::{AnswerTokens, Begun, CaseJudged, Ended, Event, InputFile, RunFacts, RunFinished};
pub use record::{RawRecord, RunRecord};
pub use run_totals::RunTotals;
pub use spend::{Replayed, RunSpend, Spend};

/// The version of the event format. It grows when a reader of the old form would misread the new
/// one. New events and new keys do not change it.
pub const VERSION: u32 = 1;
