//! Agent tests: a thousand that are replayed from a cassette each, a thousand runs of one with a
//! provider that answers after 0.6 seconds, and runs of an agent under test in their clean rooms.
//! All are whole processes, from start to end.
//!
//! There is nothing to compare a replay with, so its bounds are those of the issue, in seconds of
//! processor time, which other work on the machine hardly changes, and in memory. The other one
//! mostly waits, so that its time is that of the clock.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::json;

use super::bare;
use super::figures::{Bound, Options, Target, conclude, cpu_ms, measure, median, silent, time};
use crate::workspace::{self, Profile};

pub const PARTS: [&str; 3] = ["replay", "live", "room"];

const TESTS: usize = 1000;
const PAUSE_MS: u64 = 600;
const MAX_REPLAY_S: f64 = 1.0;
const MAX_REPLAY_MIB: f64 = 64.0;
const MAX_LIVE_S: f64 = 2.0;
/// The runs of the agent under test, and how many of them are made at a time.
const ROOM_RUNS: usize = 100;
const ROOM_JOBS: usize = 10;
const MAX_ROOM_MS: f64 = 60.0;

/// Measures and prints. True if everything is as it must be.
pub fn run(options: Options) -> Result<bool> {
    let folder = workspace::target_directory()?.join("bench/agents");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let program = workspace::build(Profile::Release)?;
    let floor = bare::compile(&folder, "floor_server")?;
    let scratch = tempfile::tempdir()?;
    let mut figures = serde_json::Map::new();
    let mut bounds = Vec::new();
    let rounds = if options.quick { 1 } else { 5 };
    if options.wants("replay") {
        let suite = scratch.path().join("replay.yml");
        std::fs::write(&suite, replay_suite(&floor, TESTS))?;
        let command = |flag: &str| -> Vec<PathBuf> {
            let words = [program.as_path(), Path::new("run"), &suite, Path::new(flag)];
            words.map(Path::to_owned).to_vec()
        };
        let recorded = silent(&command("--record"))
            .current_dir(scratch.path())
            .status()?;
        ensure!(recorded.success(), "cannot record: {recorded}");
        let replay = command("--no-history");
        let seconds = (0..rounds).map(|_| Ok(cpu_ms(&replay, 1)? / 1000.0));
        let seconds = median(seconds.collect::<Result<_>>()?);
        let mib = measure(&replay)?.peak_mib;
        figures.insert(
            "replay".to_owned(),
            json!({"cpu_s": seconds, "peak_mib": mib}),
        );
        bounds.push(Bound {
            what: format!("{TESTS} replayed cassettes, processor time"),
            value: seconds,
            target: Target::AtMost(MAX_REPLAY_S),
            unit: " s",
        });
        bounds.push(Bound {
            what: format!("{TESTS} replayed cassettes, peak memory"),
            value: mib,
            target: Target::AtMost(MAX_REPLAY_MIB),
            unit: " MiB",
        });
    }
    if options.wants("live") {
        let provider = SlowProvider::start(&bare::compile(&folder, "slow_provider")?)?;
        let suite = scratch.path().join("live.yml");
        std::fs::write(&suite, live_suite(&floor, provider.port, TESTS))?;
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            let words = [Path::new("run"), &suite, Path::new("--no-history")];
            let began = Instant::now();
            let status = silent(&[&program]).args(words).status()?;
            seconds.push(began.elapsed().as_secs_f64());
            ensure!(status.success(), "the runs failed: {status}");
        }
        let seconds = median(seconds);
        figures.insert("live".to_owned(), json!({"s": seconds}));
        bounds.push(Bound {
            what: format!("{TESTS} runs of 0.6 s with max_concurrency 1024"),
            value: seconds,
            target: Target::AtMost(MAX_LIVE_S),
            unit: " s",
        });
    }
    if options.wants("room") {
        let agent = bare::compile(&folder, "floor_agent")?;
        let suite = scratch.path().join("room.yml");
        std::fs::write(&suite, room_suite(&floor, &agent, ROOM_RUNS))?;
        let jobs = format!("--jobs={ROOM_JOBS}");
        let command = [&program, Path::new("run"), &suite, Path::new(&jobs)];
        let by_hand = json!([floor.to_string_lossy()]).to_string();
        let by_hand = [agent.as_os_str(), by_hand.as_ref()];
        let (mut alone, mut added) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let hand = in_parallel(&by_hand, ROOM_RUNS, ROOM_JOBS)?;
            let ours = time(&command)?;
            // Of as many runs as are made at a time, each lasts as long as all of them.
            let each = |all: f64| all * ROOM_JOBS as f64 / ROOM_RUNS as f64;
            alone.push(each(hand));
            added.push(each(ours - hand));
        }
        let (alone, added) = (median(alone), median(added));
        figures.insert(
            "room".to_owned(),
            json!({"by_hand_ms": alone, "added_ms": added}),
        );
        bounds.push(Bound {
            what: format!("the clean room of a run, {ROOM_JOBS} runs at a time"),
            value: added,
            target: Target::AtMost(MAX_ROOM_MS),
            unit: " ms",
        });
    }
    Ok(conclude(options, figures.into(), &bounds))
}

