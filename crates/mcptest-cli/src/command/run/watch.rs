//! `--watch`: run again whenever a file changes.
//!
//! Files are polled: their size and time of change, a few times a second. That needs no library,
//! works on every file system, and for some thousand files costs nothing.
//!
//! Two kinds of file count. The *inputs* are the suites and what they import: a change of them
//! counts even during a run. The files *beside* them (manifests, traces, scripts of servers)
//! count only between runs, because a run may write some of them itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use mcptest_report::ExitCode;

use super::Job;

/// The interval between polls.
const INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of watched files. A folder that has more is not one of a suite.
const MAX_FILES: usize = 10_000;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 8;
/// Folders of generated files.
const NOT_WATCHED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    changed: Option<SystemTime>,
    size: u64,
}

/// Files and their metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Snapshot(BTreeMap<PathBuf, Stamp>);

impl Snapshot {
    /// The files that differ: changed, new, or gone.
    fn differences(&self, later: &Self) -> Vec<PathBuf> {
        let changed = later
            .0
            .iter()
            .filter(|(path, stamp)| self.0.get(*path) != Some(stamp))
            .map(|(path, _)| path);
        let gone = self.0.keys().filter(|path| !later.0.contains_key(*path));
        let mut all: Vec<PathBuf> = changed.chain(gone).cloned().collect();
        all.sort();
        all
    }

    /// The inputs that changed during a run. One that was not known before it has not changed.
    fn changed_inputs(&self, later: &Self, inputs: &[PathBuf]) -> Vec<PathBuf> {
        let mut changed = self.differences(later);
        changed.retain(|path| inputs.contains(path) && self.0.contains_key(path));
        changed
    }
}

/// Reads the metadata of the inputs and all files beside them, except those that we write.
fn take_snapshot(inputs: &[PathBuf], own: &[PathBuf]) -> Snapshot {
    let mut seen = Snapshot::default();
    let mut folders: Vec<PathBuf> = inputs.iter().map(|path| folder_of(path)).collect();
    folders.sort();
    folders.dedup();
    for folder in &folders {
        // A folder inside another is included with it.
        if !folders
            .iter()
            .any(|other| other != folder && folder.starts_with(other))
        {
            add_folder(folder, 0, &mut seen);
        }
    }
    for path in inputs {
        add_file(path, &mut seen);
    }
    seen.0.retain(|path, _| !own.contains(path));
    seen
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn add_folder(folder: &Path, depth: usize, seen: &mut Snapshot) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.')
            || NOT_WATCHED.contains(&name.as_ref())
            || seen.0.len() >= MAX_FILES
        {
            continue;
        }
        // The kind of the entry itself: a link to a folder could lead around in a circle.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                add_folder(&entry.path(), depth + 1, seen)
            }
            Ok(kind) if kind.is_dir() => {}
            _ => add_file(&plain(&entry.path()), seen),
        }
    }
}

fn add_file(path: &Path, seen: &mut Snapshot) {
    // Temporary files are moved over another file when they are complete.
    if path.extension().is_some_and(|extension| extension == "tmp") {
        return;
    }
    if let Ok(found) = std::fs::metadata(path)
        && found.is_file()
    {
        let stamp = Stamp {
            changed: found.modified().ok(),
            size: found.len(),
        };
        seen.0.insert(path.to_owned(), stamp);
    }
}

