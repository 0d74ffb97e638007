//! The parts that other people made, and installing them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// Servers and a client on Node. The inspector is the newest that runs on Node 20.
const NPM: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/inspector@0.15.0",
];

/// The official conformance suite, and a Node that it runs on.
const CONFORMANCE: [&str; 2] = ["node@24.21.0", "@modelcontextprotocol/conformance@0.2.0-alpha.12"];

/// A server on the official Python SDK.
const TIME: [&str; 1] = ["mcp-server-time==2026.10.19"];

/// Another implementation of the protocol in Python.
pub const FASTMCP: [&str; 1] = ["fastmcp==4.1.2"];

/// Where the parts are.
pub struct Parts {
    /// The programs of the npm packages.
    pub npm_bin: PathBuf,
    folder: PathBuf,
    /// The programs beside `mcp-server-time`.
    pub time_bin: PathBuf,
    /// The interpreter that has FastMCP.
    pub fastmcp_python: PathBuf,
}

/// Installs what is not there yet.
pub fn install(folder: &Path) -> Result<Parts> {
    let npm_bin = npm(&folder.join("npm"), &NPM)?;
    // One for each: they may need different versions of the same library.
    let venv = |name: &str, packages: &[&str]| venv(&folder.join(name), packages);
    Ok(Parts {
        folder: folder.to_owned(),
        npm_bin,
        time_bin: venv("time", &TIME)?,
        fastmcp_python: venv("fastmcp", &FASTMCP)?.join("python"),
    })
}

impl Parts {
    /// The programs of the conformance suite, installed when first asked for.
    pub fn conformance_bin(&self) -> Result<PathBuf> {
        let npm = self.folder.join("conformance");
        installed(&npm, &version("node")?, &CONFORMANCE, || {
            // Its own script puts the Node for this machine in place.
            run(Command::new("npm")
                .args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
                .arg(&npm)
                .args(CONFORMANCE))
        })?;
        Ok(npm.join("node_modules/.bin"))
    }
}

/// Packages of npm in a folder of their own; says where their programs are.
pub fn npm(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    version("npm")?;
    installed(folder, &version("node")?, packages, || {
        run(Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--loglevel=error",
                "--prefix",
            ])
            .arg(folder)
            .args(packages))
    })?;
    Ok(folder.join("node_modules/.bin"))
}

/// Packages of PyPI in a virtual environment of their own; says where its programs are.
pub fn venv(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    installed(folder, &version("python3")?, packages, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        run(Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
            ])
            .args(packages))
    })?;
    Ok(folder.join("bin"))
}

/// Installs unless the marker says that exactly this is there.
fn installed(folder: &Path, runtime: &str, packages: &[&str], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let marker = folder.join("mcptest-e2e-installed");
    let wanted = format!("{runtime}\n{}\n", packages.join("\n"));
    if std::fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    eprintln!("installing {}", packages.join(", "));
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    install()?;
    // Last, so that an installation that was broken off is not taken for one.
    std::fs::write(&marker, wanted).with_context(|| format!("cannot write {}", marker.display()))
}

/// The version of a program that must be there.
fn version(program: &str) -> Result<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            Ok(format!("{program} {}", String::from_utf8_lossy(&output.stdout).trim()))
        }
        Ok(output) => bail!("`{program} --version` failed ({})", output.status),
        Err(error) => bail!("the end-to-end checks need `{program}`, which cannot be run: {error}"),
    }
}

fn run(command: &mut Command) -> Result<()> {
    let words = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        // Standard output is for the checks.
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {words}"))?;
    ensure!(status.success(), "{words} failed ({status})");
    Ok(())
}
