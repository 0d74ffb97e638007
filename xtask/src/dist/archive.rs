//! The archive of a platform: program, licences, README, completions and manual pages.
//!
//! The same program gives the same bytes: entries are sorted and have no times and no owners.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::platform::Platform;
use super::{BundledFiles, LICENCES};
use crate::workspace;

/// The file name of an archive.
pub fn name(version: &str, target: &str) -> String {
    format!("mcptest-{version}-{target}.tar.gz")
}

/// Writes the archive and returns its path.
pub fn make(program: &Path, platform: &Platform, version: &str, out: &Path) -> Result<PathBuf> {
    let companions = BundledFiles::of(program)?;
    let top = format!("mcptest-{version}-{}", platform.target);
    let mut entries = vec![(format!("{top}/mcptest"), program.to_owned(), 0o755)];
    for file in LICENCES.into_iter().chain(["README.md", "CHANGELOG.md"]) {
        let path = workspace::root().join(file);
        entries.push((format!("{top}/{file}"), path, 0o644));
    }
    for (folder, name) in [
        (companions.completions(), "completions"),
        (companions.man().join("man1"), "man/man1"),
    ] {
        let listed = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in listed {
            let entry = entry?;
            let file = entry.file_name().to_string_lossy().into_owned();
            entries.push((format!("{top}/{name}/{file}"), entry.path(), 0o644));
        }
    }
    entries.sort();
    let path = out.join(name(version, platform.target));
    write(&entries, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn write(entries: &[(String, PathBuf, u32)], path: &Path) -> Result<()> {
    let mut archive =
        tar::Builder::new(GzEncoder::new(File::create(path)?, Compression::default()));
    for (name, source, mode) in entries {
        let content =
            std::fs::read(source).with_context(|| format!("cannot read {}", source.display()))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(*mode);
        header.set_mtime(0);
        header.set_cksum();
        archive.append_data(&mut header, name, content.as_slice())?;
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_give_equal_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("program");
        std::fs::write(&file, "content").unwrap();
        let entries = [("top/program".to_owned(), file, 0o755)];
        let [a, b] = ["a.tar.gz", "b.tar.gz"].map(|name| dir.path().join(name));
        write(&entries, &a).unwrap();
        write(&entries, &b).unwrap();
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
        let unpacked = flate2::read::GzDecoder::new(File::open(&a).unwrap());
        let mut archive = tar::Archive::new(unpacked);
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_str(), Some("top/program"));
        assert_eq!(entry.header().mode().unwrap(), 0o755);
    }
}
