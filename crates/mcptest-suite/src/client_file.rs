//! The client's side as written: `client:` of a suite or a test.

use std::borrow::Cow;

use mcptest_trace::matcher::matcher_schema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::script_file::ScriptTurn;

/// The client's answers to what servers ask of clients, and what it declares to them. What is not
/// set here is not offered.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientFile {
    /// The answer to `sampling/createMessage`: a string, an answer, or a list of answers of which
    /// the first that applies is given. `false` offers none.
    pub sampling: Option<SamplingFile>,
    /// The answer to `elicitation/create`: `accept`, `decline`, `cancel`, an answer, or a list of
    /// answers of which the first that applies is given. `accept` fills a form with its defaults.
    /// `false` offers none.
    pub elicitation: Option<ElicitationFile>,
    /// The answer to `roots/list`: URIs, or paths relative to this file. `false` offers none.
    pub roots: Option<RootsFile>,
    /// The lowest level of log messages that servers are asked for. Default for a test that uses
    /// the target `logs`: `debug`.
    pub log_level: Option<LogLevelFile>,
    /// Use tasks: call tools as tasks where they require it (in agent tests; a direct test has
    /// `task`), and answer requests of servers as tasks where they ask for it. Default: `false`.
    pub tasks: Option<bool>,
    /// Further capabilities to declare, as the protocol defines them, such as
    /// `{elicitation: {url: {}}}`.
    pub capabilities: Option<Map<String, Value>>,
}

/// `sampling:` as written.
#[derive(Debug, Clone)]
pub enum SamplingFile {
    /// Not offered.
    Off,
    /// The answers.
    Answers(Vec<SamplingAnswerFile>),
}

/// One answer to `sampling/createMessage`: `answer`, `error` or `model`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingAnswerFile {
    /// The requests that it answers: targets in the parameters of the request, such as
    /// `messages[0].content.text`, with matchers; all must hold. `text` is the text of all
    /// messages. Default: every request.
    #[schemars(schema_with = "conditions")]
    pub when: Option<Map<String, Value>>,
    /// The answer: a string, or a result as the protocol defines it (`content`, `model`,
    /// `stopReason`).
    pub answer: Option<SamplingTextFile>,
    /// An error instead of an answer: a message, or `code` and `message`.
    pub error: Option<ClientErrorFile>,
    /// The model that answers, such as `openai/gpt-5` or `builtin/scripted`.
    #[schemars(with = "String", length(min = 1))]
    pub model: Option<String>,
    /// The script for `builtin/scripted`: one run per request. Further requests repeat the last
    /// one.
    pub script: Option<Vec<Vec<ScriptTurn>>>,
    /// The number of requests that it answers. Default: all.
    #[schemars(range(min = 1))]
    pub times: Option<u32>,
}

/// An answer of the client's model: a string, or a whole result.
#[derive(Debug, Clone)]
pub struct SamplingTextFile(pub Value);

/// `elicitation:` as written.
#[derive(Debug, Clone)]
pub enum ElicitationFile {
    /// Not offered.
    Off,
    /// The answers.
    Answers(Vec<ElicitationAnswerFile>),
}

/// One answer to `elicitation/create`: `action` or `error`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ElicitationAnswerFile {
    /// The requests that it answers: targets in the parameters of the request, such as `message`,
    /// with matchers; all must hold. Default: every request.
    #[schemars(schema_with = "conditions")]
    pub when: Option<Map<String, Value>>,
    /// The user's reaction. Default: `accept`.
    pub action: Option<ActionFile>,
    /// The form as the user fills it in. Default: its defaults, and the simplest values that it
    /// allows for other required fields.
    pub content: Option<Map<String, Value>>,
    /// An error instead of an answer: a message, or `code` and `message`.
    pub error: Option<ClientErrorFile>,
    /// The number of requests that it answers. Default: all.
    #[schemars(range(min = 1))]
    pub times: Option<u32>,
}

/// The reaction of a user to a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionFile {
    /// Accepts.
    Accept,
    /// Declines.
    Decline,
    /// Cancels.
    Cancel,
}

/// An error as the client's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientErrorFile {
    /// The code.
    pub code: i64,
    /// The message.
    pub message: String,
}

/// The code of an error that a user causes by refusing.
const REFUSED: i64 = -1;

/// An error with its code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ClientError")]
struct ErrorFields {
    /// The code. Default: -1.
    #[serde(default)]
    code: Option<i64>,
    /// The message.
    message: String,
}

/// `roots:` as written.
#[derive(Debug, Clone)]
pub enum RootsFile {
    /// Not offered.
    Off,
    /// The roots.
    List(Vec<RootFile>),
}

/// One root.
#[derive(Debug, Clone)]
pub struct RootFile {
    /// A URI, or a path relative to the file.
    pub uri: String,
    /// A name for people.
    pub name: Option<String>,
}

/// A root with a name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Root")]
struct RootFields {
    /// A URI, or a path relative to the file.
    uri: String,
    /// A name for people.
    #[serde(default)]
    name: Option<String>,
}

/// The level of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevelFile {
    /// For debugging.
    Debug,
    /// Normal operation.
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