/// The time of this number of processes, of which some run at a time, in milliseconds.
fn in_parallel(argv: &[&OsStr], runs: usize, jobs: usize) -> Result<f64> {
    let left = AtomicUsize::new(runs);
    let began = Instant::now();
    std::thread::scope(|scope| {
        let worker = || -> Result<()> {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok()
            {
                time(argv)?;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a worker panicked"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

/// A suite with runs of an agent under test that calls a tool once.
fn room_suite(server: &Path, agent: &Path, runs: usize) -> String {
    format!(
        "name: rooms
servers:
  s:
    command: [{}]
agents:
  - name: floor
    agent:
      command: [{}, {{ each: servers, args: [\"{{{{argv|json}}}}\"] }}]
    servers: [s]
    prompt: Say hi.
    runs: {runs}
    expect:
      - tool_calls[0].name: echo
      - final_response: {{ contains: Done }}
",
        json!(server.to_string_lossy()),
        json!(agent.to_string_lossy()),
    )
}

/// A suite of agent tests, each of which calls a tool and then says something.
fn replay_suite(server: &Path, tests: usize) -> String {
    let mut text = format!(
        "name: replays\nservers:\n  s:\n    command: [{}]\nagents:\n",
        json!(server.to_string_lossy())
    );
    for number in 1..=tests {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  - name: agent {number}
    model: builtin/scripted
    servers: [s]
    prompt: Say hello {number}.
    script:
      - - {{ calls: [{{ tool: echo, args: {{ message: hello {number} }} }}] }}
        - {{ say: \"Said hello {number} at 2026-01-02T03:04:05Z.\" }}
    expect:
      - tool_calls[0].args.message: hello {number}
"
        );
    }
    text
}

/// A suite of one test with many runs, which ask the provider once each.
fn live_suite(server: &Path, port: u16, runs: usize) -> String {
    format!(
        "name: slow provider
servers:
  s:
    command: [{}]
providers:
  slow: {{ base_url: \"http://127.0.0.1:{port}/v1\", max_concurrency: 1024 }}
agents:
  - name: patient
    model: slow/m
    servers: [s]
    prompt: Say that you are done.
    runs: {runs}
    expect:
      - final_response: Done.
",
        json!(server.to_string_lossy())
    )
}

/// The provider while it runs.
struct SlowProvider {
    process: Child,
    port: u16,
}

impl SlowProvider {
    fn start(program: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .arg(PAUSE_MS.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the provider")?;
        let mut line = String::new();
        let output = process.stdout.take().context("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().parse();
        let started = Self {
            process,
            port: *port.as_ref().unwrap_or(&0),
        };
        port.context("the provider has no port")?;
        Ok(started)
    }
}

impl Drop for SlowProvider {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Here for the lints and the tests; the benchmark compiles it alone.
#[cfg(test)]
#[path = "bare/slow_provider.rs"]
#[expect(dead_code, reason = "its `main` is for when it is a program")]
mod slow_provider;

/// Here for the lints and the tests; the benchmark compiles it alone.
#[cfg(test)]
#[path = "bare/floor_agent.rs"]
#[expect(dead_code, reason = "its `main` is for when it is a program")]
mod floor_agent;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_finds_the_length_of_a_body() {
        assert_eq!(slow_provider::length_in("Content-Length: 12\r\n"), Some(12));
        assert_eq!(slow_provider::length_in("content-type: a\r\n"), None);
        assert_eq!(slow_provider::length_in("\r\n"), None);
    }

    #[test]
    fn the_agent_reads_the_command_of_its_server() {
        assert_eq!(
            floor_agent::words(r#"["a", "--b","c d"]"#),
            ["a", "--b", "c d"]
        );
    }

    #[test]
    fn the_suites_have_as_many_tests_and_runs_as_asked() {
        let suite = replay_suite(Path::new("server"), 3);
        assert_eq!(suite.matches("- name: agent").count(), 3);
        assert!(live_suite(Path::new("server"), 80, 7).contains("runs: 7"));
        let rooms = room_suite(Path::new("server"), Path::new("agent"), 5);
        assert!(
            rooms.contains("runs: 5") && rooms.contains("\"{{argv|json}}\""),
            "{rooms}"
        );
    }
}
