//! The exit codes of the process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "u8", try_from = "u8")]
#[schemars(with = "u8")]
pub enum ExitCode {
    /// Everything passed.
    Passed,
    /// A test, gate or floor failed: a defect of the agent or the server.
    Failed,
    /// Could not run as asked: bad invocation, bad suite, server or provider unreachable, nothing
    /// selected.
    CouldNotRun,
    /// Nothing failed, but something had no evidence.
    NoEvidence,
    /// Stopped by a spend or time cap.
    Capped,
    /// Interrupted; what was finished is reported.
    Interrupted,
}

impl ExitCode {
    /// All codes with their meaning, for `--help` and the documentation.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Passed, "everything passed"),
        (
            Self::Failed,
            "a test, gate or floor failed: the agent or the server fell short",
        ),
        (
            Self::CouldNotRun,
            "could not run as asked: bad invocation, bad suite, server or provider unreachable, \
             nothing selected",
        ),
        (
            Self::NoEvidence,
            "nothing failed, but something had no evidence",
        ),
        (Self::Capped, "stopped by a spend or time cap"),
        (
            Self::Interrupted,
            "interrupted; what was finished is reported",
        ),
    ];

    /// The code of the process if several apply: the first of 130, 4, 2, 1, 3, 0.
    #[must_use]
    pub fn first_of(codes: impl IntoIterator<Item = Self>) -> Self {
        codes
            .into_iter()
            .min_by_key(|code| code.rank())
            .unwrap_or(Self::Passed)
    }

    fn rank(self) -> u8 {
        match self {
            Self::Interrupted => 0,
            Self::Capped => 1,
            Self::CouldNotRun => 2,
            Self::Failed => 3,
            Self::NoEvidence => 4,
            Self::Passed => 5,
        }
    }
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        match code {
            ExitCode::Passed => 0,
            ExitCode::Failed => 1,
            ExitCode::CouldNotRun => 2,
            ExitCode::NoEvidence => 3,
            ExitCode::Capped => 4,
            ExitCode::Interrupted => 130,
        }
    }
}

/// A number that is not an exit code of mcptest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an exit code of mcptest")]
pub struct UnknownExitCode(pub u8);

impl TryFrom<u8> for ExitCode {
    type Error = UnknownExitCode;

    fn try_from(code: u8) -> Result<Self, UnknownExitCode> {
        Self::ALL
            .iter()
            .map(|(known, _)| *known)
            .find(|known| u8::from(*known) == code)
            .ok_or(UnknownExitCode(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_documented_order_wins() {
        use ExitCode::{Capped, CouldNotRun, Failed, Interrupted, NoEvidence, Passed};
        let order = [Interrupted, Capped, CouldNotRun, Failed, NoEvidence, Passed];
        let numbers: Vec<u8> = order.iter().map(|code| u8::from(*code)).collect();
        assert_eq!(numbers, [130, 4, 2, 1, 3, 0]);
        for (at, first) in order.iter().enumerate() {
            for second in &order[at..] {
                assert_eq!(ExitCode::first_of([*second, *first]), *first);
            }
        }
        assert_eq!(ExitCode::first_of([]), Passed);
        for (code, _) in ExitCode::ALL {
            assert_eq!(ExitCode::try_from(u8::from(code)), Ok(code));
        }
    }
}
