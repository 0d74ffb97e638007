//! The reasons why a statement was not executed.

/// The reason why a call was rolled back, in the words of its error result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[cfg_attr(
    not(feature = "database"),
    allow(
        dead_code,
        reason = "a build without databases has no calls to roll back"
    )
)]
pub(crate) enum CallFailure {
    /// The number of rows is not the expected one.
    #[error("expected {expected}, found {found}")]
    Rows {
        /// The expected number of rows.
        expected: String,
        /// The number of rows.
        found: u64,
    },
    /// SQLite rejected the statement, for example because of a constraint.
    #[error("{0}")]
    Rejected(String),
    /// The result has too many rows or bytes.
    #[error("the result is too large: {0}")]
    TooLarge(&'static str),
    /// The statement needed too many steps.
    #[error("the statement takes too long")]
    TooLong,
    /// A query that would change something.
    #[error("only a query that changes nothing is allowed here")]
    NotAQuery,
}
