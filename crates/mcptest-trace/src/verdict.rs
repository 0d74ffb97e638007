//! Verdicts, and the errors of runs that could not be judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A verdict. The order is that of severity: if several apply, the worst one holds for the whole.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Judged, and good.
    Pass,
    /// There was nothing to judge. Never a pass by itself.
    NoEvidence,
    /// Judged, and not good: the agent or the server failed.
    Fail,
    /// Could not be judged because something failed that is not under test.
    Error,
}

impl Verdict {
    /// All verdicts, in their order: each is at the place of its number.
    pub const ALL: [Self; 4] = [Self::Pass, Self::NoEvidence, Self::Fail, Self::Error];

    /// The worst of several; a pass for none.
    #[must_use]
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().max().unwrap_or(Self::Pass)
    }
}

/// The kind of failure of a run that could not be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A provider's rate limit, after all retries.
    RateLimit,
    /// A key or a token is missing, wrong or not allowed.
    Auth,
    /// No answer within the timeout.
    Timeout,
    /// A connection could not be made, or was lost.
    Transport,
    /// A server process ended before its work was done.
    ServerCrash,
    /// The other side violated the protocol.
    Protocol,
    /// A model provider failed or gave an invalid answer, or the model is not known.
    Provider,
    /// A spend or time cap was reached.
    Budget,
    /// The test could not be prepared or cleaned up: a `setup` or `teardown` call failed, or a
    /// snapshot could not be written.
    Fixture,
    /// A cassette no longer matches the test, and must be recorded again.
    StaleCassette,
    /// The suite has a mistake that shows only in a run: it names a tool that no server offers, has
    /// no answer for a server, or cancels a call too late.
    Suite,
    /// The agent under test could not be started: its program is missing, or its settings could not
    /// be written.
    NotStarted,
    /// The agent under test is not logged in, or its key was refused.
    Login,
    /// The agent under test ran without one of its servers.
    ServerMissing,
    /// The process of the agent under test ended with an error.
    Crashed,
    /// The process of the agent under test ended, but did not report the end of its work.
    NoEnd,
}

impl ErrorKind {
    /// All kinds: each is at the place of its number.
    pub const ALL: [Self; 16] = [
        Self::RateLimit,
        Self::Auth,
        Self::Timeout,
        Self::Transport,
        Self::ServerCrash,
        Self::Protocol,
        Self::Provider,
        Self::Budget,
        Self::Fixture,
        Self::StaleCassette,
        Self::Suite,
        Self::NotStarted,
        Self::Login,
        Self::ServerMissing,
        Self::Crashed,
        Self::NoEnd,
    ];

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
            Self::StaleCassette => "stale_cassette",
            Self::Suite => "suite",
            Self::NotStarted => "not_started",
            Self::Login => "login",
            Self::ServerMissing => "server_missing",
            Self::Crashed => "crashed",
            Self::NoEnd => "no_end",
        }
    }
}

/// The reason why a run could not be completed. It is never the agent's fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// The typed cause.
    pub kind: ErrorKind,
    /// The failed operation, its object, and what to do about it.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_wins_and_no_evidence_is_never_a_pass() {
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
