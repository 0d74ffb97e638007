//! The written form of the mock manifest: one type per block. The doc comments are the descriptions
//! in its JSON Schema.

mod before;
mod listed;

use std::collections::BTreeMap;
use std::fmt;

use mcptest_attack::WrittenAttack;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use self::before::{AskMethod, AskSpec, BeforeSpec, ChangedList, LogLevel};
pub use self::listed::{
    PromptArgumentSpec, PromptMessageSpec, PromptSpec, ResourceSpec, ResourceTemplateSpec, Role,
};
use crate::database::{DatabaseSpec, ExpectRowsSpec, SqlSpec};
use crate::fault::PATTERN;

/// A mock manifest: the server for `mcptest mock --tools-from FILE`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcptest mock manifest")]
pub struct ManifestFile {
    /// The mock server.
    pub mock_server: ServerSpec,
}

/// The mock server. It advertises only what is declared here.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = server_aliases)]
pub struct ServerSpec {
    /// The name of the server.
    pub name: String,
    /// The version of the server; `0.0.0` by default.
    pub version: Option<String>,
    /// Instructions for the model, sent to the client at the start.
    pub instructions: Option<String>,
    /// The fault of every tool that has no `fault` of its own: `hang`, `wedged`, `slow:<ms>`,
    /// `recover-after:<n>` or `reply-after-cancel:<ms>`.
    #[schemars(regex(pattern = PATTERN))]
    pub fault: Option<String>,
    /// The number of entries on a page of a list. By default lists have one page.
    #[schemars(range(min = 1))]
    pub page_size: Option<u32>,
    /// Attacks: hostile texts in the answers of this server, as in the `attacks:` of a suite.
    #[serde(default)]
    pub attacks: Vec<WrittenAttack>,
    /// The tables of the server, for tools with `sql`. Every session has its own copy.
    pub database: Option<DatabaseSpec>,
    /// The tools, in the order of the list.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The resources, in the order of the list.
    #[serde(default)]
    pub resources: Vec<ResourceSpec>,
    /// The resource templates, in the order of the list.
    #[serde(default, alias = "resourceTemplates")]
    pub resource_templates: Vec<ResourceTemplateSpec>,
    /// The prompts, in the order of the list.
    #[serde(default)]
    pub prompts: Vec<PromptSpec>,
}

/// A tool and its answers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = tool_aliases)]
pub struct ToolSpec {
    /// The name of the tool; unique in the server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, checked on every call. By default any object is valid.
    #[serde(alias = "inputSchema")]
    pub input_schema: Option<Map<String, Value>>,
    /// The JSON Schema of the structured content.
    #[serde(alias = "outputSchema")]
    pub output_schema: Option<Map<String, Value>>,
    /// Hints such as `readOnlyHint`, sent as they are.
    pub annotations: Option<Value>,
    /// The answer of the tool; by default its name and the arguments as text.
    pub response: Option<ResponseSpec>,
    /// Several answers. The first `when` (and `when_answered`) in the list that matches wins;
    /// answers without one apply if none matches. Answers with the same condition are used in
    /// turn, one per call, and the last one repeats.
    #[serde(default)]
    pub responses: Vec<ResponseSpec>,
    /// The statements that a call executes on the server's `database`, in place of an answer.
    /// The result has their rows. A call that fails changes nothing.
    pub sql: Option<SqlSpec>,
    /// With `sql`: the number of rows that a statement must return or change. Otherwise the call
    /// fails.
    pub expect_rows: Option<ExpectRowsSpec>,
    /// With `sql`: the text of the error result of a call that fails. It may use the arguments. By
    /// default it is the reason.
    pub error: Option<String>,
    /// Requests to the client before the answer, in rounds. Each round has requests by name.
    #[serde(default)]
    pub ask: Vec<BTreeMap<String, AskSpec>>,
    /// The support for tasks: the tool can, or must, be called as a task. By default it cannot.
    pub task: Option<TaskSpec>,
    /// True if the tool is not listed until an answer reveals it. It can be called before that.
    #[serde(default)]
    pub hidden: bool,
    /// The fault of this tool, written like the server's `fault`.
    #[schemars(regex(pattern = PATTERN))]
    pub fault: Option<String>,
}

/// The support of a tool for tasks: `optional`, `required`, or a mapping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskSpec {
    /// The support.
    pub support: TaskSupport,
    /// The number of polls before the task continues.
    pub polls: u32,
    /// The time at which `ask` is asked.
    pub ask: AskTime,
    /// The time that a task is kept; `None` for no limit.
    pub ttl_ms: Option<u64>,
    /// The pause that clients should make between polls.
    pub poll_interval_ms: u64,
}

