//! `mcptest mock`.

use std::io::BufReader;

use mcptest_mock::MockServer;
use mcptest_report::ExitCode;

use crate::cli::MockArgs;
use crate::output::Output;

/// Large enough that a burst of requests is read, and answered, at once.
const BUFFER: usize = 64 * 1024;

pub fn mock(args: &MockArgs, output: &Output) -> ExitCode {
    let name = args.tools_from.display().to_string();
    let bytes = match std::fs::read(&args.tools_from) {
        Ok(bytes) => bytes,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "no such file".to_owned(),
                _ => error.to_string(),
            };
            output.error(&format!("cannot read `{name}`: {why}"));
            return ExitCode::CouldNotRun;
        }
    };
    let manifest = match mcptest_mock::load(&name, &bytes) {
        Ok(manifest) => manifest,
        Err(problems) => {
            output.talk(problems.render(output.talk_style().colour).trim_end());
            return ExitCode::CouldNotRun;
        }
    };
    let server = MockServer::new(manifest);
    let input = BufReader::with_capacity(BUFFER, std::io::stdin().lock());
    match mcptest_mock::serve_stdio(&server, input, std::io::stdout().lock()) {
        Ok(()) => ExitCode::Passed,
        Err(error) => {
            output.error(&format!("the connection broke: {error}"));
            ExitCode::CouldNotRun
        }
    }
}
