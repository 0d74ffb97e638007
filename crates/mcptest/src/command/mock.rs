//! `mcptest mock`.

use std::io::BufReader;
use std::net::Ipv4Addr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use mcptest_mock::{MockServer, Preset};
use mcptest_report::ExitCode;

use crate::cli::MockArgs;
use crate::output::Output;

/// Large enough that a burst of requests is read, and answered, at once.
const BUFFER: usize = 64 * 1024;

/// Clients of a mock are few; more threads than this find nothing to do.
const MAX_HTTP_THREADS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(7);

pub fn mock(args: &MockArgs, output: &Output) -> ExitCode {
    let server = match server(args, output) {
        Ok(server) => server,
        Err(code) => return code,
    };
    if let Some(port) = args.http {
        return http(server, port, output);
    }
    let input = BufReader::with_capacity(BUFFER, std::io::stdin().lock());
    match mcptest_mock::serve_stdio(&server, input, std::io::stdout()) {
        Ok(()) => ExitCode::Passed,
        Err(error) => {
            output.error(&format!("the connection broke: {error}"));
            ExitCode::CouldNotRun
        }
    }
}

/// Serves until the process is ended.
fn http(server: MockServer, port: u16, output: &Output) -> ExitCode {
    let serve = async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        output.talk(&format!("listening on http://{address}{}", mcptest_mock::HTTP_PATH));
        mcptest_mock::serve_http(Arc::new(server), listener, http_threads()).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve)) {
        Ok(()) => ExitCode::Passed,
        Err(error) => {
            output.error(&format!("cannot serve on port {port}: {error}"));
            ExitCode::CouldNotRun
        }
    }
}

/// One for each core, as far as they help.
fn http_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    cores.min(MAX_HTTP_THREADS)
}

fn server(args: &MockArgs, output: &Output) -> Result<MockServer, ExitCode> {
    let fail = |message: String| {
        output.error(&message);
        ExitCode::CouldNotRun
    };
    let loaded = match (&args.tools_from, args.preset) {
        (Some(path), _) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(path).map_err(|error| {
                let why = match error.kind() {
                    std::io::ErrorKind::NotFound => "no such file".to_owned(),
                    _ => error.to_string(),
                };
                fail(format!("cannot read `{name}`: {why}"))
            })?;
            mcptest_mock::load(&name, &bytes)
        }
        (None, Some(preset)) => Preset::from(preset).manifest(),
        (None, None) => return Err(fail("nothing to serve: give --tools-from or --preset".to_owned())),
    };
    let mut manifest = loaded.map_err(|problems| {
        output.talk(problems.render(output.talk_style().colour).trim_end());
        ExitCode::CouldNotRun
    })?;
    if let Some(fault) = args.fault {
        manifest = manifest.with_fault(fault);
    }
    let server = MockServer::new(manifest);
    match &args.record {
        Some(path) => {
            let file = std::fs::File::create(path)
                .map_err(|error| fail(format!("cannot write `{}`: {error}", path.display())))?;
            Ok(server.recording(Box::new(file)))
        }
        None => Ok(server),
    }
}
