//! CI files: a workflow for GitHub, a pipeline for GitLab.

use std::fmt::Write as _;

use mcptest_yaml::write;
use serde_json::json;

use crate::launch::Launch;

/// The repository of the Action. `OWNER` is replaced by its users until there is a release.
const ACTION: &str = "OWNER/mcptest@v1";

/// The CI system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ci {
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
}

impl Ci {
    /// The file, relative to the root of the repository.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Github => ".github/workflows/mcptest.yml",
            Self::Gitlab => ".gitlab-ci.yml",
        }
    }
}

/// The parts that a CI file is written from.
pub struct CiDraft<'a> {
    /// The servers.
    pub launches: &'a [&'a Launch],
    /// The folder of the suite, relative to the root of the repository; `.` for the root itself.
    pub folder: &'a str,
    /// The default branch.
    pub branch: &'a str,
    /// Returns true if the root of the repository has a file.
    pub has_file: &'a dyn Fn(&str) -> bool,
}

/// Writes the file.
#[must_use]
pub fn text(ci: Ci, draft: &CiDraft<'_>) -> String {
    match ci {
        Ci::Github => github(draft),
        Ci::Gitlab => gitlab(draft),
    }
}

/// The tools that the servers need.
#[derive(Default)]
struct Needs {
    python: bool,
    uv: bool,
    node: bool,
}

impl Needs {
    fn of(launches: &[&Launch]) -> Self {
        let mut needs = Self::default();
        for launch in launches {
            let Some(program) = launch.argv.first() else {
                continue;
            };
            let name = program.rsplit('/').next().unwrap_or(program);
            match name {
                "uv" | "uvx" => needs.uv = true,
                "node" | "npx" | "npm" | "tsx" | "bun" | "deno" => needs.node = true,
                _ if name.starts_with("python") || program.contains("venv/") => {
                    needs.python = true;
                }
                _ => {}
            }
        }
        needs
    }
}

