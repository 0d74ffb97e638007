//! The private method of our mock server that reads the tables of a session.
//!
//! It is not part of MCP: the runner uses it to read the state after a run. The mock answers it
//! only with the token that it was started with.

/// The method. Its parameters are `token`, `sql` and `args`; its result has `rows`.
pub const METHOD: &str = "mcptest/query";

/// The environment variable with the token that enables [`METHOD`].
pub const TOKEN_VARIABLE: &str = "MCPTEST_MOCK_QUERY_TOKEN";

/// The environment variable with the path of a file in which all processes of a mock server keep
/// one database. The runner sets it for a run whose agent starts the servers itself, as often as it
/// likes.
pub const STATE_VARIABLE: &str = "MCPTEST_MOCK_STATE";
