//! The engine: SQLite in memory.

mod guard;
mod image;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::{Batch, Connection, ErrorCode, OpenFlags, Statement, TransactionBehavior};
use serde_json::{Map, Value, json};

use self::guard::{Guard, Mode};
use self::values::{bind, row_value};
use super::outcome::CallFailure;
use super::written::RowsBound;

/// The most rows of a result.
const MAX_ROWS: usize = 1000;

/// The most bytes of a result, as an estimate of its JSON text.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// The most bytes of a string or a blob.
const MAX_VALUE_BYTES: i32 = 1 << 20;

/// The most pages of a database (of 4 KiB each).
const MAX_PAGES: u32 = 16 << 8;

/// The time to wait for another process that uses the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The checked tables and rows of a manifest. Sessions work on copies of it.
#[derive(Clone)]
pub(crate) struct Database {
    image: Arc<[u8]>,
    /// The file that sessions share, in place of copies.
    file: Option<PathBuf>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Database({} bytes)", self.image.len())
    }
}

/// The checked statements of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Statements(Vec<(String, Option<RowsBound>)>);

/// The database of one session.
#[derive(Debug)]
pub(crate) struct SessionDatabase {
    connection: Connection,
    guard: Guard,
}

impl Database {
    /// Keeps the state of all sessions, also those of other processes, in one file.
    pub(crate) fn in_file(self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// Copies the image for a session, or opens the file that sessions share.
    pub(crate) fn copy(&self) -> Result<SessionDatabase, CallFailure> {
        if let Some(file) = &self.file {
            let message = |error: std::io::Error| {
                CallFailure::Rejected(format!("cannot use {}: {error}", file.display()))
            };
            self.create(file).map_err(message)?;
            return SessionDatabase::open(file);
        }
        let mut database = SessionDatabase::empty()?;
        let copied = database.connection.deserialize_read_exact(
            "main",
            &*self.image,
            self.image.len(),
            false,
        );
        copied.map_err(|error| database.guard.failure(&error))?;
        database.limit_size()?;
        Ok(database)
    }

    /// Creates the file with the image, unless another process has done so.
    fn create(&self, file: &Path) -> std::io::Result<()> {
        if file.exists() {
            return Ok(());
        }
        // Complete when it appears under its name.
        let beside = file.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&beside, &self.image)?;
        let linked = std::fs::hard_link(&beside, file);
        std::fs::remove_file(&beside)?;
        match linked {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    }

    /// Checks one statement of a tool, and that its parameters are properties of the arguments.
    pub(crate) fn check(
        database: &SessionDatabase,
        sql: &str,
        properties: &[&str],
    ) -> Result<(), Vec<String>> {
        let mut batch = Batch::new(&database.connection, sql);
        let one = |text: String| vec![text];
        let statement = database.guard.in_mode(Mode::Tool, || batch.next());
        let statement = statement
            .map_err(|error| one(database.guard.message(&error)))?
            .ok_or_else(|| one("there is no statement".to_owned()))?;
        let mut problems = Vec::new();
        for index in 1..=statement.parameter_count() {
            let name = statement.parameter_name(index).unwrap_or("?");
            let Some(property) = name.strip_prefix(':') else {
                problems.push(format!("`{name}` has no name: write `:name`"));
                continue;
            };
            if !properties.contains(&property) {
                let near = mcptest_yaml::suggest(property, properties.iter().copied());
                problems.push(match near {
                    Some(near) => format!(
                        "`{name}` is not a property of `input_schema`; did you mean `:{near}`?"
                    ),
                    None => format!("`{name}` is not a property of `input_schema`"),
                });
            }
        }
        problems.extend(repeated_column(&statement));
        drop(statement);
        let rest = database.guard.in_mode(Mode::Tool, || batch.next());
        if !matches!(rest, Ok(None)) {
            problems
                .push("a string is one statement: write several statements as a list".to_owned());
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// A problem if two columns of a result have the same name: a row is an object.
fn repeated_column(statement: &Statement<'_>) -> Option<String> {
    let names = statement.column_names();
    let repeated = names
        .iter()
        .enumerate()
        .find(|(index, name)| names[..*index].contains(name));
    repeated.map(|(_, name)| {
        format!("two columns of the result are named `{name}`: rename one with `AS`")
    })
}

impl Statements {
    pub(crate) fn new(statements: Vec<(String, Option<RowsBound>)>) -> Self {
        Self(statements)
    }
}

impl SessionDatabase {
    /// A database without tables.
    fn empty() -> Result<Self, CallFailure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_MEMORY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::guarded(Connection::open_in_memory_with_flags(flags))
    }

    /// A database in a file.
    fn open(file: &Path) -> Result<Self, CallFailure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).and_then(|connection| {
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        });
        Self::guarded(connection)
    }

    fn guarded(connection: Result<Connection, rusqlite::Error>) -> Result<Self, CallFailure> {
        let connection = connection.map_err(|error| CallFailure::Rejected(error.to_string()))?;
        let guard = Guard::default();
        guard
            .install(&connection, MAX_VALUE_BYTES)
            .map_err(|error| CallFailure::Rejected(error.to_string()))?;
        let database = Self { connection, guard };
        database.limit_size()?;
        Ok(database)
    }

    fn limit_size(&self) -> Result<(), CallFailure> {
        let pragma = format!("PRAGMA max_page_count = {MAX_PAGES}");
        let set = self.connection.query_row(&pragma, [], |_| Ok(()));
        set.map_err(|error| self.guard.failure(&error))
    }

    /// Executes the statements of a tool in one transaction, and returns the structured content
    /// of the result.
    pub(crate) fn call(
        &mut self,
        statements: &Statements,
        arguments: &Value,
    ) -> Result<Value, CallFailure> {
        let Self { connection, guard } = self;
        guard.start();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| guard.failure(&error))?;
        let mut result = None;
        let mut changed = 0;
        for (sql, bound) in &statements.0 {
            let mut statement = guard
                .in_mode(Mode::Tool, || transaction.prepare(sql))
                .map_err(|error| guard.failure(&error))?;
            bind(&mut statement, arguments).map_err(|error| guard.failure(&error))?;
            let returns_rows = statement.column_count() > 0;
            let rows = collect(&mut statement, guard)?;
            drop(statement);
            let count = if returns_rows {
                rows.len() as u64
            } else {
                transaction.changes()
            };
            if let Some(bound) = bound.filter(|bound| !bound.allows(count)) {
                return Err(CallFailure::Rows {
                    expected: bound.to_string(),
                    found: count,
                });
            }
            if returns_rows {
                result = Some(rows);
            } else {
                changed += count;
            }
        }
        transaction
            .commit()
            .map_err(|error| guard.failure(&error))?;
        Ok(match result {
            Some(rows) => json!({"rows": rows}),
            None => json!({"rows": [], "changed": changed}),
        })
    }

