//! The mock server compared with servers on other libraries: the same requests from the same
//! client, on the same machine, in the same minute.
//!
//! The servers take turns, round by round, and are compared within each round, so that other load
//! on the machine affects all of them alike; the result is the median over the rounds. Everything
//! is measured from outside, over the transports that users have.

mod http;
mod peers;
mod stdio;

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::figures::{Bound, Options, Target, at, conclude, median, median_ratio};
use http::HttpServer;
use peers::Peers;
use stdio::StdioServer;

/// The parts that can be measured alone.
pub const PARTS: [&str; 3] = ["stdio", "http", "memory"];

/// The number of concurrent requests over stdio.
const IN_FLIGHT: usize = 64;
/// The number of busy connections over HTTP.
const CONNECTIONS: [usize; 2] = [1, 32];
/// Memory is read after this number of calls, and again after the same number.
const SETTLED_CALLS: usize = 10_000;
const MORE_CALLS: usize = 100_000;
/// The allowed growth of memory in between, in MiB: the noise of an allocator, less than eleven
/// bytes a call.
const MAX_GROWTH_MIB: f64 = 1.0;

const KIB_PER_MIB: f64 = 1024.0;

/// The durations of measurements.
struct Plan {
    rounds: usize,
    window: Duration,
}

/// The figures of one server, one of each for every round.
#[derive(Default)]
struct Rounds {
    p50: Vec<f64>,
    p99: Vec<f64>,
    rate: Vec<f64>,
    /// Processor time of the server for each call, in microseconds.
    processor: Vec<f64>,
}

/// Measures and prints. Returns true if all targets are met.
pub fn run(options: Options) -> Result<bool> {
    let plan = if options.quick {
        Plan {
            rounds: 5,
            window: Duration::from_millis(60),
        }
    } else {
        Plan {
            rounds: 31,
            window: Duration::from_millis(100),
        }
    };
    let peers = Peers::prepare()?;
    let mut figures = serde_json::Map::new();
    let mut bounds = Vec::new();
    if options.wants("stdio") {
        over_stdio(&peers, &plan, options, &mut figures, &mut bounds)?;
    }
    if options.wants("http") {
        over_http(&peers, &plan, options, &mut figures, &mut bounds)?;
    }
    if options.wants("memory") {
        memory(&peers, &mut figures, &mut bounds)?;
    }
    Ok(conclude(options, figures.into(), &bounds))
}

fn over_stdio(
    peers: &Peers,
    plan: &Plan,
    options: Options,
    figures: &mut serde_json::Map<String, Value>,
    bounds: &mut Vec<Bound>,
) -> Result<()> {
    let mut servers = Vec::new();
    for peer in peers.stdio() {
        servers.push((peer.name, StdioServer::start(&peer)?, Rounds::default()));
    }
    for round in 0..=plan.rounds {
        for (_, server, rounds) in &mut servers {
            let mut times = server.one_by_one(plan.window)?;
            let rate = server.in_flight(IN_FLIGHT, plan.window)?;
            // The first round is for caches and just-in-time compilers.
            if round > 0 {
                times.sort_unstable_by(f64::total_cmp);
                rounds.p50.push(at(&times, 50));
                rounds.p99.push(at(&times, 99));
                rounds.rate.push(rate);
            }
        }
    }
    let ours = &servers[0].2;
    if !options.json {
        println!(
            "{:<22} {:>9} {:>7} {:>9} {:>7} {:>12} {:>7}",
            "stdio, tools/call", "p50 µs", "ours/", "p99 µs", "ours/", "64 in flight/s", "ours/"
        );
    }
    let mut rows = Vec::new();
    for (name, _, rounds) in &servers {
        let row = [
            (
                median(rounds.p50.clone()),
                median_ratio(&ours.p50, &rounds.p50),
            ),
            (
                median(rounds.p99.clone()),
                median_ratio(&ours.p99, &rounds.p99),
            ),
            (
                median(rounds.rate.clone()),
                median_ratio(&ours.rate, &rounds.rate),
            ),
        ];
        let [(p50, p50_ratio), (p99, p99_ratio), (rate, rate_ratio)] = row;
        if !options.json {
            println!(
                "{name:<22} {p50:>9.1} {p50_ratio:>6.2}x {p99:>9.1} {p99_ratio:>6.2}x {rate:>12.0} {rate_ratio:>6.2}x"
            );
        }
        rows.push(json!({
            "server": name, "p50_us": p50, "p99_us": p99, "rate": rate,
            "our_p50_ratio": p50_ratio, "our_p99_ratio": p99_ratio, "our_rate_ratio": rate_ratio,
        }));
        match *name {
            peers::RMCP => bounds.push(Bound {
                what: format!("stdio, p50 of one call after the other, to {name}"),
                value: p50_ratio,
                target: Target::AtMost(0.4),
                unit: "x",
            }),
            peers::TYPESCRIPT_1 | peers::TYPESCRIPT_2 => bounds.push(Bound {
                what: format!("stdio, rate with {IN_FLIGHT} in flight, to {name}"),
                value: rate_ratio,
                target: Target::AtLeast(4.0),
                unit: "x",
            }),
            _ => {}
        }
    }
    figures.insert("stdio".to_owned(), rows.into());
    Ok(())
}

