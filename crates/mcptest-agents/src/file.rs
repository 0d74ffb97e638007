//! An agent as written: in a suite's `agent:`, and in a preset file. The doc comments here are the
//! descriptions in the JSON Schema and in the reference docs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcptest_trace::verdict::ErrorKind;
use mcptest_yaml::duration::WrittenDuration;
use mcptest_yaml::values::Scalar;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

/// An agent under test: a preset, a command, a command that speaks ACP, or an address. Strings may
/// contain values of the run, such as `{{prompt}}`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-mcptest-expected" = "an agent: a mapping with `preset:`, `command:`, `acp:` or `url:`"))]
pub struct AgentFile {
    /// The preset that gives all keys that are not written here (`mcptest agents list`).
    pub preset: Option<String>,
    /// The name in reports. Default: the preset, the program or the host.
    #[schemars(with = "String", length(min = 1))]
    pub name: Option<String>,
    /// A description for readers.
    pub about: Option<String>,
    /// The command that prints the agent's version.
    pub version: Option<Vec<String>>,
    /// The version of the agent that the preset was tested with.
    pub tested: Option<String>,
    /// The model, as the agent names it: `{{model}}`. Default: the agent's own default.
    pub model: Option<String>,
    /// The command that runs the agent once, without a shell.
    pub command: Option<Vec<ArgumentFile>>,
    /// The command that starts the agent as an ACP server on its standard streams.
    pub acp: Option<Vec<ArgumentFile>>,
    /// The address of an agent behind HTTP.
    pub url: Option<String>,
    /// The method of a request. Default: POST.
    pub method: Option<String>,
    /// The headers of a request. One that contains a value that is not set is left out.
    pub headers: BTreeMap<String, String>,
    /// The body of a request: JSON with values of the run in its strings, or a string.
    pub body: Option<Value>,
    /// Where the answer of an HTTP agent has its parts.
    pub response: Option<ResponseFile>,
    /// The form of an HTTP agent's answer, if it is a stream.
    pub stream: Option<StreamFile>,
    /// The content of the agent's standard input, which is always closed afterwards. Default:
    /// none.
    pub stdin: Option<StdinFile>,
    /// Variables of the agent's environment. One that is empty, or contains a value that is not
    /// set, is left out.
    pub env: BTreeMap<String, Scalar>,
    /// Variables that are passed on from the environment of mcptest. All others are left out.
    pub pass_env: Vec<String>,
    /// Text for templates, by name, inserted as `{{NAME}}`, if its condition holds.
    pub blocks: BTreeMap<String, BlockFile>,
    /// Files that are written before each run, by path. Empty ones are left out.
    pub files: BTreeMap<String, String>,
    /// The form of the servers in the agent's settings: `{{servers}}`.
    pub servers: Option<ServersFile>,
    /// The form of an allowed tool in the agent's settings: `{{tools}}`.
    pub tools: Option<ToolsFile>,
    /// The way in which an ACP agent gets its servers. Default: session.
    pub servers_by: Option<ServersByFile>,
    /// The way in which the agent reaches its servers. Default: http for an agent with `url:`,
    /// otherwise stdio.
    pub transport: Option<TransportFile>,
    /// The meaning of the tokens that an ACP agent reports with the end of a turn. Default: turn.
    pub usage: Option<UsageFile>,
    /// The ACP mode that is set after the session was opened.
    pub mode: Option<String>,
    /// The tools that the agent may use without being asked. Default: allow.
    pub permissions: Option<PermissionsFile>,
    /// A folder that is copied to the agent's working directory.
    pub workspace: Option<String>,
    /// True if all runs share one cache folder (`XDG_CACHE_HOME`), for agents that fill it with
    /// copies of themselves.
    pub shared_cache: Option<bool>,
    /// The limit of a whole run. Default: 5m.
    pub timeout: Option<WrittenDuration>,
    /// The limit until the agent is ready: the first line of a stream, or an open ACP session.
    /// Default: 90s.
    pub startup_timeout: Option<WrittenDuration>,
    /// The limit of the time without any output. Default: none.
    pub idle_timeout: Option<WrittenDuration>,
    /// The limit of one tool call: `{{call_timeout_s}}` and `{{call_timeout_ms}}`. Default: 60s.
    pub call_timeout: Option<WrittenDuration>,
    /// When the folder of a run is kept. Default: never.
    pub keep: Option<KeepFile>,
    /// Where the agent's output has its parts.
    pub output: Option<OutputFile>,
    /// Kinds of errors by their messages. The first one that matches wins.
    pub errors: Vec<ErrorRuleFile>,
    /// The address of the model's provider: `{{base_url}}`. Default: the agent's own provider.
    pub base_url: Option<String>,
    /// The variable with the key for the provider: `{{api_key}}`.
    pub api_key_env: Option<String>,
}

