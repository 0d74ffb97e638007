//! The secrets that this process knows, and the one redactor for everything that it prints.
//!
//! Secrets become known one after another: those of the environment at the first use, those of
//! a suite when it is loaded, those of headers when the arguments are read. Every string that
//! leaves the process through [`crate::output`] or the log passes [`clean`], so no command can
//! forget it.

use std::collections::BTreeSet;
use std::sync::{LazyLock, PoisonError, RwLock};

pub use mcptest_score::{environment_secrets as of_environment, proxies};

use mcptest_redact::redact::Redactor;

static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(|| {
    let values: BTreeSet<String> = of_environment().into_iter().collect();
    RwLock::new(Known {
        redactor: Redactor::new(values.iter().cloned()),
        values,
    })
});

/// The secrets known so far, and the redactor made of them.
struct Known {
    values: BTreeSet<String>,
    redactor: Redactor,
}

/// Masks these values, too, in everything that is printed from now on.
pub fn hide(secrets: impl IntoIterator<Item = String>) {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    let before = known.values.len();
    known.values.extend(secrets);
    if known.values.len() > before {
        known.redactor = Redactor::new(known.values.iter().cloned());
    }
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
