//! The files that are written: planned together, checked, and written all or none.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use mcptest_init::attack_pack;
use mcptest_init::mock_file;
use mcptest_init::server_draft::{Outcome, ServerDraft};
use mcptest_init::suite_file::{self, SuiteDraft, SuiteText};
use mcptest_init::workflow::{self, Ci, CiDraft};
use mcptest_runner::Answer;
use mcptest_suite::suite::Test;
use mcptest_suite::{LoadOptions, Loaded, Purpose};
use mcptest_trace::snapshot::render;
use mcptest_yaml::{Diagnostics, Severity};

use super::project::Project;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::secrets;

/// The suite, and the schemas for editors.
pub const SUITE: &str = "mcptest.yml";
const SUITE_SCHEMA: &str = ".mcptest/suite.schema.json";
const MOCK_SCHEMA: &str = ".mcptest/mock.schema.json";

/// The lines of `.gitignore`.
const IGNORED: [&str; 2] = [".mcptest/history/", "mcptest-report/"];

/// The handling of a file that exists with another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    /// It is replaced only if that was asked for.
    Ask,
    /// It is kept unless its replacement was asked for.
    Keep,
    /// It is ours, and replaced.
    Replace,
}

/// A file to write.
#[derive(Debug)]
pub struct PlannedFile {
    /// Its place.
    pub path: PathBuf,
    /// Its name in messages.
    pub shown: String,
    /// Its content in a few words.
    pub what: String,
    text: String,
    existing: Existing,
}

/// The parts that files are made of.
pub struct Draft<'a> {
    pub project: &'a Project,
    pub name: &'a str,
    pub servers: &'a [ServerDraft],
    pub snapshots: bool,
    pub attacks: bool,
    pub ci: Option<Ci>,
    pub gates: Gates,
}

/// All files, and the suite among them.
pub struct Plan {
    pub files: Vec<PlannedFile>,
    pub suite: SuiteText,
}

impl Plan {
    /// Plans all files and loads the suite as `run` would.
    ///
    /// # Errors
    /// The suite cannot be loaded, which is a defect of this program.
    pub fn new(draft: &Draft<'_>) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut mock_files = Vec::new();
        let mut mocked = Vec::new();
        for server in draft.servers {
            let file = format!("mocks/{}.yml", server.name);
            let mock = mock_file::write(server, &format!("../{MOCK_SCHEMA}"));
            mcptest_mock::load(&file, mock.text.as_bytes()).map_err(defect)?;
            files.push(draft.file(&file, mock.text, "the server as a mock", Existing::Ask));
            mock_files.push(file);
            mocked.push(mock.tools);
        }
        let attacked = draft
            .attacks
            .then(|| attack_pack::attacked_tool(draft.servers))
            .flatten();
        let suite = suite_file::write(&SuiteDraft {
            name: draft.name,
            servers: draft.servers,
            mock_files: &mock_files,
            mocked: &mocked,
            snapshots: draft.snapshots,
            attacked: attacked.as_ref(),
            schema: SUITE_SCHEMA,
        });
        if suite.direct.is_empty() && suite.selections == 0 {
            return Err(Failure::Message(
                "no test could be written: no tool may be called, and no draft of a prompt leads \
                 to one"
                    .to_owned(),
            ));
        }
        if let Some(attacked) = &attacked {
            let schema = format!("../{SUITE_SCHEMA}");
            let text = attack_pack::text(attacked, &schema);
            let what = format!("attacks on results of {}", attacked.tool);
            files.push(draft.file(attack_pack::PACK_FILE, text, &what, Existing::Ask));
        }
        let what = described(&suite);
        files.insert(
            0,
            draft.file(SUITE, suite.text.clone(), &what, Existing::Ask),
        );
        let loaded = draft.load(&files)?;
        files.extend(draft.snapshot_files(&loaded, &suite)?);
        files.extend(draft.fixed_files());
        Ok(Self { files, suite })
    }

    /// The files that exist and may not be replaced without asking.
    pub fn conflicts(&self) -> Vec<&str> {
        let is_conflict = |file: &&PlannedFile| file.existing == Existing::Ask && file.differs();
        let conflicts = self.files.iter().filter(is_conflict);
        conflicts.map(|file| file.shown.as_str()).collect()
    }

