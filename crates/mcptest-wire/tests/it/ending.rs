//! Crashes, shutdown, and leftover processes.

use std::path::Path;
use std::time::Instant;

use mcptest_wire::{Client, Lifecycle, ServerCommand, ViolationKind, WireErrorKind};

use crate::support::{
    all_gone, bad_server, call, command, connect, example, options, pids, result, run, runs, soon,
};

fn with_file(mut command: ServerCommand, file: &Path) -> ServerCommand {
    command.argv.push(file.to_str().unwrap().to_owned());
    command
}

async fn open(command: &ServerCommand) -> Client {
    Client::connect_stdio("bad", command, &options(Lifecycle::Initialize))
        .await
        .unwrap()
}

#[test]
fn a_crash_fails_all_waiting_calls_with_the_evidence() {
    run(async {
        let client = connect("good").await;
        let started = Instant::now();
        let (waiting, crash) = tokio::join!(call(&client, "silence"), call(&client, "crash"));
        for error in [waiting.unwrap_err(), crash.unwrap_err()] {
            assert_eq!(error.kind, WireErrorKind::ServerCrash);
            assert_eq!(error.exit_status.as_deref(), Some("exited with code 7"));
            assert_eq!(error.stderr_tail, ["panic: index out of range"]);
            assert!(error.action.starts_with("calling tool"), "{error}");
        }
        assert!(!client.is_alive());
        // And so does every later one.
        let later = call(&client, "fine").await.unwrap_err();
        assert_eq!(later.kind, WireErrorKind::ServerCrash);
        client.shutdown().await;
        soon(started, ());
    });
}

#[test]
fn a_signal_is_named() {
    run(async {
        let client = connect("good").await;
        let error = call(&client, "killed").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::ServerCrash);
        assert!(error.detail.contains("killed by signal 9"), "{error}");
    });
}

#[test]
fn a_last_line_without_newline_still_counts() {
    run(async {
        let client = connect("good").await;
        result(call(&client, "unterminated").await.unwrap());
        assert_eq!(client.violations()[0].kind, ViolationKind::Unterminated);
        client.shutdown().await;
    });
}

#[test]
fn a_server_that_exits_by_itself_gets_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("goodbye");
    run(async {
        let client = open(&with_file(bad_server("says-goodbye"), &file)).await;
        client.shutdown().await;
    });
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("goodbye\n"), "{text}");
}

#[test]
fn a_server_that_ignores_the_end_of_input_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    run(async {
        let client = open(&with_file(bad_server("ignores-eof"), &file)).await;
        client.shutdown().await;
        // Not even as a zombie.
        let pid = pids(&file, 1)[0];
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    });
}

#[test]
fn a_server_behind_a_shell_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    // The shell stays in between because of the second command.
    let script = format!(
        "trap '' TERM; '{}' ignores-eof '{}'; true",
        example("bad_server"),
        file.display()
    );
    run(async {
        let client = open(&command(&["sh", "-c", &script])).await;
        let started = Instant::now();
        client.shutdown().await;
        soon(started, ());
    });
    let pids = pids(&file, 1);
    assert!(!runs(pids[0]));
}

/// The server, its child and a grandchild that left the session.
fn daemon(file: &Path) -> (ServerCommand, usize) {
    (with_file(bad_server("daemon"), file), 4)
}

#[test]
fn a_grandchild_in_another_session_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    run(async {
        let (command, count) = daemon(&file);
        let client = open(&command).await;
        let pids = pids(&file, count);
        assert!(runs(*pids.last().unwrap()));
        client.shutdown().await;
        all_gone(&pids);
    });
}

#[test]
fn dropping_the_last_clone_kills_everything() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    run(async {
        let (command, count) = daemon(&file);
        let client = open(&command).await;
        let pids = pids(&file, count);
        let clone = client.clone();
        drop(client);
        result(call(&clone, "fine").await.unwrap());
        drop(clone);
        all_gone(&pids);
    });
}

#[test]
fn kill_all_works_without_a_runtime() {
    // Other tests share this process under `cargo test`, and would lose their
    // servers; so the check runs in its own process.
    const MARK: &str = "MCPTEST_WIRE_KILL_ALL";
    if std::env::var_os(MARK).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ending::kill_all_works_without_a_runtime"])
            .env(MARK, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (command, count) = daemon(&file);
    let client = runtime.block_on(open(&command));
    let pids = pids(&file, count);
    mcptest_wire::kill_all();
    all_gone(&pids);
    // It is harmless to shut down after that, and to kill twice.
    runtime.block_on(client.shutdown());
    mcptest_wire::kill_all();
}

#[test]
fn a_dropped_runtime_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let (command, count) = daemon(&file);
    let client = run(open(&command));
    let pids = pids(&file, count);
    drop(client);
    all_gone(&pids);
}

#[test]
fn two_shutdowns_in_parallel_are_fine() {
    run(async {
        let client = connect("good").await;
        let clone = client.clone();
        tokio::join!(client.shutdown(), clone.shutdown());
        assert!(!clone.is_alive());
    });
}
