//! The least that is a model provider: it answers every request after a pause, with the same turn,
//! in the form of OpenAI's Chat Completions. It prints its port, and ends when its input is closed.
//! None of our code is in it; `bench agents` compiles it with `rustc` alone.
//!
//! `slow_provider PAUSE_MS`

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const TURN: &str = "{\"id\":\"1\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"Done.\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2,\"total_tokens\":12}}";

fn main() -> ExitCode {
    let Some(Ok(pause)) = std::env::args().nth(1).map(|pause| pause.parse()) else {
        return ExitCode::from(2);
    };
    match serve(Duration::from_millis(pause)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(pause: Duration) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A thread for each connection is enough, if its stack is small.
            let thread = std::thread::Builder::new().stack_size(64 * 1024);
            let _ = thread.spawn(move || converse(stream, pause));
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn converse(stream: TcpStream, pause: Duration) -> io::Result<()> {
    let mut input = BufReader::with_capacity(4096, stream.try_clone()?);
    let mut output = stream;
    let mut line = String::new();
    let mut length = 0;
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        length = length.max(length_in(&line).unwrap_or(0));
        if line == "\r\n" {
            io::copy(&mut (&mut input).take(length), &mut io::sink())?;
            std::thread::sleep(pause);
            let size = TURN.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n\r\n{TURN}"
            );
            output.write_all(answer.as_bytes())?;
            length = 0;
        }
    }
}

/// The length of a body, in the header that has it.
pub fn length_in(line: &str) -> Option<u64> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length")
        .then(|| value.trim().parse().ok())?
}
