//! Fuzzing: `cargo xtask fuzz`, which is the program `fuzz` of the package `mcptest-fuzz`.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::workspace;

/// Hands the arguments on. Returns false if something was found.
pub fn run(arguments: &[&str]) -> Result<bool> {
    let status = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["run", "--quiet", "--package", "mcptest-fuzz"])
        .args(["--bin", "fuzz", "--"])
        .args(arguments)
        .current_dir(workspace::root())
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}
