//! The secrets that this process knows, and the one redactor for everything that it prints.
//!
//! Secrets become known one after another: those of the environment at the first use, those of
//! a suite when it is loaded, those of headers when the arguments are read. Every string that
//! leaves the process through [`crate::output`] or the log passes [`clean`], so no command can
//! forget it.

use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

pub use mcptest_score::{environment_secrets as of_environment, proxies};

use mcptest_redact::redact::{Redactor, canaries};

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(|| {
    let values: BTreeSet<String> = of_environment().into_iter().collect();
    RwLock::new(Known {
        redactor: Redactor::new(values.iter().cloned()),
        values,
        kept: BTreeSet::new(),
    })
});

/// The secrets known so far, and the redactor made of them.
struct Known {
    values: BTreeSet<String>,
    /// Canaries of attacks.
    kept: BTreeSet<String>,
    redactor: Redactor,
}

impl Known {
    fn update(&mut self) {
        let redactor = self.redactor.replaced(self.values.iter().cloned());
        self.redactor = redactor.keeping(self.kept.iter().cloned());
    }
}

/// Masks these values, too, in everything that is printed from now on.
pub fn hide(secrets: impl IntoIterator<Item = String>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let before = known.values.len();
    known.values.extend(secrets);
    if known.values.len() > before {
        known.update();
    }
}

/// Leaves the canaries of attacks as they are from now on: they may look like credentials.
pub fn keep(canaries: impl IntoIterator<Item = String>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let before = known.kept.len();
    known.kept.extend(canaries);
    if known.kept.len() > before {
        known.update();
    }
}

/// Leaves the canaries as they are that a record lists.
pub fn keep_listed(json: &str) {
    if json.contains("\"canary\"")
        && let Ok(value) = serde_json::from_str(json)
    {
        keep(canaries(&value));
    }
}

/// Masks these values, too, from now on, also in what is written by redactors that were handed out
/// before: tokens are obtained during a run.
pub fn learn(secrets: impl IntoIterator<Item = String>) {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.redactor.learn(secrets);
}

/// A string without the secrets known so far.
pub fn clean(text: &str) -> String {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.redactor.text(text)
}

/// The redactor of declared secrets and those known so far.
pub fn redactor(declared: impl IntoIterator<Item = String>) -> Redactor {
    hide(declared);
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.redactor.clone()
}
