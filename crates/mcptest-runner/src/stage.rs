//! What all runs of a suite share while it is carried out.

use std::sync::Arc;

use mcptest_suite::Suite;

use crate::event::Event;
use crate::models::Models;
use crate::sessions::Sessions;
use crate::snapshots::Snapshots;

/// The suite, its servers, its models, and whoever wants to know.
pub(crate) struct Stage {
    pub suite: Arc<Suite>,
    pub sessions: Sessions,
    pub models: Models,
    pub snapshots: Snapshots,
    pub on_event: Arc<dyn Fn(Event) + Send + Sync>,
}

impl Stage {
    /// Tells whoever listens.
    pub fn tell(&self, event: Event) {
        (self.on_event)(event);
    }
}
