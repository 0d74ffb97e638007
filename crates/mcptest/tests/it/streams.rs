//! Standard output that cannot be written, and readers that leave.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::support::{folder, mcptest, ran, root};

/// A command of every kind that prints, to be run in the folder of the quickstart.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["schema"],
    &["explain", "DESC-001"],
    &["plan-runs", "--runs", "10"],
    &["completions", "bash"],
    &["validate", "mcptest.yml", "--format", "json"],
    &["run", "mcptest.yml", "--no-history"],
    &["run", "mcptest.yml", "--no-history", "--reporter", "json"],
    &["doctor", "--tools-from", "servers/weather.yml"],
];

/// The program in the quickstart's folder, started by a shell that redirects its output.
fn redirected(args: &[&str], redirection: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
        .arg(env!("CARGO_BIN_EXE_mcptest"))
        .args(args)
        .current_dir(root().join("examples/quickstart"))
        .env("CI", "true")
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    shell
}

#[cfg(target_os = "linux")]
#[test]
fn issue_10_output_that_cannot_be_written_is_exit_2() {
    for redirection in ["> /dev/full", ">&-", "1< /dev/null"] {
        for args in COMMANDS {
            let ran = ran(&redirected(args, redirection).output().unwrap());
            let shown = format!("{args:?} {redirection}: {}", ran.stderr);
            assert_eq!(ran.code, 2, "{shown}");
            assert!(
                ran.stderr
                    .contains("error: cannot write to standard output: "),
                "{shown}"
            );
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn issue_10_servers_and_relays_need_a_standard_output_too() {
    let dir = folder(&[(
        "ping",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
    )]);
    let input = || File::open(dir.path().join("ping")).unwrap();
    let mock = ["mock", "--tools-from", "servers/weather.yml"];
    let proxy = [
        &["proxy", "--", env!("CARGO_BIN_EXE_mcptest")][..],
        &mock[..],
    ]
    .concat();
    for redirection in ["> /dev/full", ">&-"] {
        for args in [&mock[..], &proxy[..]] {
            let output = redirected(args, redirection).stdin(input()).output();
            let ran = ran(&output.unwrap());
            assert_eq!(ran.code, 2, "{args:?} {redirection}: {}", ran.stderr);
            assert!(ran.stderr.contains("error: "), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_discarded_output_and_a_reader_that_leaves_are_fine() {
    for args in COMMANDS {
        let dir = root().join("examples/quickstart");
        let status = mcptest(&dir)
            .args(*args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
        // The reader leaves before anything is written, or after the first byte.
        for bytes in [0, 1] {
            let mut child = mcptest(&dir)
                .args(*args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdout = child.stdout.take().unwrap();
            stdout.read_exact(&mut vec![0; bytes]).unwrap();
            drop(stdout);
            let ran = ran(&child.wait_with_output().unwrap());
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("standard output"), "{}", ran.stderr);
        }
    }
}
