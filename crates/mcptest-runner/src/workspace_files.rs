//! The files that an agent under test left in its working directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value};

/// The largest number of files, and of bytes of one file, that a trace has.
const MAX_FILES: usize = 500;
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Folders that belong to tools, not to the task.
const SKIPPED: [&str; 3] = [".git", "node_modules", ".venv"];

/// The files before the run: size and time of the last change, by path.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceState(BTreeMap<String, (u64, Option<SystemTime>)>);

impl WorkspaceState {
    pub fn of(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        visit(folder, "", &mut |path, _, metadata| {
            files.insert(path.to_owned(), (metadata.len(), metadata.modified().ok()));
            true
        });
        Self(files)
    }

    fn is_unchanged(&self, path: &str, metadata: &fs::Metadata) -> bool {
        let now = (metadata.len(), metadata.modified().ok());
        self.0.get(path) == Some(&now)
    }
}

/// The files that are new or changed, by path: their text, or `null` for one that is too large or
/// not UTF-8.
pub(crate) fn changed_files(folder: &Path, before: &WorkspaceState) -> Map<String, Value> {
    let mut files = Map::new();
    visit(folder, "", &mut |path, place, metadata| {
        if !before.is_unchanged(path, metadata) {
            let text = (metadata.len() <= MAX_FILE_BYTES)
                .then(|| fs::read_to_string(place).ok())
                .flatten();
            files.insert(path.to_owned(), text.map_or(Value::Null, Value::from));
        }
        files.len() < MAX_FILES
    });
    files
}

/// Visits all regular files in the order of their paths, until `visitor` returns false.
fn visit(
    folder: &Path,
    prefix: &str,
    visitor: &mut dyn FnMut(&str, &Path, &fs::Metadata) -> bool,
) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return true;
    };
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = match prefix {
            "" => name.clone(),
            prefix => format!("{prefix}/{name}"),
        };
        // Links are not followed: they may lead out of the folder.
        let Ok(metadata) = entry.path().symlink_metadata() else {
            continue;
        };
        let continues = if metadata.is_dir() && !SKIPPED.contains(&name.as_str()) {
            visit(&entry.path(), &path, visitor)
        } else if metadata.is_file() {
            visitor(&path, &entry.path(), &metadata)
        } else {
            true
        };
        if !continues {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_changed_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &[u8]| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("kept.txt", b"same");
        write("changed.txt", b"before");
        write(".git/HEAD", b"ref");
        let before = WorkspaceState::of(folder.path());
        write("changed.txt", b"after it");
        write("notes/report.md", b"# Report");
        write("image.png", &[0xff, 0xfe]);
        write("large.txt", &vec![b'x'; 300 * 1024]);
        write("node_modules/a.js", b"x");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        let files = changed_files(folder.path(), &before);
        let expected = serde_json::json!({
            "changed.txt": "after it",
            "image.png": null,
            "large.txt": null,
            "notes/report.md": "# Report",
        });
        assert_eq!(Value::Object(files), expected);
    }
}
