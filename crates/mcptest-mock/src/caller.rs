//! The sender of a request.

use std::sync::atomic::AtomicU64;

use mcptest_protocol::Revision;
use serde_json::Value;

use crate::database::{Database, SessionState};
use crate::fault::FaultState;
use crate::manifest::LogLevel;

/// The sender of a request, as far as the answer depends on it.
pub(crate) struct Caller<'a> {
    pub(crate) revision: Revision,
    /// The lowest level of log messages to send; `None` for no log messages.
    pub(crate) log_level: Option<LogLevel>,
    /// The client's capabilities.
    pub(crate) capabilities: Option<&'a Value>,
    /// The number of requests to clients so far.
    pub(crate) asks: &'a AtomicU64,
    /// The fault of all tools without one of their own.
    pub(crate) fault: &'a FaultState,
    /// The image of the database, and the session's copy.
    pub(crate) database: Option<(&'a Database, &'a SessionState)>,
}
