//! The parts of the Model Context Protocol that a client and a server must agree on: its revisions,
//! the forms of results, and the headers that repeat a message over HTTP.
//!
//! The client and the mock server share this code, so they cannot disagree with each other. The
//! official conformance suite tests that they agree with everybody else.

pub mod base64;
pub mod headers;
pub mod meta;
pub mod query;
mod result_form;
mod revision;
mod tool_headers;

pub use headers::AnnotationError;
pub use result_form::{
    MalformedTask, TASK_STATUSES, is_terminal, malformed_completion_result,
    malformed_prompt_result, malformed_resource_result, malformed_tool_result, task_of,
};
pub use revision::Revision;
pub use tool_headers::ToolHeaders;
