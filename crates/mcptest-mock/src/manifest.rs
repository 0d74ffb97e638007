//! The mock manifest as it is written: one type per block, and the doc comments are the texts of
//! its JSON Schema.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::fault::PATTERN;

/// A mock manifest: the server that `mcptest mock --tools-from FILE` plays.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcptest mock manifest")]
pub struct ManifestFile {
    /// The server to play.
    pub mock_server: ServerSpec,
}

/// The server to play. It advertises only what is declared here.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = server_aliases)]
pub struct ServerSpec {
    /// The name the server introduces itself with.
    pub name: String,
    /// The version the server introduces itself with; `0.0.0` if left out.
    pub version: Option<String>,
    /// Guidance for the model, sent to the client at the start.
    pub instructions: Option<String>,
    /// What goes wrong with calls of every tool that has no `fault` of its own: `hang`, `wedged`,
    /// `slow:<ms>`, `recover-after:<n>` or `reply-after-cancel:<ms>`.
    #[schemars(regex(pattern = PATTERN))]
    pub fault: Option<String>,
    /// How many entries a page of a list has. Left out, lists come whole.
    #[schemars(range(min = 1))]
    pub page_size: Option<u32>,
    /// The tools, in the order in which they are listed.
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    /// The resources, in the order in which they are listed.
    #[serde(default)]
    pub resources: Vec<ResourceSpec>,
    /// The resource templates, in the order in which they are listed.
    #[serde(default, alias = "resourceTemplates")]
    pub resource_templates: Vec<ResourceTemplateSpec>,
    /// The prompts, in the order in which they are listed.
    #[serde(default)]
    pub prompts: Vec<PromptSpec>,
}

/// A tool and what it answers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = tool_aliases)]
pub struct ToolSpec {
    /// The name by which the tool is called; unique in the server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, checked on every call. Left out, any object will do.
    #[serde(alias = "inputSchema")]
    pub input_schema: Option<Map<String, Value>>,
    /// The JSON Schema of the structured content.
    #[serde(alias = "outputSchema")]
    pub output_schema: Option<Map<String, Value>>,
    /// Hints such as `readOnlyHint`, sent as they are.
    pub annotations: Option<Value>,
    /// What the tool answers. Left out, it answers with its own name and the arguments as text.
    pub response: Option<ResponseSpec>,
    /// Several answers. Those with a `when` that fits the arguments come first, the first such
    /// `when` in the list wins; then those without `when`. Answers under the same `when` are given
    /// one after the other, call by call, and the last one repeats.
    #[serde(default)]
    pub responses: Vec<ResponseSpec>,
    /// What is asked of the client before the answer, round by round. Each round has requests by
    /// name.
    #[serde(default)]
    pub ask: Vec<BTreeMap<String, AskSpec>>,
    /// What goes wrong with calls of this tool, written as the server's `fault`.
    #[schemars(regex(pattern = PATTERN))]
    pub fault: Option<String>,
}

/// What a tool answers. Every text in it may use the arguments of the call: `${args.query}`,
/// `${args.filter.tags[0]}`. A text that is nothing but one template takes the argument with its
/// JSON type; a literal `${` is written `$${`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseSpec {
    /// The content blocks. Left out beside structured content, they are one text block with its
    /// JSON.
    pub content: Option<Vec<BlockSpec>>,
    /// The structured content, for tools with an output schema.
    pub structured_content: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// A protocol error in place of a result.
    pub rpc_error: Option<RpcErrorSpec>,
    /// What is sent before the answer.
    pub before: Vec<BeforeSpec>,
    /// The arguments for which this is the answer.
    pub when: Option<Map<String, Value>>,
}

/// A whole result.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "ToolResult")]
#[schemars(transform = response_aliases)]
struct ResponseBody {
    /// The content blocks. Left out beside structured content, they are one text block with its
    /// JSON.
    content: Option<Vec<BlockSpec>>,
    /// The structured content, for tools with an output schema.
    #[serde(alias = "structuredContent")]
    structured_content: Option<Value>,
    /// Whether the call failed.
    #[serde(default, alias = "isError")]
    is_error: bool,
    /// A JSON-RPC error in place of a result.
    rpc_error: Option<RpcErrorSpec>,
    /// What is sent before the answer, in order: progress, log messages, pauses.
    #[serde(default)]
    before: Vec<BeforeSpec>,
    /// In `responses`: the arguments for which this is the answer. Members that are not named here
    /// may have any value.
    when: Option<Map<String, Value>>,
}

/// A request to the client.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSpec {
    /// What is asked for.
    pub method: AskMethod,
    /// The parameters. Their texts may use the arguments.
    #[serde(default)]
    pub params: Map<String, Value>,
}

/// What a server can ask a client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum AskMethod {
    /// A form for the user.
    #[serde(rename = "elicitation/create")]
    Elicitation,
    /// An answer of the client's model.
    #[serde(rename = "sampling/createMessage")]
    Sampling,
    /// The folders that the client opens up.
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

/// A JSON-RPC error. Its texts may use the arguments.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RpcErrorSpec {
    /// The code, for example -32603.
    pub code: i32,
    /// What went wrong.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
}

