//! Starter suites: what `mcptest init` writes.

pub mod attack_pack;
pub mod draft_prompt;
pub mod entry_point;
pub mod launch;
pub mod mock_file;
pub mod names;
pub mod read_only;
pub mod server_draft;
pub mod suite_file;
pub mod synthesis;
pub mod workflow;
