//! `mcptest mock`.

use std::io::{self, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use mcptest_mock::{MockServer, Preset};
use mcptest_protocol::query;
use mcptest_report::ExitCode;

use crate::attacks::{self, SessionOf};
use crate::cli::MockArgs;
use crate::failure::Failure;
use crate::files;
use crate::output;
use crate::secrets;

/// Large enough that a burst of requests is read, and answered, together.
const BUFFER: usize = 64 * 1024;

pub fn mock(args: &MockArgs) -> Result<ExitCode, Failure> {
    let server = server(args)?;
    if let Some(port) = args.http {
        return http(server, port, args.record.as_deref());
    }
    let input = BufReader::with_capacity(BUFFER, std::io::stdin().lock());
    mcptest_mock::serve_stdio(&server, input, output::CheckedStdout::default())
        .map_err(|error| format!("the connection failed: {error}"))?;
    match (server.record_failure(), &args.record) {
        (Some(error), Some(path)) => Err(unwritten(path, &error).into()),
        _ => Ok(ExitCode::Passed),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> String {
    format!("cannot write `{}`: {error}", path.display())
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
    let session = SessionOf {
        test: args.test.as_deref(),
        run: args.run,
        server: Some(manifest.name()),
    };
    let attacks = attacks::of_session(&args.attacks, manifest.attacks(), session)?;
    let server = MockServer::new(manifest)
        .with_attacks(attacks.unwrap_or_default())
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
