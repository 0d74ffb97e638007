//! Suites.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mcptest_score::{Environment, ScoreSuite};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::call::detached;
use crate::errors::{Failure, to_python};

/// The files of a suite, by absolute path.
type Files = BTreeMap<PathBuf, Vec<u8>>;
/// The variables that the files of a suite use. `None`: not set.
type Variables = BTreeMap<String, Option<String>>;

/// A suite that was loaded and checked.
///
/// `Suite.load(path)` reads a file, `Suite.parse(text)` takes YAML. A suite can be pickled: it
/// carries its files, the imported ones too, and the values of the environment variables that
/// they use (but no API keys of model providers), so that it is the same suite on another machine.
#[pyclass(frozen, name = "Suite", module = "mcptest")]
pub(crate) struct Suite {
    pub suite: ScoreSuite,
    files: Files,
    variables: Variables,
}

#[pymethods]
impl Suite {
    /// Loads a suite file with everything it imports.
    ///
    /// Raises `SuiteError` with all problems and their places.
    #[classmethod]
    fn load(_: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        detached(py, move || Self::read(path, Files::new(), None))
    }

    /// Loads a suite from YAML (or JSON) text.
    ///
    /// `name` is the file name in messages. Imports and `${CONFIG_DIR}` start from `directory`,
    /// by default the working directory.
    ///
    /// Raises `SuiteError` with all problems and their places.
    #[classmethod]
    #[pyo3(signature = (text, *, name = "suite.yml", directory = None))]
    fn parse(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        text: String,
        name: &str,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let path = directory.unwrap_or_default().join(name);
        detached(py, move || {
            let files = Files::from([(absolute(&path), text.into_bytes())]);
            Self::read(path, files, None)
        })
    }

    /// Loads a suite from the parts that `__reduce__` gives.
    #[classmethod]
    fn _restore(
        _: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        files: BTreeMap<PathBuf, Vec<u8>>,
        variables: BTreeMap<String, Option<String>>,
    ) -> PyResult<Self> {
        detached(py, move || Self::read(path, files, Some(variables)))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let suite = slf.get();
        let files: BTreeMap<&Path, Bound<'_, PyBytes>> = suite
            .files
            .iter()
            .map(|(path, bytes)| (path.as_path(), PyBytes::new(py, bytes)))
            .collect();
        let path = absolute(&suite.suite.loaded().suite.file);
        let parts = (path, files, &suite.variables).into_pyobject(py)?;
        Ok((slf.get_type().getattr("_restore")?, parts.into_any()))
    }

    fn __repr__(&self) -> String {
        let suite = &self.suite.loaded().suite;
        format!(
            "<mcptest.Suite {:?} with {} agent tests>",
            suite.name,
            suite.agent_tests().count()
        )
    }

    /// The name of the suite.
    #[getter]
    fn name(&self) -> &str {
        &self.suite.loaded().suite.name
    }

    /// The path that the suite was loaded from.
    #[getter]
    fn path(&self) -> &Path {
        &self.suite.loaded().suite.file
    }

    /// The names of the agent tests, in order.
    #[getter]
    fn tests(&self) -> Vec<&str> {
        let tests = self.suite.loaded().suite.agent_tests();
        tests.map(|test| test.name.as_str()).collect()
    }

    /// Problems that do not prevent the use of the suite, as a list of `Problem`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        to_python(py, &self.suite.loaded().warnings)
    }
}

impl Suite {
    /// Loads a suite. With `fixed` variables it is as it was elsewhere: no file is read, and no
    /// variable but the API keys of providers, which only serve to mask them.
    fn read(path: PathBuf, known: Files, fixed: Option<Variables>) -> Result<Self, Failure> {
        let files = RefCell::new(known);
        let variables = RefCell::new(Variables::new());
        let read_file = |path: &Path| {
            let absolute = absolute(path);
            if let Some(bytes) = files.borrow().get(&absolute) {
                return Ok(bytes.clone());
            }
            if fixed.is_some() {
                return Err(io::ErrorKind::NotFound.into());
            }
            let bytes = std::fs::read(path)?;
            files.borrow_mut().insert(absolute, bytes.clone());
            Ok(bytes)
        };
        let env = |name: &str| {
            if let Some(value) = fixed.as_ref().and_then(|fixed| fixed.get(name)) {
                return value.clone();
            }
            let value = std::env::var(name).ok();
            variables
                .borrow_mut()
                .insert(name.to_owned(), value.clone());
            value
        };
        let environment = environment().with_variables(&env);
        let suite = ScoreSuite::from_files(&path, &read_file, &environment)?;
        let files = files.into_inner();
        let variables = fixed.unwrap_or_else(|| used_in(&files, variables.into_inner()));
        Ok(Self {
            suite,
            files,
            variables,
        })
    }
}

/// The gates of this package, and the secrets of this process.
pub(crate) fn environment() -> Environment<'static> {
    Environment::new(mcptest_gates::GATES).with_secrets(mcptest_score::environment_secrets())
}

/// The variables that files refer to. The others are API keys.
fn used_in(files: &Files, mut variables: Variables) -> Variables {
    let texts: Vec<_> = files
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes))
        .collect();
    variables.retain(|name, _| {
        let reference = format!("${{{name}");
        texts.iter().any(|text| text.contains(&reference))
    });
    variables
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
