//! `mcptest validate`.

use mcptest_report::ExitCode;
use mcptest_suite::Purpose as LoadPurpose;
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::json;

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
    for file in &files {
        match suites::load_one(file, purpose, gates) {
            Ok(mut loaded) => {
                if purpose == LoadPurpose::Run {
                    suites::warn_of_unknown_tools(&mut loaded, |redactor| {
                        recording::settings(None, redactor)
                    });
                }
                good.push((file.display().to_string(), loaded.suite.tests.len()));
                problems.extend(loaded.warnings.0);
                // Replaying needs no key, so this is no fault of the suite.
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
                json!({"valid": errors == 0, "diagnostics": list})
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
