//! The error type of this crate.
//!
//! A failure is mostly debugged by somebody who did not watch it, so the error carries the
//! evidence: the server's exit status, the end of its stderr and its last message.

use std::fmt;
use std::ops::Deref;

use mcptest_http::text::sanitize;

/// The class of a failure, coarse enough for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireErrorKind {
    /// No reply before the timeout.
    Timeout,
    /// The connection was lost, although the server did not visibly crash.
    Transport,
    /// The server's process exited during the connection.
    ServerCrash,
    /// The server's answer violates the protocol.
    Protocol,
    /// The server requires a credential that it did not get (HTTP 401 or 403).
    Auth,
    /// The server refuses further requests for now (HTTP 429).
    RateLimit,
    /// The caller cancelled the request.
    Cancelled,
    /// The server's process could not be started, or its URL is invalid.
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

/// A failed exchange with a server, with the evidence.
///
/// It dereferences to [`WireFailure`] (`error.kind`, `error.stderr_tail`), which is boxed to keep
/// `Result`s small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError(Box<WireFailure>);

/// The content of a [`WireError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireFailure {
    /// The class of the failure.
    pub kind: WireErrorKind,
    /// The server's name, as given by the caller.
    pub server: String,
    /// The action that failed, such as "calling tool `echo`".
    pub action: String,
    /// The cause and, where known, a remedy.
    pub detail: String,
    /// The last lines of the server's stderr, truncated and sanitized.
    pub stderr_tail: Vec<String>,
    /// The exit of the server's process, if it exited ("exited with code 1").
    pub exit_status: Option<String>,
    /// The last line that the server wrote to stdout, truncated and sanitized.
    pub last_message: Option<String>,
}

impl WireError {
    /// Creates an error without evidence.
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

    /// Adds the evidence.
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

    /// Masks secrets in all server text.
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
            // "Could not start while starting it" would be redundant.
            WireErrorKind::Spawn => write!(f, "server `{server}`: {kind}: {detail}")?,
            _ => write!(f, "server `{server}`: {kind} while {action}: {detail}")?,
        }
        if let Some(status) = exit_status
            && !detail.contains(status.as_str())
        {
            write!(f, "; the server {status}")?;
        }
        // The detail of a protocol error already shows the message. A message of the protocol is
        // the answer to an earlier call; anything else may be the reason.
        if let Some(message) = last_message
            && *kind != WireErrorKind::Protocol
            && !is_protocol_message(message)
            && !detail.contains(message.as_str())
        {
            write!(f, "; its last message: {message}")?;
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

/// Returns true if a line is a whole message of the protocol, or the begin of a long one.
fn is_protocol_message(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('{')
        && line.contains("\"jsonrpc\"")
        && (line.contains("… (") || serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_shown_once() {
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

    #[test]
    fn an_answer_to_an_earlier_call_is_no_reason() {
        let shown = |last: &str| {
            WireError::new(
                WireErrorKind::ServerCrash,
                "a",
                "calling tool `b`",
                "it exited",
            )
            .with_evidence(Vec::new(), None, Some(last.to_owned()))
            .to_string()
        };
        assert!(!shown(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).contains("last message"));
        assert!(
            !shown(r#"{"jsonrpc":"2.0","id":1,"result":{"t… (900 bytes in total)"#)
                .contains("last message")
        );
        assert!(shown("cannot open the database").contains("its last message: cannot open"));
        // The server was cut off in the middle of it.
        assert!(shown(r#"{"jsonrpc":"2.0","id":1,"res"#).contains("its last message: {"));
    }
}