impl LogLevelFile {
    /// The name in the protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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

fn decode<T: serde::de::DeserializeOwned, E: serde::de::Error>(value: Value) -> Result<T, E> {
    serde_json::from_value(value).map_err(E::custom)
}

/// One item, or a list of items.
fn one_or_many<T, E>(value: Value, item: impl Fn(Value) -> Result<T, E>) -> Result<Vec<T>, E> {
    match value {
        Value::Array(items) => items.into_iter().map(item).collect(),
        other => Ok(vec![item(other)?]),
    }
}

impl<'de> Deserialize<'de> for SamplingFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Off),
            other => one_or_many(other, |item| match item {
                text @ Value::String(_) => Ok(SamplingAnswerFile {
                    answer: Some(SamplingTextFile(text)),
                    ..SamplingAnswerFile::default()
                }),
                other => decode(other),
            })
            .map(Self::Answers),
        }
    }
}

/// The schema of `when:`: targets with matchers.
fn conditions(generator: &mut SchemaGenerator) -> Schema {
    let matcher = matcher_schema(generator);
    json_schema!({
        "x-mcptest-expected": "a mapping of targets with matchers",
        "type": ["object", "null"],
        "additionalProperties": {
            "x-mcptest-expected": "a matcher, or a plain value that must be equal",
            "anyOf": [matcher, {"type": ["string", "number", "boolean", "null"]}]
        }
    })
}

impl JsonSchema for SamplingFile {
    fn schema_name() -> Cow<'static, str> {
        "Sampling".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let answer = generator.subschema_for::<SamplingAnswerFile>();
        json_schema!({
            "description": "The client's answers to `sampling/createMessage`.",
            "x-mcptest-expected": "a string, `answer:`, `model:`, a list of these, or `false`",
            "anyOf": [
                {"type": "string"},
                answer,
                {"type": "array", "minItems": 1, "items": {
                    "x-mcptest-expected": "a string, `answer:` or `model:`",
                    "anyOf": [{"type": "string"}, answer],
                }},
                {"const": false},
            ]
        })
    }
}

impl<'de> Deserialize<'de> for SamplingTextFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for SamplingTextFile {
    fn schema_name() -> Cow<'static, str> {
        "SamplingText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A string, or a result as the protocol defines it.",
            "x-mcptest-expected": "a string, or a mapping with `content:`",
            "anyOf": [{"type": "string"}, {"type": "object", "required": ["content"]}]
        })
    }
}

impl<'de> Deserialize<'de> for ElicitationFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Off),
            other => one_or_many(other, |item| match item {
                action @ Value::String(_) => Ok(ElicitationAnswerFile {
                    action: Some(decode(action)?),
                    ..ElicitationAnswerFile::default()
                }),
                other => decode(other),
            })
            .map(Self::Answers),
        }
    }
}

impl JsonSchema for ElicitationFile {
    fn schema_name() -> Cow<'static, str> {
        "Elicitation".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let action = generator.subschema_for::<ActionFile>();
        let answer = generator.subschema_for::<ElicitationAnswerFile>();
        json_schema!({
            "description": "The client's answers to `elicitation/create`.",
            "x-mcptest-expected": "`accept`, `decline`, `cancel`, a mapping such as `content: {…}`, a list of these, or `false`",
            "anyOf": [
                action,
                answer,
                {"type": "array", "minItems": 1, "items": {
                    "x-mcptest-expected": "`accept`, `decline`, `cancel`, or a mapping such as `content: {…}`",
                    "anyOf": [action, answer],
                }},
                {"const": false},
            ]
        })
    }
}

impl<'de> Deserialize<'de> for ClientErrorFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(message) => Ok(Self {
                code: REFUSED,
                message,
            }),
            other => {
                let fields: ErrorFields = decode(other)?;
                Ok(Self {
                    code: fields.code.unwrap_or(REFUSED),
                    message: fields.message,
                })
            }
        }
    }
}

impl JsonSchema for ClientErrorFile {
    fn schema_name() -> Cow<'static, str> {
        "ClientErrorAnswer".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<ErrorFields>();
        json_schema!({
            "description": "An error: its message, or `code` and `message`.",
            "x-mcptest-expected": "a message, or a mapping with `message:`",
            "anyOf": [{"type": "string"}, fields]
        })
    }
}

impl<'de> Deserialize<'de> for RootsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self::Off),
            other => one_or_many(other, |item| match item {
                Value::String(uri) => Ok(RootFile { uri, name: None }),
                other => {
                    let RootFields { uri, name } = decode(other)?;
                    Ok(RootFile { uri, name })
                }
            })
            .map(Self::List),
        }
    }
}

impl JsonSchema for RootsFile {
    fn schema_name() -> Cow<'static, str> {
        "Roots".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let root = generator.subschema_for::<RootFields>();
        json_schema!({
            "description": "The roots that the client offers.",
            "x-mcptest-expected": "a list of URIs or paths, or `false`",
            "anyOf": [
                {"type": "array", "items": {
                    "x-mcptest-expected": "a URI, a path, or a mapping with `uri:`",
                    "anyOf": [{"type": "string"}, root],
                }},
                {"type": "string"},
                {"const": false},
            ]
        })
    }
}
