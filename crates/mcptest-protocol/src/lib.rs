//! The parts of the Model Context Protocol that a client and a server must agree on: its revisions,
//! the form of a tool result, and the headers that repeat a message over HTTP.
//!
//! The client and the mock server share this code, so they cannot disagree with each other. The
//! official conformance suite tests that they agree with everybody else.

pub mod base64;
pub mod headers;
pub mod meta;
pub mod query;
mod revision;
mod tool_headers;
mod tool_result;

pub use headers::AnnotationError;
pub use revision::Revision;
pub use tool_headers::ToolHeaders;
pub use tool_result::malformed_tool_result;
