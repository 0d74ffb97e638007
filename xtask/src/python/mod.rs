//! The Python package: `cargo xtask python` builds its wheel, installs it and runs its tests.

pub mod stubs;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::e2e::parts;
use crate::workspace::{self, Profile};

/// The builder of wheels.
const MATURIN: [&str; 1] = ["maturin==1.16.0"];
/// Type checkers: the first from PyPI, the second from npm.
const MYPY: &str = "mypy==2.4.1";
const PYRIGHT: [&str; 1] = ["pyright@1.1.414"];
/// The packages that the tests use, and that of Apache Spark.
const TESTING: [&str; 4] = ["pytest==9.2.0", "pyarrow==26.0.1", "pandas==2.3.3", MYPY];
const SPARK: [&str; 3] = ["pyspark==4.3.0", "pyarrow==26.0.1", "pandas==2.3.3"];
/// The traces of the Spark job, unless the caller names another number.
const TRACES: u64 = 20_000;

/// The parts of the command, and its flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// One part only.
    only: Option<Part>,
    /// A debug build: it compiles faster and scores slower.
    dev: bool,
    /// The number of traces of the Spark job.
    traces: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Wheel,
    Tests,
    Spark,
}

impl Options {
    /// Reads the flags; `None` if one is unknown.
    pub fn parse(flags: &[&str]) -> Option<Self> {
        let mut options = Self {
            only: None,
            dev: false,
            traces: TRACES,
        };
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match *flag {
                "wheel" => options.only = Some(Part::Wheel),
                "tests" => options.only = Some(Part::Tests),
                "spark" => options.only = Some(Part::Spark),
                "--dev" => options.dev = true,
                "--traces" => options.traces = flags.next()?.parse().ok()?,
                _ => return None,
            }
        }
        Some(options)
    }

    fn wants(self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// Builds the wheel and checks it. True if all checks passed.
pub fn run(options: Options) -> Result<bool> {
    let target = workspace::target_directory()?.join("python");
    let wheel = wheel(&target, options.dev)?;
    println!("{}", wheel.display());
    let mut passed = true;
    if options.wants(Part::Tests) {
        passed &= clean(&target, &wheel)? && tests(&target, &wheel)? && types(&target)?;
    }
    if options.wants(Part::Spark) {
        passed &= spark(&target, &wheel, options.traces)?;
    }
    Ok(passed)
}

/// Builds a debug wheel and returns its path.
pub fn dev_wheel() -> Result<PathBuf> {
    let target = workspace::target_directory()?.join("python");
    wheel(&target, true)
}

/// Builds the wheel: the extension module, the Python sources and the program.
fn wheel(target: &Path, dev: bool) -> Result<PathBuf> {
    let profile = if dev { Profile::Dev } else { Profile::Release };
    let sources = workspace::root().join("python");
    // maturin takes the scripts of a wheel from this folder.
    let scripts = sources.join("mcptest.data/scripts");
    std::fs::create_dir_all(&scripts)
        .with_context(|| format!("cannot make {}", scripts.display()))?;
    std::fs::copy(workspace::build(profile)?, scripts.join("mcptest"))
        .context("cannot copy the program")?;
    let out = target.join("wheels");
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    let maturin = parts::venv(&target.join("maturin"), &MATURIN)?.join("maturin");
    let mut command = Command::new(maturin);
    command
        .args(["build", "--locked", "--quiet", "--out"])
        .arg(&out)
        .args((!dev).then_some("--release"))
        .current_dir(&sources);
    ensure!(succeeds(&mut command)?, "maturin failed");
    let built = workspace::files(&out, "whl")?;
    built.into_iter().next().context("maturin made no wheel")
}

/// The wheel alone, without any other package: the import, the program, and what needs neither
/// pandas nor Arrow.
fn clean(target: &Path, wheel: &Path) -> Result<bool> {
    let folder = target.join("clean");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove the last environment")?;
    }
    let mut make = Command::new("python3");
    ensure!(succeeds(make.args(["-m", "venv"]).arg(&folder))?, "no venv");
    let bin = folder.join("bin");
    install(&bin, wheel)?;
    let script = workspace::root().join("python/tests/clean.py");
    succeeds(Command::new(bin.join("python")).arg("-I").arg(script))
}

