//! Servers that misbehave, through the whole program: a typed error in bounded time, the other
//! tests untouched, no process left behind.

use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Ran, folder, mark, mcptest, ran};

const GOOD: &str = "mock_server: {name: good, tools: [{name: t, description: run the job, input_schema: {type: object}, response: ok}]}\n";

/// A suite with a misbehaving server and a good one. The server's command line carries a mark, by
/// which its processes are found.
fn suite(script: &str) -> String {
    format!(
        "servers:
  bad: {{command: [sh, -c, {script}], timeout: 2s, startup_timeout: 3s}}
  good: {{command: [mcptest, mock, --tools-from, good.yml]}}
tools:
  - {{name: bad call, server: bad, tool: t}}
  - {{name: good call, server: good, tool: t}}
agents:
  - {{name: bad agent, model: builtin/lexical, servers: [good, bad], prompt: run the job, equal_function_sets: {{classes: [{{name: c, members: [good.t]}}]}}}}
  - {{name: good agent, model: builtin/lexical, servers: [good], prompt: run the job, equal_function_sets: {{classes: [{{name: c, members: [good.t]}}]}}}}
",
        script = serde_json::to_string(script).unwrap()
    )
}

fn play(mark: &str, script: &str) -> (Ran, Duration) {
    let script = format!(": {mark}; {script}");
    let dir = folder(&[("s.yml", &suite(&script)), ("good.yml", GOOD)]);
    let began = Instant::now();
    let output = mcptest(dir.path())
        .args(["run", "s.yml", "--reporter", "json"])
        .output()
        .unwrap();
    (ran(&output), began.elapsed())
}

/// Processes whose command line holds the mark.
pub fn left_over(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        if let Ok(line) = std::fs::read(entry.path().join("cmdline")) {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(mark) {
                found.push(line);
            }
        }
    }
    found
}

