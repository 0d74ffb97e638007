//! Calls around an agent's run as written: the entries of `setup:`, `after:` and `teardown:`.

use std::collections::BTreeMap;

use mcptest_trace::expect::WrittenExpectation;
use mcptest_yaml::duration::WrittenDuration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A direct call before or after an agent's run: a tool, or a query of a mock's database.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StateCallFile {
    /// The server. Default: the test's server, if it has only one.
    pub server: Option<String>,
    /// The tool to call.
    #[schemars(with = "String", length(min = 1))]
    pub tool: Option<String>,
    /// A query of the database of a mock server, in place of `tool`. It cannot change anything.
    #[schemars(with = "String", length(min = 1))]
    pub sql: Option<String>,
    /// The arguments of the tool, or the values of `:name` in the query. `${saved.name}` is a value
    /// that an earlier call saved.
    pub args: Option<Map<String, Value>>,
    /// Assertions over `result` and `error`, or over `rows` for a query. Default for a tool: no
    /// error.
    pub expect: Vec<WrittenExpectation>,
    /// Values of the answer for later calls: a name and a target, such as
    /// `id: result.structuredContent.id` or `id: rows[0].id`.
    pub save: BTreeMap<String, String>,
    /// The timeout for the call. Default: the server's.
    pub timeout: Option<WrittenDuration>,
}
