//! The Debian package, built with `dpkg-deb`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::GzBuilder;

use super::platform::Platform;
use super::{BundledFiles, LICENCES, copy_program, output, set_mode};
use crate::workspace;

const CONTROL: &str = include_str!("../../../packaging/deb/control");

/// Returns true if `dpkg-deb` is installed.
pub fn is_possible() -> bool {
    let mut command = Command::new("dpkg-deb");
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Builds the package and returns its path.
pub fn make(program: &Path, platform: &Platform, version: &str, out: &Path) -> Result<PathBuf> {
    let architecture = platform.debian.context("Debian has no such platform")?;
    let staged = tempfile::tempdir().context("cannot make a folder")?;
    let root = staged.path().join("package");
    let companions = BundledFiles::of(program)?;
    let place = |path: &str| -> Result<PathBuf> {
        let path = root.join(path);
        let folder = path.parent().unwrap_or(&root);
        std::fs::create_dir_all(folder)?;
        Ok(path)
    };
    copy_program(program, &place("usr/bin/mcptest")?)?;
    let scripts = companions.completions();
    for (script, path) in [
        (
            "mcptest.bash",
            "usr/share/bash-completion/completions/mcptest",
        ),
        ("_mcptest", "usr/share/zsh/vendor-completions/_mcptest"),
        (
            "mcptest.fish",
            "usr/share/fish/vendor_completions.d/mcptest.fish",
        ),
    ] {
        std::fs::copy(scripts.join(script), place(path)?)?;
    }
    for entry in std::fs::read_dir(companions.man().join("man1"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let page = place(&format!("usr/share/man/man1/{name}.gz"))?;
        compress(&std::fs::read(entry.path())?, &page)?;
    }
    let mut copyright =
        String::from("mcptest is licensed under MIT or Apache-2.0, at your choice.\n");
    for licence in LICENCES {
        let text = std::fs::read_to_string(workspace::root().join(licence))?;
        copyright.push_str(&format!("\n---- {licence}\n\n{text}"));
    }
    std::fs::write(place("usr/share/doc/mcptest/copyright")?, copyright)?;
    let changes = std::fs::read(workspace::root().join("CHANGELOG.md"))?;
    compress(&changes, &place("usr/share/doc/mcptest/changelog.gz")?)?;
    let control = control(version, architecture, installed_size(&root)?);
    std::fs::write(place("DEBIAN/control")?, control)?;
    normalise_modes(&root)?;
    let path = out.join(format!("mcptest_{version}_{architecture}.deb"));
    output(
        Command::new("dpkg-deb")
            .args(["--build", "--root-owner-group", "-Zxz"])
            .arg(&root)
            .arg(&path),
    )?;
    Ok(path)
}

fn control(version: &str, architecture: &str, kilobytes: u64) -> String {
    CONTROL
        .replace("@VERSION@", version)
        .replace("@ARCHITECTURE@", architecture)
        .replace("@SIZE@", &kilobytes.to_string())
}

/// Compresses without name and time, so that equal content gives equal bytes.
fn compress(content: &[u8], path: &Path) -> Result<()> {
    let file = std::fs::File::create(path)?;
    let mut writer = GzBuilder::new().mtime(0).write(file, Compression::best());
    writer.write_all(content)?;
    writer.finish()?;
    Ok(())
}

/// The size of all files in kilobytes.
fn installed_size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        bytes += if path.is_dir() {
            installed_size(&path)? * 1024
        } else {
            path.metadata()?.len()
        };
    }
    Ok(bytes.div_ceil(1024))
}

/// Gives folders and files the modes that Debian expects, whatever the umask is.
fn normalise_modes(folder: &Path) -> Result<()> {
    set_mode(folder, 0o755)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            normalise_modes(&path)?;
        } else if !path.ends_with("usr/bin/mcptest") {
            set_mode(&path, 0o644)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_no_placeholder_left() {
        let control = control("1.2.3", "amd64", 7);
        assert!(
            control.contains("Version: 1.2.3\nArchitecture: amd64\n"),
            "{control}"
        );
        assert!(!control.contains('@'), "{control}");
        assert!(control.ends_with('\n'));
    }
}
