//! Fuzz targets of every parser and protocol state machine of mcptest.
//!
//! A target is a function of bytes that panics if a property does not hold. The list is
//! [`TARGETS`]: one file, one line. Three things use it: a test replays the seeds, the corpus and
//! the regressions of every target; `cargo xtask fuzz --smoke` mutates them ([`mutate`]); and
//! `cargo xtask fuzz` searches with libFuzzer, guided by coverage. `docs/fuzzing.md` has the list,
//! the commands and the figures.

pub mod inputs;
pub mod mutate;
mod property;
mod targets;

pub use targets::{TARGETS, Target, find};
