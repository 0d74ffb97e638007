//! Intentional failures of calls. They affect `tools/call` only: a client can connect and list as
//! usual.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fault, written `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>` or
/// `reply-after-cancel:<ms>`.
///
/// ```
/// use mcptest_mock::MockFault;
///
/// assert_eq!("slow:250".parse(), Ok(MockFault::Slow { ms: 250 }));
/// assert_eq!(MockFault::Slow { ms: 250 }.to_string(), "slow:250");
/// assert!("slow".parse::<MockFault>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MockFault {
    /// Calls work.
    #[default]
    None,
    /// No call ever returns.
    Hang,
    /// No call ever returns, like with a deadlocked backend.
    Wedged,
    /// Calls return late. Cancelled calls do not return.
    Slow {
        /// The delay in milliseconds.
        ms: u64,
    },
    /// The first calls never return, all later ones do.
    RecoverAfter {
        /// The number of calls that never return.
        calls: u64,
    },
    /// Calls return late, even if they were cancelled.
    ReplyAfterCancel {
        /// The delay in milliseconds.
        ms: u64,
    },
}

/// All forms, for JSON Schema.
pub(crate) const PATTERN: &str =
    "^(none|hang|wedged|slow:[0-9]+|recover-after:[0-9]+|reply-after-cancel:[0-9]+)$";

/// All forms, for messages.
const FORMS: &str = "none, hang, wedged, slow:<ms>, recover-after:<n> or reply-after-cancel:<ms>";

/// The longest delay, an hour.
const MAX_MS: u64 = 3_600_000;

/// A string that is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The kind is unknown.
    #[error("no such fault; use {FORMS}")]
    UnknownKind,
    /// The number is missing.
    #[error("`{kind}` needs a number: write `{kind}:<{unit}>`")]
    MissingNumber {
        /// The kind of fault.
        kind: String,
        /// The meaning of the number: `ms` or `n`.
        unit: &'static str,
    },
    /// The number is not valid.
    #[error("`{kind}:<{unit}>` needs a whole number after the colon")]
    InvalidNumber {
        /// The kind of fault.
        kind: String,
        /// The meaning of the number: `ms` or `n`.
        unit: &'static str,
    },
    /// The delay is too long.
    #[error("at most {MAX_MS} milliseconds; for longer use `hang`")]
    TooLong,
    /// The kind takes no number.
    #[error("`{0}` takes no number")]
    UnexpectedNumber(String),
}

impl FromStr for MockFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let parse_number = |unit: &'static str| {
            let kind = kind.to_owned();
            let Some(digits) = number else {
                return Err(FaultError::MissingNumber { kind, unit });
            };
            let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_plain
                .then(|| digits.parse::<u64>().ok())
                .flatten()
                .ok_or(FaultError::InvalidNumber { kind, unit })
        };
        let delay = || match parse_number("ms")? {
            ms if ms > MAX_MS => Err(FaultError::TooLong),
            ms => Ok(ms),
        };
        let without_number = |fault| match number {
            Some(_) => Err(FaultError::UnexpectedNumber(kind.to_owned())),
            None => Ok(fault),
        };
        match kind {
            "none" => without_number(Self::None),
            "hang" => without_number(Self::Hang),
            "wedged" => without_number(Self::Wedged),
            "slow" => Ok(Self::Slow { ms: delay()? }),
            "recover-after" => Ok(Self::RecoverAfter {
                calls: parse_number("n")?,
            }),
            "reply-after-cancel" => Ok(Self::ReplyAfterCancel { ms: delay()? }),
            _ => Err(FaultError::UnknownKind),
        }
    }
}

impl fmt::Display for MockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Hang => f.write_str("hang"),
            Self::Wedged => f.write_str("wedged"),
            Self::Slow { ms } => write!(f, "slow:{ms}"),
            Self::RecoverAfter { calls } => write!(f, "recover-after:{calls}"),
            Self::ReplyAfterCancel { ms } => write!(f, "reply-after-cancel:{ms}"),
        }
    }
}

/// A fault and the number of calls so far.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    fault: MockFault,
    calls: AtomicU64,
}

/// The effect of a fault on one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEffect {
    None,
    NeverAnswered,
    Late { ms: u64, honours_cancel: bool },
}

impl FaultState {
    pub(crate) fn new(fault: MockFault) -> Self {
        Self {
            fault,
            calls: AtomicU64::new(0),
        }
    }

    /// Counts a call and returns the effect on it.
    pub(crate) fn next_effect(&self) -> CallEffect {
        match self.fault {
            MockFault::None => CallEffect::None,
            MockFault::Hang | MockFault::Wedged => CallEffect::NeverAnswered,
            MockFault::Slow { ms } => CallEffect::Late {
                ms,
                honours_cancel: true,
            },
            MockFault::ReplyAfterCancel { ms } => CallEffect::Late {
                ms,
                honours_cancel: false,
            },
            MockFault::RecoverAfter { calls } => {
                if self.calls.fetch_add(1, Ordering::Relaxed) < calls {
                    CallEffect::NeverAnswered
                } else {
                    CallEffect::None
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_round_trips() {
        for text in [
            "none",
            "hang",
            "wedged",
            "slow:0",
            "slow:3600000",
            "recover-after:2",
            "reply-after-cancel:50",
        ] {
            assert_eq!(
                text.parse::<MockFault>().map(|fault| fault.to_string()),
                Ok(text.to_owned())
            );
        }
        for bad in [
            "",
            "Hang",
            "hang:1",
            "slow",
            "slow:",
            "slow:1s",
            "slow:-1",
            "slow:+1",
            "slow:3600001",
            "recover-after",
            "recover_after:1",
            "recover-after:99999999999999999999",
        ] {
            assert!(bad.parse::<MockFault>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_first_calls_of_recover_after_hang() {
        let state = FaultState::new(MockFault::RecoverAfter { calls: 2 });
        let effects: Vec<_> = (0..4).map(|_| state.next_effect()).collect();
        assert_eq!(
            effects,
            [
                CallEffect::NeverAnswered,
                CallEffect::NeverAnswered,
                CallEffect::None,
                CallEffect::None
            ]
        );
        assert_eq!(
            FaultState::new(MockFault::RecoverAfter { calls: 0 }).next_effect(),
            CallEffect::None
        );
    }
}
