//! `mcptest proxy`.

use mcptest_proxy::{End, ProxyOptions};
use mcptest_report::ExitCode;
use mcptest_wire::ServerCommand;

use crate::cli::ProxyArgs;
use crate::failure::Failure;
use crate::signals::asked_to_end;

pub fn proxy(args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let options = ProxyOptions {
        command: command(args),
        server: args.server.clone(),
        test: args.test.clone(),
        fault: args.fault,
        fault_tools: args.fault_tool.clone(),
        record: args.record.clone(),
        secrets: secrets(),
    };
    let end = runtime.block_on(async {
        let ended = asked_to_end();
        mcptest_proxy::relay(options, std::io::stdin(), std::io::stdout(), ended).await
    });
    // The thread that reads our input may wait for ever; it ends with us.
    runtime.shutdown_background();
    match end.map_err(|error| error.to_string())? {
        End::Client => Ok(ExitCode::Passed),
        End::Stopped => Ok(ExitCode::Interrupted),
        End::Server(Some(status)) if status.success() => Ok(ExitCode::Passed),
        End::Server(status) => {
            let how = status.map_or_else(String::new, |status| format!(" ({status})"));
            Err(Failure::Words(format!("the server ended before its client{how}")))
        }
    }
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

/// Values that the server can only know from its environment and that no trace should keep.
fn secrets() -> Vec<String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| mcptest_core::redact::is_secret(name, value))
        .map(|(_, value)| value)
        .collect()
}
