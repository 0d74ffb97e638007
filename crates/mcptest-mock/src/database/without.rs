//! The stand-in for the engine in a build without the feature `database`.

use serde_json::Value;

use super::outcome::CallFailure;
use super::written::{DatabaseSpec, RowsBound};

/// A database, which this build does not have.
#[derive(Debug, Clone)]
pub(crate) enum Database {}

/// The statements of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Statements;

/// The database of a session, which this build does not have.
#[derive(Debug)]
pub(crate) enum SessionDatabase {}

impl Database {
    pub(crate) fn new(_: &DatabaseSpec) -> Result<Self, Vec<(String, String)>> {
        let message = "this program was built without databases (feature `database`)";
        Err(vec![(String::new(), message.to_owned())])
    }

    pub(crate) fn in_file(self, _: std::path::PathBuf) -> Self {
        self
    }

    pub(crate) fn copy(&self) -> Result<SessionDatabase, CallFailure> {
        match *self {}
    }

    pub(crate) fn check(
        database: &SessionDatabase,
        _: &str,
        _: &[&str],
    ) -> Result<(), Vec<String>> {
        match *database {}
    }
}

impl Statements {
    pub(crate) fn new(_: Vec<(String, Option<RowsBound>)>) -> Self {
        Self
    }
}

impl SessionDatabase {
    pub(crate) fn call(&mut self, _: &Statements, _: &Value) -> Result<Value, CallFailure> {
        match *self {}
    }

    pub(crate) fn query(&mut self, _: &str, _: &Value) -> Result<Vec<Value>, CallFailure> {
        match *self {}
    }
}
