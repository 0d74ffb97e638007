//! `mcptest mcp`: the progress of a run, and its end before its time; `run --events`.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::mcp::{Client, quickstart};
use crate::servers::{assert_none_left, left_over};
use crate::support::{folder, mark, mcptest, ran};

#[test]
fn a_run_reports_progress_that_only_grows() {
    let mut client = Client::start(&quickstart(), &[]);
    client.good("run", json!({"suite": "mcptest.yml"}));
    let steps: Vec<(f64, f64)> = client
        .notes
        .iter()
        .map(|note| {
            assert_eq!(note["method"], "notifications/progress");
            assert_eq!(note["params"]["progressToken"], "p");
            let number = |key: &str| note["params"][key].as_f64().unwrap();
            (number("progress"), number("total"))
        })
        .collect();
    assert!(steps.is_sorted_by(|a, b| a.0 < b.0), "{steps:?}");
    assert_eq!(steps.first(), Some(&(0.0, 6.0)));
    assert_eq!(steps.last(), Some(&(6.0, 6.0)));
}

/// A suite whose only call hangs; all processes of a run have the mark.
fn hanging(mark: &str) -> tempfile::TempDir {
    let manifest = "mock_server: {name: s, version: '1', tools: [{name: x, description: Waits forever., input_schema: {type: object}, fault: hang}]}\n";
    let suite = format!(
        "servers: {{s: {{command: [mcptest, mock, --tools-from, {mark}tools.yml], timeout: 10m}}}}\ntools: [{{name: t, server: s, tool: x}}]\n"
    );
    folder(&[
        (&format!("{mark}tools.yml"), manifest),
        (&format!("{mark}suite.yml"), &suite),
    ])
}

/// Calls `run`, and waits until the server of the suite is there. Returns the request's id.
fn begun(client: &mut Client, mark: &str) -> u64 {
    let arguments = json!({"suite": format!("{mark}suite.yml")});
    let params = json!({"name": "run", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let id = client.ask("tools/call", params);
    while !left_over(mark)
        .iter()
        .any(|line| line.contains("tools.yml"))
    {
        assert!(client.child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    id
}

#[test]
fn a_cancelled_run_ends_everything_that_it_started() {
    let mark = mark("mcp-cancelled");
    let dir = hanging(&mark);
    let mut client = Client::start(dir.path(), &[]);
    let id = begun(&mut client, &mark);
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": id, "reason": "enough"}}),
    );
    assert_none_left(&mark);
    // Nothing is answered to it, and the server is there for the next call.
    let next = client.ask(
        "tools/call",
        json!({"name": "explain", "arguments": {"topic": "gates"}}),
    );
    loop {
        let message = client.next();
        assert_ne!(message["id"], id, "{message}");
        if message["id"] == next {
            break;
        }
    }
}

#[test]
fn a_client_that_leaves_ends_its_runs() {
    let mark = mark("mcp-left");
    let dir = hanging(&mark);
    let mut client = Client::start(dir.path(), &[]);
    begun(&mut client, &mark);
    assert_eq!(client.leave(), 0);
    assert_none_left(&mark);
}

#[test]
fn a_signal_ends_the_server_and_its_runs() {
    let mark = mark("mcp-signal");
    let dir = hanging(&mark);
    let mut client = Client::start(dir.path(), &[]);
    begun(&mut client, &mark);
    let pid = client.child.id().to_string();
    let sent = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(sent.unwrap().success());
    assert_eq!(client.child.wait().unwrap().code(), Some(130));
    assert_none_left(&mark);
}

#[test]
fn other_programs_can_follow_a_run() {
    let dir = folder(&[]);
    let suite = quickstart().join("mcptest.yml");
    let made = mcptest(dir.path())
        .args([
            "run",
            "--quiet",
            "--no-history",
            "--reporter",
            "json=report.json",
            "--events",
            "/dev/stdout",
        ])
        .arg(&suite)
        .output()
        .unwrap();
    let followed = ran(&made);
    assert_eq!(followed.code, 0, "{}", followed.stderr);
    let kinds: Vec<String> = followed
        .stdout
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            event.as_object().unwrap().keys().next().unwrap().clone()
        })
        .collect();
    assert_eq!(kinds[..2], ["begun", "planned"]);
    assert_eq!(kinds.last().unwrap(), "ended");
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "run_finished").count(),
        6
    );
    // A follower that leaves ends nothing.
    let mut follower = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let pipe = follower.stdin.take().unwrap();
    follower.wait().unwrap();
    let made = mcptest(dir.path())
        .args(["run", "--no-history", "--reporter", "json=report.json"])
        .args(["--events", "/dev/stdout"])
        .arg(&suite)
        .stdout(pipe)
        .output()
        .unwrap();
    let left = ran(&made);
    assert_eq!(left.code, 0, "{}", left.stderr);
    assert!(
        left.stderr.contains("no more events are written"),
        "{}",
        left.stderr
    );
}

#[test]
fn events_that_cannot_be_written_are_an_error_after_the_report() {
    let dir = folder(&[]);
    let made = mcptest(dir.path())
        .args(["run", "--no-history", "--events", "/dev/full"])
        .arg(quickstart().join("mcptest.yml"))
        .output()
        .unwrap();
    let full = ran(&made);
    assert_eq!(full.code, 2, "{}", full.stderr);
    assert!(
        full.stderr
            .contains("no more events are written to `/dev/full`"),
        "{}",
        full.stderr
    );
    assert!(full.stdout.contains("4 passed"), "{}", full.stdout);
}
