//! Direct tool tests: two hundred calls as tests of a suite, beside a program that makes the same
//! calls and does nothing else.
//!
//! Both are started as processes and timed from their start to their end, server included, with the
//! same number of calls under way in parallel; once more beside a program that waits for each
//! answer before its next call, as the simplest one would. They take turns, and are compared within
//! each round. The server is once the reference server of the protocol's authors, where nearly all
//! of the time is the server's, and once the least that is a server, where nearly all of it is the
//! client's.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::bare;
use super::figures::{Bound, Options, Target, conclude, cpu_ms, median, median_ratio, time};
use super::startup::peak_mib;
use crate::e2e::parts;
use crate::workspace::{self, Profile};

const CALLS: usize = 200;
/// Calls under way in parallel: what `mcptest run` does by default.
const IN_FLIGHT: usize = 16;
const EVERYTHING: [&str; 1] = ["@modelcontextprotocol/server-everything@2026.8.31"];
const MAX_MIB: f64 = 15.0;

/// A server, and the most that the tests may take as a multiple of the bare calls.
struct Server {
    name: &'static str,
    program: PathBuf,
    /// Calls that the bare program has under way in parallel.
    in_flight: usize,
    most: f64,
    rounds: usize,
}

/// Measures and prints. True if everything is as it must be.
pub fn run(options: Options) -> Result<bool> {
    let folder = workspace::target_directory()?.join("bench/tools");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let npm = folder.join("npm");
    parts::npm(&npm, &EVERYTHING)?;
    let floor = bare::compile(&folder, "floor_server")?;
    let driver = bare::compile(&folder, "pipe_driver")?;
    let program = workspace::build(Profile::Release)?;
    let servers = [
        Server {
            name: "server-everything",
            program: npm.join("node_modules/.bin/mcp-server-everything"),
            in_flight: IN_FLIGHT,
            most: 1.06,
            rounds: if options.quick { 3 } else { 31 },
        },
        Server {
            name: "floor server",
            program: floor.clone(),
            in_flight: IN_FLIGHT,
            most: 2.0,
            rounds: if options.quick { 5 } else { 201 },
        },
        Server {
            name: "floor server, call by call",
            program: floor,
            in_flight: 1,
            most: 2.0,
            rounds: if options.quick { 5 } else { 201 },
        },
    ];
    let mut figures = serde_json::Map::new();
    let mut bounds = Vec::new();
    if !options.json {
        println!(
            "{:<28} {:>12} {:>12} {:>8} {:>10}",
            "200 calls to", "bare calls", "mcptest run", "ratio", "peak"
        );
    }
    for server in &servers {
        let suite = folder.join(format!("{}.yml", server.name.replace([' ', ','], "-")));
        std::fs::write(&suite, suite_text(&server.program, CALLS))
            .context("cannot write the suite")?;
        let ours = vec![program.clone(), "run".into(), suite];
        let bare = vec![
            driver.clone(),
            CALLS.to_string().into(),
            server.in_flight.to_string().into(),
            server.program.clone(),
        ];
        let (mut ours_ms, mut bare_ms) = (Vec::new(), Vec::new());
        // The first round warms the caches of the disk.
        for round in 0..=server.rounds {
            let (bare, ours) = (time(&bare)?, time(&ours)?);
            if round > 0 {
                bare_ms.push(bare);
                ours_ms.push(ours);
            }
        }
        let ratio = median_ratio(&ours_ms, &bare_ms);
        let mib = peak_mib(&ours)?;
        let (ours, bare) = (median(ours_ms), median(bare_ms));
        if !options.json {
            println!(
                "{:<28} {bare:>9.2} ms {ours:>9.2} ms {ratio:>7.2}x {mib:>6.1} MiB",
                server.name
            );
        }
        figures.insert(
            server.name.to_owned(),
            json!({"bare_ms": bare, "mcptest_ms": ours, "ratio": ratio, "peak_mib": mib, "rounds": server.rounds}),
        );
        bounds.push(Bound {
            what: format!("{CALLS} tool tests over bare calls, {}", server.name),
            value: ratio,
            target: Target::AtMost(server.most),
            unit: "x",
        });
        bounds.push(Bound {
            what: format!("peak memory, {}", server.name),
            value: mib,
            target: Target::AtMost(MAX_MIB),
            unit: " MiB",
        });
    }
    // Processor time, which other work on the machine hardly changes, with the server's.
    for (calls, runs, most) in [(CALLS, 20, 2.0), (100 * CALLS, 1, 2.5)] {
        let suite = folder.join(format!("cpu-{calls}.yml"));
        std::fs::write(&suite, suite_text(&servers[1].program, calls))?;
        let ours = vec![program.clone(), "run".into(), suite];
        let bare = vec![
            driver.clone(),
            calls.to_string().into(),
            IN_FLIGHT.to_string().into(),
            servers[1].program.clone(),
        ];
        let (mut ours_ms, mut bare_ms) = (Vec::new(), Vec::new());
        for _ in 0..if options.quick { 1 } else { 7 } {
            // The bare calls take little, so more runs are measured together.
            bare_ms.push(cpu_ms(&bare, runs * 5)?);
            ours_ms.push(cpu_ms(&ours, runs)?);
        }
        let ratio = median_ratio(&ours_ms, &bare_ms);
        figures.insert(
            format!("floor server, processor time, {calls} calls"),
            json!({"bare_ms": median(bare_ms), "mcptest_ms": median(ours_ms), "ratio": ratio}),
        );
        bounds.push(Bound {
            what: format!("{calls} tool tests over bare calls, processor time"),
            value: ratio,
            target: Target::AtMost(most),
            unit: "x",
        });
    }
    Ok(conclude(options, figures.into(), &bounds))
}

