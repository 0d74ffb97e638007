//! The known providers, and the mapping from models to providers.
//!
//! Docs, validation and the runner read the same table.

use crate::adapter::{Adapter, Anthropic, Gemini, OpenAiChat, OpenAiResponses};

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and compatible servers.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Google Gemini.
    Gemini,
}

impl Api {
    /// Returns the name in suites.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the adapter for this API at a base URL.
    #[must_use]
    pub fn adapter(self, base_url: &str) -> Box<dyn Adapter> {
        match self {
            Self::Anthropic => Box::new(Anthropic),
            Self::OpenAiChat if base_url.starts_with("https://api.openai.com/") => {
                Box::new(OpenAiChat::openai())
            }
            Self::OpenAiChat => Box::new(OpenAiChat::compatible()),
            Self::OpenAiResponses => Box::new(OpenAiResponses),
            Self::Gemini => Box::new(Gemini),
        }
    }
}

/// A provider that needs no `base_url` in the suite.
#[derive(Debug, Clone, Copy)]
pub struct KnownProvider {
    /// The name in `provider/model` and under `providers:`.
    pub name: &'static str,
    /// The base URL.
    pub base_url: &'static str,
    /// The API at the base URL.
    pub api: Api,
    /// The environment variables that may hold the key; the first one set wins. Empty if no key is
    /// needed.
    pub key_variables: &'static [&'static str],
    /// The prefixes of its models' ids. A prefix that ends in `-` or `:` also matches without it.
    pub prefixes: &'static [&'static str],
}

impl KnownProvider {
    /// Returns the API at a base URL. Base URLs other than OpenAI's own are compatible servers and
    /// gateways, which support Chat Completions.
    #[must_use]
    pub fn api_at(&self, own_base_url: Option<&str>) -> Api {
        match (self.api, own_base_url) {
            (Api::OpenAiResponses, Some(_)) => Api::OpenAiChat,
            (api, _) => api,
        }
    }

    fn has(&self, model: &str) -> bool {
        self.prefixes
            .iter()
            .any(|prefix| model.starts_with(prefix) || model == prefix.trim_end_matches(['-', ':']))
    }
}

/// All known providers, hosted ones first.
pub const PROVIDERS: [KnownProvider; 13] = [
    KnownProvider {
        name: "anthropic",
        base_url: "https://api.anthropic.com",
        api: Api::Anthropic,
        key_variables: &["ANTHROPIC_API_KEY"],
        prefixes: &["claude-"],
    },
    KnownProvider {
        name: "openai",
        base_url: "https://api.openai.com/v1",
        api: Api::OpenAiResponses,
        key_variables: &["OPENAI_API_KEY"],
        prefixes: &["gpt-", "o1-", "o3-", "o4-", "chatgpt-", "codex-", "ft:"],
    },
    KnownProvider {
        name: "google",
        base_url: "https://generativelanguage.googleapis.com",
        api: Api::Gemini,
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        prefixes: &["gemini-"],
    },
    KnownProvider {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        api: Api::OpenAiChat,
        key_variables: &["MISTRAL_API_KEY"],
        prefixes: &[
            "mistral-",
            "magistral-",
            "ministral-",
            "codestral-",
            "devstral-",
        ],
    },
    KnownProvider {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        api: Api::OpenAiChat,
        key_variables: &["DEEPSEEK_API_KEY"],
        prefixes: &["deepseek-"],
    },
    KnownProvider {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        api: Api::OpenAiChat,
        key_variables: &["XAI_API_KEY"],
        prefixes: &["grok-"],
    },
    KnownProvider {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        api: Api::OpenAiChat,
        key_variables: &["GROQ_API_KEY"],
        prefixes: &[],
    },
    KnownProvider {
        name: "together",
        base_url: "https://api.together.xyz/v1",
        api: Api::OpenAiChat,
        key_variables: &["TOGETHER_API_KEY"],
        prefixes: &[],
    },
    KnownProvider {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        api: Api::OpenAiChat,
        key_variables: &["OPENROUTER_API_KEY"],
        prefixes: &[],
    },
    KnownProvider {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1",
        api: Api::OpenAiChat,
        key_variables: &[],
        prefixes: &[],
    },
    KnownProvider {
        name: "vllm",
        base_url: "http://127.0.0.1:8000/v1",
        api: Api::OpenAiChat,
        key_variables: &[],
        prefixes: &[],
    },
    KnownProvider {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        api: Api::OpenAiChat,
        key_variables: &[],
        prefixes: &[],
    },
    KnownProvider {
        name: "lmstudio",
        base_url: "http://127.0.0.1:1234/v1",
        api: Api::OpenAiChat,
        key_variables: &[],
        prefixes: &[],
    },
];