/// The support of a tool for tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskSupport {
    /// It can be called as a task.
    #[default]
    Optional,
    /// It can only be called as a task.
    Required,
}

impl TaskSupport {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

/// The time at which a tool with tasks asks the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskTime {
    /// While the task is in progress: its status is `input_required`.
    #[default]
    During,
    /// Before the task is created.
    Before,
}

/// Settings of tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "TaskSettings")]
struct TaskBody {
    /// `optional` or `required`; `optional` by default.
    #[serde(default)]
    support: TaskSupport,
    /// The number of times that the status is `working` before the task continues; 1 by default.
    /// No clock is involved.
    polls: Option<u32>,
    /// The time at which `ask` is asked: `during` the task (the default), or `before` it is
    /// created.
    #[serde(default)]
    ask: AskTime,
    /// The time that the task is kept, as its status states; no limit by default. It is never
    /// discarded earlier.
    ttl_ms: Option<u64>,
    /// The pause between polls that the status asks for; 10 by default.
    #[schemars(range(min = 1))]
    poll_interval_ms: Option<u64>,
}

/// The default number of polls, and the default pause between them.
const DEFAULT_POLLS: u32 = 1;
const DEFAULT_POLL_INTERVAL_MS: u64 = 10;

impl<'de> Deserialize<'de> for TaskSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = match Value::deserialize(deserializer)? {
            support @ Value::String(_) => TaskBody {
                support: serde_json::from_value(support).map_err(D::Error::custom)?,
                polls: None,
                ask: AskTime::During,
                ttl_ms: None,
                poll_interval_ms: None,
            },
            other => serde_json::from_value(other).map_err(D::Error::custom)?,
        };
        Ok(Self {
            support: body.support,
            polls: body.polls.unwrap_or(DEFAULT_POLLS),
            ask: body.ask,
            ttl_ms: body.ttl_ms,
            poll_interval_ms: body.poll_interval_ms.unwrap_or(DEFAULT_POLL_INTERVAL_MS),
        })
    }
}

impl JsonSchema for TaskSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TaskSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let support = generator.subschema_for::<TaskSupport>();
        let body = generator.subschema_for::<TaskBody>();
        json_schema!({
            "description": "The support of a tool for tasks: `optional`, `required`, or a mapping \
                with settings.",
            "anyOf": [support, body],
        })
    }
}

/// The answer of a tool. Every string in it may use the arguments of the call: `${args.query}`,
/// `${args.filter.tags[0]}`. A string that is just one template keeps the argument's JSON type; a
/// literal `${` is written `$${`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseSpec {
    /// The content blocks. With structured content, the default is one text block with its JSON.
    pub content: Option<Vec<BlockSpec>>,
    /// The structured content, for tools with an output schema.
    pub structured_content: Option<Value>,
    /// True if the call failed.
    pub is_error: bool,
    /// A protocol error instead of a result.
    pub rpc_error: Option<RpcErrorSpec>,
    /// The messages before the answer.
    pub before: Vec<BeforeSpec>,
    /// The arguments to which this answer applies.
    pub when: Option<Map<String, Value>>,
    /// The answers of the client to which this answer applies.
    pub when_answered: Option<Map<String, Value>>,
}

/// A whole result.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ToolResult")]
#[schemars(transform = response_aliases)]
struct ResponseBody {
    /// The content blocks. With structured content, the default is one text block with its JSON.
    content: Option<Vec<BlockSpec>>,
    /// The structured content, for tools with an output schema.
    #[serde(alias = "structuredContent")]
    structured_content: Option<Value>,
    /// True if the call failed.
    #[serde(default, alias = "isError")]
    is_error: bool,
    /// A JSON-RPC error instead of a result.
    rpc_error: Option<RpcErrorSpec>,
    /// The messages before the answer, in order: progress, log messages, changes, pauses.
    #[serde(default)]
    before: Vec<BeforeSpec>,
    /// In `responses`: the arguments to which this answer applies. Members that are not named here
    /// may have any value.
    when: Option<Map<String, Value>>,
    /// In `responses` of a tool with `ask`: the answers of the client to which this answer applies,
    /// by the names of the requests, such as `{confirmation: {action: accept}}`.
    when_answered: Option<Map<String, Value>>,
}

/// A JSON-RPC error. Its strings may use the arguments.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RpcErrorSpec {
    /// The code, for example -32603.
    pub code: i32,
    /// The error message.
    pub message: String,
    /// Additional data for programs.
    pub data: Option<Value>,
}

/// A content block as MCP defines it, for example `{type: text, text: …}`; a plain string is one
/// text block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSpec(pub Value);

/// The JSON Schema of the manifest file.
#[must_use]
pub fn manifest_schema() -> Value {
    let mut schema = SchemaGenerator::default()
        .into_root_schema_for::<ManifestFile>()
        .to_value();
    mcptest_json::schema::join_description_lines(&mut schema);
    schema
}

