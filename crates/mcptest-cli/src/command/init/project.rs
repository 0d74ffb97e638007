//! The folder that is written to, and the repository around it.

use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use mcptest_init::entry_point::ProjectFacts;
use mcptest_init::workflow::Ci;

/// The folders of an invocation, as absolute paths.
#[derive(Debug)]
pub struct Project {
    /// The current folder.
    pub current: PathBuf,
    /// The folder of the suite. It need not exist.
    pub folder: PathBuf,
    /// The folder as it is named in messages.
    pub shown: PathBuf,
}

impl Project {
    /// # Errors
    /// The current folder cannot be found, or the folder is a file or cannot be written to.
    pub fn new(folder: Option<&Path>) -> Result<Self, String> {
        let current = std::env::current_dir()
            .map_err(|error| format!("cannot find the current folder: {error}"))?;
        let shown = folder.unwrap_or(Path::new(".")).to_owned();
        let folder = current.join(&shown);
        // Without links and dots, so that relative paths can be computed.
        let folder = nearest(&folder).map_or_else(
            || folder.clone(),
            |(existing, rest)| match rest {
                // Joined with nothing, a path ends in a slash.
                rest if rest.as_os_str().is_empty() => existing,
                rest => existing.join(rest),
            },
        );
        let project = Self {
            current: current.canonicalize().unwrap_or(current),
            folder,
            shown,
        };
        project.check()?;
        Ok(project)
    }

    /// Fails if the folder cannot be written to. Nothing is left behind.
    fn check(&self) -> Result<(), String> {
        let fail = |reason: String| {
            format!(
                "cannot write to the folder `{}`: {reason}",
                self.shown.display()
            )
        };
        let Some((existing, rest)) = nearest(&self.folder) else {
            return Err(fail("it does not exist".to_owned()));
        };
        if !existing.is_dir() {
            let what = if rest.as_os_str().is_empty() {
                "it is a file"
            } else {
                "a part of its path is a file"
            };
            return Err(fail(what.to_owned()));
        }
        tempfile::Builder::new()
            .prefix(".mcptest-init")
            .tempfile_in(&existing)
            .map(drop)
            .map_err(|error| fail(error.to_string()))
    }

    /// A folder as the suite names it.
    pub fn seen_from_suite(&self, folder: &Path) -> String {
        let folder = self.current.join(folder);
        let folder = folder.canonicalize().unwrap_or(folder);
        relative(&folder, &self.folder)
    }

    /// A path as messages name it.
    pub fn seen_from_current(&self, path: &Path) -> String {
        relative(path, &self.current)
    }

    /// The root of the repository, or the folder itself.
    pub fn root(&self) -> PathBuf {
        let is_root = |folder: &&Path| folder.join(".git").exists();
        let root = self.folder.ancestors().find(is_root);
        root.unwrap_or(&self.folder).to_owned()
    }

    /// The CI system that the repository uses; GitHub if nothing says otherwise.
    pub fn ci(&self) -> Ci {
        let root = self.root();
        let config = std::fs::read_to_string(root.join(".git/config")).unwrap_or_default();
        let gitlab = root.join(".gitlab-ci.yml").exists()
            || (config.contains("gitlab") && !root.join(".github").exists());
        if gitlab { Ci::Gitlab } else { Ci::Github }
    }

    /// The branch that is checked out, if it is a usual default branch.
    pub fn branch(&self) -> String {
        let head = std::fs::read_to_string(self.root().join(".git/HEAD")).unwrap_or_default();
        let branch = head.trim().strip_prefix("ref: refs/heads/");
        let usual = ["main", "master", "trunk", "develop"];
        let branch = branch.filter(|branch| usual.contains(branch));
        branch.unwrap_or("main").to_owned()
    }
}

/// The nearest folder or file that exists, and the rest of the path.
fn nearest(path: &Path) -> Option<(PathBuf, PathBuf)> {
    path.ancestors().find_map(|ancestor| {
        let existing = ancestor.canonicalize().ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        let has_dots = rest.components().any(|part| part == Component::ParentDir);
        (!has_dots).then(|| (existing, rest.to_owned()))
    })
}

/// The path of a folder as seen from another; both are absolute.
fn relative(folder: &Path, from: &Path) -> String {
    let (mut to, mut base) = (folder.components().peekable(), from.components().peekable());
    while to.peek().is_some() && to.peek() == base.peek() {
        to.next();
        base.next();
    }
    let up = base.map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to).collect();
    if path.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        path.to_string_lossy().into_owned()
    }
}

/// Does work with the files of a folder and the programs of this machine.
pub fn project_facts<T>(folder: &Path, work: impl FnOnce(&ProjectFacts<'_>) -> T) -> T {
    // Large files are not entry points.
    let read = |path: &Path| {
        let path = folder.join(path);
        let size = std::fs::metadata(&path).ok()?.len();
        if size > 4 * 1024 * 1024 {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    work(&ProjectFacts {
        read: &read,
        has_program: &has_program,
        node: &node_version,
    })
}

fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn node_version() -> Option<(u32, u32)> {
    let output = Command::new("node")
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut parts = text.trim().trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The configurations of clients that belong to the user, where they are usually.
pub fn user_configs() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let usual = [
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        ".cursor/mcp.json",
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        ".codeium/windsurf/mcp_config.json",
        ".gemini/settings.json",
        ".codex/config.toml",
    ];
    let paths = usual.iter().map(|path| home.join(path));
    paths.filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_from_the_suite() {
        for (folder, from, expected) in [
            ("/a/b", "/a/b", "."),
            ("/a", "/a/b/c", "../.."),
            ("/a/x", "/a/b", "../x"),
            ("/a/b/c", "/a/b", "c"),
        ] {
            assert_eq!(relative(Path::new(folder), Path::new(from)), expected);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = |path: &Path| Project::new(Some(path)).unwrap_err();
        assert!(refused(&file).ends_with("it is a file"));
        assert!(refused(&file.join("sub")).ends_with("a part of its path is a file"));
        let new = Project::new(Some(&scratch.path().join("a/b"))).unwrap();
        assert!(new.folder.ends_with("a/b") && !new.folder.exists());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}
