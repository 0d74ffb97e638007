//! Faults as the command line names them.

use std::str::FromStr;
use std::time::Duration;

/// What happens to calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyFault {
    /// Nothing.
    #[default]
    None,
    /// They never come back.
    Hang,
    /// They never come back; the name tells a deadlocked backend from a stalled network.
    Wedged,
    /// They are answered, but only this long after they were made.
    Slow(Duration),
    /// The first of them never come back, later ones do.
    RecoverAfter(u64),
    /// They are answered this long after they were made, cancelled or not.
    ReplyAfterCancel(Duration),
}

impl FromStr for ProxyFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = match text.split_once(':') {
            Some((kind, number)) => (kind, Some(number)),
            None => (text, None),
        };
        let takes_number = matches!(kind, "slow" | "recover-after" | "reply-after-cancel");
        let number = match number {
            Some(number) if takes_number => number
                .parse::<u64>()
                .map_err(|_| format!("`{number}` is not a whole number, as in `{kind}:3`"))?,
            Some(_) => {
                return Err(format!(
                    "`{kind}` takes no number, or is no kind of fault; {KINDS}"
                ));
            }
            None if takes_number => {
                return Err(format!("`{kind}` needs a number, as in `{kind}:3`"));
            }
            None => 0,
        };
        match kind {
            "none" => Ok(Self::None),
            "hang" => Ok(Self::Hang),
            "wedged" => Ok(Self::Wedged),
            "slow" => Ok(Self::Slow(Duration::from_millis(number))),
            "recover-after" => Ok(Self::RecoverAfter(number)),
            "reply-after-cancel" => Ok(Self::ReplyAfterCancel(Duration::from_millis(number))),
            _ => Err(format!("`{kind}` is no kind of fault; {KINDS}")),
        }
    }
}

const KINDS: &str =
    "the kinds are none, hang, wedged, slow:<ms>, recover-after:<n> and reply-after-cancel:<ms>";

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strike {
    /// It is not passed on.
    Lost,
    /// Its reply is held back, and dropped if the client cancels.
    Late(Duration),
    /// Its reply is held back, whatever the client does.
    Stubborn(Duration),
}

impl ProxyFault {
    /// The name that a recorded result carries.
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

    /// What it does to a call that it is meant for, when `earlier` such calls were made before.
    pub(crate) fn strike(self, earlier: u64) -> Option<Strike> {
        match self {
            Self::None => None,
            Self::Hang | Self::Wedged => Some(Strike::Lost),
            Self::Slow(delay) => Some(Strike::Late(delay)),
            Self::RecoverAfter(failures) => (earlier < failures).then_some(Strike::Lost),
            Self::ReplyAfterCancel(delay) => Some(Strike::Stubborn(delay)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_the_documents() {
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
    fn recovery_comes_after_exactly_that_many() {
        let fault = ProxyFault::RecoverAfter(2);
        let strikes: Vec<bool> = (0..4)
            .map(|earlier| fault.strike(earlier).is_some())
            .collect();
        assert_eq!(strikes, [true, true, false, false]);
        assert_eq!(ProxyFault::RecoverAfter(0).strike(0), None);
    }
}
