//! Work on recorded traces that is not judging: the commands of `mcptest trace`.
//!
//! Everything here is pure: traces in, text or figures out. One file per command.

pub mod anonymise;
pub mod infer;
pub mod otlp;
pub mod show;
pub mod stats;

mod result_text;
mod tool_names;
