//! Asking servers for their catalogs.

use std::path::Path;
use std::time::Duration;

use mcptest_catalog::doctor::ServerReport;
use mcptest_runner::InspectSettings;
use mcptest_trace::verdict::{ErrorKind, RunError};
use mcptest_yaml::Diagnostics;
use serde_json::Value;

use super::Source;
use super::file::{self, CatalogFile};
use crate::failure::Failure;
use crate::output::Output;
use crate::signals::asked_to_end;

/// Reads files and examines servers, in the order of the sources.
pub fn check_up(
    sources: &[Source],
    timeout: Option<Duration>,
    output: &Output,
) -> Result<Vec<ServerReport>, Failure> {
    let files = files(sources)?;
    with_servers(timeout, async |settings| {
        let mut checkups = Vec::new();
        for (source, file) in sources.iter().zip(files) {
            checkups.push(match (source, file) {
                (Source::Server { name, server }, _) => {
                    tell(name, output);
                    let checkup = mcptest_runner::inspect_server(name, server, settings).await;
                    if let Some(error) = &checkup.error {
                        advise(error, output);
                    }
                    checkup
                }
                (Source::File(path), file) => checkup_of(path, file.unwrap_or_default()),
            });
        }
        Ok(checkups)
    })
}

/// The entries of each source, with the name for warnings.
pub fn listed(
    sources: &[Source],
    timeout: Option<Duration>,
    output: &Output,
) -> Result<Vec<(String, Vec<Value>)>, Failure> {
    let files = files(sources)?;
    with_servers(timeout, async |settings| {
        let mut catalogs = Vec::new();
        for (source, file) in sources.iter().zip(files) {
            catalogs.push(match (source, file) {
                (Source::File(path), file) => {
                    (path.display().to_string(), file.unwrap_or_default().listed)
                }
                (Source::Server { name, server }, _) => {
                    tell(name, output);
                    let listed = mcptest_runner::list_tools(name, server, settings).await;
                    let listed = listed.map_err(|error| {
                        advise(&error, output);
                        Failure::Message(error.message)
                    })?;
                    (format!("server {name}"), listed)
                }
            });
        }
        Ok(catalogs)
    })
}

/// The files among the sources. All their problems are reported at once, and before a server is
/// started for nothing.
fn files(sources: &[Source]) -> Result<Vec<Option<CatalogFile>>, Diagnostics> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for source in sources {
        files.push(match source {
            Source::File(path) => file::read(path)
                .map_err(|found| problems.extend(found.0))
                .ok(),
            Source::Server { .. } => None,
        });
    }
    if problems.is_empty() {
        Ok(files)
    } else {
        Err(Diagnostics(problems))
    }
}

/// A person who waits sees for what.
fn tell(name: &str, output: &Output) {
    if output.is_watched() {
        output.status(&format!("asking {}", mcptest_json::text::one_line(name)));
    }
}

/// Some servers load for a minute before they say a word.
fn advise(error: &RunError, output: &Output) {
    if error.kind == ErrorKind::Timeout {
        output.status("note: `--timeout 2m` gives a server that is only slow more time");
    }
}

fn checkup_of(path: &Path, file: CatalogFile) -> ServerReport {
    let name = path.display().to_string();
    let stem = path
        .file_stem()
        .map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
    let mut checkup = ServerReport::new(&stem);
    checkup.file = Some(name);
    checkup.text = file.text;
    checkup.instructions = file.instructions;
    checkup.prompts = file.prompts;
    checkup.resources = file.resources;
    checkup.set_tools(file.listed);
    checkup
}

/// Does the work with a runtime and an eye on signals. Every server that was started is gone
/// afterwards.
fn with_servers<T>(
    timeout: Option<Duration>,
    work: impl AsyncFnOnce(&InspectSettings) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let settings = InspectSettings {
        timeout,
        this_program: std::env::current_exe()
            .map_err(|error| format!("cannot tell where this program is: {error}"))?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let ended = asked_to_end();
        tokio::select! {
            done = work(&settings) => done,
            () = ended => {
                mcptest_runner::kill_all();
                Err(Failure::Interrupted)
            }
        }
    })
}
