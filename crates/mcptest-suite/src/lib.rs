//! Suite files: YAML in, a checked [`Suite`] out.
//!
//! Loading has five steps and reports every problem, not just the first: text → tree with
//! positions → variables inserted → checked against the JSON Schema → semantic checks (names that
//! refer to nothing, expressions that do not compile). The written form is in [`mod@file`], the
//! checked one in [`suite`].

mod agent_file;
mod check;
pub mod client;
mod client_file;
pub mod direct;
mod direct_file;
pub mod file;
mod import;
mod interpolate;
mod limits;
mod load;
mod named_tool;
mod options;
mod providers;
mod references;
mod resolved;
mod schema;
#[rustfmt::skip]
mod schema_table;
mod script_file;
mod server_file;
pub mod state;
mod state_file;
pub mod suite;
pub mod targets;
pub mod template;
mod tool_file;
pub mod tool_names;
mod turn_file;
pub mod uri_template;

pub use import::ReadFile;
pub use load::{Loaded, load, load_from, load_text};
pub use mcptest_yaml::duration::{DurationError, parse as parse_duration};
pub use mcptest_yaml::{Diagnostic, suggest};
pub use options::{LoadOptions, ModelError, Purpose};
pub use providers::BuiltInProvider;
pub use resolved::ResolvedSuite;
pub use schema::suite_schema;
pub use suite::Suite;
