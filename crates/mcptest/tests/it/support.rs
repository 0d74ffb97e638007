//! Running the program.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The program, in a folder, with a clean slate of what could change its output.
pub fn mcptest(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcptest"));
    command
        .current_dir(dir)
        .env_remove("NO_COLOR")
        .env_remove("MCPTEST_TEST_UNSET")
        .env("CI", "true")
        // Logins of the user who runs the tests are not theirs.
        .env("MCPTEST_AUTH_DIR", dir.join("logins"))
        .env("MCPTEST_AUTH_KEYCHAIN", "0")
        .env_remove("MCPTEST_AUTH_PASSPHRASE")
        .stdin(Stdio::null());
    for name in ["http_proxy", "https_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    for provider in mcptest_runner::built_in_providers() {
        for variable in provider.key_variables {
            command.env_remove(variable);
        }
    }
    command
}

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }
}

pub fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub fn run(dir: &Path, args: &[&str]) -> Ran {
    ran(&mcptest(dir).args(args).output().unwrap())
}

/// A mark for the command line of a process, to find it among all processes. It differs between
/// test processes: two test runs on one machine must not take each other's servers for their own.
pub fn mark(name: &str) -> String {
    format!("mcptest-mark-{}-{name}-", std::process::id())
}

/// A scratch folder with files in it.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

/// All files below a folder with one of these endings, sorted.
pub fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path
            .extension()
            .is_some_and(|extension| extension == ending)
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A mock server over HTTP, ended with the test.
pub struct HttpMock {
    child: std::process::Child,
    pub url: String,
}

impl HttpMock {
    /// Serves a manifest or a captured catalog.
    pub fn start(dir: &Path, manifest: &str) -> Self {
        let mut child = mcptest(dir)
            .args(["mock", "--tools-from", manifest, "--http", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { child, url }
    }
}

impl Drop for HttpMock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
