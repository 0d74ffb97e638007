//! State: tables that a manifest declares, and tools that are SQL statements.
//!
//! The schema and the rows are checked when the manifest is loaded, and become an image. Every
//! session works on its own copy of the image, which is made when the session first needs it, so
//! nothing is shared between clients. The engine is SQLite, in memory, behind an authorizer: no
//! files, no `ATTACH`, no `PRAGMA`, no extensions, no random numbers.

mod outcome;
#[cfg(feature = "database")]
mod sqlite;
#[cfg(not(feature = "database"))]
#[path = "database/without.rs"]
mod sqlite;
mod written;

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub(crate) use outcome::CallFailure;
pub(crate) use sqlite::{Database, SessionDatabase, Statements};
pub(crate) use written::rows_bound;
pub use written::{DatabaseSpec, ExpectRowsSpec, RowsBound, SqlSpec};

use crate::template::Template;

/// A tool that is one or several SQL statements.
#[derive(Debug, Clone)]
pub(crate) struct SqlTool {
    /// The statements, in order.
    pub(crate) statements: Statements,
    /// The text of an error result, as a JSON string.
    pub(crate) error: Option<Template>,
}

impl SqlTool {
    /// Executes a call: all statements, or none of them.
    pub(crate) fn call(&self, state: &SessionState, image: &Database, arguments: &Value) -> Value {
        let result = state.with(image, |database| database.call(&self.statements, arguments));
        let failure = match result {
            Ok(content) => {
                let text = content.to_string();
                return serde_json::json!({
                    "content": [{"type": "text", "text": text}],
                    "structuredContent": content,
                });
            }
            Err(failure) => failure,
        };
        let text = match &self.error {
            Some(template) => {
                let mut json = Vec::new();
                template.render(arguments, &mut json);
                serde_json::from_slice(&json).unwrap_or_default()
            }
            None => Value::String(failure.to_string()),
        };
        serde_json::json!({"content": [{"type": "text", "text": text}], "isError": true})
    }
}

/// The database of one session; a copy of the image is made when it is first needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionState(Arc<Mutex<Option<SessionDatabase>>>);

impl SessionState {
    /// Works with the database.
    pub(crate) fn with<T>(
        &self,
        image: &Database,
        work: impl FnOnce(&mut SessionDatabase) -> Result<T, CallFailure>,
    ) -> Result<T, CallFailure> {
        // A panic leaves no open transaction: SQLite rolls it back with its guard.
        let mut database = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *database {
            Some(database) => work(database),
            empty => work(empty.insert(image.copy()?)),
        }
    }
}
