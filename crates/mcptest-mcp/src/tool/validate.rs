//! `validate`: checks suites without running them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::result_size::{self, RemainingSize};

pub(super) struct Validate;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Suite file or folder of suites, below the root folder. Default: mcptest.yaml or mcptest.yml.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1024), example = &"mcptest.yml")]
    suite: Option<String>,
    /// Purpose of the check: `run`, or `score` for a suite that only judges recorded traces.
    #[serde(default)]
    #[schemars(example = &"run")]
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Purpose {
    #[default]
    Run,
    Score,
}

/// The problems of suites, and their tests.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// True if there is no error. Warnings are allowed.
    valid: bool,
    /// The number of errors.
    errors: u64,
    /// The number of warnings.
    warnings: u64,
    /// The problems, errors first.
    diagnostics: Vec<Problem>,
    /// The tests that `run` would make.
    tests: Vec<Test>,
    /// The number of entries that did not fit.
    omitted: u64,
    /// The part that was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    notice: Option<String>,
}

/// A problem of a suite, with its place.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Problem {
    /// error or warning.
    severity: String,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    line: Option<u64>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    column: Option<u64>,
    /// The problem.
    message: String,
    /// The form that is expected at this place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    label: Option<String>,
    /// The ways to repair it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    help: Vec<String>,
}

/// A test of a suite.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Test {
    /// Its name.
    name: String,
    /// agent, tool or tool_quality.
    kind: String,
    /// The number of runs.
    runs: u64,
    /// The suite file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    file: Option<String>,
    /// The model, of an agent test.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    model: Option<String>,
}

/// The output of `mcptest validate --format json`.
#[derive(Debug, Deserialize)]
struct Printed {
    valid: bool,
    diagnostics: Vec<Problem>,
    tests: Vec<Test>,
}

impl Tool for Validate {
    const NAME: &'static str = "validate";
    const TITLE: &'static str = "Validate test suites";
    const DESCRIPTION: &'static str = "Check mcptest suite files (YAML) without running them. Use it \
        after every edit of a suite. Returns `valid`, every problem with file, line, column, message \
        and a repair hint, and the list of tests. Nothing is started or written.";
    type Args = Args;
    type Output = Output;

    fn effects(_: bool) -> Effects {
        Effects::Reads
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Output, ToolError> {
        let mut argv = vec![
            "validate".to_owned(),
            "--format".to_owned(),
            "json".to_owned(),
        ];
        if let Purpose::Score = args.purpose {
            argv.extend(["--for", "score"].map(String::from));
        }
        if let Some(suite) = &args.suite {
            argv.push(call.root.find(suite)?);
        }
        let finished = call.mcptest(argv).await?;
        let Ok(printed) = serde_json::from_str::<Printed>(&finished.stdout) else {
            return Err(call.failure(&finished));
        };
        Ok(output(printed))
    }
}

fn output(printed: Printed) -> Output {
    let count = |severity: &str| {
        let of = |problem: &&Problem| problem.severity == severity;
        printed.diagnostics.iter().filter(of).count() as u64
    };
    let (errors, warnings) = (count("error"), count("warning"));
    let mut diagnostics = printed.diagnostics;
    diagnostics.sort_by_key(|problem| problem.severity != "error");
    let mut remaining = RemainingSize::beside(&"");
    let diagnostics = remaining.fit(diagnostics.into_iter().map(shortened));
    let tests = remaining.fit(printed.tests.into_iter().map(|test| Test {
        name: result_size::short(&test.name),
        ..test
    }));
    Output {
        valid: printed.valid,
        errors,
        warnings,
        diagnostics,
        tests,
        omitted: remaining.omitted,
        notice: (remaining.omitted > 0).then(|| {
            "some entries did not fit; repair the first problems and validate again, or validate \
             one file at a time"
                .to_owned()
        }),
    }
}

fn shortened(problem: Problem) -> Problem {
    Problem {
        message: result_size::short(&problem.message),
        label: problem.label.as_deref().map(result_size::short),
        help: problem
            .help
            .iter()
            .take(5)
            .map(|help| result_size::short(help))
            .collect(),
        ..problem
    }
}
