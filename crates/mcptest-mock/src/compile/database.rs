//! `database:`, and tools that are statements on it.

use serde_json::Value;

use super::Compiler;
use crate::database::{
    Database, DatabaseSpec, RowsBound, SessionDatabase, SqlTool, Statements, rows_bound,
};
use crate::manifest::ToolSpec;
use crate::template::{Builder, Mode};

/// The database that statements are checked with.
#[derive(Default)]
pub(super) enum Tables {
    /// The manifest has none.
    #[default]
    None,
    /// It is invalid, which is reported. Statements are not checked.
    Invalid,
    /// A copy.
    Valid(Box<SessionDatabase>),
}

impl Compiler {
    /// Creates the tables and rows of a manifest.
    pub(super) fn database(&mut self, spec: Option<&DatabaseSpec>) -> Option<Database> {
        let at = "/mock_server/database";
        let spec = spec?;
        self.tables = Tables::Invalid;
        match Database::new(spec) {
            Ok(database) => {
                match database.copy() {
                    Ok(copy) => self.tables = Tables::Valid(Box::new(copy)),
                    Err(error) => self.problem(at, error.to_string()),
                }
                Some(database)
            }
            Err(problems) => {
                for (pointer, message) in problems {
                    self.problem(format!("{at}{pointer}"), message);
                }
                None
            }
        }
    }

    /// The statements of a tool.
    pub(super) fn sql(&mut self, spec: &ToolSpec, at: &str) -> Option<SqlTool> {
        let Some(sql) = &spec.sql else {
            let stray = [
                ("expect_rows", spec.expect_rows.is_some()),
                ("error", spec.error.is_some()),
            ];
            for (key, _) in stray.into_iter().filter(|(_, stray)| *stray) {
                self.problem(format!("{at}/{key}"), format!("`{key}` needs `sql`"));
            }
            return None;
        };
        let answers = [
            ("response", spec.response.is_some()),
            ("responses", !spec.responses.is_empty()),
        ];
        for (key, _) in answers.into_iter().filter(|(_, written)| *written) {
            self.problem(
                format!("{at}/{key}"),
                "the rows of `sql` are the answer: either `sql` or an answer, not both",
            );
        }
        let properties = spec.input_schema.as_ref();
        let properties = properties.and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object).into_iter().flatten();
        let properties: Vec<&str> = properties.map(|(name, _)| name.as_str()).collect();
        let place = |index: usize| match sql.is_list {
            true => format!("{at}/sql/{index}"),
            false => format!("{at}/sql"),
        };
        let mut problems = Vec::new();
        for (index, statement) in sql.statements.iter().enumerate() {
            match &self.tables {
                Tables::Invalid => {}
                Tables::None => {
                    problems.push((place(index), "`sql` needs a `database`".to_owned()));
                    break;
                }
                Tables::Valid(tables) => {
                    let found = Database::check(tables, statement, &properties);
                    let found = found.err().into_iter().flatten();
                    problems.extend(found.map(|message| (place(index), message)));
                }
            }
        }
        for (pointer, message) in problems {
            self.problem(pointer, message);
        }
        let bounds = self.bounds(spec, sql.statements.len(), at);
        let error = spec.error.as_ref().map(|text| {
            let mut builder = Builder::default();
            let text = Value::String(text.clone());
            builder.value(&text, Mode::Text, &format!("{at}/error"));
            self.finish(builder)
        });
        let statements = sql.statements.iter().cloned().zip(bounds).collect();
        Some(SqlTool {
            statements: Statements::new(statements),
            error,
        })
    }

    /// The expected numbers of rows, one for each statement.
    fn bounds(&mut self, spec: &ToolSpec, count: usize, at: &str) -> Vec<Option<RowsBound>> {
        let at = format!("{at}/expect_rows");
        let written = match spec.expect_rows.as_ref().map(|bounds| &bounds.0) {
            None => return vec![None; count],
            Some(Value::Array(bounds)) => {
                if bounds.len() != count {
                    let message = format!(
                        "{} numbers of rows for {count} statements: write one for each, `null` \
                         for any",
                        bounds.len()
                    );
                    self.problem(&at, message);
                }
                let places = (0..).map(|index: usize| format!("{at}/{index}"));
                bounds.iter().zip(places).collect::<Vec<_>>()
            }
            Some(bound) => {
                if count > 1 {
                    self.problem(
                        &at,
                        "with several statements, write a list with a number of rows for each",
                    );
                }
                vec![(bound, at.clone())]
            }
        };
        let mut bounds = Vec::new();
        for (bound, at) in written {
            match rows_bound(bound) {
                Ok(bound) => bounds.push(bound),
                Err(message) => {
                    self.problem(at, message);
                    bounds.push(None);
                }
            }
        }
        bounds.resize(count, None);
        bounds
    }
}
