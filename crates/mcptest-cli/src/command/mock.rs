//! `mcptest mock`.

use std::io::{self, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum as _;
use mcptest_mock::{MockServer, Preset};
use mcptest_protocol::query;
use mcptest_proxy::{ProxiedServer, ProxyFault, ProxyOptions, SessionEnd};
use mcptest_report::ExitCode;
use mcptest_wire::ServerCommand;

use crate::attacks;
use crate::cli::MockArgs;
use crate::failure::Failure;
use crate::files;
use crate::output;
use crate::secrets;
use crate::signals::asked_to_end;

/// Large enough that a burst of requests is read, and answered, at once.
const BUFFER: usize = 64 * 1024;

pub fn mock(args: &MockArgs) -> Result<ExitCode, Failure> {
    if args.attacks.attacks.is_some() {
        return attacked(args);
    }
    let server = server(args)?;
    if let Some(port) = args.http {
        return http(server, port, args.record.as_deref());
    }
    let input = BufReader::with_capacity(BUFFER, std::io::stdin().lock());
    mcptest_mock::serve_stdio(&server, input, output::CheckedStdout::default())
        .map_err(|error| format!("the connection broke: {error}"))?;
    match (server.record_failure(), &args.record) {
        (Some(error), Some(path)) => Err(unwritten(path, &error).into()),
        _ => Ok(ExitCode::Passed),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("cannot write `{}`: {error}", path.display())
}

/// Serves a mock server whose texts are rewritten on their way, by the same code as in `proxy`.
fn attacked(args: &MockArgs) -> Result<ExitCode, Failure> {
    // Problems of the manifest are reported before the session starts.
    server(&MockArgs {
        record: None,
        ..args.clone()
    })?;
    let attacks = attacks::of_session(&args.attacks, args.test.as_deref(), args.run, None)?;
    let program = std::env::current_exe().map_err(|error| format!("cannot start: {error}"))?;
    let mut argv = vec![program.to_string_lossy().into_owned(), "mock".to_owned()];
    if let Some(path) = &args.tools_from {
        argv.extend(["--tools-from".to_owned(), path.display().to_string()]);
    }
    if let Some(preset) = args.preset.and_then(|preset| preset.to_possible_value()) {
        argv.extend(["--preset".to_owned(), preset.get_name().to_owned()]);
    }
    if let Some(path) = &args.record {
        argv.extend(["--record".to_owned(), path.display().to_string()]);
    }
    let options = ProxyOptions {
        target: ProxiedServer::Command(ServerCommand {
            argv,
            ..ServerCommand::default()
        }),
        server: None,
        test: args.test.clone(),
        fault: ProxyFault::None,
        fault_tools: Vec::new(),
        distractors: None,
        attacks,
        run: args.run.map(u64::from),
        record: None,
        secrets: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let end = runtime.block_on(async {
        let ended = asked_to_end();
        let stdout = output::CheckedStdout::default();
        mcptest_proxy::relay(options, std::io::stdin(), stdout, ended).await
    });
    runtime.shutdown_background();
    match end.map_err(|error| error.to_string())? {
        SessionEnd::Stopped => Ok(ExitCode::Interrupted),
        SessionEnd::Client | SessionEnd::Server(_) => Ok(ExitCode::Passed),
    }
}

/// Serves until the process is ended, or the record cannot be written.
fn http(server: MockServer, port: u16, record: Option<&Path>) -> Result<ExitCode, Failure> {
    let not_served = |error: io::Error| format!("cannot serve on port {port}: {error}");
    let serve = async {
        let bound = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = bound.map_err(not_served)?;
        let address = listener.local_addr().map_err(not_served)?;
        output::status(&format!(
            "listening on http://{address}{}",
            mcptest_mock::HTTP_PATH
        ));
        let served = mcptest_mock::serve_http(Arc::new(server), listener).await;
        served.map_err(|error| match record {
            Some(path) => unwritten(path, &error),
            None => not_served(error),
        })
    };
    // Unlike everything else that we do, serving a test that loads the server is work for more than
    // one core.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.map_err(not_served)?.block_on(serve)?;
    Ok(ExitCode::Passed)
}

fn server(args: &MockArgs) -> Result<MockServer, Failure> {
    let loaded = match (&args.tools_from, args.preset) {
        (Some(path), _) => {
            let name = path.display().to_string();
            let bytes = files::read(path)?;
            mcptest_mock::load(&name, &bytes)
        }
        (None, Some(preset)) => Preset::from(preset).manifest(),
        (None, None) => {
            return Err(Failure::Message(
                "nothing to serve: give --tools-from or --preset".to_owned(),
            ));
        }
    };
    let mut manifest = loaded?;
    if let Some(fault) = args.fault {
        manifest = manifest.with_fault(fault);
    }
    // Set by `mcptest run` for the servers that it starts.
    let token = std::env::var(query::TOKEN_VARIABLE).ok();
    let state = std::env::var_os(query::STATE_VARIABLE).map(std::path::PathBuf::from);
    let server = MockServer::new(manifest)
        .with_query_token(token)
        .with_state_file(state);
    match &args.record {
        Some(path) => {
            let file = std::fs::File::create(path).map_err(|error| unwritten(path, &error))?;
            Ok(server.recording(Box::new(file), secrets::redactor([])))
        }
        None => Ok(server),
    }
}
