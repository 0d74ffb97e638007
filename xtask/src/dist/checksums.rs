//! `SHA256SUMS` of all files of a release, as `sha256sum --check` reads it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

const NAME: &str = "SHA256SUMS";

/// Writes the file and returns its path.
pub fn make(out: &Path) -> Result<PathBuf> {
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(out).context("cannot read the folder")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name != NAME {
            lines.push((name.into_owned(), of(&path)?));
        }
    }
    lines.sort();
    let text: String = lines
        .iter()
        .map(|(name, digest)| format!("{digest}  {name}\n"))
        .collect();
    let path = out.join(NAME);
    std::fs::write(&path, text).context("cannot write the checksums")?;
    Ok(path)
}

/// The SHA-256 of a file in hexadecimal.
pub fn of(path: &Path) -> Result<String> {
    let content = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let digest = Sha256::digest(content);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_but_the_list_itself_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("b"), "abc").unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        make(dir.path()).unwrap();
        let text = std::fs::read_to_string(make(dir.path()).unwrap()).unwrap();
        assert_eq!(
            text,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n"
        );
    }
}
