//! Breaches of the protocol, kept as data.
//!
//! A violation is not an error by itself: real servers print banners on stdout
//! and are used every day. Whether one matters is for a test to decide, so all
//! of them are written down and none is swallowed.

use std::fmt;

use serde::Serialize;

use mcptest_http::text::quote;

/// Which rule was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationKind {
    /// A line on stdout that is not JSON at all, such as a banner or a log line.
    StdoutNoise,
    /// Valid JSON that is no JSON-RPC message, such as a structured log line.
    NotJsonRpc,
    /// A line that begins like a message but is not complete JSON.
    UnparsableJson,
    /// JSON nested deeper than we follow.
    TooDeep,
    /// A line above [`crate::Limits::max_line_bytes`].
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
    /// A reply without an id, or with id null, that belongs to no request.
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
    /// A result that lacks something its method demands.
    MalformedResult,
    /// A response that breaks the rules of streamable HTTP.
    Http,
    /// The server let its input queue fill up, so a message of ours was dropped.
    NotReading,
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StdoutNoise => "text on stdout that is no message",
            Self::NotJsonRpc => "JSON on stdout that is not JSON-RPC",
            Self::UnparsableJson => "broken JSON",
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
            Self::Http => "HTTP response against the rules",
            Self::NotReading => "server does not read its stdin",
        })
    }
}

/// One breach, with the text that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Place in the order of everything recorded on this connection.
    pub seq: u64,
    /// Which rule was broken.
    pub kind: ViolationKind,
    /// What exactly is wrong.
    pub detail: String,
    /// The offending text, cut and cleaned.
    pub text: String,
    /// How often it was seen. Above 1 only for kinds that say nothing new the
    /// second time (blank lines, line ends).
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

/// The bounded record of a connection's violations.
#[derive(Debug)]
pub(crate) struct Violations {
    list: Vec<Violation>,
    next_seq: u64,
    max: usize,
    max_chars: usize,
}

impl Violations {
    pub(crate) fn new(max: usize, max_chars: usize) -> Self {
        Self {
            list: Vec::new(),
            next_seq: 0,
            max,
            max_chars,
        }
    }

    /// Writes one down; `text` is the raw server text.
    pub(crate) fn record(&mut self, kind: ViolationKind, detail: &str, text: &str) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let merges = matches!(
            kind,
            ViolationKind::CrLf | ViolationKind::BlankLine | ViolationKind::ByteOrderMark
        );
        if merges && let Some(seen) = self.list.iter_mut().find(|v| v.kind == kind) {
            seen.count += 1;
            return;
        }
        if self.list.len() >= self.max {
            return;
        }
        self.list.push(Violation {
            seq,
            kind,
            detail: quote(detail, self.max_chars),
            text: quote(text, self.max_chars),
            count: 1,
        });
    }

    /// How many were seen, kept or not.
    pub(crate) fn total(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn to_vec(&self) -> Vec<Violation> {
        self.list.clone()
    }

    /// The ones recorded at or after a point, in a form for an error message.
    pub(crate) fn since(&self, seq: u64, max_shown: usize) -> Option<String> {
        let new: Vec<&Violation> = self.list.iter().filter(|v| v.seq >= seq).collect();
        if new.is_empty() {
            return None;
        }
        let mut shown: Vec<String> = new.iter().take(max_shown).map(|v| v.to_string()).collect();
        if new.len() > max_shown {
            shown.push(format!("and {} more", new.len() - max_shown));
        }
        Some(shown.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_bounded_but_keeps_counting() {
        let mut violations = Violations::new(2, 4);
        violations.record(ViolationKind::BlankLine, "", "");
        for _ in 0..5 {
            violations.record(ViolationKind::StdoutNoise, "", "abcdefgh\u{1b}");
        }
        violations.record(ViolationKind::BlankLine, "", "");
        let list = violations.to_vec();
        assert_eq!(list.len(), 2);
        assert_eq!(list[0].count, 2);
        assert_eq!(list[1].text, "abcd… (9 bytes in total)");
        assert_eq!(violations.total(), 7);
    }

    #[test]
    fn tells_what_is_new() {
        let mut violations = Violations::new(10, 100);
        violations.record(ViolationKind::StdoutNoise, "", "old");
        let mark = violations.total();
        assert_eq!(violations.since(mark, 3), None);
        violations.record(ViolationKind::StdoutNoise, "", "new");
        assert_eq!(
            violations.since(mark, 3).unwrap(),
            "text on stdout that is no message: new"
        );
    }
}
