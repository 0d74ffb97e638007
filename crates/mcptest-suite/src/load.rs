//! Loading: from a path to a checked suite.

use std::path::{Path, PathBuf};

use mcptest_redact::redact::{Redactor, is_secret};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};

use crate::check;
use crate::import::{self, Gathered, Part, ReadFile};
use crate::options::LoadOptions;
use crate::providers::Keys;
use crate::suite::Suite;

/// A suite, and warnings about it.
#[derive(Debug)]
pub struct Loaded {
    /// The suite.
    pub suite: Suite,
    /// Problems that do not prevent its use.
    pub warnings: Diagnostics,
    /// The files that it was read from: its own and the imported ones.
    pub files: Vec<PathBuf>,
}

impl Loaded {
    /// Adds warnings that were found after loading, at their places and without secrets.
    pub fn warn(&mut self, more: impl IntoIterator<Item = Diagnostic>) {
        let before = self.warnings.0.len();
        self.warnings.0.extend(more);
        if self.warnings.0.len() > before {
            let order: Vec<String> = self
                .files
                .iter()
                .map(|file| file.display().to_string())
                .collect();
            let redactor = Redactor::new(self.suite.secrets.iter().cloned());
            self.warnings = sorted(std::mem::take(&mut self.warnings.0), &order, &redactor);
        }
    }
}

/// Loads a suite file with everything it imports.
///
/// # Errors
/// Every problem, each with its place.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Loaded, Diagnostics> {
    load_from(path, options, &import::from_disk)
}

/// Loads a suite whose files are read by a function, which may have them in memory. Paths are
/// those of [`load`].
///
/// # Errors
/// Every problem, each with its place.
pub fn load_from(
    path: &Path,
    options: &LoadOptions<'_>,
    read_file: ReadFile<'_>,
) -> Result<Loaded, Diagnostics> {
    let gathered = import::gather(path, options.env, read_file);
    load_gathered(gathered, path, options)
}

/// Loads a suite from a string, with everything it imports. `path` is its name in messages; imports
/// are relative to its folder.
///
/// # Errors
/// Every problem, each with its place.
pub fn load_text(
    path: &Path,
    text: &str,
    options: &LoadOptions<'_>,
) -> Result<Loaded, Diagnostics> {
    let gathered = import::gather_text(path, text, options.env);
    load_gathered(gathered, path, options)
}

/// Checks the files of a suite.
pub(crate) fn load_gathered(
    mut gathered: Gathered,
    path: &Path,
    options: &LoadOptions<'_>,
) -> Result<Loaded, Diagnostics> {
    let keys = keys(&gathered.parts, options);
    // Short values are not secrets: masking them would make the report unreadable.
    let secret = keys
        .values()
        .filter(|key| is_secret("key", key))
        .map(str::to_owned);
    gathered.secrets.extend(secret);
    // A value from the environment may be where a name was expected, and would then be part of the
    // message.
    let redactor = Redactor::new(gathered.secrets.iter().cloned());
    let finish = |problems| sorted(problems, &gathered.order, &redactor);
    let mut problems = gathered.problems;
    if problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
    {
        // Problems of expressions are reported now, not after the next attempt.
        problems.extend(
            gathered
                .invalid
                .iter()
                .flat_map(|file| check::expressions_of_invalid(file, options.gates)),
        );
        return Err(finish(problems));
    }
    let mut checked = check::check(&mut gathered.parts, options);
    checked.suite.name = gathered
        .parts
        .last()
        .and_then(|part: &Part| part.file.name.clone())
        .unwrap_or_else(|| {
            path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            )
        });
    path.clone_into(&mut checked.suite.file);
    checked.suite.secrets.clone_from(&gathered.secrets);
    checked.suite.keys = keys;
    problems.extend(checked.problems);
    let all = finish(problems);
    if all.has_errors() {
        Err(all)
    } else {
        Ok(Loaded {
            suite: checked.suite,
            warnings: all,
            files: gathered.order.iter().map(PathBuf::from).collect(),
        })
    }
}

/// The API keys of all providers, and the secrets of servers with authorization.
fn keys(parts: &[Part], options: &LoadOptions<'_>) -> Keys {
    let mut keys = Keys::default();
    let built_in = options
        .providers
        .iter()
        .flat_map(|known| known.key_variables);
    for variable in built_in {
        keys.read(variable, options.env);
    }
    let declared = parts.iter().flat_map(|part| part.file.providers.values());
    for variable in declared.filter_map(|provider| provider.api_key_env.as_ref()) {
        keys.read(variable, options.env);
    }
    let servers = parts.iter().flat_map(|part| part.file.servers.values());
    for auth in servers.filter_map(|server| server.auth.as_ref()) {
        let variables = auth.client_secret_env.iter().chain(&auth.refresh_token_env);
        for variable in variables {
            keys.read(variable, options.env);
        }
    }
    keys
}

/// Sorts problems by file, in the order read, then by place; masks secrets.
fn sorted(mut problems: Vec<Diagnostic>, order: &[String], redactor: &Redactor) -> Diagnostics {
    problems.sort_by_key(|problem| {
        let (file, position) = problem.location();
        let rank = order
            .iter()
            .position(|name| Some(name.as_str()) == file)
            .unwrap_or(usize::MAX);
        (rank, position)
    });
    let mask = |problem: Diagnostic| problem.map_text(|text| redactor.text(text));
    Diagnostics(problems.into_iter().map(mask).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Purpose;

    #[test]
    fn the_files_of_a_suite_can_be_in_memory() {
        let read = |path: &Path| match path.to_str() {
            Some("a/suite.yml") => Ok(b"imports: [more.yml]\nagents: []\n".to_vec()),
            Some("a/more.yml") => Ok(b"agents:\n  - name: from memory\n".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        let options = LoadOptions {
            purpose: Purpose::Score,
            gates: &[],
            env: &|_| None,
            check_model: &|_| Ok(()),
            providers: &[],
            models: &[],
        };
        let loaded = load_from(Path::new("a/suite.yml"), &options, &read).unwrap();
        let mut tests = loaded.suite.agent_tests();
        assert_eq!(tests.next().unwrap().name, "from memory");
        assert_eq!(loaded.files.len(), 2);
        let problems = load_from(Path::new("b.yml"), &options, &read).unwrap_err();
        assert_eq!(problems.0[0].message, "cannot read `b.yml`: no such file");
    }

    #[test]
    fn a_gate_that_the_program_lacks_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("suite.yml");
        let text = "agents:\n  - name: a\n    golden_path: {calls: [search]}\n";
        std::fs::write(&file, text).unwrap();
        let load_with = |gates| {
            let options = LoadOptions {
                purpose: Purpose::Score,
                gates,
                env: &|_| None,
                check_model: &|_| Ok(()),
                providers: &[],
                models: &[],
            };
            load(&file, &options)
        };
        assert!(load_with(mcptest_gates::GATES).is_ok());
        let problems = load_with(&[]).unwrap_err();
        assert_eq!(
            problems.0[0].message,
            "this program has no gate `golden_path`"
        );
    }
}
