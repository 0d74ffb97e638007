//! The error type of this crate.

use std::path::PathBuf;

use mcptest_http::{AddressError, HeaderError};
use mcptest_wire::WireError;

/// A session that could not start, or whose trace is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The server could not be started.
    #[error(transparent)]
    Start(WireError),
    /// The server's URL is invalid.
    #[error(transparent)]
    Url(#[from] AddressError),
    /// A header for the server is invalid.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The server does not accept connections.
    #[error("{0}")]
    Unreachable(String),
    /// The server requires authorization, which could not be obtained.
    #[error("{0}")]
    Auth(String),
    /// The trace could not be written.
    #[error("cannot write the trace to `{}`: {error}", path.display())]
    Record {
        /// The trace file.
        path: PathBuf,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// No distractors could be added to a list, which the trace cannot show.
    #[error("no distractors were added: {0}")]
    Distractors(String),
}
