//! The npm packages: `mcptest` is a launcher with helpers for test runners, and a package of each
//! platform has the program. npm installs the one that fits through `optionalDependencies`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::platform::{self, Platform};
use super::{LICENCES, copy_program, emptied, output};
use crate::workspace;

/// Packs the package of a platform and returns the path of the tarball.
pub fn platform_package(
    program: &Path,
    platform: &Platform,
    version: &str,
    out: &Path,
) -> Result<PathBuf> {
    let staged = tempfile::tempdir().context("cannot make a folder")?;
    let folder = staged.path().join("package");
    emptied(&folder.join("bin"))?;
    copy_program(program, &folder.join("bin/mcptest"))?;
    let manifest = json!({
        "name": platform.npm_name(),
        "version": version,
        "description": format!("The program of mcptest for {} {}", platform.os, platform.cpu),
        "license": "MIT OR Apache-2.0",
        "os": [platform.os],
        "cpu": [platform.cpu],
        "files": ["bin", "LICENSE-MIT", "LICENSE-APACHE"],
    });
    let readme = format!(
        "# {}\n\nThe program of [mcptest](https://www.npmjs.com/package/mcptest) for {} {}. \
         Install `mcptest`, which installs this.\n",
        platform.npm_name(),
        platform.os,
        platform.cpu
    );
    std::fs::write(folder.join("README.md"), readme).context("cannot write the README")?;
    let name = format!("mcptest-{}-{}-{version}.tgz", platform.os, platform.cpu);
    pack(&folder, &manifest, out, &name)
}

/// Packs the package `mcptest` and returns the path of the tarball.
pub fn main_package(version: &str, out: &Path) -> Result<PathBuf> {
    let staged = tempfile::tempdir().context("cannot make a folder")?;
    let folder = staged.path().join("package");
    let source = workspace::root().join("packaging/npm/mcptest");
    for part in ["bin", "lib"] {
        emptied(&folder.join(part))?;
        for entry in std::fs::read_dir(source.join(part))? {
            let entry = entry?;
            std::fs::copy(entry.path(), folder.join(part).join(entry.file_name()))?;
        }
    }
    std::fs::copy(source.join("README.md"), folder.join("README.md"))?;
    let manifest = std::fs::read_to_string(source.join("package.json"))?;
    let manifest = main_manifest(&manifest, version)?;
    pack(&folder, &manifest, out, &format!("mcptest-{version}.tgz"))
}

/// The manifest with the version, and with the packages of the platforms at this very version.
fn main_manifest(template: &str, version: &str) -> Result<Value> {
    let mut manifest: Map<String, Value> =
        serde_json::from_str(template).context("package.json is not valid JSON")?;
    let programs: Map<String, Value> = platform::released()
        .map(|platform| (platform.npm_name(), version.into()))
        .collect();
    manifest.insert("version".to_owned(), version.into());
    manifest.insert("optionalDependencies".to_owned(), programs.into());
    Ok(manifest.into())
}

fn pack(folder: &Path, manifest: &Value, out: &Path, name: &str) -> Result<PathBuf> {
    for licence in LICENCES {
        std::fs::copy(workspace::root().join(licence), folder.join(licence))?;
    }
    std::fs::write(folder.join("package.json"), format!("{manifest:#}\n"))?;
    // npm has its own rules for file names; ours is the same on every version of npm.
    let packed = tempfile::tempdir_in(out).context("cannot make a folder")?;
    output(
        Command::new("npm")
            .args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
            .arg(packed.path())
            .current_dir(folder),
    )?;
    let made = workspace::files(packed.path(), "tgz")?;
    let made = made.first().context("npm packed nothing")?;
    let path = out.join(name);
    std::fs::rename(made, &path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_requires_the_program_of_its_version() {
        let template = include_str!("../../../packaging/npm/mcptest/package.json");
        let manifest = main_manifest(template, "1.2.3").unwrap();
        assert_eq!(manifest["version"], "1.2.3");
        let programs = manifest["optionalDependencies"].as_object().unwrap();
        assert_eq!(programs.len(), platform::released().count());
        assert!(programs.values().all(|version| version == "1.2.3"));
        assert!(programs.contains_key("@mcptest/darwin-arm64"));
    }
}
