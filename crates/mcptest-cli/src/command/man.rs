//! `mcptest man`.

use std::path::Path;

use clap::CommandFactory as _;
use mcptest_report::ExitCode;

use crate::cli::{Cli, ManArgs};
use crate::failure::Failure;
use crate::output::Output;

/// Writes a manual page for the program and one for each command: `mcptest-run.1`.
pub fn man(args: &ManArgs, output: &Output) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::Message(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut command = Cli::command();
    // Fills in the names of commands (`mcptest-run`) and the flags that all of them have.
    command.build();
    let written = write_pages(&command, folder).map_err(|(path, error)| failed(&path, &error))?;
    output.status(&format!("wrote {written} pages to {}", folder.display()));
    Ok(ExitCode::Passed)
}

type WriteError = (std::path::PathBuf, std::io::Error);

/// Writes the page of a command and the pages of those below it. Returns their number.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<usize, WriteError> {
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)
        .and_then(|()| mcptest_files::write(&path, &text))
        .map_err(|error| (path, error))?;
    let mut written = 1;
    for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        written += write_pages(inner, folder)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Cli::command();
        command.build();
        let written = write_pages(&command, dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), written);
        let run = std::fs::read_to_string(dir.path().join("mcptest-run.1")).unwrap();
        assert!(run.contains(".TH"), "{run}");
        assert!(run.contains("shard"), "{run}");
        let inner = std::fs::read_to_string(dir.path().join("mcptest-cassette-verify.1")).unwrap();
        assert!(inner.contains("secrets"), "{inner}");
    }
}
