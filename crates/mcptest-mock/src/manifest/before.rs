//! Requests to the client, and messages before an answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A request to the client.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSpec {
    /// The method.
    pub method: AskMethod,
    /// The parameters. Their strings may use the arguments.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// A request that a server can send to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum AskMethod {
    /// A form for the user.
    #[serde(rename = "elicitation/create")]
    Elicitation,
    /// An answer of the client's model.
    #[serde(rename = "sampling/createMessage")]
    Sampling,
    /// The directories that the client exposes.
    #[serde(rename = "roots/list")]
    Roots,
}

impl AskMethod {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    pub(crate) const fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// A message, change or pause before an answer: exactly one of `progress`, `log`, `updated`,
/// `list_changed`, `reveal` and `wait_ms`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeforeSpec {
    /// The progress so far. Sent only to a client that requested progress.
    pub progress: Option<serde_json::Number>,
    /// With `progress`: its final value.
    pub total: Option<serde_json::Number>,
    /// With `progress`: a message. It may use the arguments.
    pub message: Option<String>,
    /// A log message: a string or any other value. Its strings may use the arguments. Sent only if
    /// the client's log level includes it.
    pub log: Option<Value>,
    /// With `log`: its level; `info` by default.
    pub level: Option<LogLevel>,
    /// With `log`: the name of the logger.
    pub logger: Option<String>,
    /// The URI of a resource that changes. Its next content is that of its `updates`; clients that
    /// subscribed to it are notified.
    pub updated: Option<String>,
    /// A list that has changed; clients are notified.
    pub list_changed: Option<ChangedList>,
    /// The name of a tool or prompt, or the URI of a resource, that is `hidden`: it is listed from
    /// now on, and clients are notified that the list has changed.
    pub reveal: Option<String>,
    /// A pause in milliseconds.
    #[schemars(range(max = 3_600_000))]
    pub wait_ms: Option<u64>,
}

/// The level of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For debugging.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A failed component.
    Critical,
    /// Action is required immediately.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// A list of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedList {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `prompts/list`.
    Prompts,
}

impl ChangedList {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}
