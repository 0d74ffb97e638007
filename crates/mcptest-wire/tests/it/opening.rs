//! Servers that fail to start or to connect.

use std::time::{Duration, Instant};

use mcptest_wire::{
    Client, ConnectOptions, Lifecycle, Revision, ServerCommand, ViolationKind, WireError,
    WireErrorKind,
};
use serde_json::json;

use crate::support::{all_gone, bad_server, call, command, options, pids, result, run, soon};

async fn open(mode: &str, lifecycle: Lifecycle) -> Result<Client, WireError> {
    Client::connect_stdio("bad", &bad_server(mode), &options(lifecycle)).await
}

fn refused(command: &ServerCommand, options: &ConnectOptions) -> WireError {
    let started = Instant::now();
    let refused = run(Client::connect_stdio("bad", command, options));
    soon(started, refused.unwrap_err())
}

fn impatient(lifecycle: Lifecycle) -> ConnectOptions {
    ConnectOptions {
        connect_timeout: Duration::from_millis(1500),
        ..options(lifecycle)
    }
}

#[test]
fn missing_command() {
    let error = refused(
        &command(&["no-such-command-here"]),
        &options(Lifecycle::Auto),
    );
    assert_eq!(error.kind, WireErrorKind::Spawn);
    let text = error.to_string();
    assert!(
        text.contains("command `no-such-command-here` not found on PATH"),
        "{text}"
    );
}

#[test]
fn other_failures_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "text").unwrap();
    let mut elsewhere = bad_server("good");
    elsewhere.cwd = Some(folder.path().join("missing"));
    for (command, hint) in [
        (command(&[]), "command is empty"),
        (command(&["./missing/server"]), "does not exist"),
        (command(&["npx some-server"]), "contains a space"),
        (command(&["server.py"]), "python3"),
        (command(&[plain.to_str().unwrap()]), "is not executable"),
        (elsewhere, "working directory"),
    ] {
        let error = refused(&command, &options(Lifecycle::Auto));
        assert_eq!(error.kind, WireErrorKind::Spawn);
        assert!(error.detail.contains(hint), "{error}");
    }
}

#[test]
fn an_early_exit_shows_code_and_stderr() {
    for lifecycle in [Lifecycle::Auto, Lifecycle::Initialize, Lifecycle::Discover] {
        let error = refused(&bad_server("exit-at-once"), &options(lifecycle));
        assert_eq!(error.kind, WireErrorKind::ServerCrash);
        assert_eq!(error.exit_status.as_deref(), Some("exited with code 3"));
        assert_eq!(
            error.stderr_tail,
            ["first line", "\\u{1b}[31mfatal: no database\\u{1b}[0m"]
        );
        let text = error.to_string();
        assert!(text.contains("exited with code 3"), "{text}");
        assert!(text.ends_with("fatal: no database\\u{1b}[0m"), "{text}");
    }
}

#[test]
fn silence_is_a_timeout() {
    for lifecycle in [Lifecycle::Auto, Lifecycle::Initialize, Lifecycle::Discover] {
        let error = refused(&bad_server("silent"), &impatient(lifecycle));
        assert_eq!(error.kind, WireErrorKind::Timeout);
        let probed = error.detail.contains("left server/discover unanswered");
        assert_eq!(probed, lifecycle == Lifecycle::Auto, "{error}");
    }
}

#[test]
fn a_timeout_shows_text_on_stdout() {
    let error = refused(&bad_server("garbage"), &impatient(Lifecycle::Initialize));
    assert_eq!(error.kind, WireErrorKind::Timeout);
    assert!(
        error
            .detail
            .contains("the server printed: text on stdout that is not a message: Starting up"),
        "{error}"
    );
}

#[test]
fn a_server_that_never_reads_is_a_timeout() {
    let error = refused(&bad_server("never-reads"), &impatient(Lifecycle::Auto));
    assert_eq!(error.kind, WireErrorKind::Timeout);
}

#[test]
fn closing_stdout_is_noticed_immediately() {
    let script = "exec 1>&-; exec sleep 100";
    let command = command(&["sh", "-c", script]);
    let error = refused(&command, &options(Lifecycle::Initialize));
    assert_eq!(error.kind, WireErrorKind::Transport);
    assert!(error.detail.contains("closed its stdout"), "{error}");
}

#[test]
fn an_echo_is_not_a_server() {
    let error = refused(&command(&["cat"]), &options(Lifecycle::Auto));
    assert_eq!(error.kind, WireErrorKind::Protocol);
}

#[test]
fn a_server_that_crashes_on_the_probe_is_started_again() {
    run(async {
        let client = open("dies-on-probe", Lifecycle::Auto).await.unwrap();
        assert!(client.server().restarted_after_probe);
        assert_eq!(client.server().revision, Revision::V2025_11_25);
        assert_eq!(client.list_tools().await.unwrap().len(), 1);
        client.shutdown().await;
    });
    let error = refused(&bad_server("dies-on-probe"), &options(Lifecycle::Discover));
    assert_eq!(error.kind, WireErrorKind::ServerCrash);
}

#[test]
fn a_server_that_ignores_the_probe_is_initialized() {
    run(async {
        let options = ConnectOptions {
            connect_timeout: Duration::from_secs(3),
            ..options(Lifecycle::Auto)
        };
        let client = Client::connect_stdio("bad", &bad_server("ignores-probe"), &options)
            .await
            .unwrap();
        assert!(client.server().probe_unanswered);
        assert!(!client.server().restarted_after_probe);
        client.shutdown().await;
    });
}

