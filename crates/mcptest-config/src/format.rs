//! The formats, and recognizing them.

mod claude_desktop;
mod codex;
mod cursor;
mod gemini_cli;
mod mcp_json;
mod vscode;
mod windsurf;

use std::path::{Path, PathBuf};

use mcptest_yaml::Node;

use crate::configured_server::Input;
use crate::entry::ReadEntry;
use crate::template::References;

/// A format of configuration files.
#[derive(Debug)]
pub struct Format {
    /// Its name in messages.
    pub title: &'static str,
    /// The files that have it, by the end of their paths.
    pub files: &'static [&'static str],
    /// The path of keys to its servers, such as `mcp/servers`.
    pub key: &'static str,
    /// True if its files belong to a project: commands then run in the project's folder.
    pub in_project: bool,
    /// The references of its strings.
    pub(crate) references: References,
    /// Reads the entry of a server.
    pub(crate) read: ReadEntry,
    /// Reads the values that the client asks for.
    pub(crate) inputs: fn(&Node) -> Vec<Input>,
}

/// All formats. If a file is recognized by no name, the first format whose key it has is its own.
pub const FORMATS: [&Format; 8] = [
    &mcp_json::FORMAT,
    &vscode::FORMAT,
    &vscode::SETTINGS,
    &codex::FORMAT,
    &claude_desktop::FORMAT,
    &cursor::FORMAT,
    &windsurf::FORMAT,
    &gemini_cli::FORMAT,
];

/// The files of a project that may configure servers, relative to its folder.
pub const PROJECT_FILES: [&str; 6] = [
    ".mcp.json",
    "mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
];

/// The format of a file by its path alone.
#[must_use]
pub fn find(path: &str) -> Option<&'static Format> {
    let path = path.replace('\\', "/");
    let is_named = |format: &&&Format| {
        format.files.iter().any(|file| {
            let before = path.strip_suffix(file);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    };
    // The longest name says most: `.vscode/mcp.json` before `mcp.json`.
    let longest = |format: &&&Format| format.files.iter().map(|file| file.len()).max();
    FORMATS.iter().filter(is_named).max_by_key(longest).copied()
}

/// The format of a file: by its path, if it has that format's servers, else by its keys.
pub(crate) fn detect(path: &str, root: &Node) -> Option<&'static Format> {
    let has = |format: &&'static Format| servers_of(root, format.key).is_some();
    let by_path = find(path).filter(has);
    by_path.or_else(|| FORMATS.into_iter().find(has))
}

/// The node that a path of keys leads to.
pub(crate) fn servers_of<'a>(root: &'a Node, key: &str) -> Option<&'a Node> {
    key.split('/')
        .try_fold(root, |node, key| node.entry(key).map(|entry| &entry.value))
}

impl Format {
    /// The folder in which the client starts servers: that of the project, or the current one.
    #[must_use]
    pub fn folder(&self, path: &Path) -> PathBuf {
        if !self.in_project {
            return PathBuf::from(".");
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let is_hidden = |folder: &Path| {
            let name = folder.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| [".vscode", ".cursor", ".gemini", ".codex"].contains(&name))
        };
        let folder = if is_hidden(folder) {
            folder.parent().unwrap_or(Path::new(""))
        } else {
            folder
        };
        if folder.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            folder.to_owned()
        }
    }
}

/// A format without inputs.
pub(crate) fn no_inputs(_: &Node) -> Vec<Input> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognized_by_their_paths() {
        for (path, title) in [
            ("a/.mcp.json", "mcp.json"),
            ("mcp.json", "mcp.json"),
            ("/x/.vscode/mcp.json", "VS Code"),
            (".cursor/mcp.json", "Cursor"),
            ("C:\\x\\claude_desktop_config.json", "Claude Desktop"),
            ("/home/ann/.codex/config.toml", "Codex"),
            (".gemini/settings.json", "Gemini CLI"),
            (".vscode/settings.json", "VS Code settings"),
            ("/x/windsurf/mcp_config.json", "Windsurf"),
        ] {
            assert_eq!(find(path).map(|format| format.title), Some(title), "{path}");
        }
        assert!(find("my-mcp.json").is_none());
        assert!(find("servers.json").is_none());
    }

    #[test]
    fn commands_run_in_the_folder_of_the_project() {
        for (path, folder) in [
            ("/x/.mcp.json", "/x"),
            (".mcp.json", "."),
            ("/x/.vscode/mcp.json", "/x"),
            (".vscode/mcp.json", "."),
            ("/x/claude_desktop_config.json", "."),
        ] {
            let format = find(path).map(|format| format.folder(Path::new(path)));
            assert_eq!(format, Some(PathBuf::from(folder)), "{path}");
        }
    }

    #[test]
    fn project_files_have_formats() {
        for file in PROJECT_FILES {
            assert!(find(file).is_some_and(|format| format.in_project), "{file}");
        }
    }
}
