//! Secrets in the environment of the process.

pub use mcptest_score::{environment_secrets as of_environment, proxies};

use mcptest_redact::redact::Redactor;

/// The redactor of declared secrets and those of the environment.
pub fn redactor(declared: impl IntoIterator<Item = String>) -> Redactor {
    Redactor::new(declared.into_iter().chain(of_environment()))
}
