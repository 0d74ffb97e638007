//! What can go wrong with a call on purpose. Faults touch `tools/call` only: a client can connect
//! and list, and meets them when it calls.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A fault, written `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>` or
/// `reply-after-cancel:<ms>`.
///
/// ```
/// use mcptest_mock::Fault;
///
/// assert_eq!("slow:250".parse(), Ok(Fault::Slow { ms: 250 }));
/// assert_eq!(Fault::Slow { ms: 250 }.to_string(), "slow:250");
/// assert!("slow".parse::<Fault>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Healthy.
    #[default]
    None,
    /// No call ever returns.
    Hang,
    /// No call ever returns, and the name says that the backend is deadlocked.
    Wedged,
    /// Calls return late. A cancelled one does not return.
    Slow {
        /// How late, in milliseconds.
        ms: u64,
    },
    /// The first calls never return, all later ones do.
    RecoverAfter {
        /// How many.
        calls: u64,
    },
    /// Calls return late, cancelled or not: the answer that comes after its cancellation.
    ReplyAfterCancel {
        /// How late, in milliseconds.
        ms: u64,
    },
}

/// All spellings, for JSON Schema.
pub(crate) const PATTERN: &str =
    "^(none|hang|wedged|slow:[0-9]+|recover-after:[0-9]+|reply-after-cancel:[0-9]+)$";

/// All spellings, for messages.
const SPELLINGS: &str =
    "none, hang, wedged, slow:<ms>, recover-after:<n> or reply-after-cancel:<ms>";

/// The longest delay, an hour: anything longer is a `hang`.
const MAX_MS: u64 = 3_600_000;

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let number = |unit: &str| {
            let given = number
                .ok_or_else(|| format!("`{kind}` needs a number: write `{kind}:<{unit}>`"))?;
            let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
            digits
                .then(|| given.parse::<u64>().ok())
                .flatten()
                .ok_or_else(|| format!("in `{kind}:<{unit}>` comes a whole number after the colon"))
        };
        let late = || match number("ms")? {
            ms if ms > MAX_MS => Err(format!(
                "at most {MAX_MS} milliseconds; for longer use `hang`"
            )),
            ms => Ok(ms),
        };
        let plain = |fault| match text.split_once(':') {
            Some(_) => Err(format!("`{kind}` takes no number")),
            None => Ok(fault),
        };
        match kind {
            "none" => plain(Self::None),
            "hang" => plain(Self::Hang),
            "wedged" => plain(Self::Wedged),
            "slow" => Ok(Self::Slow { ms: late()? }),
            "recover-after" => Ok(Self::RecoverAfter {
                calls: number("n")?,
            }),
            "reply-after-cancel" => Ok(Self::ReplyAfterCancel { ms: late()? }),
            _ => Err(format!("no such fault; there are {SPELLINGS}")),
        }
    }
}

impl fmt::Display for Fault {
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

/// A fault and how many calls it has seen.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    fault: Fault,
    calls: AtomicU64,
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strike {
    Healthy,
    Never,
    Late { ms: u64, honours_cancel: bool },
}

impl FaultState {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault,
            calls: AtomicU64::new(0),
        }
    }

    /// Counts a call and says what becomes of it.
    pub(crate) fn strike(&self) -> Strike {
        match self.fault {
            Fault::None => Strike::Healthy,
            Fault::Hang | Fault::Wedged => Strike::Never,
            Fault::Slow { ms } => Strike::Late {
                ms,
                honours_cancel: true,
            },
            Fault::ReplyAfterCancel { ms } => Strike::Late {
                ms,
                honours_cancel: false,
            },
            Fault::RecoverAfter { calls } => {
                if self.calls.fetch_add(1, Ordering::Relaxed) < calls {
                    Strike::Never
                } else {
                    Strike::Healthy
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_round_trips() {
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
                text.parse::<Fault>().map(|fault| fault.to_string()),
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
            assert!(bad.parse::<Fault>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_first_calls_of_recover_after_hang() {
        let state = FaultState::new(Fault::RecoverAfter { calls: 2 });
        let strikes: Vec<_> = (0..4).map(|_| state.strike()).collect();
        assert_eq!(
            strikes,
            [
                Strike::Never,
                Strike::Never,
                Strike::Healthy,
                Strike::Healthy
            ]
        );
        assert_eq!(
            FaultState::new(Fault::RecoverAfter { calls: 0 }).strike(),
            Strike::Healthy
        );
    }
}
