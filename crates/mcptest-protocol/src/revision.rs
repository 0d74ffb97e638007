//! The published revisions of the protocol and their differences.

use std::fmt;

use serde::{Serialize, Serializer};

/// A revision of the Model Context Protocol that client and mock server support.
///
/// The order is the order of publication, so `max` picks the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// The first published revision.
    V2024_11_05,
    /// The only revision in which a line may hold a batch (an array) of messages.
    V2025_03_26,
    /// Structured tool output, no more batches.
    V2025_06_18,
    /// The newest revision with an `initialize` handshake.
    V2025_11_25,
    /// Stateless: no handshake, every request names its sender in `_meta`.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The revision that a client offers in `initialize`, and a server's answer to an unknown one.
    pub const LATEST_WITH_INITIALIZE: Self = Self::V2025_11_25;

    /// The revision that a client offers in `server/discover`.
    pub const LATEST_STATELESS: Self = Self::V2026_07_28;

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Parses a name from the wire; `None` for an unknown revision.
    #[must_use]
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == name)
    }

    /// Returns true if there is no handshake and each request carries its own context.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }

    /// Returns true if a line may be an array of messages.
    #[must_use]
    pub const fn allows_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Returns true if arguments that violate the input schema give a tool result with `isError`
    /// (SEP-1303) and not a protocol error.
    #[must_use]
    pub fn reports_bad_arguments_as_result(self) -> bool {
        self >= Self::V2025_11_25
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sort_by_date() {
        for revision in Revision::ALL {
            assert_eq!(Revision::from_wire(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::from_wire("2099-01-01"), None);
    }
}
