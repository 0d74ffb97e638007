//! `mcptest proxy`.

use mcptest_proxy::{End, ProxyOptions};
use mcptest_report::ExitCode;
use mcptest_wire::ServerCommand;

use crate::cli::ProxyArgs;
use crate::output::Output;
use crate::secrets;
use crate::signals::asked_to_end;

pub fn proxy(args: &ProxyArgs, output: &Output) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.error(&format!("cannot start: {error}"));
            return ExitCode::CouldNotRun;
        }
    };
    let options = ProxyOptions {
        command: command(args),
        server: args.server.clone(),
        test: args.test.clone(),
        fault: args.fault,
        fault_tools: args.fault_tool.clone(),
        record: args.record.clone(),
        secrets: secrets::of_environment(),
    };
    let end = runtime.block_on(async {
        let ended = asked_to_end();
        mcptest_proxy::relay(options, std::io::stdin(), std::io::stdout(), ended).await
    });
    // The thread that reads our input may wait for ever; it ends with us.
    runtime.shutdown_background();
    match end {
        Ok(End::Client) => ExitCode::Passed,
        Ok(End::Stopped) => ExitCode::Interrupted,
        Ok(End::Server(Some(status))) if status.success() => ExitCode::Passed,
        Ok(End::Server(status)) => {
            let how = status.map_or_else(String::new, |status| format!(" ({status})"));
            output.error(&format!("the server ended before its client{how}"));
            ExitCode::CouldNotRun
        }
        Err(error) => {
            output.error(&error.to_string());
            ExitCode::CouldNotRun
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
