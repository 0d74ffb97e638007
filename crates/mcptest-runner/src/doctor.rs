//! The inspection of one server: it starts, reports its revision, and answers what it advertises.

use std::time::{Duration, Instant};

use mcptest_catalog::doctor::{Capability, ServerProblem, ServerReport, ServerTiming};
use mcptest_catalog::lint::Severity;
use mcptest_suite::suite::Server;
use mcptest_trace::verdict::RunError;
use mcptest_wire::WireErrorKind;
use serde_json::Value;

use crate::live_server::{InspectSettings, LiveServer};
use crate::sessions::Session;

/// The number of protocol violations that are listed.
const MAX_SHOWN: usize = 10;

/// The shortest wait for `resources/templates/list`, which a server need not know.
const MIN_TEMPLATES_WAIT: Duration = Duration::from_secs(2);

/// Starts a server, asks for its tools, and ends it. Entries stay as they were sent.
///
/// # Errors
/// The server does not start, or does not list its tools.
pub async fn list_tools(
    name: &str,
    server: &Server,
    settings: &InspectSettings,
) -> Result<Vec<Value>, RunError> {
    let live = LiveServer::open(name, server, settings).await?;
    let listed = live.tools().await;
    live.close().await;
    listed
}

/// Starts a server, asks for everything it advertises, and ends it.
pub async fn inspect_server(
    name: &str,
    server: &Server,
    settings: &InspectSettings,
) -> ServerReport {
    match LiveServer::open(name, server, settings).await {
        Ok(live) => {
            let report = inspect(name, &live).await;
            live.close().await;
            report
        }
        Err(error) => {
            let mut report = ServerReport::new(name);
            report.startable = Some(false);
            report.error = Some(error);
            report
        }
    }
}

/// Asks a server for everything it advertises.
pub async fn inspect(name: &str, live: &LiveServer) -> ServerReport {
    let session = live.session();
    let mut report = ServerReport::new(name);
    report.startable = Some(true);
    let began = Instant::now();
    let listed = session.listing().await;
    report.timing = Some(ServerTiming {
        handshake_ms: u64::try_from(live.handshake().as_millis()).unwrap_or(u64::MAX),
        list_ms: millis(began),
    });
    examine(&mut report, session).await;
    match listed {
        Ok(listed) => report.set_tools(listed),
        Err(error) if advertises(session, "tools") => {
            let message = format!(
                "`tools` is advertised, and tools/list fails: {}",
                error.message
            );
            report.problems.push(ServerProblem::missing_list(message));
        }
        // A server without tools does not have to answer.
        Err(_) => {}
    }
    report
}

fn advertises(session: &Session, capability: &str) -> bool {
    session
        .client
        .server()
        .capabilities
        .get(capability)
        .is_some()
}

async fn examine(report: &mut ServerReport, session: &Session) {
    let client = &session.client;
    let info = client.server();
    report.revision = Some(info.revision.as_str().to_owned());
    report.server_info = info.server_info.clone();
    report.instructions = info.instructions.clone().map(Value::from);
    if info.probe_unanswered {
        report.problems.push(ServerProblem {
            severity: Severity::Warning,
            kind: "slow_start".to_owned(),
            message: "the first question (server/discover) got no answer in time; it may speak a newer revision"
                .to_owned(),
        });
    }
    if info.legacy_sse {
        report.problems.push(ServerProblem {
            severity: Severity::Warning,
            kind: "legacy_transport".to_owned(),
            message: "the server speaks HTTP+SSE only, which streamable HTTP replaced in revision 2025-03-26"
                .to_owned(),
        });
    }
    let advertised: Vec<String> = info
        .capabilities
        .as_object()
        .map(|map| map.keys().cloned().collect())
        .unwrap_or_default();
    for name in advertised {
        let began = Instant::now();
        let (method, answer) = match name.as_str() {
            "resources" => ("resources/list", Some(client.list_resources().await)),
            "prompts" => ("prompts/list", Some(client.list_prompts().await)),
            "tools" => ("tools/list", None),
            _ => ("", None),
        };
        let mut entries = None;
        let mut answered = None;
        match answer {
            Some(Ok(listed)) => {
                entries = Some(listed.len());
                answered = Some(true);
                if name == "prompts" {
                    report.prompts = listed;
                } else {
                    report.resources = listed;
                    add_templates(report, session, began.elapsed()).await;
                }
            }
            Some(Err(error)) => {
                answered = Some(false);
                let message = format!("`{name}` is advertised, and {method} fails: {error}");
                report.problems.push(ServerProblem::missing_list(message));
            }
            None => {}
        }
        report.capabilities.push(Capability {
            name,
            answered,
            entries,
        });
    }
    add_violations(report, session);
}

/// Adds the templates of resources. Few servers have any, and some do not know the request, so a
/// server that answered `resources/list` after `usual` does not get the whole timeout again.
async fn add_templates(report: &mut ServerReport, session: &Session, usual: Duration) {
    let wait = MIN_TEMPLATES_WAIT.max(usual * 10);
    let listed = tokio::time::timeout(wait, session.client.list_resource_templates()).await;
    let unanswered = match &listed {
        Err(_) => true,
        Ok(Err(error)) => error.kind == WireErrorKind::Timeout,
        Ok(Ok(_)) => false,
    };
    if unanswered {
        report.problems.push(ServerProblem {
            severity: Severity::Warning,
            kind: "request_not_answered".to_owned(),
            message: "`resources/templates/list` gets no answer, so clients wait for their whole \
                      timeout: a server without templates answers with an empty list or with \
                      error -32601"
                .to_owned(),
        });
    }
    if let Ok(Ok(templates)) = listed {
        report.resources.extend(templates);
    }
}

/// Adds the protocol violations: output that is not a valid message.
fn add_violations(report: &mut ServerReport, session: &Session) {
    let violations = session.client.violations();
    let total = session.client.violation_count();
    for violation in violations.iter().take(MAX_SHOWN) {
        let kind = serde_json::to_value(violation.kind).ok();
        report.problems.push(ServerProblem {
            severity: Severity::Warning,
            kind: kind
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or("violation")
                .to_owned(),
            message: violation.to_string(),
        });
    }
    if total > MAX_SHOWN as u64 {
        report.problems.push(ServerProblem {
            severity: Severity::Warning,
            kind: "more_violations".to_owned(),
            message: format!("{} breaches of the protocol in all", total),
        });
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
