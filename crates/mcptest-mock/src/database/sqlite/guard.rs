//! The limits of statements: what they may do, and for how long.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Error};

use super::is_interrupted;
use crate::database::outcome::CallFailure;

/// The steps of SQLite's virtual machine between two checks.
const STEPS_PER_CHECK: i32 = 1000;

/// The most steps of one call. Steps are counted, not time, so that the same call always has the
/// same outcome. They take about a second.
const MAX_STEPS: u64 = 50_000_000;

/// The functions that would make answers differ from run to run, or reach outside.
const DENIED_FUNCTIONS: [&str; 7] = [
    "random",
    "randomblob",
    "current_date",
    "current_time",
    "current_timestamp",
    "load_extension",
    "fts3_tokenizer",
];

/// The statements that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mode {
    /// Our own: everything.
    Own = 0,
    /// The schema of a manifest: definitions and changes.
    Schema = 1,
    /// A tool: queries and changes.
    Tool = 2,
    /// A query.
    Query = 3,
}

impl Mode {
    fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Own,
            1 => Self::Schema,
            2 => Self::Tool,
            _ => Self::Query,
        }
    }

    /// The reason why an action is not allowed.
    fn denies(self, action: &AuthAction<'_>) -> Option<String> {
        let changes = self != Self::Query;
        let defines = self == Self::Schema;
        let allowed = match action {
            _ if self == Self::Own => true,
            AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
            AuthAction::Function { function_name } => {
                let name = function_name.to_ascii_lowercase();
                if DENIED_FUNCTIONS.contains(&name.as_str()) {
                    return Some(format!("the function `{name}` is not available in a mock"));
                }
                true
            }
            AuthAction::Insert { .. } | AuthAction::Update { .. } | AuthAction::Delete { .. } => {
                changes
            }
            AuthAction::CreateTable { .. }
            | AuthAction::CreateIndex { .. }
            | AuthAction::CreateView { .. }
            | AuthAction::CreateTrigger { .. }
            | AuthAction::Reindex { .. } => defines,
            AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => {
                return Some(
                    "transactions are not available: every call is one transaction".to_owned(),
                );
            }
            _ => false,
        };
        let denied = match self {
            Self::Schema => "a schema can only create tables, indexes, views and triggers",
            Self::Query => "only a query that changes nothing is allowed here",
            _ => "a tool can only query, insert, update and delete rows",
        };
        (!allowed).then(|| denied.to_owned())
    }
}

/// The limits of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard(Arc<Limits>);

#[derive(Debug, Default)]
struct Limits {
    mode: AtomicU8,
    steps: AtomicU64,
    /// The reason for the last refusal.
    denied: Mutex<Option<String>>,
}

impl Guard {
    /// Sets the limits of a connection.
    pub(super) fn install(&self, connection: &Connection, max_value: i32) -> Result<(), Error> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_value)?;
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        let limits = Arc::clone(&self.0);
        connection.progress_handler(
            STEPS_PER_CHECK,
            Some(move || {
                let step = u64::from(STEPS_PER_CHECK.unsigned_abs());
                limits.steps.fetch_add(step, Ordering::Relaxed) >= MAX_STEPS
            }),
        )?;
        let limits = Arc::clone(&self.0);
        let authorizer = Some(move |context: AuthContext<'_>| {
            let mode = Mode::from_number(limits.mode.load(Ordering::Relaxed));
            match mode.denies(&context.action) {
                None => Authorization::Allow,
                Some(reason) => {
                    let mut denied = limits.denied.lock().unwrap_or_else(PoisonError::into_inner);
                    denied.get_or_insert(reason);
                    Authorization::Deny
                }
            }
        });
        connection.authorizer(authorizer)
    }

    /// Starts counting the steps of a call.
    pub(super) fn start(&self) {
        self.0.steps.store(0, Ordering::Relaxed);
    }

    /// Prepares statements under the rules of a mode.
    pub(super) fn in_mode<T>(&self, mode: Mode, prepare: impl FnOnce() -> T) -> T {
        self.take_denied();
        self.0.mode.store(mode as u8, Ordering::Relaxed);
        let prepared = prepare();
        self.0.mode.store(Mode::Own as u8, Ordering::Relaxed);
        prepared
    }

    fn take_denied(&self) -> Option<String> {
        let mut denied = self.0.denied.lock().unwrap_or_else(PoisonError::into_inner);
        denied.take()
    }

    /// The words for an error of SQLite.
    pub(super) fn message(&self, error: &Error) -> String {
        if let Some(denied) = self.take_denied() {
            return denied;
        }
        match error {
            Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg)) => msg.clone(),
            other => other.to_string(),
        }
    }

    /// The failure of a call.
    pub(super) fn failure(&self, error: &Error) -> CallFailure {
        if is_interrupted(error) {
            CallFailure::TooLong
        } else {
            CallFailure::Rejected(self.message(error))
        }
    }
}
