//! `mcptest mcp`.

use std::net::SocketAddr;
use std::path::PathBuf;

use mcptest_mcp::{Options, SessionEnd};
use mcptest_report::ExitCode;

use crate::cli::McpArgs;
use crate::failure::Failure;
use crate::output;
use crate::secrets;
use crate::signals::shutdown_signal;

pub fn mcp(args: &McpArgs) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find the path of this program: {error}"))?;
    let root = args.root.clone().unwrap_or_else(|| PathBuf::from("."));
    if !root.is_dir() {
        let root = root.display();
        return Err(Failure::Message(format!(
            "there is no folder `{root}` for --root"
        )));
    }
    let options = Options {
        program,
        root,
        allow_run: args.allow_run,
        redactor: secrets::redactor([]),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let end = runtime.block_on(async {
        let stop = shutdown_signal();
        match args.http {
            Some(address) => http(options, address, stop).await,
            None => {
                let served = mcptest_mcp::serve_stdio(options, stop).await;
                served.map_err(|error| error.to_string())
            }
        }
    });
    // The thread that reads our input may wait forever; it ends with us.
    runtime.shutdown_background();
    Ok(match end? {
        SessionEnd::Client => ExitCode::Passed,
        SessionEnd::Stopped => ExitCode::Interrupted,
    })
}

async fn http(
    options: Options,
    address: SocketAddr,
    stop: impl Future<Output = ()>,
) -> Result<SessionEnd, String> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot serve on {address}: {error}"))?;
    let bound = listener.local_addr().unwrap_or(address);
    output::status(&format!(
        "listening on http://{bound}{}",
        mcptest_mcp::HTTP_PATH
    ));
    let served = mcptest_mcp::serve_http(options, listener, stop).await;
    served.map_err(|error| error.to_string())?;
    Ok(SessionEnd::Stopped)
}
