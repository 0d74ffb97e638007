//! Secrets that become known while the program runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::encoded::Secret;
use super::sorted;

/// Secrets that were added later. Reading it costs nothing until the first one is: scoring masks
/// millions of strings on all cores.
#[derive(Debug, Default)]
pub(super) struct Learned {
    is_used: AtomicBool,
    secrets: RwLock<Vec<Secret>>,
}

impl Learned {
    pub(super) fn add(&self, secrets: impl IntoIterator<Item = String>) {
        let mut known = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.iter().map(|secret| secret.plain.clone());
        let all: Vec<String> = before.chain(secrets).collect();
        *known = sorted(all);
        self.is_used.store(!known.is_empty(), Ordering::Release);
    }

    /// The secrets, longest first; `None` if there are none.
    pub(super) fn get(&self) -> Option<RwLockReadGuard<'_, Vec<Secret>>> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        Some(self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }
}