/// The alternative names of keys, as the protocol writes them: (ours, the protocol's).
pub(crate) const ALIASES: [(&str, &str); 7] = [
    ("input_schema", "inputSchema"),
    ("output_schema", "outputSchema"),
    ("structured_content", "structuredContent"),
    ("is_error", "isError"),
    ("mime_type", "mimeType"),
    ("uri_template", "uriTemplate"),
    ("resource_templates", "resourceTemplates"),
];

fn server_aliases(schema: &mut Schema) {
    add_aliases(schema, &ALIASES[6..]);
}

fn template_aliases(schema: &mut Schema) {
    add_aliases(schema, &ALIASES[4..6]);
}

fn tool_aliases(schema: &mut Schema) {
    add_aliases(schema, &ALIASES[..2]);
}

fn response_aliases(schema: &mut Schema) {
    add_aliases(schema, &ALIASES[2..4]);
}

fn resource_aliases(schema: &mut Schema) {
    add_aliases(schema, &ALIASES[4..5]);
}

/// Adds serde's aliases, which derived schemas lack.
fn add_aliases(schema: &mut Schema, aliases: &[(&str, &str)]) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (canonical, alias) in aliases {
        let Some(Value::Object(property)) = properties.get(*canonical) else {
            continue;
        };
        let mut property = property.clone();
        property.insert(
            "description".to_owned(),
            format!("The same as `{canonical}`.").into(),
        );
        property.insert(mcptest_yaml::ALIAS_OF.to_owned(), (*canonical).into());
        properties.insert((*alias).to_owned(), property.into());
    }
}

impl ResponseSpec {
    /// A single text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: Some(vec![BlockSpec(Value::String(text.into()))]),
            ..Self::default()
        }
    }
}

impl<'de> Deserialize<'de> for ResponseSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ResponseVisitor;

        impl<'de> Visitor<'de> for ResponseVisitor {
            type Value = ResponseSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, or a mapping with content")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ResponseSpec, E> {
                Ok(ResponseSpec::text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ResponseSpec, A::Error> {
                let body = ResponseBody::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ResponseSpec {
                    content: body.content,
                    structured_content: body.structured_content,
                    is_error: body.is_error,
                    rpc_error: body.rpc_error,
                    before: body.before,
                    when: body.when,
                    when_answered: body.when_answered,
                })
            }
        }

        deserializer.deserialize_any(ResponseVisitor)
    }
}

impl JsonSchema for ResponseSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Response".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let body = generator.subschema_for::<ResponseBody>();
        json_schema!({
            "description": "The answer of a tool: a string, or a whole result. Every string in it \
                may use the arguments of the call: `${args.query}`, `${args.filter.tags[0]}`. A \
                string that is just one template keeps the argument's JSON type; a literal `${` is \
                written `$${`.",
            "anyOf": [{"type": "string"}, body],
        })
    }
}

impl<'de> Deserialize<'de> for BlockSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for BlockSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ContentBlock".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A content block as MCP defines it, for example `{type: text, text: …}`; \
                a plain string is a text block.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {
                        "description": "The kind of content: `text`, `image`, `audio`, `resource` \
                            or `resource_link`.",
                        "type": "string",
                    }},
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_is_a_string_or_a_mapping() {
        let text: ResponseSpec = serde_json::from_value(json!("hello")).expect("a string");
        assert_eq!(text, ResponseSpec::text("hello"));
        let body: ResponseSpec =
            serde_json::from_value(json!({"structuredContent": {"a": 1}, "isError": true}))
                .expect("a mapping");
        assert_eq!(body.structured_content, Some(json!({"a": 1})));
        assert!(body.is_error);
        let error = serde_json::from_value::<ResponseSpec>(json!(7)).expect_err("a number");
        assert!(
            error.to_string().contains("a string, or a mapping"),
            "{error}"
        );
    }

    #[test]
    fn the_schema_describes_every_property_and_contains_the_aliases() {
        let schema = manifest_schema();
        let definitions = schema["$defs"].as_object().expect("definitions");
        let objects = definitions.values().chain([&schema]);
        let mut seen = 0;
        for properties in objects.filter_map(|object| object["properties"].as_object()) {
            for (name, property) in properties {
                seen += 1;
                assert!(
                    property["description"].is_string() || property["$ref"].is_string(),
                    "{name} has no description: {property}"
                );
            }
        }
        assert!(seen > 30, "{seen} properties");
        let tool = &definitions["ToolSpec"];
        assert_eq!(tool["additionalProperties"], json!(false));
        assert!(tool["properties"]["inputSchema"].is_object());
    }
}
