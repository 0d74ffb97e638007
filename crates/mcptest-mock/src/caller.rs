//! The sender of a request.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use mcptest_protocol::Revision;
use serde_json::Value;

use crate::database::{Database, SessionState};
use crate::deferred::CallContext;
use crate::fault::FaultState;
use crate::manifest::LogLevel;
use crate::server_changes::{Listeners, ServerChanges};

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
    /// The changes that its requests see.
    pub(crate) changes: &'a ServerChanges,
    /// The resources that its session has subscribed to.
    pub(crate) subscribed: &'a BTreeSet<String>,
    /// The open streams of the server.
    pub(crate) listeners: &'a Listeners,
}

impl Caller<'_> {
    /// The parts of the session that the rest of an answer needs.
    pub(crate) fn context(&self) -> CallContext {
        CallContext {
            log_level: self.log_level,
            changes: self.changes.clone(),
            subscribed: self.subscribed.clone(),
            database: self.database.map(|(_, state)| state.clone()),
        }
    }
}
