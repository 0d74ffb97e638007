//! Model providers: `providers:` as written and as checked, and their keys from the environment.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use mcptest_yaml::duration::WrittenDuration;
use mcptest_yaml::values::Scalar;

/// A model provider. Every key has a default for a built-in provider.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderFile {
    /// The base URL, such as `http://127.0.0.1:8000/v1`. Required for a provider that is not built
    /// in.
    #[schemars(with = "String", length(min = 1))]
    pub base_url: Option<String>,
    /// The environment variable that holds the API key. The key itself is never part of a suite.
    #[schemars(with = "String", length(min = 1))]
    pub api_key_env: Option<String>,
    /// The API dialect. Default: that of the built-in provider, else `openai_chat`.
    pub api: Option<ApiFile>,
    /// Headers for every request; they override ours. Values of headers that carry credentials are
    /// redacted in all output; take them from the environment: `Bearer ${TOKEN}`.
    pub headers: BTreeMap<String, Scalar>,
    /// The timeout for one complete answer. Default: 120s.
    pub timeout: Option<WrittenDuration>,
    /// Request answers as streams. Default: `false`.
    pub stream: Option<bool>,
    /// Additional fields for every request body, such as `temperature`. They override ours,
    /// mappings key by key; `tools` are appended to ours.
    pub body: Map<String, Value>,
    /// The maximum number of concurrent requests. Default: 64. Below it, concurrency adapts to what
    /// the provider accepts.
    #[schemars(range(min = 1, max = 1024))]
    pub max_concurrency: Option<u32>,
    /// The number of retries after a temporary failure. Default: 8.
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
}

/// The API dialect of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum ApiFile {
    /// Anthropic Messages.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// OpenAI Chat Completions, and compatible APIs.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI Responses.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Google Gemini.
    #[serde(rename = "gemini")]
    Gemini,
}

/// A built-in provider, as far as the loader needs it.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInProvider {
    /// Its name.
    pub name: &'static str,
    /// The variables that may hold its key.
    pub key_variables: &'static [&'static str],
}

/// A provider as set by the suite; other settings have the provider's default.
#[derive(Clone, Default)]
pub struct DeclaredProvider {
    /// The base URL.
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub key_variable: Option<String>,
    /// The API dialect.
    pub api: Option<ApiFile>,
    /// Headers for every request.
    pub headers: Vec<(String, String)>,
    /// The timeout for one complete answer.
    pub timeout: Option<Duration>,
    /// True if answers are requested as streams.
    pub stream: bool,
    /// Additional fields for every request body.
    pub body: Map<String, Value>,
    /// The maximum number of concurrent requests.
    pub max_concurrency: Option<u32>,
    /// The number of retries.
    pub retries: Option<u32>,
}

impl std::fmt::Debug for DeclaredProvider {
    /// Addresses, headers and bodies may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeclaredProvider")
            .field("api", &self.api)
            .finish_non_exhaustive()
    }
}

/// The values of key variables that are set, read once when the suite is loaded.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<String, String>);

impl Keys {
    /// The value of a variable, if it is set and not empty.
    #[must_use]
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.0.get(variable).map(String::as_str)
    }

    /// All values: none of them may appear in any output.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }

    pub(crate) fn read(&mut self, variable: &str, env: &dyn Fn(&str) -> Option<String>) {
        if let Some(value) = env(variable)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
        {
            self.0.insert(variable.to_owned(), value);
        }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_once_and_not_shown() {
        let mut keys = Keys::default();
        for variable in ["SET", "EMPTY", "UNSET"] {
            keys.read(variable, &|name| match name {
                "SET" => Some(" s3cret\n".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            });
        }
        assert_eq!(keys.get("SET"), Some("s3cret"));
        assert_eq!((keys.get("EMPTY"), keys.get("UNSET")), (None, None));
        assert_eq!(format!("{keys:?}"), r#"{"SET"}"#);
    }
}
