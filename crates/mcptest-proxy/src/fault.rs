//! Faults, as written on the command line.

use std::str::FromStr;
use std::time::Duration;

/// A fault that affects calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ProxyFault {
    /// Calls are passed on.
    #[default]
    None,
    /// Calls are never answered.
    Hang,
    /// Calls are never answered; the name distinguishes a deadlocked backend from a stalled
    /// network.
    Wedged,
    /// Calls are answered with this delay.
    Slow(Duration),
    /// The first calls are never answered, later ones are.
    RecoverAfter(u64),
    /// Calls are answered with this delay, even if they were cancelled.
    ReplyAfterCancel(Duration),
}

/// A string that is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyFaultError {
    /// The kind is unknown.
    #[error("`{0}` is not a kind of fault; {KINDS}")]
    UnknownKind(String),
    /// The number is missing.
    #[error("`{0}` needs a number, as in `{0}:3`")]
    MissingNumber(String),
    /// The number is invalid.
    #[error("`{number}` is not a whole number, as in `{kind}:3`")]
    InvalidNumber {
        /// The kind of fault.
        kind: String,
        /// The string after the colon.
        number: String,
    },
    /// The kind takes no number, or is unknown.
    #[error("`{0}` takes no number, or is not a kind of fault; {KINDS}")]
    UnexpectedNumber(String),
}

impl FromStr for ProxyFault {
    type Err = ProxyFaultError;

    fn from_str(text: &str) -> Result<Self, ProxyFaultError> {
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let takes_number = matches!(kind, "slow" | "recover-after" | "reply-after-cancel");
        let number = match number {
            Some(number) if takes_number => {
                number
                    .parse::<u64>()
                    .map_err(|_| ProxyFaultError::InvalidNumber {
                        kind: kind.to_owned(),
                        number: number.to_owned(),
                    })?
            }
            Some(_) => return Err(ProxyFaultError::UnexpectedNumber(kind.to_owned())),
            None if takes_number => return Err(ProxyFaultError::MissingNumber(kind.to_owned())),
            None => 0,
        };
        match kind {
            "none" => Ok(Self::None),
            "hang" => Ok(Self::Hang),
            "wedged" => Ok(Self::Wedged),
            "slow" => Ok(Self::Slow(Duration::from_millis(number))),
            "recover-after" => Ok(Self::RecoverAfter(number)),
            "reply-after-cancel" => Ok(Self::ReplyAfterCancel(Duration::from_millis(number))),
            _ => Err(ProxyFaultError::UnknownKind(kind.to_owned())),
        }
    }
}

const KINDS: &str =
    "the kinds are none, hang, wedged, slow:<ms>, recover-after:<n> and reply-after-cancel:<ms>";

/// The effect of a fault on one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEffect {
    /// The call is dropped.
    Dropped,
    /// The reply is delayed, and dropped if the client cancels.
    Delayed(Duration),
    /// The reply is delayed, even if the client cancels.
    DelayedAlways(Duration),
}

impl ProxyFault {
    /// The name of the fault in the trace.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Hang => "hang",
            Self::Wedged => "wedged",
            Self::Slow(_) => "slow",
            Self::RecoverAfter(_) => "recover-after",
            Self::ReplyAfterCancel(_) => "reply-after-cancel",
        }
    }

    /// The effect on a matching call after `earlier` other ones.
    pub(crate) fn effect(self, earlier: u64) -> Option<CallEffect> {
        match self {
            Self::None => None,
            Self::Hang | Self::Wedged => Some(CallEffect::Dropped),
            Self::Slow(delay) => Some(CallEffect::Delayed(delay)),
            Self::RecoverAfter(failures) => (earlier < failures).then_some(CallEffect::Dropped),
            Self::ReplyAfterCancel(delay) => Some(CallEffect::DelayedAlways(delay)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_are_parsed() {
        let ms = Duration::from_millis;
        for (text, fault) in [
            ("none", ProxyFault::None),
            ("hang", ProxyFault::Hang),
            ("wedged", ProxyFault::Wedged),
            ("slow:250", ProxyFault::Slow(ms(250))),
            ("recover-after:2", ProxyFault::RecoverAfter(2)),
            (
                "reply-after-cancel:30",
                ProxyFault::ReplyAfterCancel(ms(30)),
            ),
        ] {
            assert_eq!(text.parse(), Ok(fault));
        }
        for text in [
            "",
            "slow",
            "slow:",
            "slow:-1",
            "slow:1s",
            "hang:3",
            "recover-after",
            "crash",
            "HANG",
        ] {
            assert!(text.parse::<ProxyFault>().is_err(), "{text}");
        }
    }

    #[test]
    fn calls_recover_after_the_given_number() {
        let fault = ProxyFault::RecoverAfter(2);
        let affected: Vec<bool> = (0..4)
            .map(|earlier| fault.effect(earlier).is_some())
            .collect();
        assert_eq!(affected, [true, true, false, false]);
        assert_eq!(ProxyFault::RecoverAfter(0).effect(0), None);
    }
}
