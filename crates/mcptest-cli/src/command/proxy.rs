//! `mcptest proxy`.

use std::sync::Arc;

use mcptest_catalog::distractors::Distractors;
use mcptest_http::credentials::Credentials;
use mcptest_proxy::{DistractorPlan, ProxiedServer, ProxyOptions, SessionEnd};
use mcptest_report::{ExitCode, Redactor};
use mcptest_trace::matcher::Problem;
use mcptest_wire::{HttpServer, ServerCommand};
use mcptest_yaml::{Diagnostic, Diagnostics, Severity};
use serde_json::json;

use crate::attacks::{self, SessionOf};
use crate::authorization;
use crate::cli::{DistractorsFrom, ProxyArgs};
use crate::failure::Failure;
use crate::files;
use crate::output::CheckedStdout;
use crate::secrets;
use crate::signals::shutdown_signal;
use crate::sources;

pub fn proxy(args: &ProxyArgs) -> Result<ExitCode, Failure> {
    if let (Some(socket), Some(server)) = (&args.connect, &args.server) {
        let stdout = CheckedStdout::default();
        return match mcptest_proxy::connect(socket, server, std::io::stdin(), stdout) {
            Ok(()) => Ok(ExitCode::Passed),
            Err(error) => Err(Failure::Message(error.to_string())),
        };
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let distractors = match &args.distractors {
        Some(from) => Some(distractor_plan(from, args)?),
        None => None,
    };
    secrets::hide(sources::secrets_of(&args.header));
    let session = SessionOf {
        test: args.test.as_deref(),
        run: args.run,
        server: args.server.as_deref(),
    };
    let attacks = attacks::of_session(&args.attacks, &[], session)?;
    let options = ProxyOptions {
        target: target(args)?,
        distractors,
        attacks,
        run: args.run.map(u64::from),
        server: args.server.clone(),
        test: args.test.clone(),
        fault: args.fault,
        fault_tools: args.fault_tool.clone(),
        record: args.record.clone(),
        redactor: trace_redactor(args),
    };
    let end = runtime.block_on(async {
        let ended = shutdown_signal();
        mcptest_proxy::relay(options, std::io::stdin(), CheckedStdout::default(), ended).await
    });
    // The thread that reads our input may wait forever; it ends with us.
    runtime.shutdown_background();
    match end.map_err(|error| error.to_string())? {
        SessionEnd::Client => Ok(ExitCode::Passed),
        SessionEnd::Stopped => Ok(ExitCode::Interrupted),
        SessionEnd::Server(Some(status)) if status.success() => Ok(ExitCode::Passed),
        SessionEnd::Server(status) => {
            let how = status.map_or_else(String::new, |status| format!(" ({status})"));
            Err(Failure::Message(format!(
                "the server ended before its client{how}"
            )))
        }
    }
}

/// The redactor of the trace.
fn trace_redactor(args: &ProxyArgs) -> Redactor {
    let mut secrets = secrets::of_environment();
    secrets.extend(sources::secrets_of(&args.header));
    // Redacting every `1` of a trace would make it unreadable.
    secrets.retain(|secret| secret.len() >= 6);
    secrets::redactor(std::iter::empty()).replaced(secrets)
}

/// The block, as a suite would have it, for the run that this is.
fn distractor_plan(from: &DistractorsFrom, args: &ProxyArgs) -> Result<DistractorPlan, Failure> {
    let (mut block, document) = match from {
        DistractorsFrom::Count(count) => {
            let written = json!({"count": count, "source": {"from": "catalog"}});
            let block: Distractors =
                serde_json::from_value(written).map_err(|error| error.to_string())?;
            (block, None)
        }
        DistractorsFrom::File(path) => {
            let name = path.display().to_string();
            let bytes = files::read(path)?;
            let (block, document) = mcptest_yaml::from_bytes::<Distractors>(&name, &bytes)?;
            (block, Some(document))
        }
    };
    let mut problems = block.problems();
    if block.count.is_none() && block.counts.is_some() {
        problems.push(Problem::new(
            "/counts",
            "a session is one run, so it takes one `count`",
        ));
    }
    if !problems.is_empty() {
        let told = problems.iter().map(|problem| {
            let diagnostic = match &document {
                Some(document) => document.diagnostic_at(&problem.pointer, &problem.message),
                None => Diagnostic::new(Severity::Error, problem.message.clone()),
            };
            match &problem.help {
                Some(help) => diagnostic.help(help.clone()),
                None => diagnostic,
            }
        });
        return Err(Diagnostics(told.collect()).into());
    }
    block.seed = args.seed.or(block.seed);
    let test = args.test.as_deref().unwrap_or_default();
    Ok(DistractorPlan::new(block, test, args.run.unwrap_or(1)))
}

fn target(args: &ProxyArgs) -> Result<ProxiedServer, Failure> {
    let Some(url) = &args.url else {
        return Ok(ProxiedServer::Command(command(args)));
    };
    let has_token = args
        .header
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case("authorization"));
    let credentials = if has_token {
        None
    } else {
        let source = authorization::of_url(url, &args.auth, false)?;
        Some(source as Arc<dyn Credentials>)
    };
    Ok(ProxiedServer::Http(HttpServer {
        url: url.clone(),
        headers: args
            .header
            .iter()
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect(),
        credentials,
        ..HttpServer::default()
    }))
}

fn command(args: &ProxyArgs) -> ServerCommand {
    let mut argv = args.command.clone();
    // This very executable, whether or not it is on PATH.
    if let Some(first) = argv.first_mut().filter(|first| first.as_str() == "mcptest")
        && let Ok(program) = std::env::current_exe()
    {
        *first = program.to_string_lossy().into_owned();
    }
    ServerCommand {
        argv,
        ..ServerCommand::default()
    }
}
