//! Secrets in the environment of the process.

use mcptest_http::Proxies;
use mcptest_redact::redact::is_secret_variable;

/// The proxies that the environment names.
#[must_use]
pub fn proxies() -> Proxies {
    Proxies::from_env(|name| std::env::var(name).ok())
}

/// The values of variables whose names and values look like credentials, and the passwords of
/// proxies. Servers inherit them, so they may occur in any output.
#[must_use]
pub fn environment_secrets() -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| is_secret_variable(name, value))
        .map(|(_, value)| value)
        .chain(proxies().secrets())
        .collect()
}
