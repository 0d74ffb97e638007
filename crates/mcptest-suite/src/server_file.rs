//! Servers as written: the entries of `servers:`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::duration::WrittenDuration;
use crate::values::{OneOrMany, Scalar};

/// An MCP server that is started as a process and spoken to over its standard streams.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerFile {
    /// The program and its arguments, run without a shell in the suite file's directory. The word
    /// `mcptest` in first place means this very program.
    pub command: Option<OneOrMany>,
    /// More arguments, after those in `command`.
    pub args: Vec<String>,
    /// Environment variables for the server, on top of the inherited ones.
    pub env: BTreeMap<String, Scalar>,
    /// Working directory, relative to the suite file. Default: the suite file's directory.
    pub cwd: Option<String>,
    /// The time allowed for each call. Default: the suite's.
    pub timeout: Option<WrittenDuration>,
    /// The time allowed until the server is ready. Default: 30s.
    pub startup_timeout: Option<WrittenDuration>,
    /// How the connection is opened.
    pub lifecycle: LifecycleFile,
    /// Whether runs share one server process or each has its own.
    pub isolation: IsolationFile,
    /// Address of a server that speaks streamable HTTP, in place of `command`, as in
    /// `http://127.0.0.1:3000/mcp`. Within `startup_timeout`, a server that is not there yet is
    /// waited for.
    #[schemars(with = "String", length(min = 1))]
    pub url: Option<String>,
    /// Headers sent to a server over HTTP with every request. Values of headers that carry
    /// credentials (`Authorization`, `X-Api-Key` …) are hidden in all output; take them from the
    /// environment: `Bearer ${TOKEN}`.
    pub headers: BTreeMap<String, Scalar>,
    /// A token for a server over HTTP, sent as `Authorization: Bearer …`. It is hidden in all
    /// output; take it from the environment: `${TOKEN}`.
    #[schemars(with = "String", length(min = 1))]
    pub bearer: Option<String>,
}

/// How a connection is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleFile {
    /// Ask with `server/discover`, and fall back to `initialize`.
    #[default]
    Auto,
    /// `initialize` only (revisions up to 2025-11-25).
    Initialize,
    /// `server/discover` only (revision 2026-07-28).
    Discover,
}

/// Whether runs share a server process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolationFile {
    /// One process for the whole suite.
    #[default]
    Shared,
    /// A fresh process for each run and each direct tool test.
    Run,
}
