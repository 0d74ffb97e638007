//! Errors of the library as exceptions of the package.

use mcptest_score::{Error, ScoreError, TraceFileError};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use pyo3::prelude::*;

/// The Python module that defines the exceptions.
const MODULE: &str = "mcptest._errors";

/// The reason why a call failed.
pub(crate) enum Failure {
    /// Problems of a suite.
    Suite(Diagnostics),
    /// A trace, or a file of traces, cannot be scored.
    Traces {
        message: String,
        file: Option<String>,
        line: Option<u64>,
        column: Option<u64>,
    },
    /// A partial result cannot be merged.
    Partial(String),
    /// An exception of the caller's own code, which gave the traces.
    Python(PyErr),
    /// A panic, with its message.
    Panic(String),
}

impl Failure {
    /// The exception to raise.
    pub fn into_exception(self, py: Python<'_>) -> PyErr {
        match self.exception(py) {
            Ok(exception) | Err(exception) => exception,
        }
    }

    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let module = py.import(MODULE)?;
        let made = match self {
            Self::Suite(problems) => {
                let list = to_python(py, &problems)?;
                let message = problems.render(false);
                module
                    .getattr("SuiteError")?
                    .call1((message.trim_end(), list))?
            }
            Self::Traces {
                message,
                file,
                line,
                column,
            } => module
                .getattr("TraceError")?
                .call1((message, file, line, column))?,
            Self::Partial(message) => module.getattr("PartialError")?.call1((message,))?,
            Self::Python(exception) => return Ok(exception),
            Self::Panic(message) => module.getattr("InternalError")?.call1((message,))?,
        };
        Ok(PyErr::from_value(made))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let place = match error {
            Error::Suite(problems) => return Self::Suite(problems),
            Error::Merge(_) => return Self::Partial(message),
            Error::Score {
                cause: ScoreError::File(cause),
                ..
            } => place_of(cause),
            _ => Place::default(),
        };
        Self::Traces {
            message,
            file: place.file,
            line: place.line.map(|line| line as u64),
            column: place.column.map(|column| column as u64),
        }
    }
}

/// A place in traces, as far as it is known.
#[derive(Default)]
struct Place {
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
}

fn place_of(error: TraceFileError) -> Place {
    let (file, line, column) = match error {
        TraceFileError::NotTraces { name, error } => (name, Some(error.line), Some(error.column)),
        TraceFileError::NotText { name, line } => (name, Some(line), None),
        TraceFileError::Unreadable { name, .. } | TraceFileError::EmptyFolder { name } => {
            (name, None, None)
        }
        _ => return Place::default(),
    };
    Place {
        file: Some(file),
        line,
        column,
    }
}

/// Problems as a list of `mcptest.Problem`.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    problems: &Diagnostics,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let problem = py.import(MODULE)?.getattr("Problem")?;
    let one = |it: &Diagnostic| {
        let (file, position) = it.location();
        let severity = match it.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        problem.call1((
            severity,
            it.message.as_str(),
            file,
            position.map(|(line, _)| line),
            position.map(|(_, column)| column),
            it.label.as_deref(),
            it.help.clone(),
        ))
    };
    problems.0.iter().map(one).collect()
}
