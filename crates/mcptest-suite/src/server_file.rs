//! Servers as written: the entries of `servers:`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use mcptest_yaml::duration::WrittenDuration;
use mcptest_yaml::values::{OneOrMany, Scalar};

/// An MCP server: a process that is started (stdio), or an address (streamable HTTP).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerFile {
    /// The program and its arguments, run without a shell in the suite file's directory. `mcptest`
    /// as the program means the running mcptest itself.
    pub command: Option<OneOrMany>,
    /// Arguments to append to those in `command`.
    pub args: Vec<String>,
    /// Environment variables for the server, in addition to the inherited ones.
    pub env: BTreeMap<String, Scalar>,
    /// Working directory, relative to the suite file. Default: the suite file's directory.
    pub cwd: Option<String>,
    /// The timeout for each call. Default: the suite's.
    pub timeout: Option<WrittenDuration>,
    /// The timeout for starting the server. Default: 30s.
    pub startup_timeout: Option<WrittenDuration>,
    /// The way to open the connection.
    pub lifecycle: LifecycleFile,
    /// The sharing of the server process between runs.
    pub isolation: IsolationFile,
    /// The address of a server over streamable HTTP, instead of `command`, such as
    /// `http://127.0.0.1:3000/mcp`. Connecting is retried until `startup_timeout`.
    #[schemars(with = "String", length(min = 1))]
    pub url: Option<String>,
    /// Headers for every request to a server over HTTP. Values of headers that carry credentials
    /// (`Authorization`, `X-Api-Key` …) are redacted in all output; take them from the environment:
    /// `Bearer ${TOKEN}`.
    pub headers: BTreeMap<String, Scalar>,
    /// A token for a server over HTTP, sent as `Authorization: Bearer …`. It is redacted in all
    /// output; take it from the environment: `${TOKEN}`.
    #[schemars(with = "String", length(min = 1))]
    pub bearer: Option<String>,
}

/// The way to open a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleFile {
    /// Try `server/discover`, and fall back to `initialize`.
    #[default]
    Auto,
    /// `initialize` only (revisions up to 2025-11-25).
    Initialize,
    /// `server/discover` only (revision 2026-07-28).
    Discover,
}

/// The sharing of a server process between runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolationFile {
    /// One process for the whole suite.
    #[default]
    Shared,
    /// A fresh process for each run and each direct tool test.
    Run,
}
