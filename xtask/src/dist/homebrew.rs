//! The Homebrew formula, with the checksums of the archives in the folder.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::{archive, checksums, platform};

const TEMPLATE: &str = include_str!("../../../packaging/homebrew/mcptest.rb");
/// The address in a formula that is not for a tap.
const NO_REPOSITORY: &str = "https://example.invalid/mcptest";
/// The checksum of an archive that is not in the folder: no download has it.
const NO_CHECKSUM: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Writes the formula and returns its path.
pub fn make(version: &str, repository: Option<&str>, out: &Path) -> Result<PathBuf> {
    if repository.is_none() {
        println!("the formula has no address: give --repository");
    }
    let mut formula = TEMPLATE
        .replace("@VERSION@", version)
        .replace("@REPOSITORY@", repository.unwrap_or(NO_REPOSITORY));
    for platform in platform::released() {
        let archive = out.join(archive::name(version, platform.target));
        let digest = if archive.is_file() {
            checksums::of(&archive)?
        } else {
            println!("the formula lacks {}", platform.target);
            NO_CHECKSUM.to_owned()
        };
        formula = formula.replace(&format!("@SHA256 {}@", platform.target), &digest);
    }
    let path = out.join("mcptest.rb");
    std::fs::write(&path, formula).context("cannot write the formula")?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_released_platform_has_its_checksum() {
        let dir = tempfile::tempdir().unwrap();
        for platform in platform::released() {
            let name = archive::name("1.2.3", platform.target);
            std::fs::write(dir.path().join(name), platform.target).unwrap();
        }
        let path = make("1.2.3", Some("https://host/owner/mcptest"), dir.path()).unwrap();
        let formula = std::fs::read_to_string(path).unwrap();
        assert!(!formula.contains('@'), "{formula}");
        assert!(!formula.contains(NO_CHECKSUM), "{formula}");
        for platform in platform::released() {
            let name = archive::name("1.2.3", platform.target);
            let digest = checksums::of(&dir.path().join(&name)).unwrap();
            assert!(formula.contains(&digest), "{formula}");
            let address = format!("https://host/owner/mcptest/releases/download/v1.2.3/{name}");
            assert!(formula.contains(&address), "{formula}");
        }
    }
}
