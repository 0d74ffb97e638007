//! A connection, and which revision of the protocol rules a request on it.

use mcptest_protocol::Revision;
use serde_json::{Map, Value, json};

use crate::jsonrpc::{RpcError, UNSUPPORTED_PROTOCOL_VERSION, clip};
use crate::later::Event;
use crate::manifest::LogLevel;

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What the server remembers about one connection.
#[derive(Debug, Clone, Default)]
pub struct Session {
    pub(crate) revision: Option<Revision>,
    /// The least grave log messages that the client wants; all if it never said.
    pub(crate) log_level: Option<LogLevel>,
    /// What the client said it can do.
    pub(crate) capabilities: Option<Value>,
    pub(crate) events: Vec<Event>,
}

impl Session {
    /// The revision that `initialize` agreed on. Stateless requests leave no trace here.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// What the transport has to do beside sending the replies: answers that come later, and
    /// cancellations.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

/// The revision that rules a request; nothing for the two that need none (`initialize`, and `ping`
/// before it).
pub(crate) fn request_revision(
    session: &Session,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Option<Revision>, RpcError> {
    revision_of(session, method, params).map_err(RpcError::about_the_envelope)
}

fn revision_of(
    session: &Session,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Option<Revision>, RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let version = meta.and_then(|meta| meta.get(META_VERSION));
    let declared = meta.and_then(|meta| meta.get(META_CAPABILITIES));
    let missing =
        |what: &str| RpcError::invalid_params(format!("Invalid params: _meta has no valid {what}"));
    let requested = match version {
        None if method == "server/discover" => return Err(missing(META_VERSION)),
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
        Some(_) => return Err(missing(META_VERSION)),
    };
    let stateless = requested.is_some_and(Revision::is_stateless);
    if (stateless || method == "server/discover") && !declared.is_some_and(Value::is_object) {
        return Err(missing(META_CAPABILITIES));
    }
    if method == "initialize" {
        return if stateless {
            // That revision has no handshake any more.
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
        None if declared.is_some() => Err(missing(META_VERSION)),
        None => Err(RpcError::invalid_request(format!(
            "Invalid request: {} before initialize (or send _meta with {META_VERSION})",
            clip(method)
        ))),
    }
}