fn over_http(
    peers: &Peers,
    plan: &Plan,
    options: Options,
    figures: &mut serde_json::Map<String, Value>,
    bounds: &mut Vec<Bound>,
) -> Result<()> {
    let mut servers = Vec::new();
    for peer in peers.http() {
        servers.push((peer.name, HttpServer::start(&peer)?));
    }
    if !options.json {
        println!();
        println!(
            "{:<22} {:>11} {:>9} {:>7} {:>9} {:>7} {:>12} {:>7} {:>12} {:>7}",
            "HTTP, JSON",
            "connections",
            "p50 µs",
            "ours/",
            "p99 µs",
            "ours/",
            "calls/s",
            "ours/",
            "CPU µs/call",
            "ours/"
        );
    }
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let mut measured: Vec<Rounds> = servers.iter().map(|_| Rounds::default()).collect();
        let mut clients = Vec::new();
        for (_, server) in &mut servers {
            clients.push(server.clients(connections)?);
        }
        for round in 0..=plan.rounds {
            for ((client, rounds), (_, server)) in
                clients.iter_mut().zip(&mut measured).zip(&servers)
            {
                let before = server.processor_us()?;
                let (mut times, rate) = client.keep_busy(plan.window)?;
                let processor = server.processor_us()? - before;
                if round > 0 {
                    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                    rounds.processor.push(processor / times.len() as f64);
                    times.sort_unstable_by(f64::total_cmp);
                    rounds.p50.push(at(&times, 50));
                    rounds.p99.push(at(&times, 99));
                    rounds.rate.push(rate);
                }
            }
        }
        let ours = &measured[0];
        for ((name, _), rounds) in servers.iter().zip(&measured) {
            let (p50, p99) = (median(rounds.p50.clone()), median(rounds.p99.clone()));
            let (p50_ratio, p99_ratio) = (
                median_ratio(&ours.p50, &rounds.p50),
                median_ratio(&ours.p99, &rounds.p99),
            );
            let (rate, rate_ratio) = (
                median(rounds.rate.clone()),
                median_ratio(&ours.rate, &rounds.rate),
            );
            let (processor, processor_ratio) = (
                median(rounds.processor.clone()),
                median_ratio(&ours.processor, &rounds.processor),
            );
            if !options.json {
                println!(
                    "{name:<22} {connections:>11} {p50:>9.1} {p50_ratio:>6.2}x {p99:>9.1} {p99_ratio:>6.2}x {rate:>12.0} \
                     {rate_ratio:>6.2}x {processor:>12.1} {processor_ratio:>6.2}x"
                );
            }
            rows.push(json!({
                "server": name, "connections": connections, "p50_us": p50, "p99_us": p99, "rate": rate, "processor_us": processor,
                "our_p50_ratio": p50_ratio, "our_p99_ratio": p99_ratio, "our_rate_ratio": rate_ratio,
                "our_processor_ratio": processor_ratio,
            }));
            if *name == peers::AXUM {
                bounds.push(Bound {
                    what: format!("HTTP, rate with {connections} connections, to {name}"),
                    value: rate_ratio,
                    target: Target::AtLeast(0.9),
                    unit: "x",
                });
            }
        }
    }
    figures.insert("http".to_owned(), rows.into());
    Ok(())
}

/// Checks that the mock keeps nothing of the calls that it has answered.
fn memory(
    peers: &Peers,
    figures: &mut serde_json::Map<String, Value>,
    bounds: &mut Vec<Bound>,
) -> Result<()> {
    let mut server = StdioServer::start(&peers.stdio()[0])?;
    server.calls(IN_FLIGHT, SETTLED_CALLS)?;
    let before = server.resident_mib()?;
    server.calls(IN_FLIGHT, MORE_CALLS)?;
    let stdio = [before, server.resident_mib()?];

    let mut server = HttpServer::start(&peers.http()[0])?;
    let mut clients = server.clients(CONNECTIONS[1])?;
    clients.calls(SETTLED_CALLS)?;
    let before = server.resident_mib()?;
    clients.calls(MORE_CALLS)?;
    let http = [before, server.resident_mib()?];

    for (transport, [before, after]) in [("stdio", stdio), ("HTTP", http)] {
        bounds.push(Bound {
            what: format!(
                "{transport}, memory from {SETTLED_CALLS} to {} calls",
                SETTLED_CALLS + MORE_CALLS
            ),
            value: after - before,
            target: Target::AtMost(MAX_GROWTH_MIB),
            unit: " MiB",
        });
    }
    figures.insert(
        "memory_mib".to_owned(),
        json!({"stdio": stdio, "http": http}),
    );
    Ok(())
}
