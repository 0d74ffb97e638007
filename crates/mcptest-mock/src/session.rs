//! A connection, and the protocol revision of a request on it.

use std::collections::BTreeSet;

use mcptest_protocol::{Revision, meta as meta_keys};
use serde_json::{Map, Value, json};

use crate::database::SessionState;
use crate::deferred::TransportEvent;
use crate::jsonrpc::{RpcError, UNSUPPORTED_PROTOCOL_VERSION, clip};
use crate::manifest::LogLevel;
use crate::server_changes::ServerChanges;

/// The server's state of one connection.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pub(crate) revision: Option<Revision>,
    /// The lowest level of log messages for the client; all if it has set none.
    pub(crate) log_level: Option<LogLevel>,
    /// The client's capabilities.
    pub(crate) capabilities: Option<Value>,
    pub(crate) events: Vec<TransportEvent>,
    /// The database, once a call has used it.
    pub(crate) database: Option<SessionState>,
    /// The changes that its requests see.
    pub(crate) changes: ServerChanges,
    /// The resources that it has subscribed to.
    pub(crate) subscribed: BTreeSet<String>,
}

impl Session {
    /// The revision chosen by `initialize`. Stateless requests do not change it.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Takes the events that the transport has to handle: deferred answers and cancellations.
    pub fn take_events(&mut self) -> Vec<TransportEvent> {
        std::mem::take(&mut self.events)
    }
}

/// The revision of a request; `None` for the two that need none (`initialize`, and `ping` before
/// it).
pub(crate) fn request_revision(
    session: &Session,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Option<Revision>, RpcError> {
    revision_of(session, method, params).map_err(RpcError::about_envelope)
}

fn revision_of(
    session: &Session,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Option<Revision>, RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let version = meta.and_then(|meta| meta.get(meta_keys::PROTOCOL_VERSION));
    let declared = meta.and_then(|meta| meta.get(meta_keys::CLIENT_CAPABILITIES));
    let missing =
        |what: &str| RpcError::invalid_params(format!("Invalid params: _meta has no valid {what}"));
    let requested = match version {
        None if method == "server/discover" => return Err(missing(meta_keys::PROTOCOL_VERSION)),
        None => None,
        Some(Value::String(name)) => match Revision::from_wire(name) {
            Some(revision) => Some(revision),
            None => {
                let supported = Revision::ALL.map(Revision::as_str);
                let data = json!({"supported": supported, "requested": clip(name)});
                let error = RpcError::new(
                    UNSUPPORTED_PROTOCOL_VERSION,
                    format!("Unsupported protocol version: {}", clip(name)),
                );
                return Err(error.with_data(data));
            }
        },
        Some(_) => return Err(missing(meta_keys::PROTOCOL_VERSION)),
    };
    let stateless = requested.is_some_and(Revision::is_stateless);
    if (stateless || method == "server/discover") && !declared.is_some_and(Value::is_object) {
        return Err(missing(meta_keys::CLIENT_CAPABILITIES));
    }
    if method == "initialize" {
        return if stateless {
            // That revision has no handshake.
            Err(RpcError::method_not_found(method))
        } else {
            Ok(None)
        };
    }
    if stateless {
        return Ok(requested);
    }
    match session.revision.or(requested) {
        Some(revision) => Ok(Some(revision)),
        None if method == "ping" => Ok(None),
        None if declared.is_some() => Err(missing(meta_keys::PROTOCOL_VERSION)),
        None => Err(RpcError::invalid_request(format!(
            "Invalid request: {} before initialize (or send _meta with {})",
            clip(method),
            meta_keys::PROTOCOL_VERSION
        ))),
    }
}
