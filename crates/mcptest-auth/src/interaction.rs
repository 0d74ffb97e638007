//! The user of an interactive login.

use std::fmt;
use std::pin::Pin;

/// A future of an interaction.
pub type InteractionFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A person at a browser, or a program in their place.
pub trait Interaction: Send + Sync + fmt::Debug {
    /// Shows the address at which the user logs in. It may return before that is done: the answer
    /// arrives at the redirect address.
    fn show<'a>(&'a self, url: &'a str) -> InteractionFuture<'a, ()>;

    /// Waits for a redirect address that the user copied from the browser; never ends if that is
    /// not offered.
    fn pasted(&self) -> InteractionFuture<'_, String> {
        Box::pin(std::future::pending())
    }
}
