//! The history of runs: `report` without a file, `report --list`, `run --resume`, retention.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mcptest_numbers::random::SplitMix64;
use serde_json::Value;

use crate::support::{Ran, files, folder, mcptest, ran, run};

const MANIFEST: &str = "
mock_server:
  name: desk
  tools:
    - name: search
      description: search the web
      response: { before: [{ wait_ms: 15 }], content: [found] }
";

const SUITE: &str = "
servers: { s: { command: [mcptest, mock, --tools-from, m.yml] } }
run_options: { jobs: 2 }
agents:
  - name: searches
    model: builtin/scripted
    servers: [s]
    prompt: search
    runs: 8
    script:
      - - { calls: [{ tool: search }], usage: { input: 10, output: 2 } }
        - { say: Found., usage: { input: 20, output: 3 } }
      - - { say: I do not know., usage: { input: 10, output: 2 } }
    expect: [{ final_response: { exists: true } }]
    tool_selection: { expected_tool: search, min_selection_rate: 0.5 }
    stability: { expect: [{ stability.score: { '>=': 101 } }] }
tools:
  - { name: direct, server: s, tool: search, expect: [{ result.text: found }] }
  - { name: wrong, server: s, tool: search, expect: [{ result.text: lost }] }
";

const JSON: [&str; 5] = ["run", "s.yml", "--reporter", "json", "--no-timing"];

fn desk() -> tempfile::TempDir {
    folder(&[("s.yml", SUITE), ("m.yml", MANIFEST)])
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let history = dir.join(".mcptest/history");
    if history.is_dir() {
        files(&history, "jsonl")
    } else {
        Vec::new()
    }
}

/// The only log of a folder.
fn log(dir: &Path) -> PathBuf {
    let mut logs = logs(dir);
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

/// The finished runs in a log, as test and number.
fn finished(text: &str) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|event| {
            let run = event.get("run_finished")?;
            Some((run["case"].as_u64()?, run["run"].as_u64()?))
        })
        .collect();
    all.sort_unstable();
    all
}

/// The number of runs in a report.
fn runs(report: &Value) -> usize {
    let tests = report["tests"].as_array().unwrap();
    let count = |test: &Value| test["runs"].as_array().unwrap().len();
    tests.iter().map(count).sum()
}

