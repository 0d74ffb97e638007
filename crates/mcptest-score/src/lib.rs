//! Scores recorded traces: a suite and traces in, a report out. Nothing is printed.
//!
//! The command `score` and other programs use this crate. A [`ScoreSuite`] is a loaded suite. It
//! scores any [inputs](TraceInput) to a [`Report`], or to a partial result, which [`merge`] joins
//! with others. [`to_json`] gives the bytes of `--reporter json`.
//!
//! ```
//! use mcptest_score::{Environment, ScoreSettings, ScoreSuite, lines, merge, to_json};
//!
//! let text = "tests: [{name: t, tool_selection: {expected_tool: get, min_selection_rate: 1}}]";
//! let environment = Environment::new(mcptest_gates::GATES);
//! let suite = ScoreSuite::from_text("suite.yml".as_ref(), text, &environment)?;
//! let settings = ScoreSettings { summary: true, ..ScoreSettings::default() };
//! let traces = "{\"tool_calls\": [{\"name\": \"get\"}]}\n{\"tool_calls\": []}\n";
//! let report = suite.report(lines("traces", 0, traces.as_bytes()), &settings)?;
//! assert_eq!(u8::from(report.exit_code), 1);
//!
//! // The same in two parts, merged in any order.
//! let (first, second) = traces.split_once('\n').unwrap();
//! let part = |first_trace, text: &'static str| {
//!     suite.partial(lines("traces", first_trace, text.as_bytes()), &settings, None)
//! };
//! let parts = vec![
//!     ("b".to_owned(), part(1, "{\"tool_calls\": []}")?),
//!     ("a".to_owned(), part(0, "{\"tool_calls\": [{\"name\": \"get\"}]}")?),
//! ];
//! # let _ = (first, second);
//! let merged = merge(parts, &environment)?;
//! assert_eq!(to_json(&merged)?, to_json(&report)?);
//! # Ok::<(), mcptest_score::Error>(())
//! ```

mod report;
mod secrets;

use std::io::Read;
use std::path::Path;

use mcptest_gate_api::GateInfo;
use mcptest_json::visible::VisibleJson;
use mcptest_redact::redact::Redactor;
use mcptest_report::{RenderError, Report, Spool, Style};
use mcptest_suite::{LoadOptions, Loaded, Purpose, ReadFile, ResolvedSuite};
use mcptest_yaml::{Diagnostic, Diagnostics};

pub use mcptest_runner::{
    Filter, PartOf, Partial, PartialError, ScoreError, ScoreSettings, Scored, TraceFileError,
    TraceInput, trace_files,
};
pub use report::report_of;
pub use secrets::{environment_secrets, proxies};

/// An error from scoring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The suite has problems.
    #[error("{}", .0.render(false).trim_end())]
    Suite(Diagnostics),
    /// The traces cannot be scored. The message has no secrets.
    #[error("{message}")]
    Score {
        /// The message.
        message: String,
        /// The cause.
        cause: ScoreError,
    },
    /// Partial results cannot be merged.
    #[error(transparent)]
    Merge(#[from] PartialError),
    /// The records of runs cannot be stored.
    #[error("cannot store the records of runs: {0}")]
    Store(std::io::Error),
    /// The report cannot be written.
    #[error(transparent)]
    Report(#[from] RenderError),
}

/// The surroundings that a suite is loaded in.
pub struct Environment<'a> {
    gates: &'static [GateInfo],
    variables: &'a dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl Environment<'static> {
    /// The gates that suites may use, and no variables.
    #[must_use]
    pub fn new(gates: &'static [GateInfo]) -> Self {
        Self {
            gates,
            variables: &|_| None,
            secrets: Vec::new(),
        }
    }
}

impl<'a> Environment<'a> {
    /// The same with variables, such as those of the process.
    #[must_use]
    pub fn with_variables<'b>(
        self,
        variables: &'b dyn Fn(&str) -> Option<String>,
    ) -> Environment<'b> {
        Environment {
            gates: self.gates,
            variables,
            secrets: self.secrets,
        }
    }

    /// The same with values that are masked in all output, beside those of the suite.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Vec<String>) -> Self {
        self.secrets = secrets;
        self
    }

    /// Calls a function with the options for loading a suite.
    fn with_options<T>(&self, load: impl FnOnce(&LoadOptions<'_>) -> T) -> T {
        load(&LoadOptions {
            purpose: Purpose::Score,
            gates: self.gates,
            env: self.variables,
            check_model: &mcptest_runner::check_model,
            providers: &mcptest_runner::built_in_providers(),
            models: &[],
        })
    }
}

/// A suite that scores traces.
#[derive(Debug)]
pub struct ScoreSuite {
    loaded: Loaded,
    resolved: ResolvedSuite,
    redactor: Redactor,
}

impl ScoreSuite {
    /// Loads a suite file.
    ///
    /// # Errors
    /// All problems of the suite.
    pub fn from_path(path: &Path, environment: &Environment<'_>) -> Result<Self, Error> {
        environment.with_options(|options| {
            let loaded = mcptest_suite::load(path, options).map_err(Error::Suite)?;
            let resolved = ResolvedSuite::read(path, options).map_err(Error::Suite)?;
            Ok(Self::new(loaded, resolved, environment))
        })
    }

