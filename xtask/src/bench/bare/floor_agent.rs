//! The least that is an agent: it starts a server, calls its tool once, and prints the answer. The
//! argument is the server's command as a JSON array of strings without escapes. None of our code is
//! in it; `bench agents` compiles it with `rustc` alone.

use std::io::{BufRead, BufReader, Error, Result, Write};
use std::process::{Command, Stdio};

fn main() -> Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let argv = words(&argument);
    let program = argv.first().ok_or_else(|| Error::other("no command"))?;
    let mut server = Command::new(program)
        .args(&argv[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut to = server
        .stdin
        .take()
        .ok_or_else(|| Error::other("no stdin"))?;
    let output = server
        .stdout
        .take()
        .ok_or_else(|| Error::other("no stdout"))?;
    let mut from = BufReader::new(output);
    let initialize = "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
                      \"capabilities\":{},\"clientInfo\":{\"name\":\"floor\",\"version\":\"1\"}}";
    let call = "\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\
                \"arguments\":{\"message\":\"hi\"}}";
    ask(&mut to, &mut from, 1, initialize)?;
    to.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
    ask(&mut to, &mut from, 2, "\"method\":\"tools/list\"")?;
    let answer = ask(&mut to, &mut from, 3, call)?;
    drop(to);
    server.wait()?;
    println!(
        "{}",
        if answer.contains("Echo: hi") {
            "Done."
        } else {
            "No echo."
        }
    );
    Ok(())
}

/// Sends a request, and reads until its answer.
fn ask(to: &mut impl Write, from: &mut impl BufRead, id: u32, rest: &str) -> Result<String> {
    to.write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}}}\n").as_bytes())?;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(Error::other("the server has ended"));
        }
        if line.contains(&format!("\"id\":{id},")) || line.contains(&format!("\"id\":{id}}}")) {
            return Ok(line);
        }
    }
}

/// The strings of a JSON array.
pub fn words(array: &str) -> Vec<String> {
    let inside = array.split('"').skip(1).step_by(2);
    inside.map(str::to_owned).collect()
}
