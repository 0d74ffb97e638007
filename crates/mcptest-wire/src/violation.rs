//! Protocol violations, recorded as data.
//!
//! A violation is not an error by itself: real servers print banners on stdout and work well. A
//! test decides which violations matter, so all of them are recorded.

use std::fmt;

use serde::Serialize;

/// The rule that was violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// A line on stdout that is not JSON at all, such as a banner or a log line.
    StdoutNoise,
    /// Valid JSON that is not a JSON-RPC message, such as a structured log line.
    NotJsonRpc,
    /// A line that begins like a message but is not valid JSON.
    UnparsableJson,
    /// JSON nested deeper than the parser's limit.
    TooDeep,
    /// A line above [`crate::WireLimits::max_line_bytes`].
    LineTooLong,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A byte order mark before a message.
    ByteOrderMark,
    /// A line ended by CR LF.
    CrLf,
    /// An empty line.
    BlankLine,
    /// The last line before the end of stdout had no newline.
    Unterminated,
    /// Several messages in one line where the revision has no batches.
    Batch,
    /// A message whose `jsonrpc` is missing or not "2.0".
    BadJsonRpcVersion,
    /// A reply without an id, or with id null.
    MissingId,
    /// A reply to an id that was never used.
    UnknownId,
    /// An id of another type than the one sent, such as "3" for 3.
    WrongIdType,
    /// A second reply to a request.
    DuplicateReply,
    /// A reply with both `result` and `error`.
    ResultAndError,
    /// A reply with neither `result` nor `error`.
    NoResultOrError,
    /// An `error` that is not an object with an integer code and a message.
    MalformedError,
    /// A result that lacks something its method requires.
    MalformedResult,
    /// A response that violates the rules of streamable HTTP.
    Http,
    /// The server did not read its input, so one of our messages was dropped.
    NotReading,
}

impl ViolationKind {
    /// The kind as the object of "the server sent".
    pub(crate) fn sent(self) -> String {
        let article = match self {
            Self::StdoutNoise
            | Self::NotJsonRpc
            | Self::UnparsableJson
            | Self::TooDeep
            | Self::InvalidUtf8 => "",
            Self::BadJsonRpcVersion => "a message in which ",
            Self::Http => "an ",
            _ => "a ",
        };
        format!("{article}{self}")
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StdoutNoise => "text on stdout that is not a message",
            Self::NotJsonRpc => "JSON on stdout that is not JSON-RPC",
            Self::UnparsableJson => "invalid JSON",
            Self::TooDeep => "JSON nested too deep",
            Self::LineTooLong => "line too long",
            Self::InvalidUtf8 => "bytes that are not UTF-8",
            Self::ByteOrderMark => "byte order mark",
            Self::CrLf => "line ended by CR LF",
            Self::BlankLine => "blank line",
            Self::Unterminated => "line without newline at the end of stdout",
            Self::Batch => "batch of messages",
            Self::BadJsonRpcVersion => "`jsonrpc` is not \"2.0\"",
            Self::MissingId => "reply without id",
            Self::UnknownId => "reply to an unknown id",
            Self::WrongIdType => "reply id of the wrong type",
            Self::DuplicateReply => "second reply to one request",
            Self::ResultAndError => "reply with both result and error",
            Self::NoResultOrError => "reply with neither result nor error",
            Self::MalformedError => "malformed error object",
            Self::MalformedResult => "malformed result",
            Self::Http => "invalid HTTP response",
            Self::NotReading => "server does not read its stdin",
        })
    }
}

/// One violation, with the text that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// The position among all violations of this connection.
    pub seq: u64,
    /// The rule that was violated.
    pub kind: ViolationKind,
    /// An explanation; may be empty.
    pub detail: String,
    /// The offending text, truncated and sanitized.
    pub text: String,
    /// The number of occurrences. Above 1 only for kinds whose repetition adds no information
    /// (blank lines, line ends).
    pub count: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_object_of_a_sentence() {
        for (kind, sent) in [
            (ViolationKind::UnparsableJson, "invalid JSON"),
            (ViolationKind::InvalidUtf8, "bytes that are not UTF-8"),
            (ViolationKind::Http, "an invalid HTTP response"),
            (ViolationKind::MalformedError, "a malformed error object"),
            (
                ViolationKind::BadJsonRpcVersion,
                "a message in which `jsonrpc` is not \"2.0\"",
            ),
        ] {
            assert_eq!(kind.sent(), sent);
        }
    }
}
