//! Starting the example servers and checking which processes are alive.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcptest_wire::{
    CallOptions, CallOutcome, Client, ConnectOptions, Lifecycle, ServerCommand, WireError,
};
use serde_json::{Value, json};

/// A timeout far above the duration of any step.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The path of an example of this crate, which `cargo test` builds next to us.
pub fn example(name: &str) -> String {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    path.push("examples");
    path.push(name);
    assert!(
        path.exists(),
        "{} is missing: cargo build --examples -p mcptest-wire",
        path.display()
    );
    path.into_os_string().into_string().unwrap()
}

pub fn command(argv: &[&str]) -> ServerCommand {
    ServerCommand {
        argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
        ..ServerCommand::default()
    }
}

pub fn bad_server(mode: &str) -> ServerCommand {
    command(&[&example("bad_server"), mode])
}

pub fn options(lifecycle: Lifecycle) -> ConnectOptions {
    ConnectOptions {
        lifecycle,
        connect_timeout: TIMEOUT,
        call_timeout: TIMEOUT,
        ..ConnectOptions::default()
    }
}

/// The bad server after a good handshake.
pub async fn connect(mode: &str) -> Client {
    let options = options(Lifecycle::Initialize);
    Client::connect_stdio("bad", &bad_server(mode), &options)
        .await
        .unwrap()
}

pub async fn call(client: &Client, tool: &str) -> Result<CallOutcome, WireError> {
    client
        .call_tool(tool, &json!({}), &CallOptions::default())
        .await
}

pub fn result(outcome: CallOutcome) -> Value {
    match outcome {
        CallOutcome::Result(value) => value,
        CallOutcome::Error(error) => panic!("{error:?}"),
    }
}

/// Runs a future on a current-thread runtime, with a timeout.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async { tokio::time::timeout(TIMEOUT * 2, future).await.unwrap() })
}

/// Asserts that something took less than half of the timeout.
pub fn soon<T>(started: Instant, value: T) -> T {
    assert!(started.elapsed() < TIMEOUT / 2, "{:?}", started.elapsed());
    value
}

/// Waits for the process ids that a server writes to its file.
pub fn pids(file: &std::path::Path, count: usize) -> Vec<u32> {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pids: Vec<u32> = text.lines().filter_map(|l| l.parse().ok()).collect();
        if pids.len() >= count && text.ends_with('\n') {
            return pids;
        }
        assert!(started.elapsed() < TIMEOUT, "only {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns true if a process runs; a zombie does not.
pub fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(") ").next().and_then(|s| s.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// Asserts that all processes exit; a killed process needs a moment to vanish.
pub fn all_gone(pids: &[u32]) {
    let started = Instant::now();
    while pids.iter().any(|pid| runs(*pid)) {
        assert!(started.elapsed() < TIMEOUT, "still alive among {pids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