/// Returns the provider with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|known| known.name == name)
}

/// Returns the provider of a model, and the provider's own id of the model. `declared` returns true
/// for the providers that the suite declares.
///
/// `provider/model` is split at the first slash if the part before it is a provider; otherwise the
/// prefix of the id decides.
#[must_use]
pub fn provider_of<'a>(id: &'a str, declared: &dyn Fn(&str) -> bool) -> Option<(&'a str, &'a str)> {
    if let Some((provider, model)) = id.split_once('/')
        && !model.is_empty()
        && (declared(provider) || find(provider).is_some())
    {
        return Some((provider, model));
    }
    let known = PROVIDERS.iter().find(|known| known.has(id))?;
    Some((known.name, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_map_to_their_providers() {
        for (id, expected) in [
            (
                "claude-sonnet-4-5",
                Some(("anthropic", "claude-sonnet-4-5")),
            ),
            (
                "anthropic/claude-sonnet-4-5",
                Some(("anthropic", "claude-sonnet-4-5")),
            ),
            ("gpt-5-mini", Some(("openai", "gpt-5-mini"))),
            ("o3", Some(("openai", "o3"))),
            ("o4-mini", Some(("openai", "o4-mini"))),
            (
                "ft:gpt-4o-mini:acme",
                Some(("openai", "ft:gpt-4o-mini:acme")),
            ),
            ("gemini-2.5-pro", Some(("google", "gemini-2.5-pro"))),
            ("ollama/qwen3:4b", Some(("ollama", "qwen3:4b"))),
            (
                "openrouter/anthropic/claude-sonnet-4.5",
                Some(("openrouter", "anthropic/claude-sonnet-4.5")),
            ),
            ("mine/whatever", Some(("mine", "whatever"))),
            ("o30", None),
            ("olympus", None),
            ("theirs/whatever", None),
            ("anthropic/", None),
            ("", None),
        ] {
            assert_eq!(provider_of(id, &|name| name == "mine"), expected, "{id}");
        }
    }

    #[test]
    fn the_table_is_consistent() {
        for (index, known) in PROVIDERS.iter().enumerate() {
            assert!(
                mcptest_http::Address::parse(known.base_url).is_ok(),
                "{}",
                known.name
            );
            assert!(!known.base_url.ends_with('/'), "{}", known.name);
            let local = known.base_url.starts_with("http://127.0.0.1");
            assert_eq!(local, known.key_variables.is_empty(), "{}", known.name);
            for other in &PROVIDERS[index + 1..] {
                assert_ne!(known.name, other.name);
                let overlaps = known.prefixes.iter().any(|prefix| other.has(prefix));
                assert!(!overlaps, "{} and {}", known.name, other.name);
            }
        }
    }

    #[test]
    fn another_base_url_of_openai_is_a_compatible_server() {
        let openai = find("openai").unwrap();
        assert_eq!(openai.api_at(None), Api::OpenAiResponses);
        assert_eq!(
            openai.api_at(Some("http://127.0.0.1:9/v1")),
            Api::OpenAiChat
        );
        assert_eq!(
            find("google").unwrap().api_at(Some("http://x")),
            Api::Gemini
        );
    }
}