/// An argument of a command: a string, or arguments that depend on a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentFile {
    /// One argument.
    Text(String),
    /// Arguments that are used only if a condition holds, or once for each item of a list.
    Group(ArgumentGroupFile),
}

/// Arguments that depend on a value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArgumentGroupFile {
    /// The value that must be set.
    pub when: Option<String>,
    /// The value that must not be set.
    pub unless: Option<String>,
    /// The list whose items repeat the arguments.
    pub each: Option<EachFile>,
    /// The arguments.
    pub args: Vec<String>,
}

/// A list that repeats arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EachFile {
    /// The servers of the test.
    Servers,
    /// The allowed tools, in the form of `tools:`, as `{{tool}}`.
    Tools,
}

impl<'de> Deserialize<'de> for ArgumentFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            group => serde_json::from_value(group)
                .map(Self::Group)
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for ArgumentFile {
    fn schema_name() -> Cow<'static, str> {
        "AgentArgument".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An argument, or arguments that depend on a value.",
            "x-mcptest-expected": "a string, or a mapping with `when:` and `args:`",
            "anyOf": [{"type": "string"}, generator.subschema_for::<ArgumentGroupFile>()]
        })
    }
}

/// The standard input of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StdinFile {
    /// Nothing.
    #[default]
    None,
    /// The prompt.
    Prompt,
}

/// Text for templates with a condition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BlockFile {
    /// The value that must be set.
    pub when: Option<String>,
    /// The value that must not be set.
    pub unless: Option<String>,
    /// The text.
    pub text: String,
}

/// The form of servers in an agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServersFile {
    /// The text for a server that the agent starts.
    pub each: String,
    /// The text for a server with an address. Default: such servers are not supported.
    pub each_http: Option<String>,
    /// The text between two servers.
    pub join: String,
}

/// The form of allowed tools in an agent's settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsFile {
    /// The text for one allowed tool of a server.
    pub each: String,
    /// The text for a server with all its tools.
    pub all: String,
    /// The text between two of these.
    pub join: String,
}

/// The meaning of the tokens at the end of an ACP turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageFile {
    /// The tokens of the turn.
    #[default]
    Turn,
    /// The tokens of the turn. A turn without any has failed, and its text is the error.
    Required,
    /// The tokens of a part of the turn: they are not used.
    Partial,
}

/// The way in which an ACP agent gets its servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServersByFile {
    /// With the request that opens the session.
    #[default]
    Session,
    /// From the files, arguments or variables of the agent.
    Files,
}

/// The way in which an agent reaches its servers. Either way, the proxies of the run are between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportFile {
    /// It starts a command for each.
    Stdio,
    /// It connects to an address on this machine for each.
    Http,
}

/// The tools that an agent may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PermissionsFile {
    /// All, also the agent's own.
    #[default]
    Allow,
    /// None that needs permission.
    Reject,
    /// These, as `server.tool` or `server.*`; others are refused.
    Tools(Vec<String>),
}

impl<'de> Deserialize<'de> for PermissionsFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) if text == "allow" => Ok(Self::Allow),
            Value::String(text) if text == "reject" => Ok(Self::Reject),
            tools => serde_json::from_value(tools)
                .map(Self::Tools)
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for PermissionsFile {
    fn schema_name() -> Cow<'static, str> {
        "AgentPermissions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The tools that the agent may use: `allow` (all), `reject` (none), or a \
                            list of `server.tool` and `server.*`.",
            "x-mcptest-expected": "`allow`, `reject`, or a list such as `[weather.get_weather]`",
            "anyOf": [
                {"enum": ["allow", "reject"]},
                {"type": "array", "items": {"type": "string", "minLength": 1}}
            ]
        })
    }
}

