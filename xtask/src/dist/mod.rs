//! `cargo xtask dist`: the artefacts of a release, as far as this machine can build them.
//!
//! `platform` makes what differs between platforms from a program: archive, Debian package, npm
//! package. `finish` makes what a release has once: the npm package `mcptest`, the Homebrew
//! formula, the SBOM and the checksums of everything in the folder. The release workflow runs
//! the first on each platform and the second at the end. The wheel comes from
//! `cargo xtask python wheel`.

mod archive;
mod checksums;
mod debian;
mod homebrew;
pub mod npm;
pub mod platform;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::workspace;
use platform::Platform;

/// The parts of the command, and its flags.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Options {
    /// One part only.
    only: Option<Part>,
    /// The target triple; that of this machine by default.
    target: Option<String>,
    /// A program that is already built for the target.
    program: Option<PathBuf>,
    /// The folder of the artefacts; `dist` in cargo's target directory by default.
    out: Option<PathBuf>,
    /// The address of the repository, for the Homebrew formula.
    repository: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Platform,
    Finish,
}

impl Options {
    /// Reads the flags; `None` if one is unknown.
    pub fn parse(flags: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match *flag {
                "platform" => options.only = Some(Part::Platform),
                "finish" => options.only = Some(Part::Finish),
                "--target" => options.target = Some((*flags.next()?).to_owned()),
                "--program" => options.program = Some(flags.next()?.into()),
                "--out" => options.out = Some(flags.next()?.into()),
                "--repository" => options.repository = Some((*flags.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Builds the artefacts and prints their paths.
pub fn run(options: &Options) -> Result<bool> {
    let out = match &options.out {
        Some(out) => out.clone(),
        None => workspace::target_directory()?.join("dist"),
    };
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    // npm runs in another folder.
    let out = out
        .canonicalize()
        .context("cannot find the folder of the artefacts")?;
    let version = version()?;
    if options.wants(Part::Platform) {
        let target = match &options.target {
            Some(target) => target.clone(),
            None => host()?,
        };
        let platform = Platform::of(&target).with_context(|| {
            format!("{target} is not a supported platform: {}", platform::list())
        })?;
        let program = match &options.program {
            Some(program) => program.clone(),
            None => build(&target)?,
        };
        println!(
            "{}",
            archive::make(&program, platform, &version, &out)?.display()
        );
        if platform.debian.is_some() {
            if debian::is_possible() {
                println!(
                    "{}",
                    debian::make(&program, platform, &version, &out)?.display()
                );
            } else {
                println!("no Debian package: dpkg-deb is not installed");
            }
        }
        println!(
            "{}",
            npm::platform_package(&program, platform, &version, &out)?.display()
        );
    }
    if options.wants(Part::Finish) {
        println!("{}", npm::main_package(&version, &out)?.display());
        println!(
            "{}",
            homebrew::make(&version, options.repository.as_deref(), &out)?.display()
        );
        println!("{}", sbom::make(&version, &out)?.display());
        println!("{}", checksums::make(&out)?.display());
    }
    Ok(true)
}

/// Writes an archive and its checksum, as a release has them.
pub fn local_archive(program: &Path, platform: &Platform, version: &str, out: &Path) -> Result<()> {
    archive::make(program, platform, version, out)?;
    checksums::make(out)?;
    Ok(())
}

/// The version of the workspace.
pub fn version() -> Result<String> {
    let manifest = std::fs::read_to_string(workspace::root().join("Cargo.toml"))
        .context("cannot read Cargo.toml")?;
    let section = manifest
        .split("[workspace.package]")
        .nth(1)
        .context("Cargo.toml has no [workspace.package]")?;
    let version = section.lines().find_map(|line| {
        let value = line.strip_prefix("version = \"")?;
        value.strip_suffix('"')
    });
    Ok(version.context("Cargo.toml has no version")?.to_owned())
}

/// The target triple of this machine.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

/// Builds the program for a target.
fn build(target: &str) -> Result<PathBuf> {
    let status = workspace::cargo()
        .args([
            "build",
            "--release",
            "--locked",
            "--package=mcptest",
            "--target",
            target,
        ])
        .status()
        .context("cannot run cargo build")?;
    ensure!(
        status.success(),
        "no program for {target}; is the target there? `rustup target add {target}`"
    );
    Ok(workspace::target_directory()?
        .join(target)
        .join("release")
        .join("mcptest"))
}

/// Files that go with every program: licences, README, completions and manual pages.
struct BundledFiles {
    folder: tempfile::TempDir,
}

/// The completion scripts: the shell, and the file as its package managers name it.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "mcptest.bash"),
    ("zsh", "_mcptest"),
    ("fish", "mcptest.fish"),
    ("elvish", "mcptest.elv"),
    ("powershell", "_mcptest.ps1"),
];

impl BundledFiles {
    /// Asks the program for them. It must run on this machine.
    fn of(program: &Path) -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let completions = folder.path().join("completions");
        std::fs::create_dir(&completions).context("cannot make a folder")?;
        for (shell, file) in COMPLETIONS {
            let script = output(Command::new(program).args(["completions", shell]))?;
            std::fs::write(completions.join(file), script).context("cannot write a completion")?;
        }
        output(
            Command::new(program)
                .args(["--quiet", "man"])
                .arg(folder.path().join("man/man1")),
        )?;
        Ok(Self { folder })
    }

    fn completions(&self) -> PathBuf {
        self.folder.path().join("completions")
    }

    fn man(&self) -> PathBuf {
        self.folder.path().join("man")
    }
}

/// The licences and the README, which every artefact has.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// The standard output of a program that has to succeed.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let words = format!("{command:?}");
    let done = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot run {words}"))?;
    if !done.status.success() {
        bail!("{words} failed: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(done.stdout)
}

/// Makes a folder empty.
fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Copies a program, executable for all.
fn copy_program(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    set_mode(to, 0o755)
}

/// Sets the permissions of a file, where files have them.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .with_context(|| format!("cannot set the mode of {}", path.display()))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_select_parts() {
        let options = Options::parse(&["platform", "--target", "x", "--program", "p"]).unwrap();
        assert!(options.wants(Part::Platform) && !options.wants(Part::Finish));
        assert_eq!(options.target.as_deref(), Some("x"));
        assert!(Options::parse(&[]).unwrap().wants(Part::Finish));
        assert_eq!(Options::parse(&["--target"]), None);
        assert_eq!(Options::parse(&["other"]), None);
    }

    #[test]
    fn the_version_is_that_of_the_packages() {
        assert_eq!(version().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
