//! The settings of a provider.

use std::time::Duration;

use mcptest_http::without_query;
use serde_json::{Map, Value};

use crate::limiter::MAX_WINDOW;
use crate::retry::DEFAULT_RETRIES;

/// The default timeout for a complete answer.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The settings of a provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The provider's name in the suite.
    pub name: String,
    /// The common prefix of all its URLs.
    pub base_url: String,
    /// The environment variables that may hold the key, for messages.
    pub key_variables: Vec<String>,
    /// The API key.
    pub key: Option<String>,
    /// True if every request needs a key.
    pub needs_key: bool,
    /// Additional headers; they override the adapter's.
    pub headers: Vec<(String, String)>,
    /// The timeout for a complete answer.
    pub timeout: Duration,
    /// True if answers are requested as streams.
    pub stream: bool,
    /// Additional fields of every body; they override the adapter's.
    pub body: Map<String, Value>,
    /// The limit of requests in flight.
    pub max_concurrency: u32,
    /// The number of retries of a request.
    pub retries: u32,
}

impl ProviderSettings {
    /// Returns the default settings with this name and base URL.
    #[must_use]
    pub fn new(name: &str, base_url: &str) -> Self {
        Self {
            name: name.to_owned(),
            base_url: base_url.to_owned(),
            key_variables: Vec::new(),
            key: None,
            needs_key: false,
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            stream: false,
            body: Map::new(),
            max_concurrency: MAX_WINDOW,
            retries: DEFAULT_RETRIES,
        }
    }
}

impl std::fmt::Debug for ProviderSettings {
    /// Omits the key, headers and body, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("base_url", &without_query(&self.base_url))
            .finish_non_exhaustive()
    }
}
