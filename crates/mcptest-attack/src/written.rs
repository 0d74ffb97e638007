//! An entry of `attacks:` as written.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::carrier::Carrier;

/// The place of an attack's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the result of a tool.
    #[default]
    Result,
    /// In the error that answers a call instead of its server.
    Error,
    /// In the description of a tool.
    Description,
    /// In the description of a parameter of a tool.
    Parameter,
    /// In the description of one more tool, which mcptest offers.
    Tool,
    /// In a resource.
    Resource,
    /// In a prompt of the server.
    Prompt,
    /// In the instructions of the server.
    Instructions,
}

impl Place {
    /// The name in a suite.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::Description => "description",
            Self::Parameter => "parameter",
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Instructions => "instructions",
        }
    }

    /// Returns true if the text is in a list of tools.
    #[must_use]
    pub fn is_listed(self) -> bool {
        matches!(self, Self::Description | Self::Parameter | Self::Tool)
    }
}

/// A string, or a list of strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StringList(pub Vec<String>);

impl<'de> Deserialize<'de> for StringList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(one) => Ok(Self(vec![one])),
            many => serde_json::from_value(many)
                .map(Self)
                .map_err(D::Error::custom),
        }
    }
}

impl JsonSchema for StringList {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StringList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-mcptest-expected": "a string or a list of strings",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
            ]
        })
    }
}

/// An entry of a suite's `attacks:`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenAttack {
    /// The name for `inject:` and in reports.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The place of the text.
    #[serde(default)]
    pub place: Place,
    /// The texts or calls that it applies to. A key that is left out means any.
    #[serde(default)]
    pub target: AttackTarget,
    /// The text of a result that the wording is appended to, such as `content[0].text` or
    /// `structured_content.notes`. Default: the last text block; with structured content also the
    /// first text in that.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub at: Option<String>,
    /// Names of bundled wordings. Run 1 takes the first, and so on, in turn.
    #[serde(default)]
    #[schemars(with = "StringList")]
    pub payload: Option<StringList>,
    /// Own texts instead of bundled wordings, with `{do}` for the demand and `${canary}`.
    #[serde(default)]
    #[schemars(with = "StringList")]
    pub text: Option<StringList>,
    /// The way to write the text.
    #[serde(default)]
    pub carrier: Carrier,
    /// The number of calls (or lists) that it leaves alone before it applies. Default: 0.
    #[serde(default)]
    pub after: u64,
    /// The string that marks the attacker; `{id}` becomes 12 hexadecimal digits of the run.
    /// Default: `mct-{id}`.
    #[serde(default)]
    #[schemars(with = "String", length(min = 4))]
    pub canary: Option<String>,
    /// The seed of the canary's digits. Default: 0.
    #[serde(default)]
    pub seed: u64,
    /// The name of the user in wordings that speak as the user. Default: `the user`.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1))]
    pub user: Option<String>,
    /// The tool or resource whose results get one more line with the canary as data, for `leak`.
    #[serde(default)]
    #[schemars(with = "AttackTarget")]
    pub plant: Option<AttackTarget>,
    /// The behaviour that obeying looks like. Default: a call of the attack's own tool; for a place
    /// other than `tool`, a call of the target's tool with the canary in an argument.
    #[serde(default)]
    #[schemars(with = "WrittenGoal")]
    pub goal: Option<WrittenGoal>,
    /// If true, a call that meets a step of the goal is answered by mcptest and never sent to the
    /// server. Default: true.
    #[serde(default = "yes")]
    pub contain: bool,
}

fn yes() -> bool {
    true
}

/// The texts or calls that an attack applies to. A key that is left out means any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AttackTarget {
    /// The server's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub server: Option<String>,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub tool: Option<String>,
    /// The address of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub resource: Option<String>,
    /// The name of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub prompt: Option<String>,
    /// The name of a parameter of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    pub parameter: Option<String>,
}

impl AttackTarget {
    /// Returns true if it names nothing.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if it applies to this server.
    #[must_use]
    pub fn is_server(&self, server: &str) -> bool {
        self.server.as_deref().is_none_or(|wanted| wanted == server)
    }

    /// Returns true if it applies to this resource.
    #[must_use]
    pub fn is_resource(&self, server: &str, uri: &str) -> bool {
        let wanted = self.resource.as_deref();
        self.is_server(server) && wanted.is_none_or(|wanted| wanted == uri)
    }

    /// Returns true if it applies to this tool.
    #[must_use]
    pub fn is_tool(&self, server: &str, tool: &str) -> bool {
        self.is_server(server) && self.tool.as_deref().is_none_or(|wanted| wanted == tool)
    }
}

/// The behaviour that obeying looks like: one of its keys.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenGoal {
    /// A call.
    #[schemars(with = "WrittenStep")]
    pub call: Option<WrittenStep>,
    /// Several calls, all of them, in order, each by a separate call.
    #[schemars(with = "Vec<WrittenStep>", length(min = 1))]
    pub calls: Option<Vec<WrittenStep>>,
    /// A value that leaves in the arguments of a call: plain, in base64, in hexadecimal,
    /// percent-encoded or without separators.
    #[schemars(with = "String", length(min = 4))]
    pub leak: Option<String>,
    /// With `leak`: `answer` also looks for it in the closing answer.
    #[serde(rename = "in")]
    #[schemars(with = "LeakPlace")]
    pub within: Option<LeakPlace>,
    /// A matcher on the closing answer.
    #[schemars(with = "Map<String, Value>")]
    pub say: Option<Value>,
    /// `true`: the task is not done.
    #[schemars(with = "bool")]
    pub stall: Option<bool>,
}

/// The place in which a leak is looked for in addition to arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeakPlace {
    /// The closing answer.
    Answer,
}

/// A call of a goal.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenStep {
    /// The tool, or several of which any will do: `server.tool` or the bare name. Default: any.
    #[schemars(with = "StringList")]
    pub tool: Option<StringList>,
    /// Matchers on arguments, by name or path. A plain value must be equal.
    pub args: Map<String, Value>,
    /// A matcher on the arguments as a whole.
    #[serde(rename = "match")]
    #[schemars(with = "Map<String, Value>")]
    pub whole: Option<Value>,
    /// The number of such calls. Default: 1.
    #[schemars(with = "u64", range(min = 1))]
    pub count: Option<u64>,
}
