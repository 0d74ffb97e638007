//! The published revisions of MCP, and what differs between them as far as a server has to care.

/// A revision of the Model Context Protocol. The order is the order of publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first one.
    V2024_11_05,
    /// 2025-03-26, the only one with JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18, with structured tool output.
    V2025_06_18,
    /// 2025-11-25, the newest one that begins with `initialize`.
    V2025_11_25,
    /// 2026-07-28: stateless, `server/discover` and `_meta` on every request.
    V2026_07_28,
}

impl Revision {
    /// Every revision the mock speaks, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// What `initialize` is answered with when the client asks for a revision that has no handshake or is unknown.
    pub const NEWEST_WITH_INITIALIZE: Self = Self::V2025_11_25;

    /// The date that names it on the wire.
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

    /// The revision with this name, if the mock speaks it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Whether each request stands alone: no handshake, `_meta` required, `resultType` and cache hints in results.
    #[must_use]
    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// Whether an array of messages is a legal frame.
    #[must_use]
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether arguments that break the input schema are a tool result with `isError` (SEP-1303) and not a protocol error.
    #[must_use]
    pub fn reports_bad_arguments_as_result(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// The code for a resource that does not exist (SEP-2164 moved it to the standard "invalid params").
    #[must_use]
    pub fn resource_not_found_code(self) -> i32 {
        if self.is_stateless() {
            crate::jsonrpc::INVALID_PARAMS
        } else {
            crate::jsonrpc::RESOURCE_NOT_FOUND
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_order_is_that_of_publication() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::parse("2025-01-01"), None);
    }
}
