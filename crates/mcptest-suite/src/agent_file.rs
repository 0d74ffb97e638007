//! `agent:` as written: the name of an entry of `agents:`, an agent, or a list of agents.

use std::borrow::Cow;

use mcptest_agents::AgentFile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

/// The value of `agent:`.
#[derive(Debug, Clone)]
pub enum WrittenAgent {
    /// The name of an entry of `agents:`.
    Entry(String),
    /// The agents under test.
    UnderTest(Vec<AgentFile>),
}

impl WrittenAgent {
    /// The name of an entry of `agents:`, if it is one.
    #[must_use]
    pub fn entry(&self) -> Option<&str> {
        match self {
            Self::Entry(name) => Some(name),
            Self::UnderTest(_) => None,
        }
    }

    /// The agents under test; empty for the name of an entry.
    #[must_use]
    pub fn under_test(&self) -> &[AgentFile] {
        match self {
            Self::Entry(_) => &[],
            Self::UnderTest(agents) => agents,
        }
    }
}

impl<'de> Deserialize<'de> for WrittenAgent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => Ok(Self::Entry(name)),
            list @ Value::Array(_) => serde_json::from_value(list).map(Self::UnderTest),
            one => serde_json::from_value(one).map(|one| Self::UnderTest(vec![one])),
        }
        .map_err(D::Error::custom)
    }
}

impl JsonSchema for WrittenAgent {
    fn schema_name() -> Cow<'static, str> {
        "AgentUnderTest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<AgentFile>();
        json_schema!({
            "x-mcptest-expected": "an agent with `preset:`, `command:`, `acp:` or `url:`, a list \
                                   of agents, or the name of an entry of `agents:`",
            "anyOf": [
                {"type": "string", "minLength": 1},
                one,
                {"type": "array", "items": one, "minItems": 1}
            ]
        })
    }
}