/// When the folder of a run is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepFile {
    /// Never.
    #[default]
    Never,
    /// If the run failed or could not be completed.
    Failed,
    /// Always.
    Always,
}

/// The form of an HTTP agent's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamFile {
    /// Server-sent events with JSON.
    Sse,
}

/// The parts of an HTTP agent's answer. Without `stream:` the answer is one JSON value, and `where`
/// is rarely needed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResponseFile {
    /// The final answer: a path, or a rule. Default: the whole body as text.
    pub r#final: Option<PathOrRuleFile>,
    /// The tokens.
    pub tokens: Option<TokensFile>,
    /// The cost in US dollars.
    pub cost: Option<PathOrRuleFile>,
    /// An error that the agent reports.
    pub error: Option<PathOrRuleFile>,
    /// The event that ends a stream. Default: the end of the body.
    pub ended: Option<RuleFile>,
    /// The id of the conversation, `{{session}}` in the requests of further turns.
    pub session: Option<PathOrRuleFile>,
    /// Calls of the agent's own tools.
    pub calls: Option<CallsFile>,
}

/// A rule, or only its path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathOrRuleFile(pub RuleFile);

impl<'de> Deserialize<'de> for PathOrRuleFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(path) => Ok(Self(RuleFile {
                take: Some(path),
                ..RuleFile::default()
            })),
            rule => serde_json::from_value(rule)
                .map(Self)
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for PathOrRuleFile {
    fn schema_name() -> Cow<'static, str> {
        "AgentPathOrRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A path, or a rule that has one.",
            "x-mcptest-expected": "a path such as `output.text`, or a mapping with `take:`",
            "anyOf": [{"type": "string"}, generator.subschema_for::<RuleFile>()]
        })
    }
}

/// The parts of an agent's output.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputFile {
    /// The form of the standard output. Default: text.
    pub format: Option<FormatFile>,
    /// The final answer. Default: the whole output, if it is text.
    pub r#final: Option<PathOrRuleFile>,
    /// The agent's messages, one per event, in order.
    pub texts: Option<PathOrRuleFile>,
    /// The tokens.
    pub tokens: Option<TokensFile>,
    /// The cost in US dollars.
    pub cost: Option<PathOrRuleFile>,
    /// The reason why the model stopped.
    pub stop: Option<PathOrRuleFile>,
    /// An error that ended the agent's work.
    pub error: Option<PathOrRuleFile>,
    /// The event that ends the agent's work. Default: the end of the process with exit code 0.
    pub ended: Option<RuleFile>,
    /// The state of the servers, as the agent reports it.
    pub servers: Option<ServerStatesFile>,
    /// The id of the session, `{{session}}` in the command of further turns.
    pub session: Option<PathOrRuleFile>,
    /// Calls of the agent's own tools.
    pub calls: Option<CallsFile>,
    /// A JSON file that the agent writes. It is read as one more event, when the agent has exited.
    pub file: Option<String>,
}

/// The form of an agent's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormatFile {
    /// One JSON value per line. Other lines are ignored.
    Jsonl,
    /// One JSON value. Lines before it are ignored.
    Json,
    /// Text: all of it is the final answer.
    #[default]
    Text,
}

/// A value of the events that match. The last one wins.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleFile {
    /// Paths and their values; a list means any of these. Default: every event.
    pub r#where: Map<String, Value>,
    /// Paths and their values; if any event of the stream matches, the rule gives nothing.
    pub unless: Map<String, Value>,
    /// Only events behind the last one that matches.
    pub after: Map<String, Value>,
    /// The path of the value.
    pub take: Option<String>,
    /// The path of the HTTP status of an error.
    pub status: Option<String>,
    /// True for the sum of all values.
    pub sum: bool,
    /// True for all strings, joined.
    pub join: bool,
    /// True if a resumed session reports the value for all messages of the user so far. Otherwise
    /// the values of the messages are added.
    pub cumulative: bool,
}

