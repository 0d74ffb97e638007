//! The one error of this crate.
//!
//! A failed conversation is mostly debugged by somebody who did not see it, so
//! the error carries what the server left behind: its exit status, the end of
//! its stderr and the last thing it said.

use std::fmt;
use std::ops::Deref;

use mcptest_http::text::sanitize;

/// What went wrong, coarse enough to map to an exit code or a failure class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// No reply within the time given.
    Timeout,
    /// The pipes broke or were closed, though the server did not visibly crash.
    Transport,
    /// The server's process ended while we needed it.
    ServerCrash,
    /// The server answered, but not with what the protocol demands.
    Protocol,
    /// The server wants a credential that it did not get (HTTP 401 or 403).
    Auth,
    /// The server has had enough of us for now (HTTP 429).
    RateLimit,
    /// Our side asked to stop waiting.
    Cancelled,
    /// The server's process could not be started at all, or its address is no address.
    Spawn,
}

impl fmt::Display for WireErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "timeout",
            Self::Transport => "transport error",
            Self::ServerCrash => "server crash",
            Self::Protocol => "protocol error",
            Self::Auth => "not authorized",
            Self::RateLimit => "rate limit",
            Self::Cancelled => "cancelled",
            Self::Spawn => "could not start",
        })
    }
}

/// A conversation with a server that failed, with the evidence at hand.
///
/// The fields are read straight through it (`error.kind`, `error.stderr_tail`);
/// they live in a box to keep `Result`s small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError(Box<WireFailure>);

/// The content of a [`WireError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireFailure {
    /// The class of the failure.
    pub kind: WireErrorKind,
    /// The server's name as the caller gave it.
    pub server: String,
    /// What was being done, as in "calling tool `echo`".
    pub action: String,
    /// What happened and, where known, what to do about it.
    pub detail: String,
    /// The last lines of the server's stderr, already cut and cleaned.
    pub stderr_tail: Vec<String>,
    /// How the server's process ended, if it did ("exited with code 1").
    pub exit_status: Option<String>,
    /// The last line the server wrote to stdout, cut and cleaned.
    pub last_message: Option<String>,
}

impl WireError {
    /// An error that carries no evidence of the server's (yet).
    #[must_use]
    pub fn new(
        kind: WireErrorKind,
        server: &str,
        action: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self(Box::new(WireFailure {
            kind,
            server: server.to_owned(),
            action: action.into(),
            detail: detail.into(),
            stderr_tail: Vec::new(),
            exit_status: None,
            last_message: None,
        }))
    }

    /// Adds what the server left behind.
    pub(crate) fn with_evidence(
        mut self,
        stderr_tail: Vec<String>,
        exit_status: Option<String>,
        last_message: Option<String>,
    ) -> Self {
        self.0.stderr_tail = stderr_tail;
        self.0.exit_status = exit_status;
        self.0.last_message = last_message;
        self
    }

    /// Hides what must not be shown.
    pub(crate) fn masked(mut self, mask: impl Fn(&str) -> String) -> Self {
        self.0.detail = mask(&self.0.detail);
        self.0.last_message = self.0.last_message.map(|message| mask(&message));
        self
    }

    /// Adds a sentence to the detail.
    pub(crate) fn note(mut self, sentence: &str) -> Self {
        self.0.detail.push_str("; ");
        self.0.detail.push_str(sentence);
        self
    }

    /// The class of the failure.
    #[must_use]
    pub fn kind(&self) -> WireErrorKind {
        self.0.kind
    }
}

impl Deref for WireError {
    type Target = WireFailure;

    fn deref(&self) -> &WireFailure {
        &self.0
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WireFailure {
            kind,
            server,
            action,
            detail,
            stderr_tail,
            exit_status,
            last_message,
        } = &*self.0;
        let server = sanitize(server);
        match kind {
            // "Could not start while starting it" says one thing twice.
            WireErrorKind::Spawn => write!(f, "server `{server}`: {kind}: {detail}")?,
            _ => write!(f, "server `{server}`: {kind} while {action}: {detail}")?,
        }
        if let Some(status) = exit_status
            && !detail.contains(status.as_str())
        {
            write!(f, "; the server {status}")?;
        }
        // Of a protocol error, the detail shows the message already.
        if let Some(message) = last_message
            && *kind != WireErrorKind::Protocol
            && !detail.contains(message.as_str())
        {
            write!(f, "; last message from it: {message}")?;
        }
        if !stderr_tail.is_empty() {
            f.write_str("\nthe end of its stderr:")?;
            for line in stderr_tail {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_evidence_once() {
        let error = WireError::new(
            WireErrorKind::ServerCrash,
            "files",
            "calling tool `read`",
            "the server exited with code 1 before it answered",
        )
        .with_evidence(
            vec!["Traceback".into(), "KeyError: 'x'".into()],
            Some("exited with code 1".into()),
            None,
        );
        assert_eq!(
            error.to_string(),
            "server `files`: server crash while calling tool `read`: \
             the server exited with code 1 before it answered\n\
             the end of its stderr:\n  Traceback\n  KeyError: 'x'"
        );
        assert_eq!(error.kind, WireErrorKind::ServerCrash);
        let error = WireError::new(
            WireErrorKind::Spawn,
            "files",
            "starting it",
            "command `x` not found on PATH",
        );
        assert_eq!(
            error.to_string(),
            "server `files`: could not start: command `x` not found on PATH"
        );
    }
}
