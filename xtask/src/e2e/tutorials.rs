//! The tutorials, run as they are written, with the Python packages that they install.

use anyhow::{Context as _, Result, ensure};

use super::Checks;
use super::testbed::Testbed;
use crate::workspace;

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check("tutorials show what happens", || play(testbed));
}

/// Runs the test of the pages with an interpreter that has FastMCP, so that no page is skipped.
fn play(testbed: &Testbed) -> Result<()> {
    let bin = testbed.parts.fastmcp_python.parent();
    let bin = bin.context("the interpreter is in no folder")?;
    let output = workspace::cargo()
        .args(["test", "--package", "mcptest", "--test", "it", "--"])
        .args(["--exact", "docs::commands_do_what_the_pages_show"])
        .env("MCPTEST_FASTMCP_BIN", bin)
        .output()
        .context("cannot run cargo test")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(())
}
