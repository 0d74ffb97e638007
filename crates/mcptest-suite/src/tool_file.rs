//! Direct tool tests as written: the entries of `tools:`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcptest_trace::expect::WrittenExpectation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

use crate::server_file::IsolationFile;
use mcptest_yaml::duration::WrittenDuration;

/// A direct tool call and what is expected of its result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTestFile {
    /// The name, as shown in reports.
    #[schemars(length(min = 1))]
    pub name: String,
    /// A description for readers.
    #[serde(default)]
    pub description: Option<String>,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments. `${saved.name}` is a value that `setup` saved.
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// Assertions over `result` and `error`. Default: no error.
    #[serde(default)]
    pub expect: ToolExpect,
    /// Compare the result with a stored snapshot. Default: `false`.
    #[serde(default)]
    pub snapshot: SnapshotFile,
    /// Calls before the test, in order. If one fails, the test has the verdict `error` and its call
    /// is not made.
    #[serde(default)]
    pub setup: Vec<FixtureCallFile>,
    /// Calls after the test, in order, whatever its outcome.
    #[serde(default)]
    pub teardown: Vec<FixtureCallFile>,
    /// Values of the result for `teardown`: a name and a target, such as
    /// `id: result.structuredContent.id`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The timeout for the call. Default: the server's.
    #[serde(default)]
    pub timeout: Option<WrittenDuration>,
    /// The sharing of the server process. Default: the server's `isolation`.
    #[serde(default)]
    pub isolation: Option<IsolationFile>,
    /// Run the test while no other test uses its servers. Default: `true` with `setup`, `teardown`
    /// or `max_duration_ms`, else `false`.
    #[serde(default)]
    pub serial: Option<bool>,
    /// Tags for selecting tests.
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
    /// The arguments. `${saved.name}` is a value that an earlier call saved.
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
    /// Values of the result for later calls: a name and a target, such as
    /// `id: result.structuredContent.id`.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The timeout for the call. Default: the server's.
    #[serde(default)]
    pub timeout: Option<WrittenDuration>,
}

/// The `expect:` of a direct tool test: a list, or a list with limits.
#[derive(Debug, Default)]
pub struct ToolExpect {
    /// The assertions.
    pub assertions: Vec<WrittenExpectation>,
    /// The maximum duration of the call.
    pub max_duration_ms: Option<u64>,
    /// The maximum number of tokens of the result.
    pub max_response_tokens: Option<u64>,
    /// The JSON pointer of the assertions, relative to `expect`.
    pub(crate) assertions_at: &'static str,
}

/// Assertions and limits.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct ToolExpectFields {
    /// Assertions over `result` and `error`.
    assertions: Vec<WrittenExpectation>,
    /// The maximum duration of the call in milliseconds.
    max_duration_ms: Option<u64>,
    /// The maximum number of cl100k tokens of the response: of `result.text`; without a text block,
    /// of `structuredContent` as compact JSON; for an error, of its message.
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
            "description": "A list of assertions, or `assertions:` with limits.",
            "x-mcptest-expected": "a list of assertions, or a mapping with `assertions:`",
            "anyOf": [list, fields]
        })
    }
}

/// The `snapshot:` of a direct tool test: true, false, or the parts to store.
#[derive(Debug, Default)]
pub struct SnapshotFile(pub Option<SnapshotFields>);

/// The parts of a result that a snapshot stores.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotFields {
    /// The part to store, such as `result.structuredContent`. Default: the whole result without
    /// `_meta` and `resultType`.
    #[schemars(with = "String", length(min = 1))]
    pub target: Option<String>,
    /// Values that differ from call to call, such as `result.structuredContent.time`: only their
    /// presence is compared.
    pub ignore: Vec<String>,
    /// The name of the file, without extension. Default: derived from the test's name.
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
            "description": "Compare the result with a stored snapshot, or with parts of it.",
            "x-mcptest-expected": "`true`, `false`, or a mapping such as `ignore: [result.structuredContent.time]`",
            "anyOf": [{"type": "boolean"}, fields]
        })
    }
}