/// The tests of the package, with pandas and Arrow.
fn tests(target: &Path, wheel: &Path) -> Result<bool> {
    let bin = parts::venv(&target.join("tests"), &TESTING)?;
    install(&bin, wheel)?;
    let mut pytest = Command::new(bin.join("python"));
    pytest
        // Without the folder of the sources, which has no extension module.
        .args(["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(workspace::root().join("python/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(target);
    succeeds(&mut pytest)
}

/// The stubs, as two type checkers see them in the installed package.
fn types(target: &Path) -> Result<bool> {
    let bin = target.join("tests/bin");
    let usage = workspace::root().join("python/tests/usage.py");
    let sources = workspace::root().join("python");
    let mypy = Command::new(bin.join("python"))
        .args(["-m", "mypy", "--cache-dir=/dev/null", "--config-file"])
        .arg(sources.join("pyproject.toml"))
        .args(["-p", "mcptest"])
        .current_dir(target)
        .status()
        .context("cannot run mypy")?;
    let with_usage = Command::new(bin.join("python"))
        .args(["-m", "mypy", "--cache-dir=/dev/null", "--config-file"])
        .arg(sources.join("pyproject.toml"))
        .arg(&usage)
        .current_dir(target)
        .status()
        .context("cannot run mypy")?;
    let pyright = parts::npm(&target.join("pyright"), &PYRIGHT)?.join("pyright");
    let pyright = Command::new(pyright)
        .arg("--pythonpath")
        .arg(bin.join("python"))
        .arg("--project")
        .arg(sources.join("pyproject.toml"))
        .current_dir(&sources)
        .status()
        .context("cannot run pyright")?;
    Ok(mypy.success() && with_usage.success() && pyright.success())
}

/// A job on a cluster of Apache Spark, with an executor that is killed on the way.
fn spark(target: &Path, wheel: &Path, traces: u64) -> Result<bool> {
    let java = Command::new("java")
        .arg("-version")
        .stderr(Stdio::null())
        .status();
    ensure!(
        java.is_ok_and(|status| status.success()),
        "Spark needs Java 17 or later; Debian has it in `default-jre-headless`"
    );
    let bin = parts::venv(&target.join("spark"), &SPARK)?;
    install(&bin, wheel)?;
    let folder = target.join("spark-job");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove the last job")?;
    }
    std::fs::create_dir_all(&folder).context("cannot make the folder of the job")?;
    let done = succeeds(
        Command::new(bin.join("python"))
            .arg("-P")
            .arg(workspace::root().join("python/tests/spark_job.py"))
            .arg(&folder)
            .arg(traces.to_string())
            .current_dir(&folder),
    );
    // A million traces are 2.7 GB.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// Installs the wheel in place of the one of the last invocation.
fn install(bin: &Path, wheel: &Path) -> Result<()> {
    let mut pip = Command::new(bin.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--no-deps"])
        .args(["--no-index", "--force-reinstall"])
        .arg(wheel);
    ensure!(succeeds(&mut pip)?, "the wheel cannot be installed");
    Ok(())
}

fn succeeds(command: &mut Command) -> Result<bool> {
    let words = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {words}"))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_select_parts() {
        let options = Options::parse(&["spark", "--traces", "1000000"]).unwrap();
        assert!(options.wants(Part::Spark) && !options.wants(Part::Tests));
        assert_eq!(options.traces, 1_000_000);
        assert!(Options::parse(&[]).unwrap().wants(Part::Tests));
        assert_eq!(Options::parse(&["--traces"]), None);
        assert_eq!(Options::parse(&["other"]), None);
    }
}
