//! The least that is an MCP server over standard streams: one tool, `echo`, found by looking for
//! marks in the line. It starts in about a millisecond, so whatever a client costs by itself shows.
//! None of our code is in it; `bench tools` compiles it with `rustc` alone.

use std::io::{self, BufRead, BufReader, Write};

fn main() -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut line = String::new();
    let mut answers = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = answer(&line) {
            answers.push_str(&answer);
            answers.push('\n');
        }
        line.clear();
        // Whoever waits gets everything that is ready, in one write.
        if input.buffer().is_empty() {
            output.write_all(answers.as_bytes())?;
            output.flush()?;
            answers.clear();
        }
    }
    Ok(())
}

/// The answer to a request; a notification has none.
pub fn answer(line: &str) -> Option<String> {
    let id = after(line, "\"id\":")?;
    let id = &id[..id.find(|c: char| !c.is_ascii_digit())?];
    let body = match quoted(line, "\"method\":\"")? {
        "initialize" => {
            "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"floor\",\"version\":\"1\"}}"
                .to_owned()
        }
        "tools/list" => {
            "\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}".to_owned()
        }
        "tools/call" => {
            let message = quoted(line, "\"message\":\"").unwrap_or("");
            format!("\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"Echo: {message}\"}}]}}")
        }
        _ => "\"error\":{\"code\":-32601,\"message\":\"Method not found\"}".to_owned(),
    };
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{body}}}"))
}

fn after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    Some(&line[line.find(mark)? + mark.len()..])
}

fn quoted<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let rest = after(line, mark)?;
    Some(&rest[..rest.find('"')?])
}
