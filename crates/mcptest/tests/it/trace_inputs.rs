//! The inputs of `mcptest score`: many files, compressed ones, broken lines.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::support::{Ran, folder, mcptest, ran, run};

const SUITE: &str = "
name: inputs
tests:
  - name: t
    expect: [{ tool_names: { contains: a } }]
    reliability: { tolerate_failed_runs: true, expect: [{ reliability.pass_at_k: { \">=\": 1 } }] }
";

/// A line that passes, or not.
fn line(good: bool) -> String {
    let name = if good { "a" } else { "b" };
    format!("{{\"test\":\"t\",\"tool_calls\":[{{\"name\":\"{name}\"}}]}}\n")
}

fn lines(outcomes: &[bool]) -> String {
    outcomes.iter().map(|good| line(*good)).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

fn score(dir: &Path, more: &[&str]) -> Ran {
    let mut args = vec!["score", "s.yml", "--reporter", "json"];
    args.extend(more);
    run(dir, &args)
}

fn score_input(dir: &Path, input: &[u8], more: &[&str]) -> Ran {
    let mut child = mcptest(dir)
        .args(["score", "s.yml", "--reporter", "json", "--trace", "-"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    ran(&child.wait_with_output().unwrap())
}

/// The verdicts of the runs, in order.
fn verdicts(ran: &Ran) -> Vec<bool> {
    let report = ran.json();
    let runs = report["tests"][0]["runs"].as_array().unwrap();
    runs.iter().map(|run| run["verdict"] == "pass").collect()
}

#[test]
fn traces_are_named_behind_the_suite_or_behind_the_flag() {
    let dir = folder(&[
        ("s.yml", SUITE),
        ("a.jsonl", &line(true)),
        ("b.jsonl", &line(false)),
    ]);
    let flag = score(
        dir.path(),
        &["--no-timing", "--trace", "a.jsonl", "b.jsonl"],
    );
    let behind = score(dir.path(), &["--no-timing", "a.jsonl", "b.jsonl"]);
    assert_eq!(verdicts(&flag), [true, false], "{}", flag.stderr);
    assert_eq!((behind.code, behind.stdout), (flag.code, flag.stdout));
    for arguments in [&[][..], &["a.jsonl", "--trace", "b.jsonl"]] {
        assert_eq!(score(dir.path(), arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn half_of_a_character_is_replaced() {
    let trace = r#"{"test":"t","tool_calls":[{"name":"a","args":{"text":"cut \ud83d"}}]}"#;
    let chat = r#"[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"\ude00"}]"#;
    let dir = folder(&[("s.yml", SUITE), ("a.jsonl", trace), ("chat.json", chat)]);
    let native = score(dir.path(), &["a.jsonl"]);
    assert_eq!(verdicts(&native), [true], "{}", native.stderr);
    let args = &native.json()["tests"][0]["runs"][0]["trace"]["tool_calls"][0]["args"];
    assert_eq!(args["text"], "cut \u{fffd}");
    let foreign = score(dir.path(), &["chat.json"]);
    assert_eq!(verdicts(&foreign), [true], "{}", foreign.stderr);
}

#[test]
fn issue_11_folders_patterns_and_compressed_files() {
    let dir = folder(&[("s.yml", SUITE)]);
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    put("runs/run-10.jsonl", lines(&[false]).as_bytes());
    put("runs/run-2.jsonl.gz", &gzip(&lines(&[true, true])));
    put("runs/more/run-1.ndjson.zst", &zstd(&lines(&[true, false])));
    put("runs/.hidden.jsonl", b"nonsense");
    put("runs/notes.txt", b"nonsense");
    put("other.bin", &zstd(&lines(&[false, true])));
    let all = score(dir.path(), &["--trace", "runs"]);
    assert_eq!(
        verdicts(&all),
        [true, false, true, true, false],
        "{}",
        all.stderr
    );
    let some = score(dir.path(), &["--trace", "other.bin", "runs/*.jsonl*"]);
    assert_eq!(
        verdicts(&some),
        [false, true, true, true, false],
        "{}",
        some.stderr
    );
    let again = score(
        dir.path(),
        &["--trace", "runs", "runs/*.jsonl", "runs/run-10.jsonl"],
    );
    assert_eq!(again.stdout, all.stdout);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    for (name, message) in [
        ("empty", "the folder `empty` has no trace files"),
        ("*.jsonl", "the pattern `*.jsonl` matches no file"),
        ("gone.jsonl", "cannot read `gone.jsonl`: no such file"),
    ] {
        let ran = score(dir.path(), &["--trace", "runs", name]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
    }
}

#[test]
fn issue_11_standard_input_may_be_compressed() {
    let dir = folder(&[("s.yml", SUITE)]);
    let text = lines(&[true, false, true]);
    let plain = score_input(dir.path(), text.as_bytes(), &[]);
    assert_eq!(verdicts(&plain), [true, false, true]);
    assert_eq!(
        score_input(dir.path(), &gzip(&text), &[]).stdout,
        plain.stdout
    );
    assert_eq!(
        score_input(dir.path(), &zstd(&text), &[]).stdout,
        plain.stdout
    );
    let torn = &gzip(&text)[..40];
    let ran = score_input(dir.path(), torn, &[]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("cannot read `-`: damaged gzip data"),
        "{}",
        ran.stderr
    );
}

#[test]
fn issue_11_broken_lines_are_counted_and_never_pass() {
    let good = line(true);
    let text = format!("{good}nonsense\n{good}{{\"test\":\"t\",\"tool_calls\":[{{\n{good}");
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &text)]);
    let ran = score(dir.path(), &["--trace", "t.jsonl"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(verdicts(&ran), [true, true, true]);
    let report = ran.json();
    assert_eq!(
        (&report["exit_code"], &report["tests"][0]["verdict"]),
        (&json!(3), &json!("pass"))
    );
    let places = |report: &Value| -> Vec<(String, u64)> {
        let first = report["broken_lines"]["first"].as_array().unwrap();
        let place = |one: &Value| {
            (
                one["file"].as_str().unwrap().to_owned(),
                one["line"].as_u64().unwrap(),
            )
        };
        first.iter().map(place).collect()
    };
    assert_eq!(report["broken_lines"]["count"], 2);
    assert_eq!(
        places(&report),
        [("t.jsonl".to_owned(), 2), ("t.jsonl".to_owned(), 4)]
    );
    for reporter in ["pretty", "junit", "markdown"] {
        let shown = run(
            dir.path(),
            &[
                "score",
                "s.yml",
                "--trace",
                "t.jsonl",
                "--reporter",
                reporter,
            ],
        );
        assert_eq!(shown.code, 3);
        for part in ["2 broken lines were skipped", "t.jsonl:2:", "t.jsonl:4:"] {
            assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
        }
    }
    let strict = score(dir.path(), &["--trace", "t.jsonl", "--strict"]);
    assert_eq!((strict.code, strict.stdout.as_str()), (2, ""));
    assert!(strict.stderr.contains("t.jsonl:2:"), "{}", strict.stderr);
    // A failure is graver than a broken line.
    let failing = SUITE.replace("tolerate_failed_runs: true, ", "");
    let dir = folder(&[
        ("s.yml", &failing),
        ("t.jsonl", &format!("{text}{}", line(false))),
    ]);
    assert_eq!(score(dir.path(), &["--trace", "t.jsonl"]).code, 1);
}

#[test]
fn issue_11_a_secret_in_a_broken_line_is_masked() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let text = format!("{}{{\"tool_calls\": \"{secret}\"}}\n", line(true));
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &text)]);
    let ran = score(dir.path(), &["--trace", "t.jsonl"]);
    assert_eq!(ran.code, 3);
    let message = ran.json()["broken_lines"]["first"][0]["message"].clone();
    assert!(
        message.as_str().unwrap().contains("[redacted]"),
        "{message}"
    );
    assert!(!ran.stdout.contains(secret));
    let strict = score(dir.path(), &["--trace", "t.jsonl", "--strict"]);
    assert!(!strict.stderr.contains(secret), "{}", strict.stderr);
}

#[test]
fn issue_11_bytes_do_not_depend_on_the_number_of_threads() {
    let mut text = String::new();
    for at in 0..9000_u32 {
        match at % 997 {
            500 => text.push_str("{\"test\":\"t\",\"tool_calls\":[{\"name\":\n"),
            700 => text.push_str("nonsense\n"),
            _ => {
                let run = at * 7919 % 9001;
                let note = "x".repeat((at % 50) as usize);
                text.push_str(&format!(
                    "{{\"test\":\"t\",\"run\":{run},\"note\":\"{note}\",\"tool_calls\":[{{\"name\":\"{}\"}}]}}\n",
                    if at % 3 == 0 { "b" } else { "a" }
                ));
            }
        }
    }
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &text)]);
    let alone = score(dir.path(), &["--trace", "t.jsonl", "--threads", "1"]);
    assert_eq!(alone.code, 3, "{}", alone.stderr);
    assert_eq!(alone.json()["broken_lines"]["count"], 18);
    for threads in ["2", "8"] {
        let ran = score(dir.path(), &["--trace", "t.jsonl", "--threads", threads]);
        assert_eq!(ran.stdout, alone.stdout, "{threads} threads");
    }
    assert_eq!(
        score(dir.path(), &["--trace", "t.jsonl", "--threads", "0"]).code,
        2
    );
}

#[test]
fn issue_11_merged_partial_results_are_the_summary() {
    let dir = folder(&[("s.yml", SUITE)]);
    let mut whole = String::new();
    for (number, outcomes) in [
        [true, false, true],
        [true, true, false],
        [false, true, true],
    ]
    .iter()
    .enumerate()
    {
        let text = lines(outcomes);
        let name = format!("t-{}.jsonl", number + 8);
        std::fs::write(dir.path().join(name), &text).unwrap();
        whole.push_str(&text);
    }
    std::fs::write(dir.path().join("whole.jsonl"), &whole).unwrap();
    let summary = score(dir.path(), &["--trace", "whole.jsonl", "--summary"]);
    assert_eq!(summary.code, 0, "{}", summary.stderr);
    let report = summary.json();
    assert_eq!(report["tests"][0]["runs"], json!([]));
    assert_eq!(report["tests"][0]["run_totals"]["failed"], 3);
    let gate = &report["tests"][0]["gates"][0];
    assert!(gate["detail"].get("per_run").is_none(), "{gate}");
    for number in 8..11 {
        let (trace, part) = (format!("t-{number}.jsonl"), format!("{number}.part"));
        let args = ["score", "s.yml", "--trace", &trace, "--partial", &part];
        let ran = run(dir.path(), &args);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    }
    // The suite is in the partial results.
    std::fs::remove_file(dir.path().join("s.yml")).unwrap();
    let merged = run(
        dir.path(),
        &["report", "merge", "10.part", "8.part", "9.part"],
    );
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert_eq!(merged.stdout, summary.stdout);
    std::fs::write(dir.path().join("summary.json"), &summary.stdout).unwrap();
    let mixed = run(dir.path(), &["report", "merge", "10.part", "summary.json"]);
    assert_eq!(mixed.code, 2);
    assert!(
        mixed.stderr.contains("`10.part` is a partial result"),
        "{}",
        mixed.stderr
    );
    let shown = run(dir.path(), &["report", "summary.json"]);
    assert!(shown.stdout.contains("t ×9"), "{}", shown.stdout);
    assert!(
        shown.stdout.contains("6 of 9 runs passed, 3 failed"),
        "{}",
        shown.stdout
    );
    let again = run(
        dir.path(),
        &["report", "summary.json", "--reporter", "json"],
    );
    assert_eq!(again.stdout, summary.stdout);
}

#[test]
fn issue_11_a_partial_result_after_a_broken_line() {
    let text = format!("{}nonsense\n", line(true));
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &text)]);
    let summary = score(dir.path(), &["--trace", "t.jsonl", "--summary"]);
    assert_eq!(summary.code, 3);
    let args = [
        "score",
        "s.yml",
        "--trace",
        "t.jsonl",
        "--partial",
        "p",
        "--part",
        "1/1",
    ];
    let partial = run(dir.path(), &args);
    assert_eq!(partial.code, 3);
    assert!(partial.stderr.contains("t.jsonl:2:"), "{}", partial.stderr);
    let merged = run(dir.path(), &["report", "merge", "p"]);
    assert_eq!((merged.code, merged.stdout), (3, summary.stdout));
    let wrong = run(
        dir.path(),
        &[
            "score",
            "s.yml",
            "--trace",
            "t.jsonl",
            "--partial",
            "p",
            "--part",
            "2/1",
        ],
    );
    assert_eq!(wrong.code, 2);
}

#[test]
fn issue_11_traces_of_other_tools_are_recognised() {
    let chat = r#"[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"}, {"role": "assistant", "content": "Done."}]"#;
    let own = "{\"steps\": [{\"tool\": \"a\"}]}\nnonsense\n{\"steps\": [{\"tool\": \"b\"}]}\n";
    let dir = folder(&[
        ("s.yml", SUITE),
        ("chat.json", chat),
        ("native.jsonl", &line(false)),
        ("own.jsonl", own),
        ("map.yml", "calls: /steps\nname: /tool\n"),
        ("other.json", "{\"some\": \"thing\"}"),
    ]);
    let ran = score(dir.path(), &["--trace", "chat.json", "native.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(verdicts(&ran), [true, false]);
    let forced = score(
        dir.path(),
        &["--trace", "chat.json", "--format", "openai-chat"],
    );
    assert_eq!(verdicts(&forced), [true], "{}", forced.stderr);
    let unknown = score(dir.path(), &["--trace", "other.json"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("other.json: unknown trace format"),
        "{}",
        unknown.stderr
    );
    let wrong = score(dir.path(), &["--trace", "native.jsonl", "--format", "otel"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("native.jsonl: line 1"),
        "{}",
        wrong.stderr
    );
    let none = score(dir.path(), &["--trace", "native.jsonl", "--format", "nope"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("unknown format `nope`"),
        "{}",
        none.stderr
    );
    let mapped = score(dir.path(), &["--trace", "own.jsonl", "--map", "map.yml"]);
    assert_eq!(mapped.code, 3, "{}", mapped.stderr);
    assert_eq!(verdicts(&mapped), [true, false]);
    assert_eq!(mapped.json()["broken_lines"]["first"][0]["line"], 2);
    let strict = score(
        dir.path(),
        &["--trace", "own.jsonl", "--map", "map.yml", "--strict"],
    );
    assert_eq!(strict.code, 2);
}

#[test]
fn rows_come_in_the_order_of_the_traces_for_any_number_of_threads() {
    let outcomes: Vec<bool> = (0..400).map(|at| at % 3 > 0).collect();
    // Several blocks of the file.
    let padding = "x".repeat(4000);
    let padded = |outcomes: &[bool]| -> String {
        let line = |good: &bool| line(*good).replacen('{', &format!("{{\"x\":\"{padding}\","), 1);
        outcomes.iter().map(line).collect()
    };
    let text = format!(
        "{}no trace\n{}",
        padded(&outcomes[..9]),
        padded(&outcomes[9..])
    );
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &text)]);
    let rows = |threads: &str| {
        let out = format!("rows-{threads}.jsonl");
        let args = ["--trace", "t.jsonl", "--threads", threads, "--out", &out];
        let scored = score(dir.path(), &args);
        assert_eq!(scored.code, 3, "{}", scored.stderr);
        std::fs::read_to_string(dir.path().join(out)).unwrap()
    };
    let alone = rows("1");
    assert_eq!(rows("2"), alone);
    assert_eq!(rows("8"), alone);
    let rows: Vec<Value> = alone
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let verdicts: Vec<bool> = rows.iter().map(|row| row["verdict"] == "pass").collect();
    assert_eq!(verdicts, outcomes);
    let places: Vec<&Value> = rows[8..10].iter().map(|row| &row["line"]).collect();
    assert_eq!(places, [&json!(9), &json!(11)]);
    assert_eq!(rows[0]["file"], "t.jsonl");
    let schema = run(dir.path(), &["schema", "score-row"]).json();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for row in &rows {
        schema.validate(row).unwrap();
    }
    assert!(!schema.is_valid(&json!({"file": "t.jsonl"})));
}

#[test]
fn rows_never_overwrite_a_trace_file() {
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &line(true))]);
    let scored = score(dir.path(), &["--trace", "t.jsonl", "--out", "./t.jsonl"]);
    assert_eq!(scored.code, 2);
    assert!(
        scored.stderr.contains("would overwrite a trace file"),
        "{}",
        scored.stderr
    );
    let kept = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
    assert_eq!(kept, line(true));
}