/// The tokens of the events that match.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokensFile {
    /// Paths and their values. Default: every event.
    pub r#where: Map<String, Value>,
    /// The path of the input tokens.
    pub input: Option<String>,
    /// The path of the output tokens.
    pub output: Option<String>,
    /// The path of the cached input tokens.
    pub cached: Option<String>,
    /// The path of the input tokens that were written to the cache.
    pub cache_write: Option<String>,
    /// The path of the total. Default: input and output.
    pub total: Option<String>,
    /// True for the sum over all events. Otherwise the last one wins.
    pub sum: bool,
    /// True if the input tokens include the cached ones. Default: false.
    pub input_includes_cached: bool,
    /// True if a resumed session reports the tokens of all messages of the user so far. Otherwise
    /// the tokens of the messages are added.
    pub cumulative: bool,
}

/// The state of the servers, as an agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerStatesFile {
    /// Paths and their values.
    pub r#where: Map<String, Value>,
    /// The path of the list of servers.
    pub take: String,
    /// The path of the name in an item.
    pub name: String,
    /// The path of the state in an item.
    pub status: String,
    /// The states of a server that works.
    pub ok: Vec<String>,
}

/// Calls of the agent's own tools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallsFile {
    /// The event of a call. ACP has its own.
    pub call: Option<CallFile>,
    /// The event of its result. Default: the event of the call has it.
    pub result: Option<CallResultFile>,
    /// The beginning of the names of MCP tools, for each server. These calls are left out.
    pub mcp_prefix: Option<String>,
}

/// The event of a call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallFile {
    /// Paths and their values.
    pub r#where: Map<String, Value>,
    /// The path of a list; the other paths apply to its items.
    pub each: Option<String>,
    /// Paths and their values in an item.
    pub item: Map<String, Value>,
    /// The path of the call's id.
    pub id: Option<String>,
    /// The path of the tool's name.
    pub name: String,
    /// The path of the arguments.
    pub args: Option<String>,
    /// The path of the MCP server. A call that has one is left out.
    pub server: Option<String>,
    /// The path of the result, if the event has it.
    pub result: Option<String>,
    /// The path and values of a failed call.
    pub failed: Map<String, Value>,
}

/// The event of a call's result.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallResultFile {
    /// Paths and their values.
    pub r#where: Map<String, Value>,
    /// The path of a list; the other paths apply to its items.
    pub each: Option<String>,
    /// Paths and their values in an item.
    pub item: Map<String, Value>,
    /// The path of the call's id.
    pub id: String,
    /// The path of the result.
    pub result: Option<String>,
    /// The path and values of a failed call.
    pub failed: Map<String, Value>,
}

/// A kind of errors.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorRuleFile {
    /// A regular expression, searched in the error's message and in the last lines of standard
    /// error.
    pub r#match: String,
    /// The kind.
    pub kind: AgentErrorKindFile,
}

/// The kinds of errors of an agent's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentErrorKindFile {
    /// The agent could not be started.
    NotStarted,
    /// The agent is not logged in, or its key was refused.
    Login,
    /// A rate limit of the model's provider.
    RateLimit,
    /// The model's provider failed.
    Provider,
    /// The agent ran without one of its servers.
    ServerMissing,
    /// A limit of time.
    Timeout,
    /// The agent's process ended with an error.
    Crashed,
    /// The agent's process ended without reporting the end of its work.
    NoEnd,
}

impl AgentErrorKindFile {
    /// The kind in traces.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::NotStarted => ErrorKind::NotStarted,
            Self::Login => ErrorKind::Login,
            Self::RateLimit => ErrorKind::RateLimit,
            Self::Provider => ErrorKind::Provider,
            Self::ServerMissing => ErrorKind::ServerMissing,
            Self::Timeout => ErrorKind::Timeout,
            Self::Crashed => ErrorKind::Crashed,
            Self::NoEnd => ErrorKind::NoEnd,
        }
    }
}
