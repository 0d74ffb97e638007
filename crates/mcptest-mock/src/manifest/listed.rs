//! Resources and prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::before::AskSpec;
use super::{BlockSpec, resource_aliases, template_aliases};

/// A resource with its content: either `text` or `blob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = resource_aliases)]
pub struct ResourceSpec {
    /// The URI; unique in the server.
    pub uri: String,
    /// The name; the URI by default.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The media type, for example `text/plain`.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// The content, if it is text.
    pub text: Option<String>,
    /// The content in base64, if it is binary.
    pub blob: Option<String>,
    /// The contents after it was updated, in order. The last one stays.
    #[serde(default)]
    pub updates: Vec<String>,
    /// True if clients may subscribe to it. They are notified when an answer has it under
    /// `updated`.
    #[serde(default)]
    pub subscribe: bool,
    /// True if the resource is not listed until an answer reveals it. It can be read before that.
    #[serde(default)]
    pub hidden: bool,
}

/// Resources whose URIs match a pattern, with the content of each: either `text` or `blob`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = template_aliases)]
pub struct ResourceTemplateSpec {
    /// The pattern of the URI, with `{name}` for each variable. Values contain no slash.
    #[serde(alias = "uriTemplate")]
    pub uri_template: String,
    /// The name; the pattern by default.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The media type, for example `text/plain`.
    #[serde(alias = "mimeType")]
    pub mime_type: Option<String>,
    /// The content, if it is text. It may use the variables of the URI: `${args.name}`.
    pub text: Option<String>,
    /// The content in base64, if it is binary.
    pub blob: Option<String>,
    /// The answers of `completion/complete` for each variable.
    #[serde(default)]
    pub complete: BTreeMap<String, Vec<String>>,
}

/// A prompt and its messages.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptSpec {
    /// The name of the prompt; unique in the server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The purpose of the prompt.
    pub description: Option<String>,
    /// The arguments of the prompt.
    #[serde(default)]
    pub arguments: Vec<PromptArgumentSpec>,
    /// Requests to the client before the answer, in rounds, for revision 2026-07-28. Each round has
    /// requests by name.
    #[serde(default)]
    pub ask: Vec<BTreeMap<String, AskSpec>>,
    /// True if the prompt is not listed until an answer reveals it.
    #[serde(default)]
    pub hidden: bool,
    /// The messages of the prompt. Their strings may use the arguments: `${args.topic}`.
    pub messages: Vec<PromptMessageSpec>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptArgumentSpec {
    /// The name.
    pub name: String,
    /// The meaning of the argument.
    pub description: Option<String>,
    /// True if the argument is required.
    #[serde(default)]
    pub required: bool,
    /// The answers of `completion/complete` for it.
    pub complete: Option<Vec<String>>,
}

/// A message of a prompt.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptMessageSpec {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub content: BlockSpec,
}

/// The speaker of a message.
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
