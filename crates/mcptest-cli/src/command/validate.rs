//! `mcptest validate`.

use mcptest_report::ExitCode;
use mcptest_runner::Filter;
use mcptest_suite::{Purpose as LoadPurpose, Suite};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::{Value, json};

use crate::cli::{Format, Purpose, ValidateArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::recording;
use crate::suites;

pub fn validate(args: &ValidateArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let files = suites::find(&args.suites)?;
    let purpose = match args.purpose {
        Purpose::Run => LoadPurpose::Run,
        Purpose::Score => LoadPurpose::Score,
    };
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut good = Vec::new();
    let mut tests = Vec::new();
    for file in &files {
        match suites::load_one(file, purpose, gates) {
            Ok(mut loaded) => {
                if purpose == LoadPurpose::Run {
                    suites::warn_of_unknown_tools(&mut loaded, |redactor| {
                        recording::settings(None, redactor)
                    });
                }
                tests.extend(tests_of(&loaded.suite));
                good.push((file.display().to_string(), loaded.suite.tests.len()));
                problems.extend(loaded.warnings.0);
                // Replaying needs no key, so this is not a problem of the suite.
                if purpose == LoadPurpose::Run {
                    let keys = mcptest_runner::missing_keys(&loaded.suite);
                    problems.extend(
                        keys.into_iter()
                            .map(|words| Diagnostic::new(Severity::Warning, words)),
                    );
                }
            }
            Err(found) => problems.extend(found.0),
        }
    }
    if args.deny_warnings {
        suites::deny(&mut problems);
    }
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    match args.format {
        Format::Json => {
            let list: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
            output.result(&format!(
                "{:#}\n",
                json!({"valid": errors == 0, "diagnostics": list, "tests": tests})
            ));
        }
        Format::Pretty => {
            output.problems(&Diagnostics(problems));
            // A file with a denied warning is not valid.
            let good = good
                .into_iter()
                .filter(|_| !args.deny_warnings || errors == 0);
            for (file, tests) in good {
                let plural = if tests == 1 { "test" } else { "tests" };
                output.status(&format!("{file}: valid, {tests} {plural}"));
            }
        }
    }
    Ok(if errors == 0 {
        ExitCode::Passed
    } else {
        ExitCode::CouldNotRun
    })
}

/// The tests that `run` would make of a suite, for programs that list them: an entry per test and
/// model, with the label that reports show.
fn tests_of(suite: &Suite) -> impl Iterator<Item = Value> {
    let cases = mcptest_runner::plan(suite, &Filter::default());
    cases.into_iter().map(|case| {
        let planned = case.planned(suite, 0);
        let mut entry = json!({
            "file": planned.file,
            "suite": planned.id.suite,
            "name": planned.id.name,
            "label": planned.label,
            "kind": planned.kind,
            "runs": planned.runs,
            "tags": planned.tags,
        });
        if let Some(model) = planned.id.model {
            entry["model"] = model.into();
        }
        entry
    })
}
