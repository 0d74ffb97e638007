//! A minimal program that calls a tool of an MCP server many times: it starts the server, opens
//! the conversation, keeps `WINDOW` calls in flight until `CALLS` are answered, closes the server's
//! input and waits for its end. It checks only that each line answers a call with the
//! text that was sent. None of our code is in it; `bench tools` compiles it with `rustc` alone.
//!
//! `pipe_driver CALLS WINDOW PROGRAM ARGUMENT…`

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [calls, window, program, rest @ ..] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    match (calls.parse(), window.parse()) {
        (Ok(calls), Ok(window)) => match drive(calls, window, program, rest) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) | Err(_) => ExitCode::FAILURE,
        },
        _ => ExitCode::from(2),
    }
}

/// True if every call was answered with the text that was sent.
fn drive(calls: usize, window: usize, program: &str, arguments: &[String]) -> io::Result<bool> {
    let mut server = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(mut input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
        return Ok(false);
    };
    let mut output = BufReader::with_capacity(64 * 1024, output);
    let mut line = String::new();
    input.write_all(
        b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"bare\",\"version\":\"1\"}}}\n",
    )?;
    while !line.contains("\"result\"") {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Ok(false);
        }
    }
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
    let mut sent = 0;
    while sent < window.min(calls) {
        sent += 1;
        call(&mut input, sent)?;
    }
    let (mut answered, mut good) = (0, 0);
    while answered < calls {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        // Notifications of the server answer no call.
        if !line.contains("\"result\"") {
            continue;
        }
        answered += 1;
        good += usize::from(line.contains("\"Echo: hello "));
        if sent < calls {
            sent += 1;
            call(&mut input, sent)?;
        }
    }
    drop(input);
    server.wait()?;
    Ok(good == calls)
}

pub fn call(input: &mut impl Write, number: usize) -> io::Result<()> {
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"message\":\"hello {number}\"}}}}}}\n"
    );
    input.write_all(line.as_bytes())
}