/// A process that was just killed may need a moment to be gone.
pub fn assert_none_left(mark: &str) {
    let began = Instant::now();
    while !left_over(mark).is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "still there: {:?}",
            left_over(mark)
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check(mark: &str, script: &str, kind: &str, words: &str) {
    let (ran, took) = play(mark, script);
    assert_eq!(ran.code, 2, "{mark}: {}", ran.stderr);
    let report = ran.json();
    let verdict = |test: usize| {
        report["tests"][test]["verdict"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        [verdict(0), verdict(1), verdict(2), verdict(3)],
        ["error", "pass", "error", "pass"],
        "{mark}"
    );
    for test in [0, 2] {
        let error = &report["tests"][test]["runs"][0]["error"];
        assert_eq!(error["kind"], kind, "{mark}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(words),
            "{mark}: {error}"
        );
    }
    // The gate of a run that ended with an error is not judged, so it does not fail.
    assert_ne!(
        report["tests"][2]["gates"][0]["verdict"],
        Value::from("fail")
    );
    assert!(took < Duration::from_secs(30), "{mark} took {took:?}");
    assert_none_left(mark);
}

#[test]
fn exits_immediately() {
    check(
        &mark("exits"),
        "echo no database >&2; exit 7",
        "server_crash",
        "no database",
    );
}

#[test]
fn never_answers() {
    check(&mark("never"), "sleep 600", "timeout", "no reply");
}

#[test]
fn prints_garbage() {
    check(
        &mark("garbage"),
        "while true; do echo 'not json'; sleep 0.1; done",
        "timeout",
        "not json",
    );
}

#[test]
fn answers_with_the_wrong_id() {
    let answer = r#"while read -r line; do echo '{"jsonrpc":"2.0","id":99999,"result":{}}'; done"#;
    check(&mark("wrong-id"), answer, "protocol", "99999");
}

#[test]
fn ignores_every_polite_request_to_end() {
    check(
        &mark("stubborn"),
        "trap '' TERM HUP INT; sleep 600 & sleep 600; sleep 600",
        "timeout",
        "no reply",
    );
}

#[test]
fn hides_behind_a_new_session() {
    let mark = mark("setsid");
    check(
        &mark,
        &format!("setsid sh -c ': {mark}; sleep 600' & sleep 600"),
        "timeout",
        "no reply",
    );
}

#[test]
fn a_program_that_is_not_there() {
    let dir = folder(&[(
        "s.yml",
        "servers: {s: {command: [no-such-program-here]}}\ntools: [{name: t, server: s, tool: x}]\n",
    )]);
    let ran = ran(&mcptest(dir.path()).args(["run", "s.yml"]).output().unwrap());
    assert_eq!(ran.code, 2);
    assert!(
        ran.stdout.contains("no-such-program-here"),
        "{}",
        ran.stdout
    );
}

/// Starts a run that hangs in a call, sends it a signal, and returns the outcome.
fn interrupt(dir: &Path, mark: &str, signal: &str) -> Ran {
    let child = mcptest(dir)
        .args(["run", "s.yml", "--timeout", "60s"])
        .args(["--reporter", "json", "--reporter", "junit=r.xml"])
        .args(["--reporter", "markdown=r.md", "--reporter", "pretty=r.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while left_over(mark).is_empty() || !dir.join("started").exists() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the server did not start"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let sent = std::process::Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    ran(&child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_run_reports_what_is_done_and_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let mark = &mark(signal);
        let script = format!(": {mark}; touch started; sleep 600");
        let dir = folder(&[
            ("good.yml", GOOD),
            (
                "s.yml",
                &format!(
                    "servers:
  good: {{command: [mcptest, mock, --tools-from, good.yml]}}
  slow: {{command: [sh, -c, '{script}']}}
run_options: {{jobs: 1}}
tools:
  - {{name: good call, server: good, tool: t}}
  - {{name: slow call, server: slow, tool: t}}
  - {{name: last call, server: good, tool: t}}
"
                ),
            ),
        ]);
        let ran = interrupt(dir.path(), mark, signal);
        assert_eq!(ran.code, 130, "{}", ran.stderr);
        let report = ran.json();
        assert_eq!(report["interrupted"], true);
        // The slow call was started: it is interrupted, and only the one after it was not run.
        let slow = &report["tests"][1];
        assert_eq!(report["tests"][0]["name"], "good call");
        assert_eq!(
            (&slow["name"], &slow["interrupted"]),
            (&json!("slow call"), &json!(true))
        );
        assert_eq!(slow["verdict"], "no_evidence");
        assert_eq!(
            report["not_run"],
            json!([{"suite": "s.yml", "name": "last call"}])
        );
        for (file, told) in [
            ("r.xml", "<skipped message=\"not run\"/>"),
            (
                "r.xml",
                "<skipped message=\"interrupted: 0 of 1 runs finished\"/>",
            ),
            ("r.md", "2 tests: 1 passed, 1 interrupted, 1 not run"),
            ("r.md", "- **interrupted** `slow call`"),
            ("r.txt", "2 tests: 1 passed, 1 interrupted, 1 not run"),
            ("r.txt", "\ninterrupted\n  s.yml: slow call\n"),
            ("r.txt", "\nnot run\n  s.yml: last call\n"),
        ] {
            let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
            assert!(text.contains(told), "{file}: {text}");
        }
        assert_none_left(mark);
    }
}

#[test]
fn a_server_that_dies_in_the_middle_is_started_again_for_the_next_test() {
    // Dies when the tool `die` is called; the mock behind it answers everything else.
    let script = "while read -r line; do case \"$line\" in *die*) exit 9;; esac; echo \"$line\"; done | mcptest_bin mock --tools-from good.yml";
    let script = script.replace("mcptest_bin", env!("CARGO_BIN_EXE_mcptest"));
    let suite = format!(
        "servers: {{s: {{command: [bash, -c, {}]}}}}
run_options: {{jobs: 1}}
tools:
  - {{name: first, server: s, tool: t}}
  - {{name: second, server: s, tool: die}}
  - {{name: third, server: s, tool: t}}
",
        serde_json::to_string(&script).unwrap()
    );
    let dir = folder(&[("s.yml", &suite), ("good.yml", GOOD)]);
    let ran = ran(&mcptest(dir.path())
        .args(["run", "s.yml", "--reporter", "json"])
        .output()
        .unwrap());
    let report = ran.json();
    let verdicts: Vec<&str> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|test| test["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["pass", "error", "pass"], "{}", ran.stdout);
    assert_eq!(
        report["tests"][1]["runs"][0]["error"]["kind"],
        "server_crash"
    );
}

#[test]
fn the_timeout_of_the_command_line_overrides_that_of_a_tool_test() {
    // Opens the connection as the mock does, and swallows calls.
    let script = "while read -r line; do case \"$line\" in *tools/call*) ;; *) echo \"$line\";; esac; done | mcptest_bin mock --tools-from good.yml";
    let script = script.replace("mcptest_bin", env!("CARGO_BIN_EXE_mcptest"));
    let suite = format!(
        "servers: {{s: {{command: [bash, -c, {}]}}}}\ntools: [{{name: t, server: s, tool: t, timeout: 60s}}]\n",
        serde_json::to_string(&script).unwrap()
    );
    let dir = folder(&[("s.yml", &suite), ("good.yml", GOOD)]);
    let began = Instant::now();
    let ran = ran(&mcptest(dir.path())
        .args(["run", "s.yml", "--reporter", "json", "--timeout", "2s"])
        .output()
        .unwrap());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(
        ran.json()["tests"][0]["runs"][0]["error"]["kind"],
        "timeout"
    );
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
}
