//! The recorded trace and everything that reads it: targets, matchers, expectations, verdicts.
//!
//! Nothing here knows files, clocks, networks or gates.

pub mod answer;
pub mod bounds;
pub mod catalog;
pub mod claims;
pub mod detail;
pub mod expect;
pub mod fault;
mod judge;
pub mod judged;
mod judgement;
pub mod matcher;
pub mod message_log;
pub mod outcome;
pub mod packed_runs;
pub mod parallel;
mod problem;
pub mod schema;
pub mod server_messages;
pub mod snapshot;
pub mod target;
pub mod tool_id;
pub mod trace;
pub mod user_turn;
pub mod verdict;
