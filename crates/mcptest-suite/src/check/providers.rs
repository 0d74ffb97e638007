//! `providers:`, and model ids.

use mcptest_yaml::{Diagnostic, Severity, suggest};

use super::Checker;
use super::diagnostics::{escape, has_host, key_error};
use crate::file::{AgentFields, ProviderFile};
use crate::import::Part;
use crate::options::{ModelError, Purpose};
use crate::suite::DeclaredProvider;

impl Checker<'_> {
    pub(super) fn providers(&mut self, part: &Part) {
        for (name, file) in &part.file.providers {
            let at = format!("/providers/{}", escape(name));
            if self.suite.providers.contains_key(name) {
                self.problems
                    .push(key_error(part, &at, format!("duplicate provider `{name}`")));
                continue;
            }
            if name.is_empty() || name == "builtin" || name.contains('/') {
                let message = format!("invalid provider name `{name}`");
                self.problems.push(
                    key_error(part, &at, message)
                        .help("model ids are `provider/model`, and `builtin/` is reserved"),
                );
                continue;
            }
            let provider = self.provider(part, &at, name, file);
            self.suite.providers.insert(name.clone(), provider);
        }
    }

    fn provider(
        &mut self,
        part: &Part,
        at: &str,
        name: &str,
        file: &ProviderFile,
    ) -> DeclaredProvider {
        let known: Vec<&str> = self
            .options
            .providers
            .iter()
            .map(|known| known.name)
            .collect();
        match &file.base_url {
            Some(url) if !has_host(url) => self.problems.push(
                part.document
                    .diagnostic_at(
                        &format!("{at}/base_url"),
                        "a URL must start with http:// or https:// and have a host",
                    )
                    .help("for example `http://127.0.0.1:8000/v1`"),
            ),
            None if !known.contains(&name) => {
                let message =
                    format!("provider `{name}` is not built in, so it needs a `base_url`");
                let problem = key_error(part, at, message);
                self.problems
                    .push(match suggest(name, known.iter().copied()) {
                        Some(near) => problem.label(format!("did you mean `{near}`?")),
                        None => problem.help(format!("built-in providers: {}", known.join(", "))),
                    });
            }
            _ => {}
        }
        DeclaredProvider {
            base_url: file.base_url.as_ref().map(|url| url.trim().to_owned()),
            key_variable: file.api_key_env.clone(),
            api: file.api,
            headers: file
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
            timeout: self.duration(part, &format!("{at}/timeout"), file.timeout.as_ref()),
            stream: file.stream.unwrap_or(false),
            body: file.body.clone(),
            max_concurrency: file.max_concurrency,
            retries: file.retries,
        }
    }

    /// The models of a test: those of the invocation, else the test's, else its agent's.
    pub(super) fn models_of(&self, own: &AgentFields, base: Option<&AgentFields>) -> Vec<String> {
        if !self.options.models.is_empty() && self.options.purpose == Purpose::Run {
            return self.options.models.to_vec();
        }
        own.models
            .as_ref()
            .or_else(|| base?.models.as_ref())
            .map_or_else(Vec::new, |models| models.0.clone())
    }

    /// Checks the models of the invocation. They are not in a file, so the problems have no place.
    pub(super) fn override_models(&mut self) {
        for model in self.options.models {
            if let Err(error) = self.check_model(model) {
                let message = format!("--model: {error}");
                self.problems
                    .push(Diagnostic::new(Severity::Error, message));
            }
        }
    }

    /// Checks a model id: one of a declared provider, or a built-in one.
    pub(super) fn check_model(&self, id: &str) -> Result<(), ModelError> {
        let declared = |name: &str| {
            self.parts
                .iter()
                .any(|part| part.file.providers.contains_key(name))
        };
        match id.split_once('/') {
            Some((provider, model)) if declared(provider) && !model.is_empty() => Ok(()),
            _ => (self.options.check_model)(id),
        }
    }
}
