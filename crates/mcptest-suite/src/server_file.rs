//! Servers as written: the entries of `servers:`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use mcptest_yaml::duration::WrittenDuration;
use mcptest_yaml::values::{OneOrMany, Scalar};

/// An MCP server: a process that is started (stdio), or an address (HTTP).
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
    /// The address of a server over HTTP, instead of `command`, such as
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
    /// The transport of a server over HTTP.
    pub transport: TransportFile,
    /// Authorization by OAuth for a server over HTTP. Tokens are obtained and refreshed by mcptest.
    pub auth: Option<AuthFile>,
}

/// The transport of a server over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportFile {
    /// Streamable HTTP; if the server refuses the first message, HTTP+SSE.
    #[default]
    Auto,
    /// Streamable HTTP only.
    StreamableHttp,
    /// HTTP+SSE only, the transport of revision 2024-11-05.
    Sse,
}

/// Authorization by OAuth. What is not set is discovered from the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthFile {
    /// The way to a token.
    #[serde(rename = "type")]
    pub grant: AuthGrantFile,
    /// The client's id at the authorization server, or the `https` address of its metadata
    /// document. Default for `authorization_code`: a client that is registered dynamically.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub client_id: Option<String>,
    /// The environment variable that holds the client's secret. The secret itself is never part of
    /// a suite.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub client_secret_env: Option<String>,
    /// A PEM file with the client's private key (RSA, P-256, P-384 or Ed25519), instead of a
    /// secret. It is relative to the suite file.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub private_key_file: Option<String>,
    /// The scopes to request. Default: those that the server asks for.
    #[serde(default)]
    pub scopes: Option<OneOrMany>,
    /// The environment variable that holds the refresh token, for `type: refresh_token`.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub refresh_token_env: Option<String>,
    /// The authorization server. A server that names another one is not used. Default: the one that
    /// the server names.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub issuer: Option<String>,
    /// The resource that tokens are for (RFC 8707). Default: the one that the server states.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub resource: Option<String>,
    /// The port of the redirect address `http://127.0.0.1:PORT/callback` of a login. Default: any
    /// free port.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65535))]
    pub redirect_port: Option<u16>,
}

/// The way to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthGrantFile {
    /// The client itself is authorized, without a user: for CI.
    ClientCredentials,
    /// A user logs in with `mcptest auth login SERVER`.
    AuthorizationCode,
    /// A refresh token from the environment.
    RefreshToken,
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