#[test]
fn a_server_that_ignores_everything_before_initialize_is_initialized() {
    run(async {
        let options = ConnectOptions {
            connect_timeout: Duration::from_secs(3),
            ..options(Lifecycle::Auto)
        };
        let client = Client::connect_stdio("bad", &bad_server("deaf"), &options)
            .await
            .unwrap();
        assert_eq!(client.server().revision, Revision::V2025_11_25);
        assert!(client.server().probe_unanswered);
        client.shutdown().await;
    });
}

#[test]
fn a_slow_stateless_server_is_probed_again() {
    run(async {
        let options = ConnectOptions {
            connect_timeout: Duration::from_secs(3),
            ..options(Lifecycle::Auto)
        };
        let client = Client::connect_stdio("bad", &bad_server("slow-stateless"), &options)
            .await
            .unwrap();
        assert_eq!(client.server().revision, Revision::V2026_07_28);
        assert!(!client.server().probe_unanswered);
        client.shutdown().await;
    });
}

#[test]
fn a_slow_server_is_connected_by_its_own_answer() {
    for (mode, revision) in [
        ("wakes-late", Revision::V2026_07_28),
        ("wakes-late-old", Revision::V2025_11_25),
    ] {
        run(async {
            let options = ConnectOptions {
                connect_timeout: Duration::from_secs(3),
                ..options(Lifecycle::Auto)
            };
            let client = Client::connect_stdio("bad", &bad_server(mode), &options)
                .await
                .unwrap();
            assert_eq!(client.server().revision, revision, "{mode}");
            assert!(!client.server().probe_unanswered, "{mode}");
            assert_eq!(client.violations(), [], "{mode}");
            client.shutdown().await;
        });
    }
}

#[test]
fn a_server_that_refuses_the_probe_is_initialized() {
    for mode in ["good", "null-id-on-probe", "old-list"] {
        run(async {
            let started = Instant::now();
            let client = soon(started, open(mode, Lifecycle::Auto).await.unwrap());
            assert_eq!(client.server().revision, Revision::V2025_11_25, "{mode}");
            assert!(!client.server().restarted_after_probe);
            client.shutdown().await;
        });
    }
    for mode in ["good", "old-list"] {
        let error = refused(&bad_server(mode), &options(Lifecycle::Discover));
        assert_eq!(error.kind, WireErrorKind::Protocol, "{error}");
    }
}

#[test]
fn unknown_revision_is_named() {
    for lifecycle in [Lifecycle::Auto, Lifecycle::Initialize] {
        let error = refused(&bad_server("unknown-revision"), &options(lifecycle));
        assert_eq!(error.kind, WireErrorKind::Protocol);
        assert!(error.detail.contains("`2031-01-01`"), "{error}");
    }
}

#[test]
fn a_refused_revision_is_negotiated_from_the_list() {
    run(async {
        let client = open("picky", Lifecycle::Initialize).await.unwrap();
        assert_eq!(client.server().revision, Revision::V2025_03_26);
        // The one revision that has batches.
        result(call(&client, "batch").await.unwrap());
        assert_eq!(client.violations(), []);
        client.shutdown().await;
    });
}

#[test]
fn text_on_stdout_is_recorded_and_skipped() {
    run(async {
        let client = open("noisy", Lifecycle::Auto).await.unwrap();
        assert_eq!(client.server().revision, Revision::V2025_06_18);
        result(call(&client, "fine").await.unwrap());
        let kinds: Vec<ViolationKind> = client.violations().iter().map(|v| v.kind).collect();
        assert_eq!(
            kinds,
            [
                ViolationKind::StdoutNoise,
                ViolationKind::BlankLine,
                ViolationKind::NotJsonRpc,
                ViolationKind::InvalidUtf8,
                ViolationKind::CrLf,
                ViolationKind::ByteOrderMark,
            ]
        );
        client.shutdown().await;
    });
}

#[test]
fn a_flood_on_stderr_does_not_block() {
    run(async {
        let client = open("flood-stderr", Lifecycle::Auto).await.unwrap();
        let error = call(&client, "crash").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::ServerCrash);
        let tail = &error.stderr_tail;
        assert_eq!(tail.last().unwrap(), "panic: index out of range");
        assert!(tail.len() <= 40, "{}", tail.len());
        assert!(tail.iter().map(String::len).sum::<usize>() <= 8 * 1024);
    });
}

#[test]
fn issue_14_a_flood_of_line_feeds_does_not_stop_the_clock() {
    let error = refused(&command(&["yes", ""]), &impatient(Lifecycle::Initialize));
    assert_eq!(error.kind, WireErrorKind::Timeout, "{error}");
}

#[test]
fn environment_and_working_directory_are_applied() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut command = bad_server("good");
    command.env = vec![("ADDED".into(), "a b$c".into())];
    command.cwd = Some(folder.clone());
    run(async {
        let client = Client::connect_stdio("bad", &command, &options(Lifecycle::Auto))
            .await
            .unwrap();
        let seen = result(call(&client, "where").await.unwrap());
        assert_eq!(seen["cwd"], json!(folder));
        assert_eq!(seen["added"], "a b$c");
        assert_eq!(seen["path"], json!(std::env::var("PATH").ok()));
        client.shutdown().await;
    });
}

#[test]
fn dropping_a_connection_attempt_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let mut command = bad_server("silent");
    command.argv.push(file.to_str().unwrap().to_owned());
    run(async {
        let options = options(Lifecycle::Initialize);
        let connecting = Client::connect_stdio("bad", &command, &options);
        let started = async {
            while !std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = connecting => panic!("it cannot connect"),
            () = started => {}
        }
    });
    all_gone(&pids(&file, 1));
}
