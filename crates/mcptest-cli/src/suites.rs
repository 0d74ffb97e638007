//! Finding and loading suites.

use std::path::{Path, PathBuf};

use mcptest_report::Redactor;
use mcptest_runner::CassetteSettings;
use mcptest_suite::suite::{Section, Test};
use mcptest_suite::{LoadOptions, Loaded, Purpose, ResolvedSuite, load};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};

use crate::gates::Gates;
use crate::output::Output;
use crate::secrets;

/// The default suite files.
const DEFAULTS: [&str; 2] = ["mcptest.yaml", "mcptest.yml"];

/// The suite files: files as they are, the `.yml` and `.yaml` files of folders, or the default
/// files.
///
/// # Errors
/// A file or folder that was not found.
pub fn find(named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    if named.is_empty() {
        return DEFAULTS
            .iter()
            .map(PathBuf::from)
            .find(|path| path.is_file())
            .map(|path| vec![path])
            .ok_or_else(|| {
                "no suite is named, and there is neither mcptest.yaml nor mcptest.yml here; name \
                 one, or let `mcptest init` write one"
                    .to_owned()
            });
    }
    let mut found = Vec::new();
    for path in named {
        if path.is_dir() {
            let inside = in_folder(path)?;
            if inside.is_empty() {
                return Err(format!(
                    "there is no suite (*.yml, *.yaml) in `{}`",
                    path.display()
                ));
            }
            found.extend(inside);
        } else {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// Prints the warnings about a suite, or returns them as errors where they are denied.
///
/// # Errors
/// A warning, if `deny` is set.
pub fn warn(warnings: &Diagnostics, deny: bool, output: &Output) -> Result<(), Diagnostics> {
    if !deny || warnings.0.is_empty() {
        output.problems(warnings);
        return Ok(());
    }
    let mut denied = warnings.0.clone();
    self::deny(&mut denied);
    Err(Diagnostics(denied))
}

/// Makes errors of warnings.
pub fn deny(problems: &mut [Diagnostic]) {
    for problem in problems {
        problem.severity = Severity::Error;
    }
}

/// Sorted by name. Mock manifests and benchmark specs are often in the same folder; they are
/// recognized by their keys.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("cannot read `{}`: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let is_yaml = path
            .extension()
            .is_some_and(|extension| extension == "yml" || extension == "yaml");
        if is_yaml && path.is_file() && !is_other_format(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns true for mock manifests and benchmark specs.
fn is_other_format(path: &Path) -> bool {
    let is_marker = |line: &str| line.starts_with("mock_server:") || line.starts_with("intents:");
    std::fs::read_to_string(path).is_ok_and(|text| text.lines().any(is_marker))
}

/// Adds warnings about tools that the suite names and no server offers, as far as that is known
/// without starting a server.
pub fn warn_of_unknown_tools(
    loaded: &mut Loaded,
    settings: impl FnOnce(&Redactor) -> CassetteSettings,
) {
    let names_some = |test: &Test| match test {
        Test::Agent(test) => !test.tool_names.is_empty(),
        Test::Direct(test) => test.request.section() != Section::Tools,
        Test::ToolQuality(_) => false,
    };
    if !loaded.suite.tests.iter().any(names_some) {
        return;
    }
    let settings = settings(&Redactor::new(loaded.suite.secrets.iter().cloned()));
    let mut warnings = mcptest_runner::warn_of_unknown_tools(&mut loaded.suite, &settings);
    warnings.extend(mcptest_runner::warn_of_unknown_entries(
        &loaded.suite,
        &settings,
    ));
    loaded.warn(warnings);
}

/// Loads one suite with this process's environment and models.
///
/// # Errors
/// All problems of the suite.
pub fn load_one(path: &Path, purpose: Purpose, gates: Gates) -> Result<Loaded, Diagnostics> {
    load_with(path, purpose, gates, &[])
}

/// A suite that was loaded for scoring, as data.
///
/// # Errors
/// All problems of the suite.
pub fn resolve(path: &Path, gates: Gates) -> Result<ResolvedSuite, Diagnostics> {
    let options = LoadOptions {
        purpose: Purpose::Score,
        gates,
        env: &|name| std::env::var(name).ok(),
        check_model: &mcptest_runner::check_model,
        providers: &mcptest_runner::built_in_providers(),
        models: &[],
    };
    ResolvedSuite::read(path, &options)
}

/// The same, with models that all agent tests run with in place of their own.
///
/// # Errors
/// All problems of the suite.
pub fn load_with(
    path: &Path,
    purpose: Purpose,
    gates: Gates,
    models: &[String],
) -> Result<Loaded, Diagnostics> {
    let loaded = load(
        path,
        &LoadOptions {
            purpose,
            gates,
            env: &|name| std::env::var(name).ok(),
            check_model: &mcptest_runner::check_model,
            providers: &mcptest_runner::built_in_providers(),
            models,
        },
    )?;
    secrets::hide(loaded.suite.secrets.iter().cloned());
    secrets::keep(loaded.suite.canaries());
    Ok(loaded)
}
