//! The folder that paths are confined to.

use std::io;
use std::path::{Component, Path, PathBuf};

use mcptest_json::text::one_line;
use mcptest_yaml::suggest;

/// The number of names that are compared for a suggestion.
const MAX_NAMES: usize = 1000;

/// The number of names in a message.
const SHOWN_NAMES: usize = 8;

/// The root folder, without symbolic links in its path.
#[derive(Debug, Clone)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Finds the folder.
    ///
    /// # Errors
    /// It does not exist, or is not a folder.
    pub(crate) fn new(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(io::Error::other("it is not a folder"));
        }
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// An existing file or folder, as a path from the root that has no symbolic links and cannot be
    /// taken for a flag, a pattern or standard input.
    ///
    /// # Errors
    /// A message: the path leads outside, or there is nothing.
    pub(crate) fn find(&self, written: &str) -> Result<String, String> {
        let shown = one_line(written);
        if written.is_empty() || written.contains('\0') {
            return Err("a path is empty or has a NUL character".to_owned());
        }
        let inside = self.lexical(Path::new(written)).ok_or_else(|| {
            format!(
                "`{shown}` is outside of the root folder of this server; give a path below it \
                 (the user can start the server with another `--root`)"
            )
        })?;
        let found = match self.0.join(&inside).canonicalize() {
            Ok(found) => found,
            Err(_) => return Err(self.missing(&inside, &shown)),
        };
        let Ok(relative) = found.strip_prefix(&self.0) else {
            return Err(format!(
                "`{shown}` leads outside of the root folder of this server by a symbolic link"
            ));
        };
        let relative = relative
            .to_str()
            .ok_or_else(|| format!("`{shown}` has a name that is not UTF-8; rename it"))?;
        Ok(match relative {
            "" => ".".to_owned(),
            _ if relative.starts_with('-') => format!("./{relative}"),
            _ => relative.to_owned(),
        })
    }

    /// The path below the root, without reading any folder; `None` if it leads outside.
    fn lexical(&self, written: &Path) -> Option<PathBuf> {
        let relative = if written.is_absolute() {
            written.strip_prefix(&self.0).ok()?
        } else {
            written
        };
        let mut inside = PathBuf::new();
        for component in relative.components() {
            match component {
                Component::Normal(name) => inside.push(name),
                Component::CurDir => {}
                Component::ParentDir => {
                    if !inside.pop() {
                        return None;
                    }
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(inside)
    }

    /// The message for a path that does not exist.
    fn missing(&self, inside: &Path, shown: &str) -> String {
        let folder = inside.parent().unwrap_or(Path::new(""));
        // A folder behind a link must not be listed.
        let names = match self.0.join(folder).canonicalize() {
            Ok(real) if real.starts_with(&self.0) => names_in(&real),
            _ => Vec::new(),
        };
        let name = inside.file_name().unwrap_or_default().to_string_lossy();
        let hint = match suggest(&name, names.iter().map(String::as_str)) {
            Some(near) => format!(
                "; did you mean `{}`?",
                one_line(&folder.join(near).to_string_lossy())
            ),
            None if names.is_empty() => String::new(),
            None => {
                let listed: Vec<String> = names
                    .iter()
                    .take(SHOWN_NAMES)
                    .map(|name| format!("`{}`", one_line(name)))
                    .collect();
                let more = if names.len() > SHOWN_NAMES {
                    ", …"
                } else {
                    ""
                };
                format!("; the folder has {}{more}", listed.join(", "))
            }
        };
        format!("there is no `{shown}` below the root folder of this server{hint}")
    }
}

/// The visible names in a folder, sorted.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .take(MAX_NAMES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("project");
        std::fs::create_dir_all(path.join("suites")).unwrap();
        for file in ["mcptest.yml", "suites/weather.yml", "-dash.yml"] {
            std::fs::write(path.join(file), "").unwrap();
        }
        std::fs::write(dir.path().join("secret.txt"), "").unwrap();
        let root = Root::new(&path).unwrap();
        (dir, root)
    }

    #[test]
    fn paths_below_the_root_are_found() {
        let (_dir, root) = root();
        let absolute = root.path().join("mcptest.yml");
        for (written, found) in [
            ("mcptest.yml", "mcptest.yml"),
            ("./suites/../mcptest.yml", "mcptest.yml"),
            ("suites", "suites"),
            (".", "."),
            ("-dash.yml", "./-dash.yml"),
            (absolute.to_str().unwrap(), "mcptest.yml"),
        ] {
            assert_eq!(root.find(written).as_deref(), Ok(found), "{written}");
        }
    }

    #[test]
    fn paths_outside_are_refused_whether_they_exist_or_not() {
        let (dir, root) = root();
        let absolute = dir.path().join("secret.txt");
        for written in [
            "../secret.txt",
            "../nothing",
            "suites/../../secret.txt",
            "/etc/passwd",
            "/",
            "..",
            absolute.to_str().unwrap(),
        ] {
            let message = root.find(written).unwrap_err();
            assert!(
                message.contains("outside of the root"),
                "{written}: {message}"
            );
        }
    }

    #[test]
    fn a_symbolic_link_is_no_way_out() {
        let (dir, root) = root();
        std::os::unix::fs::symlink(dir.path(), root.path().join("link")).unwrap();
        let message = root.find("link/secret.txt").unwrap_err();
        assert!(message.contains("symbolic link"), "{message}");
        // Names behind the link are not shown either.
        let message = root.find("link/secret.tx").unwrap_err();
        assert!(!message.contains("secret.txt"), "{message}");
        // A link inside is fine, and resolved.
        std::os::unix::fs::symlink("mcptest.yml", root.path().join("alias.yml")).unwrap();
        assert_eq!(root.find("alias.yml").as_deref(), Ok("mcptest.yml"));
    }

    #[test]
    fn a_missing_file_is_explained() {
        let (_dir, root) = root();
        let message = root.find("suites/wether.yml").unwrap_err();
        assert!(
            message.contains("did you mean `suites/weather.yml`?"),
            "{message}"
        );
        let message = root.find("something-else.json").unwrap_err();
        assert!(message.contains("the folder has"), "{message}");
        assert!(root.find("").is_err());
        assert!(root.find("a\0b").is_err());
    }
}
