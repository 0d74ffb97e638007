//! What both ends of the Model Context Protocol agree on: its revisions, and the headers that
//! repeat a message over HTTP.
//!
//! The client and the mock server read it here, so that they cannot disagree with each other; the
//! official conformance suite sees that they agree with everybody else.

pub mod base64;
pub mod headers;
mod revision;
mod tool_headers;

pub use revision::Revision;
pub use tool_headers::ToolHeaders;