/// A suite of the calls that the driver makes, each with what it must be answered.
fn suite_text(server: &Path, calls: usize) -> String {
    let mut text = format!(
        "name: many calls\nservers:\n  s:\n    command: [{}]\ntools:\n",
        json!(server.to_string_lossy())
    );
    for number in 1..=calls {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  - name: echo {number}\n    server: s\n    tool: echo\n    args: {{ message: hello {number} }}\n    expect:\n      - result.text: \"Echo: hello {number}\"\n"
        );
    }
    text
}

/// Here for the lints and the tests; the benchmark compiles it alone.
#[cfg(test)]
#[path = "bare/floor_server.rs"]
#[expect(dead_code, reason = "its `main` is for when it is a program")]
mod floor_server;

#[cfg(test)]
#[path = "bare/pipe_driver.rs"]
#[expect(dead_code, reason = "its `main` is for when it is a program")]
mod pipe_driver;

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_floor_server_speaks_json() {
        let answer = |line: &str| {
            floor_server::answer(line).map(|text| serde_json::from_str::<Value>(&text).unwrap())
        };
        let call = r#"{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello 3"}}}"#;
        assert_eq!(
            answer(call),
            Some(
                json!({"jsonrpc": "2.0", "id": 12, "result": {"content": [{"type": "text", "text": "Echo: hello 3"}]}})
            )
        );
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).unwrap()["result"]
                ["protocolVersion"],
            "2025-11-25"
        );
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#).unwrap()["error"]["code"],
            -32601
        );
        assert_eq!(
            answer(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            None
        );
    }

    #[test]
    fn the_driver_makes_the_calls_of_the_suite() {
        let mut line = Vec::new();
        pipe_driver::call(&mut line, 7).unwrap();
        let sent: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            sent["params"],
            json!({"name": "echo", "arguments": {"message": "hello 7"}})
        );
        let suite = suite_text(Path::new("server"), 9);
        assert_eq!(suite.matches("tool: echo").count(), 9);
        assert!(suite.contains("args: { message: hello 7 }"));
    }
}
