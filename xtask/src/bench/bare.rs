//! Programs without any of our code, which measurements compare with or talk to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::workspace;

/// Compiles one of the programs in `bare/`, which are nobody's package so that nothing of ours can
/// get into them.
pub fn compile(folder: &Path, name: &str) -> Result<PathBuf> {
    let source = workspace::root().join(format!("xtask/src/bench/bare/{name}.rs"));
    let program = folder.join(name);
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args([
            "--edition=2024",
            "-O",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-o",
        ])
        .args([&program, &source])
        .status()
        .context("cannot run rustc")?;
    ensure!(status.success(), "cannot compile {}", source.display());
    Ok(program)
}