    /// The rows of a query that changes nothing.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        arguments: &Value,
    ) -> Result<Vec<Value>, CallFailure> {
        let Self { connection, guard } = self;
        guard.start();
        let mut batch = Batch::new(connection, sql);
        let statement = guard.in_mode(Mode::Query, || batch.next());
        let statement = statement.map_err(|error| guard.failure(&error))?;
        let mut statement = statement.ok_or(CallFailure::NotAQuery)?;
        if !statement.readonly() || statement.column_count() == 0 {
            return Err(CallFailure::NotAQuery);
        }
        if let Some(problem) = repeated_column(&statement) {
            return Err(CallFailure::Rejected(problem));
        }
        bind(&mut statement, arguments).map_err(|error| guard.failure(&error))?;
        let rows = collect(&mut statement, guard)?;
        drop(statement);
        match guard.in_mode(Mode::Query, || batch.next()) {
            Ok(None) => Ok(rows),
            _ => Err(CallFailure::Rejected("write one statement".to_owned())),
        }
    }
}

/// Executes a statement and collects its rows.
fn collect(statement: &mut Statement<'_>, guard: &Guard) -> Result<Vec<Value>, CallFailure> {
    let names: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut rows = statement.raw_query();
    let (mut collected, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(|error| guard.failure(&error))? {
        if collected.len() == MAX_ROWS {
            return Err(CallFailure::TooLarge("it has more than 1000 rows"));
        }
        let mut object = Map::new();
        for (index, name) in names.iter().enumerate() {
            let value = row.get_ref(index).map_err(|error| guard.failure(&error))?;
            let (value, length) = row_value(value);
            bytes += name.len() + length;
            object.insert(name.clone(), value);
        }
        if bytes > MAX_RESULT_BYTES {
            return Err(CallFailure::TooLarge("it has more than 1 MiB"));
        }
        collected.push(Value::Object(object));
    }
    Ok(collected)
}

/// Returns true if the guard stopped a statement.
fn is_interrupted(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted)
}