/// The command that installs the packages of a Python project.
fn pip(draft: &CiDraft<'_>) -> Option<&'static str> {
    if (draft.has_file)("requirements.txt") {
        Some("pip install -r requirements.txt")
    } else if (draft.has_file)("pyproject.toml") {
        Some("pip install .")
    } else {
        None
    }
}

/// The command that installs the packages of a Node project.
fn npm(draft: &CiDraft<'_>) -> Option<&'static str> {
    if (draft.has_file)("package-lock.json") {
        Some("npm ci")
    } else if (draft.has_file)("package.json") {
        Some("npm install")
    } else {
        None
    }
}

/// The names of variables that the servers need, each once.
fn variables<'a>(draft: &CiDraft<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for launch in draft.launches {
        for name in &launch.variables {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    names
}

fn github(draft: &CiDraft<'_>) -> String {
    let needs = Needs::of(draft.launches);
    let mut out = String::from(
        "# Written by `mcptest init`. The action installs mcptest, runs the suite,\n\
         # uploads the reports, and comments on pull requests with a comparison.\n\
         # OWNER is the owner of the repository of mcptest that you use.\n\
         name: mcptest\n\non:\n  push:\n",
    );
    let _ = writeln!(out, "    branches: [{}]", write::string(draft.branch));
    out.push_str(
        "  pull_request:\n\npermissions:\n  contents: read\n  pull-requests: write\n\njobs:\n  \
         mcptest:\n    runs-on: ubuntu-latest\n    timeout-minutes: 20\n    steps:\n      \
         - uses: actions/checkout@v5.0.0\n",
    );
    if needs.python {
        out.push_str(
            "      - uses: actions/setup-python@v6.0.0\n        with:\n          \
             python-version: \"3.12\"\n",
        );
        match pip(draft) {
            Some(command) => {
                let _ = writeln!(out, "      - run: {command}");
            }
            None => out.push_str(
                "      # Install what the server needs:\n      # - run: pip install fastmcp\n",
            ),
        }
    }
    if needs.uv {
        out.push_str("      - uses: astral-sh/setup-uv@v6.8.0\n");
    }
    if needs.node {
        out.push_str(
            "      - uses: actions/setup-node@v5.0.0\n        with:\n          \
             node-version: \"24\"\n",
        );
        if let Some(command) = npm(draft) {
            let _ = writeln!(out, "      - run: {command}");
            if draft.launches.iter().any(|launch| {
                launch
                    .argv
                    .iter()
                    .any(|word| word.contains("dist/") || word.contains("build/"))
            }) {
                out.push_str("      - run: npm run build\n");
            }
        }
    }
    let _ = writeln!(out, "      - uses: {ACTION}");
    let variables = variables(draft);
    if !variables.is_empty() {
        out.push_str("        env:\n");
        for name in &variables {
            let _ = writeln!(out, "          {name}: ${{{{ secrets.{name} }}}}");
        }
    }
    out.push_str("        with:\n          suite: mcptest.yml\n");
    if draft.folder != "." {
        write::entry(&mut out, 10, "working-directory", &draft.folder.into());
    }
    // Without the secrets of the repository, which pull requests of forks do not get.
    if !variables.is_empty() {
        out.push_str("          # Forks have no secrets. Without them: args: --tag offline\n");
    }
    out
}

fn gitlab(draft: &CiDraft<'_>) -> String {
    let needs = Needs::of(draft.launches);
    let mut out = String::from(
        "# Written by `mcptest init`. OWNER is the owner of the repository of mcptest\n\
         # that you use; its template installs mcptest, runs the suite, and keeps the\n\
         # reports.\n\
         include:\n  - project: OWNER/mcptest\n    ref: v1\n    file: ci/gitlab.yml\n\n\
         mcp tests:\n  extends: .mcptest\n",
    );
    if needs.python || needs.uv {
        // The template's image has Node; the wheel from PyPI has the same program.
        out.push_str("  image: python:3.12-slim\n  before_script:\n    - pip install mcptest\n");
        if needs.uv {
            out.push_str("    - pip install uv\n");
        }
        match pip(draft).filter(|_| needs.python) {
            Some(command) => {
                let _ = writeln!(out, "    - {command}");
            }
            None => out.push_str("    # Install what the server needs: pip install fastmcp\n"),
        }
    } else if let Some(command) = npm(draft).filter(|_| needs.node) {
        let _ = writeln!(
            out,
            "  before_script:\n    - npm install --global \"mcptest@$MCPTEST_VERSION\"\n    - {command}"
        );
    }
    let suite = match draft.folder {
        "." => "mcptest.yml".to_owned(),
        folder => format!("{folder}/mcptest.yml"),
    };
    write::entry(&mut out, 2, "variables", &json!({ "MCPTEST_SUITE": suite }));
    let variables = variables(draft);
    if !variables.is_empty() {
        let words = format!(
            "Set these as masked CI/CD variables of the project: {}.",
            variables.join(", ")
        );
        write::comment(&mut out, 2, &words);
    }
    out
}

#[cfg(test)]
mod tests {
    use mcptest_yaml::{Document, DocumentLimits};
    use serde_json::Value;

    use super::*;

    fn written(ci: Ci, argv: &[&str], files: &[&str], folder: &str) -> (String, Value) {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let launch = Launch::command("x", &argv, None);
        let text = text(
            ci,
            &CiDraft {
                launches: &[&launch],
                folder,
                branch: "main",
                has_file: &|name| files.contains(&name),
            },
        );
        let value = Document::parse("ci.yml", text.as_bytes(), &DocumentLimits::default())
            .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
            .root()
            .to_json();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        (text, value)
    }

    #[test]
    fn the_workflow_installs_what_the_server_needs() {
        let (text, value) = written(Ci::Github, &["python3", "s.py"], &["requirements.txt"], ".");
        assert_eq!(
            value["jobs"]["mcptest"]["steps"][2]["run"],
            "pip install -r requirements.txt"
        );
        assert!(
            text.contains(
                "- uses: OWNER/mcptest@v1\n        with:\n          suite: mcptest.yml\n"
            )
        );
        let (text, value) = written(
            Ci::Github,
            &["npx", "-y", "x", "--token=abc"],
            &["package-lock.json"],
            "tests/mcp",
        );
        let steps = &value["jobs"]["mcptest"]["steps"];
        assert_eq!(steps[2]["run"], "npm ci");
        assert_eq!(steps[3]["env"]["TOKEN"], "${{ secrets.TOKEN }}");
        assert_eq!(steps[3]["with"]["working-directory"], "tests/mcp");
        assert!(!text.contains("abc"));
        let (_, value) = written(Ci::Github, &["uvx", "x"], &[], ".");
        assert_eq!(
            value["jobs"]["mcptest"]["steps"][1]["uses"],
            "astral-sh/setup-uv@v6.8.0"
        );
        let (_, value) = written(Ci::Github, &["/opt/x"], &[], ".");
        assert_eq!(
            value["jobs"]["mcptest"]["steps"].as_array().map(Vec::len),
            Some(2)
        );
    }

    #[test]
    fn the_pipeline_extends_the_template() {
        let (_, value) = written(Ci::Gitlab, &["python3", "s.py"], &["pyproject.toml"], "sub");
        let job = &value["mcp tests"];
        assert_eq!(job["extends"], ".mcptest");
        assert_eq!(job["variables"]["MCPTEST_SUITE"], "sub/mcptest.yml");
        assert_eq!(job["before_script"][1], "pip install .");
        let (_, value) = written(Ci::Gitlab, &["node", "x.js"], &["package.json"], ".");
        assert_eq!(value["mcp tests"]["before_script"][1], "npm install");
    }
}
