//! Scoring traces.

use std::io::Cursor;
use std::num::NonZeroUsize;

use mcptest_score::{Error, PartOf, ScoreError, ScoreSettings, TraceInput, to_json, trace_files};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyIterator, PyString};

use crate::call::detached;
use crate::errors::Failure;
use crate::suite::{Suite, environment};
use crate::traces::{Raised, Rows};

/// Scores traces; returns the JSON report.
#[pyfunction]
#[pyo3(signature = (suite, sources, *, name, test, summary, strict, threads))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn score<'py>(
    py: Python<'py>,
    suite: &Bound<'py, Suite>,
    sources: Vec<Bound<'py, PyAny>>,
    name: &str,
    test: Option<String>,
    summary: bool,
    strict: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let sources = Sources::new(sources, name)?;
    let settings = ScoreSettings {
        all_records: !summary,
        summary,
        ..settings(test, strict, threads)?
    };
    let suite = &suite.get().suite;
    let report = detached(py, || {
        sources.read(|inputs| to_json(&suite.report(inputs, &settings)?))
    })?;
    Ok(PyBytes::new(py, &report))
}

/// Scores a part of the traces; returns the partial result.
#[pyfunction]
#[pyo3(signature = (suite, sources, *, name, part, test, strict, threads))]
#[expect(clippy::too_many_arguments, reason = "they are named in Python")]
pub(crate) fn score_partial<'py>(
    py: Python<'py>,
    suite: &Bound<'py, Suite>,
    sources: Vec<Bound<'py, PyAny>>,
    name: &str,
    part: Option<(u32, u32)>,
    test: Option<String>,
    strict: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let part = match part {
        Some((number, of)) if number == 0 || number > of => {
            let message = "part=(3, 8) is the third of eight: from (1, 8) to (8, 8)";
            return Err(PyValueError::new_err(message));
        }
        Some((number, of)) => Some(PartOf { number, of }),
        None => None,
    };
    let sources = Sources::new(sources, name)?;
    let settings = settings(test, strict, threads)?;
    let suite = &suite.get().suite;
    let partial = detached(py, || {
        sources.read(|inputs| suite.partial(inputs, &settings, part))
    })?;
    Ok(PyBytes::new(py, &partial))
}

/// Merges partial results; returns the JSON report.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    partials: Vec<PyBackedBytes>,
) -> PyResult<Bound<'py, PyBytes>> {
    let report = detached(py, || {
        let named = (1..).zip(&partials).map(|(number, partial): (usize, _)| {
            let name = format!("partial result {number}");
            (name, partial.to_vec())
        });
        let report = mcptest_score::merge(named.collect(), &environment())?;
        Ok(to_json(&report)?)
    })?;
    Ok(PyBytes::new(py, &report))
}

fn settings(test: Option<String>, strict: bool, threads: Option<usize>) -> PyResult<ScoreSettings> {
    let threads = match threads.map(NonZeroUsize::new) {
        Some(None) => return Err(PyValueError::new_err("threads must be at least 1")),
        Some(threads) => threads,
        None => None,
    };
    Ok(ScoreSettings {
        test,
        strict,
        threads,
        ..ScoreSettings::default()
    })
}

/// Paths, contents of files, and iterators of rows, in order.
struct Sources(Vec<Source>);

enum Source {
    Path(String),
    Content(String, PyBackedBytes),
    Rows(String, Rows),
}

impl Sources {
    fn new(sources: Vec<Bound<'_, PyAny>>, name: &str) -> PyResult<Self> {
        let source = |given: Bound<'_, PyAny>| -> PyResult<Source> {
            if let Ok(path) = given.cast::<PyString>() {
                return Ok(Source::Path(path.to_str()?.to_owned()));
            }
            if let Ok(bytes) = given.cast::<PyBytes>() {
                return Ok(Source::Content(name.to_owned(), bytes.clone().into()));
            }
            if let Ok(iterator) = given.cast::<PyIterator>() {
                let rows = Rows::new(iterator.clone().unbind());
                return Ok(Source::Rows(name.to_owned(), rows));
            }
            let message = "a source is a path, bytes or an iterator";
            Err(PyTypeError::new_err(message))
        };
        let sources: PyResult<_> = sources.into_iter().map(source).collect();
        sources.map(Self)
    }

    /// Does work on the traces. If an iterator raised an exception, that is the failure.
    fn read<T>(
        self,
        work: impl FnOnce(Vec<TraceInput<'_>>) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let mut inputs = Vec::new();
        let mut raised = Vec::new();
        for source in self.0 {
            match source {
                Source::Path(path) => {
                    let files = trace_files(&[path.into()]).map_err(|error| Error::Score {
                        message: error.to_string(),
                        cause: ScoreError::File(error),
                    })?;
                    inputs.extend(files.into_iter().map(TraceInput::File));
                }
                Source::Content(name, bytes) => {
                    let input = Box::new(Cursor::new(bytes));
                    inputs.push(TraceInput::Stream {
                        name,
                        first: 0,
                        input,
                    });
                }
                Source::Rows(name, rows) => {
                    raised.push(rows.raised());
                    let input = Box::new(rows);
                    inputs.push(TraceInput::Rows { name, input });
                }
            }
        }
        work(inputs).map_err(|error| match raised.iter().find_map(Raised::take) {
            Some(exception) => Failure::Python(exception),
            None => error.into(),
        })
    }
}
