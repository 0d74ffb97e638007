//! Errors of serving.

use std::io;
use std::net::SocketAddr;

use rmcp::service::ServerInitializeError;

/// An error that ends the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The root folder does not exist, or is not a folder.
    #[error("cannot use the root folder: {0}")]
    Root(#[source] io::Error),
    /// The listener has no address.
    #[error(transparent)]
    Listener(io::Error),
    /// The listener is not on a loopback address.
    #[error("{0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The session did not start.
    #[error("the session did not start: {0}")]
    Start(#[source] Box<ServerInitializeError>),
    /// The session failed.
    #[error("the session failed: {0}")]
    Session(#[source] tokio::task::JoinError),
}
