//! Serves a manifest or a captured catalog on stdio: `mock FILE [FAULT]`. It is for tests, which
//! need a server process; users run `mcptest mock`.

use std::error::Error;
use std::io::{self, BufReader, Write};
use std::process::ExitCode;

use mcptest_mock::{MockServer, load, serve_stdio};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: mock FILE [FAULT]")?;
    let mut manifest = load(&path, &std::fs::read(&path)?)?;
    if let Some(fault) = std::env::args().nth(2) {
        manifest = manifest.with_fault(fault.parse()?);
    }
    let server = MockServer::new(manifest);
    let input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    serve_stdio(&server, input, io::stdout())?;
    Ok(())
}