/// Something sent before an answer: exactly one of `progress`, `log` and `wait_ms`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeforeSpec {
    /// How far the work is. Sent only to a client that asked for progress.
    pub progress: Option<serde_json::Number>,
    /// With `progress`: how far it goes.
    pub total: Option<serde_json::Number>,
    /// With `progress`: what is being done. It may use the arguments.
    pub message: Option<String>,
    /// A log message: a text or any other value. Its texts may use the arguments. Sent only to a
    /// client that wants its level.
    pub log: Option<Value>,
    /// With `log`: its level, `info` if left out.
    pub level: Option<LogLevel>,
    /// With `log`: who logs.
    pub logger: Option<String>,
    /// A pause in milliseconds.
    #[schemars(range(max = 3_600_000))]
    pub wait_ms: Option<u64>,
}

/// How grave a log message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For finding mistakes.
    Debug,
    /// Ordinary.
    #[default]
    Info,
    /// Ordinary but worth seeing.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part failed.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
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

/// A content block as MCP defines it, for example `{type: text, text: …}`; a plain string is a text
/// block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockSpec(pub Value);

/// A resource with its content: either `text` or `blob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = resource_aliases)]
pub struct ResourceSpec {
    /// The address; unique in the server.
    pub uri: String,
    /// The name; the address if left out.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What the resource holds, for the model.
    pub description: Option<String>,
    /// The media type, for example `text/plain`.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// The content, if it is text.
    pub text: Option<String>,
    /// The content in base64, if it is binary.
    pub blob: Option<String>,
    /// Whether clients may subscribe to it. It never changes.
    #[serde(default)]
    pub subscribe: bool,
}

/// A family of resources whose addresses follow a pattern, with the content of each: either `text`
/// or `blob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = template_aliases)]
pub struct ResourceTemplateSpec {
    /// The pattern: text with `{name}` for each part that varies. A part has no slash in it.
    #[serde(alias = "uriTemplate")]
    pub uri_template: String,
    /// The name; the pattern if left out.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What the resources hold, for the model.
    pub description: Option<String>,
    /// The media type, for example `text/plain`.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// The content, if it is text. It may use the parts of the address: `${args.name}`.
    pub text: Option<String>,
    /// The content in base64, if it is binary.
    pub blob: Option<String>,
    /// What `completion/complete` offers for each part.
    #[serde(default)]
    pub complete: BTreeMap<String, Vec<String>>,
}

/// A prompt and its messages.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    /// The name by which the prompt is asked for; unique in the server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// The arguments it takes.
    #[serde(default)]
    pub arguments: Vec<PromptArgumentSpec>,
    /// What is asked of the client first, in revision 2026-07-28, round by round. Each round has
    /// requests by name.
    #[serde(default)]
    pub ask: Vec<BTreeMap<String, AskSpec>>,
    /// The messages it gives. Their texts may use the arguments: `${args.topic}`.
    pub messages: Vec<PromptMessageSpec>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptArgumentSpec {
    /// The name.
    pub name: String,
    /// What to put there.
    pub description: Option<String>,
    /// Whether the prompt cannot be given without it.
    #[serde(default)]
    pub required: bool,
    /// What `completion/complete` offers for it.
    pub complete: Option<Vec<String>>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptMessageSpec {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: BlockSpec,
}

/// Who speaks in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The JSON Schema of the manifest file.
#[must_use]
pub fn manifest_schema() -> Value {
    let mut schema = SchemaGenerator::default()
        .into_root_schema_for::<ManifestFile>()
        .to_value();
    mcptest_json::schema::join_description_lines(&mut schema);
    schema
}

/// The wire spellings that are accepted beside ours: (ours, the other).
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

/// Derived schemas do not know serde's aliases.
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
                f.write_str("a text, or a mapping with content")
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
            "description": "What a tool answers: a text, or a whole result. Every text in it may use the arguments of the call: \
                            `${args.query}`, `${args.filter.tags[0]}`. A text that is nothing but one template takes the argument with \
                            its JSON type; a literal `${` is written `$${`.",
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
            "description": "A content block as MCP defines it, for example `{type: text, text: …}`; a plain string is a text block.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {
                        "description": "The kind of content: `text`, `image`, `audio`, `resource` or `resource_link`.",
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
    fn a_response_is_a_text_or_a_mapping() {
        let text: ResponseSpec = serde_json::from_value(json!("hello")).expect("a text");
        assert_eq!(text, ResponseSpec::text("hello"));
        let body: ResponseSpec =
            serde_json::from_value(json!({"structuredContent": {"a": 1}, "isError": true}))
                .expect("a mapping");
        assert_eq!(body.structured_content, Some(json!({"a": 1})));
        assert!(body.is_error);
        let error = serde_json::from_value::<ResponseSpec>(json!(7)).expect_err("a number");
        assert!(
            error.to_string().contains("a text, or a mapping"),
            "{error}"
        );
    }

    #[test]
    fn the_schema_describes_every_property_and_knows_the_aliases() {
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
