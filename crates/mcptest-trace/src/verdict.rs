//! Verdicts, and why a run could not be judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came out. The order is that of gravity: where several apply, the gravest is the whole's.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Judged, and good.
    Pass,
    /// Nothing was there to judge. Never a pass by itself.
    NoEvidence,
    /// Judged, and not good: the agent or the server fell short.
    Fail,
    /// Could not be judged because something broke that is not under test.
    Error,
}

impl Verdict {
    /// The gravest of several; a pass for none.
    #[must_use]
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Pass)
    }
}

/// What kind of thing broke when a run could not be carried through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A provider refused for now, and went on refusing.
    RateLimit,
    /// A key is missing, wrong or not allowed.
    Auth,
    /// No answer in the time allowed.
    Timeout,
    /// A connection could not be made or broke.
    Transport,
    /// A server process ended before its work was done.
    ServerCrash,
    /// The other side spoke, but not the protocol.
    Protocol,
    /// A model provider failed or answered nonsense, or the model is not known.
    Provider,
    /// A spend or time cap was reached.
    Budget,
    /// What a test needs could not be made ready, or not be cleaned up: a `setup` or `teardown`
    /// call failed, a snapshot could not be written.
    Fixture,
}

impl ErrorKind {
    /// The name used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Auth => "auth",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::ServerCrash => "server_crash",
            Self::Protocol => "protocol",
            Self::Provider => "provider",
            Self::Budget => "budget",
            Self::Fixture => "fixture",
        }
    }
}

/// Why a run could not be carried through: never the agent's fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// The typed cause.
    pub kind: ErrorKind,
    /// What was being done, to what, and what to do about it.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_wins_and_no_evidence_never_hides_behind_a_pass() {
        assert_eq!(Verdict::worst([]), Verdict::Pass);
        assert_eq!(
            Verdict::worst([Verdict::Pass, Verdict::NoEvidence]),
            Verdict::NoEvidence
        );
        assert_eq!(
            Verdict::worst([Verdict::Fail, Verdict::NoEvidence]),
            Verdict::Fail
        );
        assert_eq!(
            Verdict::worst([Verdict::Fail, Verdict::Error]),
            Verdict::Error
        );
    }
}
