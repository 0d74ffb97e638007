//! Asking servers for their catalogs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcptest_auth::{AuthConfig, Grant, OAuth, OAuthOptions, StepOutcome};
use mcptest_catalog::doctor::{Authorization, AuthorizationStep, ServerReport};
use mcptest_runner::InspectSettings;
use mcptest_suite::suite::Server;
use mcptest_yaml::Diagnostics;
use serde_json::Value;

use super::file::{self, CatalogFile};
use crate::authorization;
use crate::cli::UrlAuthArgs;
use crate::failure::Failure;
use crate::live_servers::{advise, show_asking, with_servers};
use crate::output::Output;
use crate::sources::Source;

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
                (Source::Server { name, server, auth }, _) => {
                    show_asking(name, output);
                    let source = examined(name, server, auth.as_deref())?;
                    let settings = InspectSettings {
                        credentials: authorization::only(source.as_ref()),
                        ..settings.clone()
                    };
                    let inspected = mcptest_runner::inspect_server(name, server, &settings);
                    let mut checkup = inspected.await;
                    if let Some(error) = &checkup.error {
                        advise(error, output);
                    }
                    if let Some(source) = source {
                        checkup.authorization = explanation(&source).await;
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
                (Source::Server { name, server, auth }, _) => {
                    show_asking(name, output);
                    let settings =
                        authorization::settings(name, server, auth.as_deref(), settings)?;
                    let listed = mcptest_runner::list_tools(name, server, &settings).await;
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

/// The source of credentials of a server that is examined: what it requires is explained, also if
/// nothing is declared.
fn examined(
    name: &str,
    server: &Server,
    flags: Option<&UrlAuthArgs>,
) -> Result<Option<Arc<OAuth>>, String> {
    let Some(http) = server
        .http
        .as_ref()
        .filter(|http| !authorization::has_token(http))
    else {
        return Ok(None);
    };
    if let Some(flags) = flags {
        return authorization::of_url(&http.url, flags, true).map(Some);
    }
    let config = authorization::declared(name, server).unwrap_or_else(|| {
        let mut config = AuthConfig::new(&http.url, Grant::Undeclared);
        config.login_command = format!("mcptest auth login {name}");
        config
    });
    let options = OAuthOptions {
        explains: true,
        ..authorization::options()
    };
    Ok(Some(Arc::new(OAuth::new(config, options))))
}

/// The authorization of a server as `doctor` shows it; `None` if the server asked for none.
async fn explanation(source: &OAuth) -> Option<Authorization> {
    let steps: Vec<_> = source
        .steps()
        .into_iter()
        .map(|step| AuthorizationStep {
            action: step.action,
            outcome: match step.outcome {
                StepOutcome::Ok => "ok",
                StepOutcome::Skipped => "skipped",
                StepOutcome::Failed => "failed",
            },
            detail: step.detail,
        })
        .collect();
    if steps.is_empty() {
        return None;
    }
    let token = source.summary().await;
    Some(Authorization {
        token: token.and_then(|token| serde_json::to_value(token).ok()),
        steps,
        advice: source.advice(),
    })
}

/// The files among the sources. All their problems are reported together, and before a server is
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
