//! Providers of models: the suite's declaration combined with the built-in defaults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mcptest_agent::builtin;
use mcptest_catalog::prices::Prices;
use mcptest_provider::registry::{self, Api, PROVIDERS, provider_of};
use mcptest_provider::{DEFAULT_TIMEOUT, Provider, ProviderSettings, limiter, retry};
use mcptest_suite::suite::Api as WrittenApi;
use mcptest_suite::{BuiltInProvider, ModelError, Suite, suggest};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value};

/// The prefix of built-in models.
const BUILT_IN: &str = "builtin/";

/// Returns true for a model that is asked over HTTP.
pub(crate) fn is_live(id: &str) -> bool {
    !id.starts_with(BUILT_IN)
}

/// Checks that a model id is known, apart from the providers that a suite declares.
///
/// # Errors
/// A message for the user, with the known ids.
pub fn check_model(id: &str) -> Result<(), ModelError> {
    if !is_live(id) {
        return builtin::check_model(id).map_err(|error| ModelError::new(error.to_string()));
    }
    if provider_of(id, &|_| false).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = PROVIDERS.iter().map(|known| known.name).collect();
    if let Some((provider, _)) = id.split_once('/') {
        let near = suggest(provider, names.iter().copied().chain(["builtin"]));
        return Err(ModelError::new(match near {
            Some(near) => format!(
                "unknown model `{id}`: no provider is called `{provider}`; did you mean `{near}`?"
            ),
            None => format!(
                "unknown model `{id}`: no provider is called `{provider}`. Declare it under `providers:`, or use one that is built in: {}. The built-in models are {}",
                names.join(", "),
                built_in_models()
            ),
        }));
    }
    let built_in = || builtin::MODELS.iter().map(|(model, _)| *model);
    let without_prefix = built_in().find(|model| model.strip_prefix("builtin/") == Some(id));
    let near = without_prefix.or_else(|| suggest(id, Prices::models().chain(built_in())));
    if let Some(near) = near {
        let message = format!("unknown model `{id}`; did you mean `{near}`?");
        return Err(ModelError::new(message));
    }
    let prefixes: Vec<&str> = PROVIDERS
        .iter()
        .flat_map(|known| known.prefixes)
        .copied()
        .collect();
    Err(ModelError::new(format!(
        "unknown model `{id}`: known ids begin with {}. Write any other as `provider/model`, with a provider that is built in ({}) or declared under `providers:`. The built-in models are {}",
        prefixes.join(", "),
        names.join(", "),
        built_in_models()
    )))
}

/// The models that need no provider.
fn built_in_models() -> String {
    builtin::MODELS.map(|(model, _)| model).join(", ")
}

/// The providers that a suite does not have to declare.
#[must_use]
pub fn built_in_providers() -> Vec<BuiltInProvider> {
    let of = |known: &registry::KnownProvider| BuiltInProvider {
        name: known.name,
        key_variables: known.key_variables,
    };
    PROVIDERS.iter().map(of).collect()
}

/// The API keys that are missing for live runs of a suite, one message per provider.
#[must_use]
pub fn missing_keys(suite: &Suite) -> Vec<String> {
    let mut missing = BTreeMap::new();
    for test in suite.agent_tests() {
        let own_loop = test.models.iter().filter(|_| test.agents.is_empty());
        for model in own_loop.filter(|model| is_live(model)) {
            let Some((name, _)) = provider_of(model, &|name| suite.providers.contains_key(name))
            else {
                continue;
            };
            let settings = settings(suite, name).0;
            if settings.needs_key && settings.key.is_none() {
                let variables = settings.key_variables.join(" or ");
                missing.entry(name.to_owned()).or_insert_with(|| {
                    format!(
                        "{variables} is not set: live runs of test `{}` with {model} will end in an `auth` error",
                        test.name
                    )
                });
            }
        }
    }
    missing.into_values().collect()
}

/// A receiver of messages from providers.
pub(crate) type Note = Arc<dyn Fn(String) + Send + Sync>;

/// The providers of a suite, opened when first needed and shared by all runs.
pub(crate) struct Providers {
    open: Mutex<BTreeMap<String, Arc<Provider>>>,
    note: Note,
}

impl Providers {
    /// Opens none yet. `note` receives a message when a provider makes all requests wait.
    pub(crate) fn new(note: Note) -> Self {
        Self {
            open: Mutex::default(),
            note,
        }
    }

    /// The provider of a model, and the provider's name for the model.
    pub(crate) fn of<'a>(
        &self,
        suite: &Suite,
        id: &'a str,
    ) -> Result<(Arc<Provider>, &'a str), RunError> {
        let Some((name, model)) = provider_of(id, &|name| suite.providers.contains_key(name))
        else {
            return Err(RunError {
                kind: ErrorKind::Provider,
                message: check_model(id)
                    .err()
                    .map_or_else(String::new, |error| error.to_string()),
            });
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = open.get(name) {
            return Ok((Arc::clone(provider), model));
        }
        let (settings, api) = settings(suite, name);
        let adapter = api.adapter(&settings.base_url);
        let provider =
            Arc::new(Provider::new(settings, adapter)?.with_status(Arc::clone(&self.note)));
        open.insert(name.to_owned(), Arc::clone(&provider));
        Ok((provider, model))
    }
}

/// The provider settings that can change the answers of a model: its API, and the keys that the
/// suite adds to every request.
pub(crate) fn request_style(suite: &Suite, id: &str) -> Option<(&'static str, Map<String, Value>)> {
    let (name, _) =
        provider_of(id, &|name| suite.providers.contains_key(name)).filter(|_| is_live(id))?;
    let (settings, api) = settings(suite, name);
    Some((api.as_str(), settings.body))
}