/// One name for one file: `./a.yml` is `a.yml`.
fn plain(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// Runs, waits for a change, runs again, until a signal. Ends with the code of the last run.
///
/// # Errors
/// Suites that are not found at the start.
pub fn watch(job: &Job<'_>) -> Result<ExitCode, String> {
    let own: Vec<PathBuf> = own_files(job);
    let mut inputs: Vec<PathBuf> = job.suite_files()?.iter().map(|path| plain(path)).collect();
    let mut before = take_snapshot(&inputs, &own);
    loop {
        let mut used = Vec::new();
        let code = job.pass(&mut used, None).unwrap_or_else(|message| {
            job.output.error(&message);
            ExitCode::CouldNotRun
        });
        if job.cancel.is_cancelled() {
            return Ok(code);
        }
        // A suite that cannot be loaded names fewer files than before; the others stay watched.
        inputs.extend(used.iter().map(|path| plain(path)));
        inputs.sort();
        inputs.dedup();
        let now = take_snapshot(&inputs, &own);
        let mut changed = before.changed_inputs(&now, &inputs);
        before = now;
        if changed.is_empty() {
            job.output
                .status(&format!("watching {} files; Ctrl-C ends", before.0.len()));
            match job.runtime.block_on(wait(job, &before, &inputs, &own))? {
                Some((seen, what)) => (before, changed) = (seen, what),
                None => return Ok(code),
            }
        }
        job.output
            .status(&format!("\n{}: running again", describe(&changed)));
    }
}

/// The first change and what is there after it, once nothing changes any more; `None` if a signal
/// came.
async fn wait(
    job: &Job<'_>,
    before: &Snapshot,
    inputs: &[PathBuf],
    own: &[PathBuf],
) -> Result<Option<(Snapshot, Vec<PathBuf>)>, String> {
    job.listen()?;
    let mut last = before.clone();
    loop {
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let now = take_snapshot(inputs, own);
        let changed = before.differences(&now);
        // Editors write in steps: the run starts when two polls in a row see the same.
        if !changed.is_empty() && now == last {
            return Ok(Some((now, changed)));
        }
        last = now;
    }
}

/// The files that reporters and recorders of this invocation write.
fn own_files(job: &Job<'_>) -> Vec<PathBuf> {
    let reports = job
        .reporters
        .iter()
        .filter_map(|reporter| reporter.file.as_ref())
        .map(PathBuf::from);
    let all = reports.chain(job.args.traces.clone());
    all.map(|path| plain(&path)).collect()
}

fn describe(changed: &[PathBuf]) -> String {
    let name = |path: &PathBuf| mcptest_json::text::one_line(&path.display().to_string());
    match changed {
        [] => "something changed".to_owned(),
        [only] => format!("{} changed", name(only)),
        [first, rest @ ..] => format!("{} and {} more changed", name(first), rest.len()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]
mod tests {
    use super::*;

    fn snapshot(files: &[(&str, u64)]) -> Snapshot {
        let stamp = |size| Stamp {
            changed: None,
            size,
        };
        Snapshot(
            files
                .iter()
                .map(|(path, size)| (PathBuf::from(path), stamp(*size)))
                .collect(),
        )
    }

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn changed_new_and_gone_files_differ() {
        let before = snapshot(&[("same", 1), ("edited", 1), ("gone", 1)]);
        let after = snapshot(&[("same", 1), ("edited", 2), ("new", 1)]);
        assert_eq!(
            before.differences(&after),
            paths(&["edited", "gone", "new"])
        );
        assert_eq!(before.differences(&before), paths(&[]));
    }

    #[test]
    fn during_a_run_only_inputs_count() {
        let before = snapshot(&[("suite.yml", 1), ("log", 1)]);
        let after = snapshot(&[("suite.yml", 2), ("log", 2), ("import.yml", 1)]);
        let inputs = paths(&["import.yml", "suite.yml"]);
        assert_eq!(
            before.changed_inputs(&after, &inputs),
            paths(&["suite.yml"])
        );
    }

    #[test]
    fn watched_files() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["servers/deep", "node_modules/x", ".hidden", "elsewhere"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "suite.yml",
            "servers/deep/server.py",
            "node_modules/x/index.js",
            ".hidden/state",
            "report.json",
            "report.json.12.tmp",
        ] {
            std::fs::write(at(file), "x").unwrap();
        }
        let seen = take_snapshot(&[at("suite.yml")], &[at("report.json")]);
        let seen: Vec<PathBuf> = seen.0.into_keys().collect();
        assert_eq!(seen, [at("servers/deep/server.py"), at("suite.yml")]);
        // A folder that is gone is not an error.
        assert_eq!(
            take_snapshot(&[at("no/such/suite.yml")], &[]),
            Snapshot::default()
        );
    }

    #[test]
    fn one_file_has_one_name() {
        assert_eq!(plain(Path::new("./a/b.yml")), Path::new("a/b.yml"));
        assert_eq!(plain(Path::new("a.yml")), Path::new("a.yml"));
        assert_eq!(describe(&paths(&["a", "b", "c"])), "a and 2 more changed");
    }
}
