//! Direct tool tests as written: the entries of `tools:`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcptest_trace::expect::WrittenExpectation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

use crate::duration::WrittenDuration;
use crate::server_file::IsolationFile;

/// A direct tool call and what is expected of its result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTestFile {
    /// The name; the row of the report carries it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Words for the reader.
    #[serde(default)]
    pub description: Option<String>,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments. `${saved.name}` stands for what `setup` saved.
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// Assertions over `result` and `error`. Default: no error.
    #[serde(default)]
    pub expect: ToolExpect,
    /// Whether the answer is held against one that was kept in a file. Default: `false`.
    #[serde(default)]
    pub snapshot: SnapshotFile,
    /// Calls made before, in order. If one fails, the test is an error and its own call is not
    /// made.
    #[serde(default)]
    pub setup: Vec<FixtureCallFile>,
    /// Calls made afterwards, in order, whatever came before.
    #[serde(default)]
    pub teardown: Vec<FixtureCallFile>,
    /// Values of the answer that `teardown` uses: a name, and the target of the value, as in `id:
    /// result.structuredContent.id`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The time allowed for the call. Default: the server's.
    #[serde(default)]
    pub timeout: Option<WrittenDuration>,
    /// Whether the test shares the server's process or has its own. Default: what the server says.
    #[serde(default)]
    pub isolation: Option<IsolationFile>,
    /// Whether nothing else talks to the server meanwhile. Default: `true` with `setup`, `teardown`
    /// or `max_duration_ms`, else `false`.
    #[serde(default)]
    pub serial: Option<bool>,
    /// Labels for choosing tests.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A call that prepares a test or cleans up after it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixtureCallFile {
    /// The server. Default: the test's.
    #[serde(default)]
    pub server: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments. `${saved.name}` stands for what was saved before.
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// Values of the answer that later calls use: a name, and the target of the value, as in `id:
    /// result.structuredContent.id`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The time allowed for the call. Default: the server's.
    #[serde(default)]
    pub timeout: Option<WrittenDuration>,
}

/// The `expect:` of a direct tool test: a list, or a list with bounds.
#[derive(Debug, Default)]
pub struct ToolExpect {
    /// The assertions.
    pub assertions: Vec<WrittenExpectation>,
    /// The longest the call may take.
    pub max_duration_ms: Option<u64>,
    /// The most tokens of the answer.
    pub max_response_tokens: Option<u64>,
    /// Where the assertions stand, from `expect`.
    pub(crate) assertions_at: &'static str,
}

/// Assertions, and bounds beside them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ToolExpectFields {
    /// Assertions over `result` and `error`.
    assertions: Vec<WrittenExpectation>,
    /// The longest the call may take, in milliseconds.
    max_duration_ms: Option<u64>,
    /// The most cl100k tokens that the response may have: of `result.text`; without a text block,
    /// of `structuredContent` as compact JSON; of an error, of its message.
    max_response_tokens: Option<u64>,
}

impl<'de> Deserialize<'de> for ToolExpect {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Array(items) => Ok(Self {
                assertions: items.into_iter().map(WrittenExpectation).collect(),
                ..Self::default()
            }),
            other => {
                let fields: ToolExpectFields =
                    serde_json::from_value(other).map_err(D::Error::custom)?;
                Ok(Self {
                    assertions: fields.assertions,
                    max_duration_ms: fields.max_duration_ms,
                    max_response_tokens: fields.max_response_tokens,
                    assertions_at: "/assertions",
                })
            }
        }
    }
}

impl JsonSchema for ToolExpect {
    fn schema_name() -> Cow<'static, str> {
        "ToolExpect".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<WrittenExpectation>>();
        let fields = generator.subschema_for::<ToolExpectFields>();
        json_schema!({
            "description": "A list of assertions, or `assertions:` with bounds beside it.",
            "x-mcptest-expected": "a list of assertions, or a mapping with `assertions:`",
            "anyOf": [list, fields]
        })
    }
}

/// The `snapshot:` of a direct tool test: yes, no, or what of the answer is kept.
#[derive(Debug, Default)]
pub struct SnapshotFile(pub Option<SnapshotFields>);

/// What of an answer is kept in a snapshot.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotFields {
    /// The part that is kept, as in `result.structuredContent`. Default: the whole answer without
    /// `_meta` and `resultType`.
    #[schemars(with = "String", length(min = 1))]
    pub target: Option<String>,
    /// Values that change from call to call, as in `result.structuredContent.time`: only that they
    /// are there is kept.
    pub ignore: Vec<String>,
    /// The name of the file, without its ending. Default: from the test's name.
    #[schemars(with = "String", length(min = 1))]
    pub name: Option<String>,
}

impl<'de> Deserialize<'de> for SnapshotFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(false) => Ok(Self(None)),
            Value::Bool(true) => Ok(Self(Some(SnapshotFields::default()))),
            other => serde_json::from_value(other)
                .map(|fields| Self(Some(fields)))
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for SnapshotFile {
    fn schema_name() -> Cow<'static, str> {
        "SnapshotFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let fields = generator.subschema_for::<SnapshotFields>();
        json_schema!({
            "description": "Whether the answer is held against one that was kept in a file, and what of it.",
            "x-mcptest-expected": "`true`, `false`, or a mapping such as `ignore: [result.structuredContent.time]`",
            "anyOf": [{"type": "boolean"}, fields]
        })
    }
}
