//! Snapshots on disk: reading, writing on request, and finding those that no test has any more.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::suite::{StoredSnapshot, Test};
use mcptest_trace::expect::Assertion;
use mcptest_trace::snapshot::{Stored, render};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

/// The use of snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Answers are compared with them. Nothing is written.
    #[default]
    Compare,
    /// An answer that differs, or has no snapshot yet, becomes the snapshot.
    Update,
}

pub(crate) struct Snapshots {
    mode: SnapshotMode,
    /// Secrets must not reach a file that is kept in version control.
    redactor: Arc<Redactor>,
}

/// The result of comparing an answer with its snapshot.
pub(crate) struct Checked {
    pub assertion: Assertion,
    /// The message about a file that was written.
    pub note: Option<String>,
}

impl Snapshots {
    pub fn new(mode: SnapshotMode, redactor: Arc<Redactor>) -> Self {
        Self { mode, redactor }
    }

    /// Compares an answer with its snapshot. `others_hold` is true if the test's other expectations
    /// held; an answer that fails them is not kept.
    pub fn check(
        &self,
        test: &StoredSnapshot,
        seen: &Value,
        others_hold: bool,
    ) -> Result<Checked, RunError> {
        let shown = test.file.display().to_string();
        let mut kept = test.snapshot.of(seen);
        if let Some(kept) = &mut kept {
            self.redactor.value(kept);
        }
        let stored = read(&test.file);
        let assertion = test.snapshot.check(kept.as_ref(), &stored, &shown);
        let writable =
            kept.filter(|_| self.mode == SnapshotMode::Update && others_hold && !assertion.passed);
        let Some(kept) = writable else {
            return Ok(Checked {
                assertion,
                note: None,
            });
        };
        write(&test.file, &render(&kept)).map_err(|error| RunError {
            kind: ErrorKind::Fixture,
            message: format!("cannot write the snapshot `{shown}`: {error}"),
        })?;
        let done = if stored == Stored::Missing {
            "written"
        } else {
            "updated"
        };
        Ok(Checked {
            assertion: test
                .snapshot
                .check(Some(&kept), &Stored::Value(kept.clone()), &shown),
            note: Some(format!("snapshot {done}: {shown}")),
        })
    }

    /// The files in the suite's snapshot folders that belong to none of its tests, if snapshots are
    /// being updated.
    pub fn unused(&self, suite: &Suite) -> Vec<PathBuf> {
        if self.mode == SnapshotMode::Compare {
            return Vec::new();
        }
        let used: BTreeSet<&Path> = suite
            .tests
            .iter()
            .filter_map(|test| match test {
                Test::Direct(test) => test.snapshot.as_ref().map(|kept| kept.file.as_path()),
                Test::Agent(_) | Test::ToolQuality(_) => None,
            })
            .collect();
        let folders: BTreeSet<&Path> = suite
            .snapshot_folders
            .iter()
            .map(PathBuf::as_path)
            .collect();
        let mut unused: Vec<PathBuf> = folders
            .into_iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| {
                path.extension().is_some_and(|ending| ending == "json")
                    && !used.contains(path.as_path())
            })
            .collect();
        unused.sort();
        unused
    }
}

fn read(file: &Path) -> Stored {
    match std::fs::read_to_string(file) {
        Ok(text) => Stored::parse(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Stored::Missing,
        Err(error) => Stored::Broken(error.to_string()),
    }
}

/// Replaces a snapshot as a whole: a reader finds the old file or the new one.
fn write(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    mcptest_files::write(file, text)
}