    /// Loads a suite from a string. `path` is its name in messages; imports are relative to its
    /// folder.
    ///
    /// # Errors
    /// All problems of the suite.
    pub fn from_text(
        path: &Path,
        text: &str,
        environment: &Environment<'_>,
    ) -> Result<Self, Error> {
        environment.with_options(|options| {
            let loaded = mcptest_suite::load_text(path, text, options).map_err(Error::Suite)?;
            let resolved = ResolvedSuite::read_text(path, text, options).map_err(Error::Suite)?;
            Ok(Self::new(loaded, resolved, environment))
        })
    }

    /// Loads a suite whose files are read by a function, which may have them in memory.
    ///
    /// # Errors
    /// All problems of the suite.
    pub fn from_files(
        path: &Path,
        read_file: ReadFile<'_>,
        environment: &Environment<'_>,
    ) -> Result<Self, Error> {
        environment.with_options(|options| {
            let loaded = mcptest_suite::load_from(path, options, read_file);
            let loaded = loaded.map_err(Error::Suite)?;
            let resolved = ResolvedSuite::read_from(path, options, read_file);
            Ok(Self::new(
                loaded,
                resolved.map_err(Error::Suite)?,
                environment,
            ))
        })
    }

    fn new(loaded: Loaded, resolved: ResolvedSuite, environment: &Environment<'_>) -> Self {
        let own = loaded.suite.secrets.iter().cloned();
        let redactor = Redactor::new(own.chain(environment.secrets.iter().cloned()))
            .keeping(loaded.suite.canaries());
        Self {
            loaded,
            resolved,
            redactor,
        }
    }

    /// The suite.
    #[must_use]
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The redactor of the suite's secrets.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Scores traces.
    ///
    /// # Errors
    /// Traces that cannot be scored.
    pub fn report(
        &self,
        inputs: Vec<TraceInput<'_>>,
        settings: &ScoreSettings,
    ) -> Result<Report, Error> {
        self.report_with_warnings(inputs, settings)
            .map(|(report, _)| report)
    }

    /// Scores traces. The warnings are about tools that the suite names and no trace offers.
    ///
    /// # Errors
    /// Traces that cannot be scored.
    pub fn report_with_warnings(
        &self,
        inputs: Vec<TraceInput<'_>>,
        settings: &ScoreSettings,
    ) -> Result<(Report, Vec<Diagnostic>), Error> {
        let mut spool = Spool::new();
        let mut store = |text: &[u8]| spool.append(text);
        let scored = mcptest_runner::score_inputs(
            &self.loaded.suite,
            inputs,
            settings,
            &self.redactor,
            &mut store,
        );
        let scored = scored.map_err(|error| self.score_error(error))?;
        let store = spool.into_store().map_err(Error::Store)?;
        Ok(report_of(scored, store, settings.summary, &self.redactor))
    }

    /// Scores a part of all traces. `part` is its place among all of them, if the names of the
    /// inputs do not show it. The bytes are for [`merge`].
    ///
    /// # Errors
    /// Traces that cannot be scored.
    pub fn partial(
        &self,
        inputs: Vec<TraceInput<'_>>,
        settings: &ScoreSettings,
        part: Option<PartOf>,
    ) -> Result<Vec<u8>, Error> {
        let (suite, resolved) = (&self.loaded.suite, self.resolved.clone());
        mcptest_runner::score_partial(suite, resolved, inputs, settings, part)
            .map(|partial| partial.to_json(&self.redactor))
            .map_err(|error| self.score_error(error))
    }

    fn score_error(&self, cause: ScoreError) -> Error {
        let message = self.redactor.text(&cause.to_string());
        Error::Score { message, cause }
    }
}

/// Merges partial results, each with a name for messages, in any order. The report is that of all
/// traces with `summary` set.
///
/// # Errors
/// Partial results that do not belong together, are incomplete or damaged.
pub fn merge(
    partials: Vec<(String, Vec<u8>)>,
    environment: &Environment<'_>,
) -> Result<Report, Error> {
    let read = |(name, text): (String, Vec<u8>)| {
        let partial = Partial::read(&name, &text)?;
        Ok((name, partial))
    };
    let partials: Result<Vec<_>, PartialError> = partials.into_iter().map(read).collect();
    let load = |resolved: &ResolvedSuite| {
        let loaded = environment.with_options(|options| resolved.load(options));
        match loaded {
            Ok(loaded) => Ok(loaded.suite),
            Err(problems) => Err(problems.render(false)),
        }
    };
    let scored = mcptest_runner::merge_partials(partials?, load)?;
    let redactor = Redactor::new(environment.secrets.iter().cloned());
    let store = Spool::new().into_store().map_err(Error::Store)?;
    Ok(report_of(scored, store, true, &redactor).0)
}

/// The bytes that `--reporter json` writes.
///
/// # Errors
/// Records that cannot be read.
pub fn to_json(report: &Report) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut visible = VisibleJson::new(&mut out);
    mcptest_report::render("json", report, Style::default(), &mut visible)?;
    Ok(out)
}

/// One input with the content of a trace file. `first` is the number of traces with the same name
/// before it, in other partial results.
pub fn lines<'a>(name: &str, first: u64, input: impl Read + 'a) -> Vec<TraceInput<'a>> {
    vec![TraceInput::Stream {
        name: name.to_owned(),
        first,
        input: Box::new(input),
    }]
}
