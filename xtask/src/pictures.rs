//! Pictures of the terminal for the documentation: real commands, drawn as SVG.
//!
//! The commands print no times, so equal programs give equal pictures.

use std::process::{Command, Stdio};

use anstyle_svg::Term;
use anyhow::{Context as _, Result, ensure};

use crate::workspace::{self, Profile};

/// A picture: its name, the command line, and the exit code of the command.
const PICTURES: [(&str, &[&str], i32); 3] = [
    (
        "run",
        &["run", "examples/quickstart/mcptest.yml", "--no-timing"],
        0,
    ),
    (
        "run-failing",
        &["run", "examples/quickstart/failing.yml", "--no-timing"],
        1,
    ),
    (
        "compare",
        &[
            "report",
            "examples/reports/current.json",
            "--compare",
            "examples/reports/baseline.json",
        ],
        1,
    ),
];

/// Draws all pictures.
pub fn run() -> Result<()> {
    let program = workspace::build(Profile::Dev)?;
    for (name, arguments, code) in PICTURES {
        let output = Command::new(&program)
            .args(arguments)
            .args(["--color", "always"])
            .env("COLUMNS", "100")
            .env("CI", "true")
            .env("CLICOLOR_FORCE", "1")
            .current_dir(workspace::root())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        ensure!(
            output.status.code() == Some(code),
            "`mcptest {}` ended with {}",
            arguments.join(" "),
            output.status
        );
        let shown = String::from_utf8(output.stdout).context("the output is not UTF-8")?;
        let text = format!("$ mcptest {}\n{shown}", arguments.join(" "));
        let path = workspace::root().join(format!("docs/images/{name}.svg"));
        std::fs::write(&path, Term::new().render_svg(&text))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote docs/images/{name}.svg");
    }
    Ok(())
}
