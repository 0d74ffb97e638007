//! From the written tables and rows to an image.

use mcptest_yaml::suggest;
use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::{Batch, params_from_iter};
use serde_json::{Map, Value};

use super::guard::Mode;
use super::values::Parameter;
use super::{Database, SessionDatabase};
use crate::database::written::DatabaseSpec;
use crate::template::escape_token;

/// The place of a problem below `database`, and a message.
type Problem = (String, String);

impl Database {
    /// Creates the tables and inserts the rows.
    ///
    /// # Errors
    /// All problems; those of the schema hide those of the rows.
    pub(crate) fn new(spec: &DatabaseSpec) -> Result<Self, Vec<Problem>> {
        let problem = |at: &str, message: String| vec![(at.to_owned(), message)];
        let database = SessionDatabase::empty().map_err(|error| problem("", error.to_string()))?;
        database
            .define(&spec.schema)
            .map_err(|message| problem("/schema", message))?;
        let run = |sql: &str| {
            let done = database.connection.execute_batch(sql);
            done.map_err(|error| problem("/rows", database.guard.message(&error)))
        };
        // The rows are the state at the start, not changes of it.
        let without_triggers = database
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false);
        without_triggers.map_err(|error| problem("", database.guard.message(&error)))?;
        // Rows may refer to rows that follow.
        run("BEGIN; PRAGMA defer_foreign_keys = ON")?;
        let mut problems = Vec::new();
        for (table, rows) in &spec.rows {
            database.fill(table, rows, &mut problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        run("COMMIT").map_err(|_| database.dangling())?;
        let image = database.connection.serialize("main");
        let image = image.map_err(|error| problem("", database.guard.message(&error)))?;
        Ok(Self {
            image: image.to_vec().into(),
            file: None,
        })
    }
}

impl SessionDatabase {
    fn define(&self, schema: &str) -> Result<(), String> {
        let mut batch = Batch::new(&self.connection, schema);
        let mut count = 0;
        loop {
            let statement = self.guard.in_mode(Mode::Schema, || batch.next());
            let Some(mut statement) = statement.map_err(|error| self.guard.message(&error))? else {
                break;
            };
            self.guard.start();
            let executed = statement.execute([]);
            executed.map_err(|error| self.guard.message(&error))?;
            count += 1;
        }
        if count == 0 {
            return Err("the schema creates nothing".to_owned());
        }
        Ok(())
    }

    /// Inserts the rows of a table.
    fn fill(&self, table: &str, rows: &Value, problems: &mut Vec<Problem>) {
        let at = format!("/rows/{}", escape_token(table));
        let tables = self.names("SELECT name FROM sqlite_master WHERE type = 'table'", "");
        if !tables.iter().any(|name| name == table) {
            let message = format!("the schema has no table `{table}`");
            problems.push((at, similar(message, table, &tables)));
            return;
        }
        let columns = self.names("SELECT name FROM pragma_table_info(:table)", table);
        for (index, row) in rows.as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}/{index}");
            let nothing = Map::new();
            let row = row.as_object().unwrap_or(&nothing);
            let known = problems.len();
            for column in row.keys().filter(|column| !columns.contains(column)) {
                let message = format!("table `{table}` has no column `{column}`");
                problems.push((
                    format!("{at}/{}", escape_token(column)),
                    similar(message, column, &columns),
                ));
            }
            if problems.len() > known {
                continue;
            }
            let sql = insert(table, row);
            let values = params_from_iter(row.values().map(Parameter));
            if let Err(error) = self.connection.execute(&sql, values) {
                problems.push((at, self.guard.message(&error)));
            }
        }
    }

    /// The first column of a query about the schema.
    fn names(&self, sql: &str, table: &str) -> Vec<String> {
        let Ok(mut statement) = self.connection.prepare(sql) else {
            return Vec::new();
        };
        if statement.parameter_count() > 0 && statement.raw_bind_parameter(1, table).is_err() {
            return Vec::new();
        }
        let mut rows = statement.raw_query();
        let mut names = Vec::new();
        while let Ok(Some(row)) = rows.next() {
            names.extend(row.get::<_, String>(0));
        }
        names
    }

    /// The rows that refer to rows that do not exist.
    fn dangling(&self) -> Vec<Problem> {
        let tables = self.names("SELECT \"table\" FROM pragma_foreign_key_check", "");
        let table = tables.first().map_or("", String::as_str);
        let message = format!("a row of table `{table}` refers to a row that does not exist");
        vec![(format!("/rows/{}", escape_token(table)), message)]
    }
}

fn similar(message: String, name: &str, known: &[String]) -> String {
    match suggest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

fn insert(table: &str, row: &Map<String, Value>) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    if row.is_empty() {
        return format!("INSERT INTO {} DEFAULT VALUES", quoted(table));
    }
    let columns: Vec<String> = row.keys().map(|name| quoted(name)).collect();
    let places = vec!["?"; row.len()];
    format!(
        "INSERT INTO {} ({}) VALUES ({})",
        quoted(table),
        columns.join(", "),
        places.join(", ")
    )
}