fn settings(suite: &Suite, name: &str) -> (ProviderSettings, Api) {
    let known = registry::find(name);
    let declared = suite.providers.get(name).cloned().unwrap_or_default();
    let own_url = declared.base_url.as_deref();
    let api = match declared.api {
        Some(WrittenApi::Anthropic) => Api::Anthropic,
        Some(WrittenApi::OpenAiChat) => Api::OpenAiChat,
        Some(WrittenApi::OpenAiResponses) => Api::OpenAiResponses,
        Some(WrittenApi::Gemini) => Api::Gemini,
        None => known.map_or(Api::OpenAiChat, |known| known.api_at(own_url)),
    };
    let key_variables: Vec<String> = match &declared.key_variable {
        Some(variable) => vec![variable.clone()],
        None => known
            .into_iter()
            .flat_map(|known| known.key_variables)
            .map(ToString::to_string)
            .collect(),
    };
    let brings_credential = declared
        .headers
        .iter()
        .any(|(name, value)| mcptest_redact::redact::is_secret(name, value));
    // At an address that the suite sets, a key is needed only if the suite names one: compatible
    // servers often need none.
    let expects_key =
        declared.key_variable.is_some() || (own_url.is_none() && !key_variables.is_empty());
    let settings = ProviderSettings {
        name: name.to_owned(),
        base_url: own_url
            .or(known.map(|known| known.base_url))
            .unwrap_or_default()
            .to_owned(),
        key: key_variables
            .iter()
            .find_map(|variable| suite.keys.get(variable))
            .map(str::to_owned),
        key_variables,
        needs_key: expects_key && !brings_credential,
        headers: declared.headers,
        timeout: declared.timeout.unwrap_or(DEFAULT_TIMEOUT),
        stream: declared.stream,
        body: declared.body,
        max_concurrency: declared.max_concurrency.unwrap_or(limiter::MAX_WINDOW),
        retries: declared.retries.unwrap_or(retry::DEFAULT_RETRIES),
    };
    (settings, api)
}

#[cfg(test)]
mod tests {
    use mcptest_suite::suite::DeclaredProvider as Declared;

    use super::*;

    #[test]
    fn unknown_models_are_reported_with_a_suggestion() {
        for (id, words) in [
            ("cluade-sonnet-4-5", "did you mean `claude-sonnet-4-5`?"),
            (
                "builtin/lexcal",
                "the built-in models are builtin/scripted, builtin/lexical",
            ),
            ("lexical", "did you mean `builtin/lexical`?"),
            ("acme", "known ids begin with claude-, gpt-,"),
            (
                "antropic/claude-x",
                "no provider is called `antropic`; did you mean `anthropic`?",
            ),
            (
                "nobody/x",
                "Declare it under `providers:`, or use one that is built in: anthropic, openai,",
            ),
            ("anthropic/", "unknown model"),
        ] {
            let error = check_model(id).unwrap_err().to_string();
            assert!(error.contains(words), "{id}: {error}");
        }
        for id in ["claude-anything", "o3", "ollama/x", "builtin/lexical"] {
            assert_eq!(check_model(id), Ok(()));
        }
    }

    fn suite(name: &str, declared: Declared) -> Suite {
        let mut suite = Suite::default();
        suite.providers.insert(name.to_owned(), declared);
        suite
    }

    #[test]
    fn missing_settings_have_the_built_in_values() {
        let (settings, api) = settings(&Suite::default(), "google");
        assert_eq!(api, Api::Gemini);
        assert_eq!(settings.key_variables, ["GEMINI_API_KEY", "GOOGLE_API_KEY"]);
        assert!(settings.needs_key);
        assert_eq!(
            settings.base_url,
            "https://generativelanguage.googleapis.com"
        );
    }

    #[test]
    fn a_key_is_needed_if_the_suite_or_the_provider_requires_it() {
        let at = |url: Option<&str>, variable: Option<&str>, headers: &[(&str, &str)]| {
            let declared = Declared {
                base_url: url.map(str::to_owned),
                key_variable: variable.map(str::to_owned),
                headers: headers
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..Declared::default()
            };
            settings(&suite("openai", declared), "openai").0.needs_key
        };
        assert!(at(None, None, &[]));
        assert!(at(None, Some("MY_KEY"), &[]));
        assert!(at(Some("http://127.0.0.1:9/v1"), Some("MY_KEY"), &[]));
        assert!(!at(Some("http://127.0.0.1:9/v1"), None, &[]));
        assert!(!at(None, None, &[("Authorization", "Bearer abcdef")]));
    }

    #[test]
    fn a_declared_provider_uses_chat_completions() {
        let declared = Declared {
            base_url: Some("http://127.0.0.1:9/v1".to_owned()),
            ..Declared::default()
        };
        let suite = suite("mine", declared);
        assert_eq!(settings(&suite, "mine").1, Api::OpenAiChat);
        let providers = Providers::new(Arc::new(|_| {}));
        let (first, model) = providers.of(&suite, "mine/a/b").unwrap();
        assert_eq!(model, "a/b");
        let (second, _) = providers.of(&suite, "mine/c").unwrap();
        assert!(
            Arc::ptr_eq(&first, &second),
            "one provider for all its models"
        );
        assert_eq!(
            providers.of(&suite, "theirs/c").unwrap_err().kind,
            ErrorKind::Provider
        );
    }
}