    /// Writes all files, or none. Returns those that were kept as they are.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, force: bool) -> Result<Vec<&PlannedFile>, String> {
        let mut undo = Undo::default();
        let mut kept = Vec::new();
        for file in &self.files {
            if file.existing == Existing::Keep && !force && file.differs() {
                kept.push(file);
                continue;
            }
            if let Err(error) = undo.write(&file.path, &file.text) {
                undo.restore();
                return Err(format!(
                    "cannot write `{}`: {error}; nothing was changed",
                    file.shown
                ));
            }
        }
        Ok(kept)
    }
}

/// An error of the loader in a file that was drafted.
fn defect(problems: Diagnostics) -> Failure {
    Failure::Message(format!(
        "the drafted files have problems, which is a defect of mcptest; nothing was written\n{}",
        problems.render(false).trim_end()
    ))
}

fn described(suite: &SuiteText) -> String {
    let direct = super::capture::counted(suite.direct.len(), "direct call");
    let selections = super::capture::counted(suite.selections, "selection test");
    format!("{direct}, {selections}")
}

impl PlannedFile {
    /// Returns true if it exists with another content.
    fn differs(&self) -> bool {
        match std::fs::read(&self.path) {
            Ok(found) => found != self.text.as_bytes(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Draft<'_> {
    fn file(&self, name: &str, text: String, what: &str, existing: Existing) -> PlannedFile {
        PlannedFile {
            path: self.project.folder.join(name),
            shown: shown(&self.project.shown.join(name)),
            what: what.to_owned(),
            text: secrets::clean(&text),
            existing,
        }
    }

    /// Loads the suite from the planned files. Variables that the user has to set count as set.
    fn load(&self, files: &[PlannedFile]) -> Result<Loaded, Failure> {
        let texts: BTreeMap<&Path, &str> = files
            .iter()
            .map(|file| (file.path.as_path(), file.text.as_str()))
            .collect();
        let read = |path: &Path| match texts.get(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => std::fs::read(path),
        };
        let needed = |name: &str| {
            let mut servers = self.servers.iter();
            servers.any(|server| server.launch.variables.iter().any(|one| one == name))
        };
        let env = |name: &str| {
            let set = std::env::var(name).ok();
            set.or_else(|| needed(name).then(|| "unset".to_owned()))
        };
        let options = LoadOptions {
            purpose: Purpose::Run,
            gates: self.gates,
            env: &env,
            check_model: &mcptest_runner::check_model,
            providers: &mcptest_runner::built_in_providers(),
            models: &[],
        };
        let path = self.project.folder.join(SUITE);
        let loaded = mcptest_suite::load_from(&path, &options, &read).map_err(defect)?;
        let is_error = |problem: &mcptest_yaml::Diagnostic| problem.severity == Severity::Error;
        if loaded.warnings.0.iter().any(is_error) {
            return Err(defect(loaded.warnings));
        }
        Ok(loaded)
    }

    /// The snapshots of the answers that were seen, as `run --update-snapshots` would write them.
    fn snapshot_files(
        &self,
        loaded: &Loaded,
        suite: &SuiteText,
    ) -> Result<Vec<PlannedFile>, Failure> {
        let mut files = Vec::new();
        for test in &loaded.suite.tests {
            let Test::Direct(test) = test else { continue };
            let Some(stored) = &test.snapshot else {
                continue;
            };
            let direct = suite.direct.iter().find(|direct| direct.name == test.name);
            let outcome = direct.and_then(|direct| {
                let server = self.servers.get(direct.server)?;
                server.tools.get(direct.tool?).map(|tool| &tool.outcome)
            });
            let Some(Outcome::Answered { result, .. }) = outcome else {
                continue;
            };
            let seen = Answer::Result(result.clone()).observed();
            if let Some(kept) = stored.snapshot.of(&seen) {
                let name = stored.file.strip_prefix(&self.project.folder);
                let name = name.unwrap_or(&stored.file).to_owned();
                files.push(PlannedFile {
                    path: stored.file.clone(),
                    shown: shown(&self.project.shown.join(name)),
                    what: "a snapshot".to_owned(),
                    text: secrets::clean(&render(&kept)),
                    existing: Existing::Ask,
                });
            }
        }
        Ok(files)
    }

    /// Schemas, `.gitignore`, and the CI file.
    fn fixed_files(&self) -> Vec<PlannedFile> {
        let schema = |value: serde_json::Value| format!("{value:#}\n");
        let mut files = vec![
            self.file(
                SUITE_SCHEMA,
                schema(mcptest_suite::suite_schema(self.gates)),
                "for editors: completion and checks",
                Existing::Replace,
            ),
            self.file(
                MOCK_SCHEMA,
                schema(mcptest_mock::manifest_schema()),
                "the same for mocks",
                Existing::Replace,
            ),
        ];
        files.extend(self.gitignore());
        files.extend(self.ci.map(|ci| self.ci_file(ci)));
        files
    }

    /// Lines that are missing are added at the end; the others stay.
    fn gitignore(&self) -> Option<PlannedFile> {
        let found = std::fs::read_to_string(self.project.folder.join(".gitignore"));
        let old = found.unwrap_or_default();
        let covers = |line: &str| {
            old.lines().map(str::trim).any(|known| {
                known.trim_start_matches('/') == line || known.trim_end_matches('/') == ".mcptest"
            })
        };
        let missing: Vec<&str> = IGNORED.into_iter().filter(|line| !covers(line)).collect();
        if missing.is_empty() {
            return None;
        }
        let mut text = old.clone();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("# mcptest: logs of runs, reports\n");
        for line in missing {
            text.push_str(line);
            text.push('\n');
        }
        let what = if old.is_empty() {
            "logs of runs, reports"
        } else {
            "lines added: logs of runs, reports"
        };
        Some(self.file(".gitignore", text, what, Existing::Replace))
    }

    fn ci_file(&self, ci: Ci) -> PlannedFile {
        let root = self.project.root();
        let folder = self.project.folder.strip_prefix(&root);
        let folder = folder.map_or_else(|_| String::new(), |path| path.display().to_string());
        let folder = if folder.is_empty() { "." } else { &folder };
        let launches: Vec<_> = self.servers.iter().map(|server| &server.launch).collect();
        let text = workflow::text(
            ci,
            &CiDraft {
                launches: &launches,
                folder,
                branch: &self.project.branch(),
                has_file: &|name| root.join(name).is_file(),
            },
        );
        let path = root.join(ci.file());
        PlannedFile {
            shown: self.project.seen_from_current(&path),
            what: "CI: replace OWNER with the owner of your mcptest".to_owned(),
            text: secrets::clean(&text),
            existing: Existing::Keep,
            path,
        }
    }
}

/// A path without a dot at its start.
fn shown(path: &Path) -> String {
    let short = path.strip_prefix(".").unwrap_or(path);
    short.display().to_string()
}

/// The files and folders before they were changed.
#[derive(Default)]
struct Undo {
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    folders: Vec<PathBuf>,
}

impl Undo {
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let missing: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .map(Path::to_owned)
            .collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(&folder)?;
            self.folders.push(folder);
        }
        let old = match std::fs::read(path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if old.as_deref() == Some(text.as_bytes()) {
            return Ok(());
        }
        mcptest_files::write(path, text)?;
        self.files.push((path.to_owned(), old));
        Ok(())
    }

    /// Best effort: what cannot be restored is reported by the error that led here.
    fn restore(&self) {
        for (path, old) in self.files.iter().rev() {
            let _ = match old {
                Some(old) => mcptest_files::write(path, old),
                None => std::fs::remove_file(path),
            };
        }
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_as_before_after_an_error() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        std::fs::write(at("old"), "before").unwrap();
        let mut undo = Undo::default();
        undo.write(&at("old"), "after").unwrap();
        undo.write(&at("new/deep/file"), "x").unwrap();
        assert!(undo.write(&at("old/inside"), "x").is_err());
        undo.restore();
        assert_eq!(std::fs::read_to_string(at("old")).unwrap(), "before");
        assert!(!at("new").exists());
    }
}
