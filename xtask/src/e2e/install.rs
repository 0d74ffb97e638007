//! The packages, installed into clean environments as their users would: the npm tarballs, with
//! Vitest and Jest, and the wheel, with pytest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::Checks;
use super::parts;
use super::testbed::Testbed;
use crate::dist::{self, npm, platform};
use crate::workspace;

/// Test runners for Node; Jest is the newest that runs on Node 18.
const RUNNERS: [&str; 2] = ["vitest@3.2.4", "jest@29.7.0"];
const PYTEST: [&str; 1] = ["pytest==9.2.0"];

/// A test file of Vitest, and one of Jest, with a suite that passes and one that fails.
const VITEST: &str = r#"import { expect, test } from "vitest";
import { listTests, mcptest } from "mcptest/vitest";

mcptest("mcptest.yml", { args: ["--no-history"] });
mcptest("failing.yml", { args: ["--no-history"] });

test("tests are listed", () => {
  expect(listTests("mcptest.yml").map((it) => it.kind)).toEqual(["agent", "agent", "tool", "tool"]);
});
"#;
const JEST: &str = r#"const { mcptest } = require("mcptest/jest");

mcptest("mcptest.yml", { args: ["--no-history"] });
mcptest("failing.yml", { args: ["--no-history"] });
"#;

pub fn run(testbed: &Testbed, wheel: fn() -> Result<PathBuf>, checks: &mut Checks<'_>) {
    checks.check("install npm", || install_npm(testbed));
    checks.check("install wheel", || install_wheel(testbed, &wheel()?));
}

/// The tarballs in an empty project: `npx mcptest`, signals and exit codes, Vitest, Jest.
fn install_npm(testbed: &Testbed) -> Result<()> {
    let Some(platform) = platform::PLATFORMS
        .iter()
        .find(|it| it.os == "linux" && it.target.starts_with(std::env::consts::ARCH))
    else {
        anyhow::bail!("no npm package for this machine");
    };
    let folder = testbed.scratch("npm")?;
    let version = dist::version()?;
    let program = npm::platform_package(&testbed.program, platform, &version, &folder)?;
    let launcher = npm::main_package(&version, &folder)?;
    let project = testbed.scratch("npm/project")?;
    quickstart(&project)?;
    std::fs::write(
        project.join("package.json"),
        r#"{"private": true, "type": "module"}"#,
    )?;
    let mut install = Command::new("npm");
    install
        .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
        .args([&launcher, &program]);
    succeeds(&mut install, &project)?;
    let bin = project.join("node_modules/.bin/mcptest");
    uses_program(testbed, &bin, &project, &version)?;
    let npx = output(
        Command::new("npx").args(["--no-install", "mcptest", "--version"]),
        &project,
    )?;
    ensure!(
        npx.1.lines().next() == Some(&format!("mcptest {version}")),
        "npx printed {:?}",
        npx.1
    );

    let runners = parts::npm(&testbed.folder.join("../runners"), &RUNNERS)?;
    // The helper imports `vitest` from where it is installed.
    let modules = runners.parent().context("no folder of modules")?;
    for package in std::fs::read_dir(modules)? {
        let package = package?;
        let place = project.join("node_modules").join(package.file_name());
        if !place.exists() {
            std::os::unix::fs::symlink(package.path(), place)?;
        }
    }
    std::fs::write(project.join("suite.test.js"), VITEST)?;
    let vitest = runners.join("vitest");
    let (code, text) = output(
        Command::new(vitest).arg("run").env("NO_COLOR", "1"),
        &project,
    )?;
    ensure!(
        code == 1 && text.contains("2 failed | 5 passed"),
        "vitest: {code}\n{text}"
    );
    ensure!(
        text.contains("tool_selection.precision: expected"),
        "no reasons:\n{text}"
    );
    std::fs::remove_file(project.join("suite.test.js"))?;
    std::fs::write(project.join("suite.test.cjs"), JEST)?;
    let mut jest = Command::new(runners.join("jest"));
    jest.args([
        "--rootDir",
        ".",
        "--testMatch",
        "**/*.test.cjs",
        "--watchman=false",
    ]);
    let (code, text) = output(&mut jest, &project)?;
    ensure!(
        code == 1 && text.contains("2 failed, 4 passed"),
        "jest: {code}\n{text}"
    );
    Ok(())
}

/// The wheel in an empty environment: the program, then pytest beside it.
fn install_wheel(testbed: &Testbed, wheel: &Path) -> Result<()> {
    let project = testbed.scratch("wheel")?;
    quickstart(&project)?;
    let environment = project.join("venv");
    succeeds(
        Command::new("python3")
            .args(["-m", "venv"])
            .arg(&environment),
        &project,
    )?;
    let python = environment.join("bin/python");
    let pip = |packages: &[&str], offline: bool| {
        let mut command = Command::new(&python);
        command
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .arg("--disable-pip-version-check")
            .args(offline.then_some("--no-index"))
            .args(packages);
        command
    };
    succeeds(&mut pip(&[&wheel.to_string_lossy()], true), &project)?;
    let version = dist::version()?;
    uses_program(
        testbed,
        &environment.join("bin/mcptest"),
        &project,
        &version,
    )?;
    succeeds(&mut pip(&PYTEST, false), &project)?;
    let mut pytest = Command::new(&python);
    pytest.args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "mcptest.yml",
    ]);
    let (code, text) = output(&mut pytest, &project)?;
    ensure!(
        code == 0 && text.contains("4 passed"),
        "pytest: {code}\n{text}"
    );
    Ok(())
}

/// The files of the quickstart, in a separate folder.
fn quickstart(project: &Path) -> Result<()> {
    let examples = workspace::root().join("examples/quickstart");
    std::fs::create_dir_all(project.join("servers"))?;
    for file in ["mcptest.yml", "failing.yml", "servers/weather.yml"] {
        std::fs::copy(examples.join(file), project.join(file))
            .with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}

/// The installed program has the version, runs the suite of the README, has its exit codes, and
/// leaves no process behind when it is ended.
fn uses_program(testbed: &Testbed, bin: &Path, project: &PathBuf, version: &str) -> Result<()> {
    let (code, text) = output(Command::new(bin).arg("--version"), project)?;
    ensure!(
        code == 0 && text.trim() == format!("mcptest {version}"),
        "{code}: {text}"
    );
    for (suite, wanted, words) in [
        ("mcptest.yml", 0, "4 tests: 4 passed"),
        ("failing.yml", 1, "2 tests: 0 passed, 2 failed"),
        ("none.yml", 2, "none.yml"),
    ] {
        let mut run = Command::new(bin);
        run.args(["run", suite, "--no-history"])
            .current_dir(project);
        let done = testbed.finish(&mut run)?;
        let text = format!("{}{}", done.stdout, done.stderr);
        ensure!(
            done.code == Some(wanted) && text.contains(words),
            "{suite} ended with {:?}:\n{text}",
            done.code
        );
    }
    Ok(())
}

fn succeeds(command: &mut Command, folder: &Path) -> Result<()> {
    let words = format!("{command:?}");
    let (code, text) = output(command, folder)?;
    ensure!(code == 0, "{words} ended with {code}:\n{text}");
    Ok(())
}

/// The exit code and the output of a command in a folder.
fn output(command: &mut Command, folder: &Path) -> Result<(i32, String)> {
    let words = format!("{command:?}");
    let done = command
        .current_dir(folder)
        .env("CI", "true")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {words}"))?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    Ok((done.status.code().unwrap_or(-1), text))
}
