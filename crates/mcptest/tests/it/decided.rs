//! `runs: {max: N, stop: decided}`.

use serde_json::{Value, json};

use crate::support::{folder, run};

/// A test of up to 20 runs whose runs in `misses` call the wrong tool.
fn suite(misses: &[u32], more: &str) -> String {
    let good = "[{calls: [{tool: search_tickets}], usage: {input: 10, output: 1}}, {say: Done., usage: {input: 10, output: 1}}]";
    let bad = "[{calls: [{tool: none_such}], usage: {input: 10, output: 1}}, {say: Done., usage: {input: 10, output: 1}}]";
    let script: Vec<&str> = (1..=20)
        .map(|run| if misses.contains(&run) { bad } else { good })
        .collect();
    format!(
        "
servers:
  desk: {{ command: [mcptest, mock, --preset, tidy] }}
prices:
  builtin/scripted: {{ input_per_mtok: 1, output_per_mtok: 1 }}
agents:
  - name: t
    model: builtin/scripted
    servers: [desk]
    prompt: hello
    runs: {{ max: 20, stop: decided }}
    script: [{}]
{more}",
        script.join(", ")
    )
}

fn report(text: &str, jobs: &str) -> (String, Value) {
    let dir = folder(&[("suite.yml", text)]);
    let ran = run(
        dir.path(),
        &[
            "run",
            "suite.yml",
            "--reporter",
            "json",
            "--no-timing",
            "--jobs",
            jobs,
        ],
    );
    assert!(ran.code < 2, "{}", ran.stderr);
    let report = ran.json();
    (ran.stdout, report)
}

const FLOOR: &str =
    "    tool_selection: { expected_tool: search_tickets, min_selection_rate: 0.8 }\n";

#[test]
fn the_report_does_not_depend_on_the_number_of_parallel_runs() {
    let floor_and_outcomes = format!(
        "{FLOOR}    reliability: {{ k: 1, tolerate_failed_runs: true, expect: [{{ reliability.passhat_k_unbiased: {{ '>=': 0.6 }} }}] }}\n"
    );
    for misses in [
        vec![],
        vec![1],
        vec![3, 4, 9, 10, 11],
        (1..=20).collect(),
        vec![20],
        vec![2, 4, 6, 8, 10],
    ] {
        for gates in [FLOOR, floor_and_outcomes.as_str()] {
            let text = suite(&misses, gates);
            let (one, report_of_one) = report(&text, "1");
            let (many, _) = report(&text, "16");
            assert_eq!(one, many, "{misses:?}");
            // The verdicts are those of all runs.
            let (_, all) = report(&text.replace("{ max: 20, stop: decided }", "20"), "16");
            let verdicts = |report: &Value| {
                let test = &report["tests"][0];
                let gates = test["gates"].as_array().unwrap().iter();
                (
                    test["verdict"].clone(),
                    gates
                        .map(|gate| gate["verdict"].clone())
                        .collect::<Vec<_>>(),
                )
            };
            assert_eq!(verdicts(&report_of_one), verdicts(&all), "{misses:?}");
            assert_eq!(all["tests"][0].get("saved_runs"), None);
        }
    }
}

#[test]
fn saved_runs_are_reported_and_cost_nothing() {
    let dir = folder(&[("suite.yml", &suite(&[], FLOOR))]);
    let passed = run(dir.path(), &["run", "suite.yml", "--reporter", "json"]).json();
    assert_eq!(passed["tests"][0]["saved_runs"], json!(4));
    assert_eq!(passed["tests"][0]["runs"].as_array().unwrap().len(), 16);
    assert_eq!(passed["spend"]["requests"], json!(32));
    let (_, failed) = report(&suite(&[1, 2, 4, 6, 7], FLOOR), "8");
    assert_eq!(failed["tests"][0]["verdict"], "fail");
    assert_eq!(failed["tests"][0]["saved_runs"], json!(13));
    // The last run can still decide.
    let (_, to_the_end) = report(&suite(&[1, 2, 3, 4, 20], FLOOR), "8");
    assert_eq!(to_the_end["tests"][0]["saved_runs"], json!(0));
}

#[test]
fn a_run_that_fails_decides_unless_it_is_tolerated_and_gates_must_be_decided_too() {
    let expect = "    expect: [{ tool_names: { contains: search_tickets } }]\n";
    let saved = |text: &str| report(text, "4").1["tests"][0]["saved_runs"].clone();
    assert_eq!(saved(&suite(&[3], expect)), json!(17));
    assert_eq!(saved(&suite(&[], expect)), json!(0));
    // The test has failed, but the floor has not been decided yet: that takes 16 runs of 20 that
    // hit.
    assert_eq!(saved(&suite(&[1], &format!("{expect}{FLOOR}"))), json!(3));
    let tolerated = "    reliability: { tolerate_failed_runs: true, expect: [{ reliability.pass_at_k: 100 }] }\n";
    assert_eq!(
        saved(&suite(&[1, 2], &format!("{expect}{tolerated}"))),
        json!(17)
    );
}

#[test]
fn a_gate_that_needs_all_runs_has_them_and_a_note() {
    let dir = folder(&[(
        "suite.yml",
        &suite(
            &[],
            "    stability: { expect: [{ stability.score: { '>=': 0 } }] }\n",
        ),
    )]);
    let ran = run(dir.path(), &["run", "suite.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`stability` needs all runs"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.json()["tests"][0]["saved_runs"], json!(0));
}

#[test]
fn score_judges_every_trace_it_is_given() {
    let dir = folder(&[("suite.yml", &suite(&[], FLOOR))]);
    let all = suite(&[], FLOOR).replace("{ max: 20, stop: decided }", "20");
    std::fs::write(dir.path().join("all.yml"), all).unwrap();
    assert_eq!(
        run(dir.path(), &["run", "all.yml", "--traces", "t.jsonl"]).code,
        0
    );
    let scored = run(
        dir.path(),
        &[
            "score",
            "suite.yml",
            "--trace",
            "t.jsonl",
            "--reporter",
            "json",
        ],
    )
    .json();
    assert_eq!(scored["tests"][0]["runs"].as_array().unwrap().len(), 20);
    assert_eq!(scored["tests"][0].get("saved_runs"), None);
}

#[test]
fn a_recording_of_a_decided_test_is_whole_and_replays() {
    let dir = folder(&[("suite.yml", &suite(&[2, 3], FLOOR))]);
    let run = |more: &[&str]| {
        let mut args = vec!["run", "suite.yml", "--reporter", "json", "--no-timing"];
        args.extend(more);
        run(dir.path(), &args)
    };
    let recorded = run(&["--record"]);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    assert!(!recorded.stderr.contains("only"), "{}", recorded.stderr);
    let replayed = run(&["--replay-only"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    let saved = |ran: &crate::support::Ran| ran.json()["tests"][0]["saved_runs"].clone();
    assert_eq!((saved(&recorded), saved(&replayed)), (json!(2), json!(2)));
    let gates = |ran: &crate::support::Ran| ran.json()["tests"][0]["gates"].clone();
    assert_eq!(gates(&recorded), gates(&replayed));
    // A higher bar needs runs that were not recorded, and reports it.
    let higher = suite(&[2, 3], &FLOOR.replace("0.8", "0.9"));
    std::fs::write(dir.path().join("suite.yml"), higher).unwrap();
    let more = run(&["--replay-only"]);
    assert_eq!(more.code, 2, "{}", more.stdout);
    assert!(more.stdout.contains("record"), "{}", more.stdout);
}