#[test]
fn every_command_that_reads_traces_takes_a_format_and_a_map() {
    let map = "calls: /steps\nname: /tool\n";
    let home_made = "{\"steps\": [{\"tool\": \"a\"}]}\n";
    let dir = folder(&[("s.yml", SUITE), ("m.yml", map), ("t.jsonl", home_made)]);
    for args in [
        ["trace", "stats", "t.jsonl"].as_slice(),
        &["trace", "show", "t.jsonl"],
        &["trace", "convert", "t.jsonl"],
        &["trace", "anonymise", "t.jsonl"],
        &["trace", "infer", "t.jsonl"],
        &["mutate", "s.yml", "--trace", "t.jsonl"],
        &["score", "s.yml", "--trace", "t.jsonl"],
    ] {
        let with_map = [args, &["--map", "m.yml"]].concat();
        let read = run(dir.path(), &with_map);
        assert_eq!(read.code, 0, "{args:?}: {}", read.stderr);
        assert_eq!(run(dir.path(), args).code, 2, "{args:?}");
        for flag in ["--format", "--trace-format"] {
            let named = [args, &[flag, "native"]].concat();
            let refused = run(dir.path(), &named);
            assert_eq!(refused.code, 2, "{args:?}");
            assert!(refused.stderr.contains("tool_calls"), "{}", refused.stderr);
        }
        let both = [with_map.as_slice(), &["--format", "native"]].concat();
        let refused = run(dir.path(), &both);
        assert_eq!(refused.code, 2, "{args:?}");
        assert!(refused.stderr.contains("give one"), "{}", refused.stderr);
        let two = [args, &["--format", "native", "--format", "atif"]].concat();
        let refused = run(dir.path(), &two);
        assert_eq!(refused.code, 2, "{args:?}");
        assert!(
            refused.stderr.contains("two trace formats"),
            "{}",
            refused.stderr
        );
        let unknown = run(dir.path(), &[args, &["--format", "nothing"]].concat());
        assert_eq!(unknown.code, 2, "{args:?}");
        assert!(unknown.stderr.contains("nothing"), "{}", unknown.stderr);
    }
}

#[test]
fn the_format_of_mutate_is_that_of_traces_and_of_the_output() {
    let dir = folder(&[("s.yml", SUITE), ("t.jsonl", &line(true))]);
    let mutate = ["mutate", "s.yml", "--trace", "t.jsonl"].as_slice();
    let with = |more: &[&str]| run(dir.path(), &[mutate, more].concat());
    let both = with(&["--format", "native", "--format", "json"]);
    assert_eq!(both.code, 0, "{}", both.stderr);
    let json: serde_json::Value = serde_json::from_str(&both.stdout).unwrap();
    assert!(json["mutants"].is_number());
    assert_eq!(with(&["--format", "json"]).stdout, both.stdout);
    assert_eq!(
        with(&["--format", "pretty"]).stdout,
        with(&["--format", "native"]).stdout
    );
    let refused = with(&["--format", "json", "--format", "pretty"]);
    assert_eq!(refused.code, 2);
}
