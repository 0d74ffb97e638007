//! The folders of one run: HOME, TMPDIR, working directory.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Files that agents read from parent folders of their working directory, and the marks of a
/// checkout.
const MARKS: [&str; 6] = [
    ".git",
    ".hg",
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".mcp.json",
];

/// The largest workspace.
const MAX_WORKSPACE_BYTES: u64 = 1 << 30;

/// The folders of one run. They are removed when this value is dropped.
#[derive(Debug)]
pub struct RunFolders {
    folder: Option<TempDir>,
    path: PathBuf,
}

impl RunFolders {
    /// Creates the folders in `parent`, and copies `workspace` to the working directory.
    ///
    /// # Errors
    /// The folders cannot be created, the workspace cannot be copied, or `parent` is inside a
    /// checkout, from which an agent would read instructions.
    pub fn create(parent: &Path, workspace: Option<&Path>) -> io::Result<Self> {
        let parent = parent.canonicalize()?;
        if let Some(mark) = checkout_mark(&parent) {
            return Err(io::Error::other(format!(
                "`{}` is below `{}`, which agents read: set TMPDIR to a folder outside of it",
                parent.display(),
                mark.display()
            )));
        }
        // Short: sockets below TMPDIR have paths of at most 108 bytes.
        let folder = tempfile::Builder::new()
            .prefix("mcptest-")
            .rand_bytes(10)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)?;
        let folders = Self {
            path: folder.path().to_owned(),
            folder: Some(folder),
        };
        let home = folders.home();
        for path in [
            home.clone(),
            folders.cwd(),
            folders.tmp(),
            home.join(".config"),
            home.join(".cache"),
            home.join(".local"),
            home.join(".local/share"),
            home.join(".local/state"),
        ] {
            DirBuilder::new().mode(0o700).create(path)?;
        }
        if let Some(workspace) = workspace {
            let mut left = MAX_WORKSPACE_BYTES;
            copy_folder(workspace, &folders.cwd(), &mut left)?;
        }
        Ok(folders)
    }

    /// The folder that contains all others.
    #[must_use]
    pub fn run_dir(&self) -> &Path {
        &self.path
    }

    /// The agent's HOME.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// The agent's working directory.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.path.join("cwd")
    }

    /// The agent's TMPDIR.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Keeps the folders, and returns the one that contains all others.
    #[must_use]
    pub fn keep(mut self) -> PathBuf {
        if let Some(folder) = self.folder.take() {
            // `keep` returns the path, which we have already.
            let _ = folder.keep();
        }
        self.path.clone()
    }

    /// Writes a file that only the user can read, and creates its folders. A relative path is below
    /// the working directory.
    pub(crate) fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let path = self.cwd().join(path);
        let inside = path.starts_with(&self.path)
            && !path
                .components()
                .any(|part| part == std::path::Component::ParentDir);
        if !inside {
            return Err(io::Error::other(format!(
                "`{}` is outside the folders of the run: begin the path with {{{{home}}}}, \
                 {{{{cwd}}}}, {{{{tmp}}}} or {{{{run_dir}}}}",
                path.display()
            )));
        }
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(content)
    }
}

/// The first mark of a checkout in a folder or above.
fn checkout_mark(folder: &Path) -> Option<PathBuf> {
    folder
        .ancestors()
        .flat_map(|folder| MARKS.iter().map(|mark| folder.join(mark)))
        .find(|path| path.symlink_metadata().is_ok())
}

/// Copies a folder. Links stay links; devices and pipes are left out.
fn copy_folder(from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            DirBuilder::new().mode(0o700).create(&target)?;
            copy_folder(&entry.path(), &target, left)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            let size = entry.metadata()?.len();
            *left = left.checked_sub(size).ok_or_else(|| {
                io::Error::other("the workspace has more than 1 GiB: name a smaller folder")
            })?;
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_are_removed_unless_kept() {
        let parent = tempfile::tempdir().unwrap();
        let folders = RunFolders::create(parent.path(), None).unwrap();
        let path = folders.run_dir().to_owned();
        assert!(folders.home().is_dir() && folders.cwd().is_dir() && folders.tmp().is_dir());
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(folders);
        assert!(!path.exists());
        let kept = RunFolders::create(parent.path(), None).unwrap().keep();
        assert!(kept.join("cwd").is_dir());
    }

    #[test]
    fn the_workspace_is_a_copy() {
        let parent = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        std::fs::create_dir(workspace.path().join("a")).unwrap();
        std::fs::write(workspace.path().join("a/b.txt"), "one").unwrap();
        std::os::unix::fs::symlink("a/b.txt", workspace.path().join("link")).unwrap();
        let folders = RunFolders::create(parent.path(), Some(workspace.path())).unwrap();
        std::fs::write(folders.cwd().join("a/b.txt"), "two").unwrap();
        let link = std::fs::read_to_string(folders.cwd().join("link")).unwrap();
        assert_eq!(link, "two");
        let original = std::fs::read_to_string(workspace.path().join("a/b.txt")).unwrap();
        assert_eq!(original, "one");
    }

    #[test]
    fn the_folders_are_never_inside_a_checkout() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(parent.path().join("repo/.git")).unwrap();
        std::fs::create_dir_all(parent.path().join("repo/tmp")).unwrap();
        let error = RunFolders::create(&parent.path().join("repo/tmp"), None).unwrap_err();
        assert!(error.to_string().contains("set TMPDIR"), "{error}");
    }

    #[test]
    fn files_are_private_and_inside() {
        let parent = tempfile::tempdir().unwrap();
        let folders = RunFolders::create(parent.path(), None).unwrap();
        let path = format!("{}/deep/er/x.json", folders.home().display());
        folders.write(&path, b"{}").unwrap();
        let mode = Path::new(&path).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        folders.write("notes.md", b"hello").unwrap();
        assert!(folders.cwd().join("notes.md").is_file());
        for outside in ["/etc/mcptest-x", "../../x", "../home/../../x"] {
            assert!(folders.write(outside, b"").is_err(), "{outside}");
        }
    }
}
