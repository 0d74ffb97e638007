//! Where things are, and building the program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The root of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The cargo that runs us, or the one on PATH.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // The variables that cargo sets for a program are not meant for another cargo: build scripts
    // that read them would run again, and with them everything that depends on their packages,
    // whenever we were started in another way.
    for (name, _) in std::env::vars_os() {
        let inherited = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name == "CARGO_BIN_NAME"
        });
        if inherited {
            command.env_remove(&name);
        }
    }
    command
}

/// Where cargo puts what it builds.
pub fn target_directory() -> Result<PathBuf> {
    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
    let directory = metadata["target_directory"].as_str();
    Ok(directory
        .context("cargo metadata names no target directory")?
        .into())
}

/// The build profile of the program.
#[derive(Clone, Copy)]
pub enum Profile {
    Dev,
    Release,
}

/// Builds the program and returns its path.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let release = match profile {
        Profile::Dev => None,
        Profile::Release => Some("--release"),
    };
    built("mcptest", "bin", "mcptest", release)
}

/// Builds an example of a package and returns its path.
pub fn build_example(package: &str, example: &str) -> Result<PathBuf> {
    built(package, "example", example, None)
}

fn built(package: &str, kind: &str, name: &str, release: Option<&str>) -> Result<PathBuf> {
    let output = cargo()
        .args(["build", "--message-format=json-render-diagnostics"])
        .args([format!("--package={package}"), format!("--{kind}={name}")])
        .args(release)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    ensure!(output.status.success(), "cargo build failed");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| {
            let is_it = message["target"]["name"] == name && message["target"]["kind"][0] == kind;
            message["executable"]
                .as_str()
                .filter(|_| is_it)
                .map(PathBuf::from)
        })
        .context("cargo build did not say where the program is")
}

/// Builds a package outside of our workspace, and returns the folder of its programs.
pub fn build_apart(package: &str, target: &Path) -> Result<PathBuf> {
    let status = cargo()
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(root().join(package).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .status()
        .context("cannot run cargo build")?;
    ensure!(status.success(), "{package} does not build");
    Ok(target.join("release"))
}

/// The files in a folder and the folders in it, by the ending of their names.
pub fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name() != Some(OsStr::new("target")) {
                found.extend(files(&path, ending)?);
            }
        } else if path.extension() == Some(OsStr::new(ending)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
