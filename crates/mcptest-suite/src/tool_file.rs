//! The parts of direct tests as written: fixture calls, expectations, snapshots.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mcptest_trace::expect::WrittenExpectation;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::{Map, Value};

use mcptest_yaml::duration::WrittenDuration;

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

/// The `expect:` of a direct test: a list, or a list with limits.
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
    /// Assertions over `result` and `error`, and over what the server sent by itself.
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

/// The `snapshot:` of a direct test: true, false, or the parts to store.
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