/// Checks that `report` shows every run that had finished, and that `--resume` completes to the
/// report of an undisturbed run.
fn check_interrupted(dir: &Path, undisturbed: &Ran) {
    let before = finished(&std::fs::read_to_string(log(dir)).unwrap());
    let shown = run(dir, &["report", "--reporter", "json"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let shown = shown.json();
    assert_eq!(shown["interrupted"], true, "{shown:#}");
    assert_eq!(runs(&shown), before.len(), "{shown:#}");
    let resumed = run(dir, &["run", "--resume"]);
    assert_eq!(resumed.stdout, undisturbed.stdout, "{}", resumed.stderr);
    assert_eq!(resumed.code, undisturbed.code);
    // No run was repeated, and the log now has the whole.
    let after = finished(&std::fs::read_to_string(log(dir)).unwrap());
    assert_eq!(after.len(), runs(&undisturbed.json()));
    let mut once = after.clone();
    once.dedup();
    assert_eq!(once, after);
    let again = run(dir, &["report", "--reporter", "json", "--no-timing"]);
    assert_eq!(again.stdout, undisturbed.stdout);
}

#[test]
fn killed_runs_are_reported_and_resumed() {
    let reference = desk();
    let began = Instant::now();
    let undisturbed = run(reference.path(), &JSON);
    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
    assert_eq!(undisturbed.code, 1, "{}", undisturbed.stderr);
    let mut random = SplitMix64::new(11);
    let mut interrupted = 0;
    for _ in 0..10 {
        let dir = desk();
        let mut running = mcptest(dir.path())
            .args(JSON)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(random.below(took)));
        running.kill().unwrap();
        running.wait().unwrap();
        let Some(log) = logs(dir.path()).pop() else {
            // It was killed before it had begun.
            continue;
        };
        let text = std::fs::read_to_string(&log).unwrap();
        if !text.contains('\n') {
            continue;
        }
        if text.contains("{\"ended\":") {
            let shown = run(dir.path(), &["report", "--reporter", "json", "--no-timing"]);
            assert_eq!(shown.stdout, undisturbed.stdout);
            continue;
        }
        interrupted += 1;
        check_interrupted(dir.path(), &undisturbed);
    }
    assert!(interrupted > 0, "every kill came too early or too late");
}

#[test]
fn a_log_can_be_torn_anywhere() {
    let reference = desk();
    let undisturbed = run(reference.path(), &JSON);
    let whole = std::fs::read(log(reference.path())).unwrap();
    let name = log(reference.path()).file_name().unwrap().to_owned();
    // In the plan, after it, in a finished run, before the end.
    let begun = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for end in [
        begun + 10,
        whole.len() / 3,
        whole.len() / 2,
        whole.len() - 20,
    ] {
        let dir = desk();
        let history = dir.path().join(".mcptest/history");
        std::fs::create_dir_all(&history).unwrap();
        std::fs::write(history.join(&name), &whole[..end]).unwrap();
        check_interrupted(dir.path(), &undisturbed);
    }
    // A line in the middle is another matter.
    let dir = desk();
    let history = dir.path().join(".mcptest/history");
    std::fs::create_dir_all(&history).unwrap();
    let mut damaged = whole.clone();
    damaged[begun] = b'x';
    std::fs::write(history.join(&name), damaged).unwrap();
    let shown = run(dir.path(), &["report"]);
    assert_eq!((shown.code, shown.stdout.as_str()), (2, ""));
    let problem = "line 2: not an event of mcptest: expected value (column 1)\n";
    assert!(shown.stderr.ends_with(problem), "{}", shown.stderr);
    // The list has the other runs, and a warning for this one.
    assert_eq!(run(dir.path(), &JSON).code, 1);
    let list = run(dir.path(), &["report", "--list"]);
    assert_eq!(
        (list.code, list.stdout.lines().count()),
        (0, 1),
        "{}",
        list.stdout
    );
    let id = Path::new(&name).file_stem().unwrap().to_str().unwrap();
    let warning =
        format!("warning: the run `{id}` is not listed: .mcptest/history/{id}.jsonl: {problem}");
    assert_eq!(list.stderr, warning);
}

/// A run that was killed after some of its runs, made of a complete one.
fn killed() -> tempfile::TempDir {
    let dir = desk();
    assert_eq!(run(dir.path(), &JSON).code, 1);
    let path = log(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    let third = text.match_indices("{\"run_finished\"").nth(3).unwrap().0;
    std::fs::write(&path, &text[..third]).unwrap();
    dir
}

#[test]
fn a_killed_run_is_marked_and_its_report_exits_with_0() {
    let dir = killed();
    let shown = run(dir.path(), &["report"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.contains("interrupted: 3 of 8 runs finished")
            || shown.stdout.contains("interrupted"),
        "{}",
        shown.stdout
    );
    let list = run(dir.path(), &["report", "--list"]);
    assert!(list.stdout.contains("interrupted"), "{}", list.stdout);
}

#[test]
fn a_changed_suite_is_not_resumed() {
    let dir = killed();
    std::fs::write(dir.path().join("s.yml"), format!("{SUITE}# changed\n")).unwrap();
    let refused = run(dir.path(), &["run", "--resume"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(
        refused
            .stderr
            .contains("`s.yml` has changed since the run began"),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(dir.path().join("s.yml")).unwrap();
    assert_eq!(run(dir.path(), &["run", "--resume"]).code, 2);
    std::fs::write(dir.path().join("s.yml"), SUITE).unwrap();
    assert_eq!(run(dir.path(), &["run", "--resume"]).code, 1);
}

#[test]
fn what_cannot_be_resumed_is_refused() {
    let dir = desk();
    let refuse = |args: &[&str], words: &str| {
        let refused = run(dir.path(), args);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(words),
            "{args:?}: {}",
            refused.stderr
        );
    };
    refuse(&["run", "--resume"], "there is no run in the history");
    refuse(&["report"], "there is no run in the history");
    refuse(&["report", "--list"], "there is no run in the history");
    assert_eq!(run(dir.path(), &JSON).code, 1);
    refuse(&["run", "--resume"], "it is complete");
    refuse(
        &["run", "--resume", "20200101T000000Z-0000"],
        "there is no run `20200101T000000Z-0000`",
    );
    refuse(&["run", "--resume", "--filter", "x"], "cannot be used with");
}

#[test]
fn a_resumed_run_can_report_elsewhere() {
    let dir = killed();
    let id = log(dir.path())
        .file_stem()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let resumed = run(
        dir.path(),
        &[
            "run",
            "--resume",
            &id,
            "--reporter",
            "json=r.json",
            "--traces",
            "t.jsonl",
        ],
    );
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (1, ""),
        "{}",
        resumed.stderr
    );
    let traces = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
    assert_eq!(traces.lines().count(), 10);
    let report = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    assert_eq!(runs(&serde_json::from_str(&report).unwrap()), 10);
}

#[test]
fn the_history_is_listed_and_its_runs_are_shown() {
    let dir = desk();
    let first = run(dir.path(), &["run", "s.yml", "--filter", "direct"]);
    let second = run(
        dir.path(),
        &["run", "s.yml", "--filter", "wrong", "--no-timing"],
    );
    assert_eq!((first.code, second.code), (0, 1));
    let list = run(dir.path(), &["report", "--list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", list.stdout);
    assert!(
        lines[0].contains("failed") && lines[1].contains("passed"),
        "{}",
        list.stdout
    );
    let id = lines[1].split_whitespace().next().unwrap();
    assert_eq!(run(dir.path(), &["report", id]).stdout, first.stdout);
    let last = run(dir.path(), &["report", "--no-timing"]);
    assert_eq!(last.stdout, second.stdout, "{}", last.stderr);
    let listed = run(dir.path(), &["report", "--list", "--reporter", "json"]).json();
    assert_eq!(listed[1]["id"], id);
    let compared = run(dir.path(), &["report", "--compare", id]);
    assert_eq!(compared.code, 0, "{}", compared.stderr);
    // A file with the name of an id wins.
    std::fs::write(dir.path().join(id), "hello").unwrap();
    assert!(
        run(dir.path(), &["report", id])
            .stderr
            .contains("not a report")
    );
}

#[test]
fn old_runs_are_removed() {
    let dir = desk();
    let history = dir.path().join(".mcptest/history");
    std::fs::create_dir_all(&history).unwrap();
    for number in 0..25 {
        let old = history.join(format!("20200101T0000{number:02}Z-0000.jsonl"));
        std::fs::write(old, "").unwrap();
    }
    assert_eq!(
        run(dir.path(), &["run", "s.yml", "--filter", "direct"]).code,
        0
    );
    let left = logs(dir.path());
    assert_eq!(left.len(), 20, "{left:?}");
    assert!(left[0].ends_with("20200101T000006Z-0000.jsonl"), "{left:?}");
}

#[test]
fn parallel_runs_have_their_own_logs() {
    let dir = desk();
    let start = || {
        let mut command = mcptest(dir.path());
        command.args(JSON).stdout(Stdio::piped()).spawn().unwrap()
    };
    let both = [start(), start()];
    let reports = both.map(|running| ran(&running.wait_with_output().unwrap()).stdout);
    assert_eq!(reports[0], reports[1]);
    let logs = logs(dir.path());
    assert_eq!(logs.len(), 2, "{logs:?}");
    for log in &logs {
        let id = log.file_stem().unwrap().to_str().unwrap();
        let shown = run(
            dir.path(),
            &["report", id, "--reporter", "json", "--no-timing"],
        );
        assert_eq!(shown.stdout, reports[0]);
    }
}

#[test]
fn a_run_without_a_history_is_the_same() {
    let with = desk();
    let kept = run(with.path(), &JSON);
    let without = desk();
    let args = [&JSON[..], &["--no-history"]].concat();
    let ran = run(without.path(), &args);
    assert_eq!((ran.code, &ran.stdout), (kept.code, &kept.stdout));
    assert!(!without.path().join(".mcptest").exists());
    assert_eq!(
        std::fs::read_to_string(with.path().join(".mcptest/.gitignore")).unwrap(),
        "*\n"
    );
    // A folder that cannot be written is a warning, once.
    std::fs::write(without.path().join(".mcptest"), "in the way").unwrap();
    let warned = run(without.path(), &JSON);
    assert_eq!((warned.code, &warned.stdout), (kept.code, &kept.stdout));
    assert_eq!(
        warned.stderr.matches("not kept in the history").count(),
        1,
        "{}",
        warned.stderr
    );
}

#[test]
fn a_log_has_no_secrets() {
    let dir = folder(&[
        (
            "s.yml",
            "servers: {s: {command: [mcptest, mock, --tools-from, m.yml]}}\ntools: [{name: t, server: s, tool: echo, args: {k: '${MY_API_KEY}'}}]\n",
        ),
        ("m.yml", "mock_server: {name: s, tools: [{name: echo}]}\n"),
    ]);
    for flags in [&["-vv"][..], &["-v"], &[]] {
        let mut command = mcptest(dir.path());
        command
            .env("MY_API_KEY", "hunter2-hunter2")
            .args(["run", "s.yml"])
            .args(flags);
        let ran = ran(&command.output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
        assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
        assert_eq!(
            ran.stderr.contains("[redacted]"),
            !flags.is_empty(),
            "{}",
            ran.stderr
        );
    }
    for log in logs(dir.path()) {
        let text = std::fs::read_to_string(log).unwrap();
        assert!(
            text.contains("[redacted]") && !text.contains("hunter2"),
            "{text}"
        );
    }
}

#[test]
fn the_trend_of_the_history_has_every_run() {
    let desk = desk();
    run(desk.path(), &JSON);
    let suite = SUITE.replace("result.text: lost", "result.text: found");
    std::fs::write(desk.path().join("s.yml"), suite).unwrap();
    run(desk.path(), &JSON);
    let trend = run(desk.path(), &["report", "trend", "--reporter", "json"]);
    assert_eq!(trend.code, 0, "{}", trend.stderr);
    let trend: Value = serde_json::from_str(&trend.stdout).unwrap();
    assert_eq!(trend["points"].as_array().unwrap().len(), 2);
    assert_eq!(trend["points"][0]["tests"], 3);
    assert_eq!(trend["flaky"][0]["name"], "wrong");
    assert_eq!(trend["flaky"][0]["flips"], 1);
    let last = run(desk.path(), &["report", "trend", "--last", "1"]);
    assert!(last.stdout.starts_with("1 report: "), "{}", last.stdout);
    let none = run(desk.path(), &["report", "trend", "--suite", "other"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("of the suite `other`"),
        "{}",
        none.stderr
    );
    let unknown = run(desk.path(), &["report", "trend", "--reporter", "tap"]);
    assert!(
        unknown.stderr.contains("cannot show a trend"),
        "{}",
        unknown.stderr
    );
}
