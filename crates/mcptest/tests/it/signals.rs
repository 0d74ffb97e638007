//! Signals at bad moments: while a call hangs, twice, and while an output blocks.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::servers::left_over;
use crate::support::{folder, mark, mcptest, ran};
use crate::tools::{asked, notes};

fn start(dir: &Path, args: &[&str]) -> Child {
    mcptest(dir)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(sent.success());
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn issue_14_a_second_signal_still_writes_the_report() {
    for second in ["-INT", "-TERM"] {
        let dir = notes(
            "  - {name: reads, server: s, tool: read, args: {id: z}}
  - {name: hangs, server: s, tool: hang, teardown: [{tool: hang, args: {id: z}}]}
",
        );
        let child = start(
            dir.path(),
            &["run", "s.yml", "--jobs", "1", "--reporter", "json"],
        );
        let hangs = |number| {
            let asked = asked(dir.path());
            asked.iter().filter(|call| call.starts_with("hang")).count() >= number
        };
        wait_until("the call", || hangs(1));
        send(&child, "-INT");
        // The first signal waits for the call, and then for the teardown.
        wait_until("the teardown", || hangs(2));
        let began = Instant::now();
        send(&child, second);
        let ran = ran(&child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        assert!(began.elapsed() < Duration::from_secs(4));
        let report = ran.json();
        assert_eq!(report["interrupted"], true);
        assert_eq!(report["tests"][1]["name"], "hangs");
        assert_eq!(report["tests"][1]["interrupted"], json!(true));
        assert_eq!(report["tests"][0]["verdict"], "pass", "{}", ran.stdout);
    }
}

const WORDS: &str = "mock_server: {name: words, tools: [{name: t, description: Run the job., input_schema: {type: object}, response: ok}]}\n";

#[test]
fn issue_14_signals_end_a_run_whose_report_nobody_reads() {
    let suite = "servers: {s: {command: [mcptest, mock, --tools-from, words.yml]}}
tools: [{name: one, server: s, tool: t}]
";
    let dir = folder(&[("s.yml", suite), ("words.yml", WORDS)]);
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let child = start(
        dir.path(),
        &[
            "run",
            "s.yml",
            "--traces",
            "before",
            "--reporter",
            "json=done",
            "--reporter",
            "json=pipe",
        ],
    );
    wait_until("the report before the pipe", || {
        dir.path().join("done").exists()
    });
    send(&child, "-TERM");
    std::thread::sleep(Duration::from_millis(200));
    send(&child, "-TERM");
    let ran = ran(&child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the report was not written within 5 s"),
        "{}",
        ran.stderr
    );
}

#[test]
fn issue_14_a_signal_ends_a_command_whose_output_nobody_reads() {
    let tools: Vec<String> = (0..3000)
        .map(|number| {
            format!("{{name: tool_{number}, description: Run the job., input_schema: {{type: object}}, response: ok}}")
        })
        .collect();
    let manifest = format!(
        "mock_server: {{name: words, tools: [{}]}}\n",
        tools.join(", ")
    );
    let mark = mark("signal-list");
    let file = format!("{mark}.yml");
    let dir = folder(&[(file.as_str(), &manifest)]);
    // More than a pipe takes, and nobody reads it.
    let command = ["--", "mcptest", "mock", "--tools-from", &file];
    let mut child = start(
        dir.path(),
        &[&["list", "--format", "json"][..], &command].concat(),
    );
    wait_until("the server's start", || left_over(&mark).len() == 2);
    wait_until("the server's end", || left_over(&mark).len() == 1);
    std::thread::sleep(Duration::from_millis(300));
    send(&child, "-INT");
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "it hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
