use std::sync::Arc;

use mcptest_suite::Purpose;
use mcptest_trace::trace;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::score::group_traces;
use crate::testing;
use crate::trace_file::{ReadSettings, fold_input};

const SUITE: &str = r#"
name: many
tests:
  - name: one
    expect:
      - tool_calls[0].args.n: { ">=": 1 }
      - final_response: { contains: done }
    tool_selection: { expected_tool: a, min_selection_rate: 0.5, max_total_tokens: 50 }
    golden_path: { calls: [a, b] }
    stability: {}
  - name: two
    expect:
      - tool_names: { contains: b }
    reliability: {}
    token_efficiency:
      classes:
        - { name: a, members: [a, s.a] }
"#;

fn suite() -> Arc<Suite> {
    let folder = tempfile::tempdir().unwrap();
    testing::suite_for(Purpose::Score, folder.path(), SUITE)
}

/// The facts of a case that a report shows.
fn shown(case: &ScoredCase, stored: &str) -> Value {
    let place = |at: u64| usize::try_from(at).unwrap();
    let record = |run: &ScoredRun| {
        let range = run.record.clone()?;
        Some(stored[place(range.start)..place(range.end)].to_owned())
    };
    let runs = case.runs.iter().map(|run| {
        json!([
            run.index,
            run.verdict,
            run.calls,
            run.tokens,
            run.has_details,
            record(&run)
        ])
    });
    json!({
        "label": case.label, "model": case.id.model, "verdict": case.verdict,
        "gates": case.gates, "no_evidence": case.no_evidence, "runs": runs.collect::<Value>(),
    })
}

/// Scores texts as if they were files.
fn scored(
    suite: &Suite,
    texts: &[String],
    all_records: bool,
    threads: usize,
    size: usize,
) -> Result<Vec<Value>, String> {
    let settings = ScoreSettings {
        all_records,
        ..ScoreSettings::default()
    };
    let mut stored = String::new();
    let mut store = |text: &[u8]| {
        let offset = stored.len() as u64;
        stored.push_str(std::str::from_utf8(text).unwrap());
        Ok(offset)
    };
    let cases = score_parts(
        suite,
        &settings,
        &Redactor::default(),
        ScoreSinks::new(&mut store),
        |scorer, merger| {
            let mut number = 0;
            let reading = ReadSettings {
                threads,
                strict: true,
                block: size,
                ..ReadSettings::default()
            };
            texts.iter().try_for_each(|text| {
                let take = |step| merger.step(step);
                fold_input("f", text.as_bytes(), reading, scorer, &mut number, take)
            })
        },
    );
    match cases {
        Ok(scored) => {
            let cases = scored.cases.iter();
            Ok(cases.map(|case| shown(case, &stored)).collect())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The verdicts and gates of judging all traces in memory, one after the other.
fn reference(suite: &Suite, texts: &[String]) -> Result<Vec<Value>, String> {
    let mut traces = Vec::new();
    for text in texts {
        traces.extend(trace::read(text).map_err(|error| error.to_string())?);
    }
    let servers = suite.known_servers();
    let context = JudgeContext {
        servers: &servers,
        prices: &suite.prices,
        no_evidence: suite.options.no_evidence,
        judges: true,
    };
    let groups = group_traces(suite, traces, &ScoreSettings::default());
    let groups = groups.map_err(|error| error.to_string())?;
    let judged = groups.iter().map(|group| {
        let judged = group.judge(&context);
        let indexes = group.traces.iter().map(|(index, _)| *index);
        let runs: Vec<_> = indexes.zip(judged.runs).collect();
        json!({
            "label": group.label, "model": group.model, "verdict": judged.case.verdict,
            "gates": judged.case.gates, "no_evidence": judged.case.no_evidence, "runs": runs,
        })
    });
    Ok(judged.collect())
}

/// Keeps of each run what the reference has.
fn without_rows(mut cases: Vec<Value>) -> Vec<Value> {
    for case in &mut cases {
        for run in case["runs"].as_array_mut().into_iter().flatten() {
            *run = json!([run[0], run[1]]);
        }
    }
    cases
}

/// Leaves out the rows of single runs from the details of gates.
fn without_details(mut cases: Vec<Value>) -> Vec<Value> {
    for case in &mut cases {
        for gate in case["gates"].as_array_mut().into_iter().flatten() {
            if let Some(detail) = gate["detail"].as_object_mut() {
                detail.retain(|key, _| {
                    !["per_run", "mismatches", "broken", "findings"].contains(&key.as_str())
                });
            }
        }
    }
    cases
}

fn trace_line() -> impl Strategy<Value = String> {
    let call = (prop::sample::select(vec!["a", "b", "s__a"]), 0..3_u8)
        .prop_map(|(name, n)| json!({"name": name, "args": {"n": n}}));
    let test = prop::sample::select(vec!["one", "one", "two", "two", "two", "other"]);
    (
        test,
        prop::option::of(prop::sample::select(vec!["m", "n"])),
        prop::option::weighted(0.8, 1..9_u64),
        prop::collection::vec(call, 0..4),
        prop::option::of(0..100_u64),
        any::<[bool; 2]>(),
        0..60_u8,
    )
        .prop_map(|(test, model, run, calls, tokens, [done, failed], dice)| {
            let mut trace = json!({"test": test, "tool_calls": calls});
            if dice > 0 && test == "other" {
                trace["test"] = "one".into();
            }
            if let Some(model) = model {
                trace["model"] = model.into();
            }
            if let Some(run) = run {
                trace["run"] = run.into();
            }
            if let Some(tokens) = tokens {
                trace["conversation"] = json!({"tokens": {"total": tokens}});
            }
            if done {
                trace["final_response"] = "done".into();
            }
            if failed && dice % 5 == 0 {
                trace["error"] = json!({"kind": "timeout", "message": "late"});
            }
            if dice == 1 {
                trace["tool_calls"] = 7.into();
            }
            format!("{trace}\n")
        })
}

proptest! {
    #[test]
    fn threads_and_blocks_do_not_show(
        lines in prop::collection::vec(trace_line(), 0..25),
        files in 1..3_usize,
        threads in 2..4_usize,
        size in 1..700_usize,
    ) {
        let suite = suite();
        let texts: Vec<String> = lines.chunks(lines.len().div_ceil(files).max(1)).map(<[_]>::concat).collect();
        let alone = scored(&suite, &texts, true, 1, 1 << 20);
        prop_assert_eq!(&scored(&suite, &texts, true, threads, size), &alone);
        match (reference(&suite, &texts), scored(&suite, &texts, false, threads, size)) {
            (Ok(reference), Ok(cases)) => {
                let lean = without_details(reference.clone());
                prop_assert_eq!(without_rows(cases), lean);
                prop_assert_eq!(without_rows(alone.unwrap()), reference);
            }
            (Err(_), Err(error)) => prop_assert_eq!(Err(error), alone),
            (reference, cases) => prop_assert!(false, "{reference:?} {cases:?}"),
        }
    }
}

/// The rows of scoring a string as a file, and the traces of the last report of progress.
fn rows(suite: &Suite, text: &str, threads: usize, size: usize) -> (String, u64) {
    let (mut written, mut traces) = (Vec::new(), 0);
    let mut nothing = |_: &[u8]| Ok(0);
    let mut write = |rows: &[u8]| {
        written.extend_from_slice(rows);
        Ok(())
    };
    let mut show = |now: ScoreProgress| traces = now.traces;
    let mut sinks = ScoreSinks::new(&mut nothing);
    sinks.rows = Some(&mut write);
    sinks.progress = Some(&mut show);
    let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
    let settings = ScoreSettings::default();
    let scored = score_parts(suite, &settings, &redactor, sinks, |scorer, merger| {
        let reading = ReadSettings {
            threads,
            block: size,
            ..ReadSettings::default()
        };
        let file = TraceInput::File("runs/f.jsonl".into());
        merger.begin(&file, scorer.redactor);
        let take = |step| {
            merger.step(step);
            merger.report_progress(0);
        };
        fold_input("f", text.as_bytes(), reading, scorer, &mut 0, take)
    });
    scored.unwrap();
    (String::from_utf8(written).unwrap(), traces)
}

#[test]
fn rows_have_places_and_figures_and_no_secrets() {
    let good = r#"{"test":"one","run":7,"model":"m","tool_calls":[{"name":"a","args":{"n":1}}],"final_response":"done"}"#;
    let bad =
        r#"{"test":"one","run":8,"tool_calls":[],"final_response":"it is hunter2hunter2 \u0021"}"#;
    let text = format!("{good}\n\nnonsense\n{bad}\n{good}\n");
    let suite = suite();
    let alone = rows(&suite, &text, 1, 1 << 20);
    for (threads, size) in [(1, 1), (2, 50), (3, 130), (8, 200)] {
        assert_eq!(rows(&suite, &text, threads, size), alone);
    }
    let (written, traces) = alone;
    assert_eq!(traces, 3);
    assert!(!written.contains("hunter2"), "{written}");
    let lines: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let places = lines.iter().map(|row| {
        let keys = ["file", "line", "test", "model", "run", "verdict"];
        Value::from_iter(keys.map(|key| row[key].clone()))
    });
    assert_eq!(
        places.collect::<Value>(),
        json!([
            ["runs/f.jsonl", 1, "one", "m", 7, "pass"],
            ["runs/f.jsonl", 4, "one", null, 8, "fail"],
            ["runs/f.jsonl", 5, "one", "m", 7, "pass"],
        ])
    );
    assert_eq!(lines[0]["assertions"][0]["passed"], json!(true));
    assert_eq!(lines[1]["assertions"][1]["passed"], json!(false));
    let rate = |row: &Value| row["gates"]["tool_selection"]["floor.selection_rate"].clone();
    assert_eq!([rate(&lines[0]), rate(&lines[1])], [json!(100), json!(0)]);
}

#[test]
fn a_damaged_file_is_reported_before_a_trace_without_a_test() {
    let texts = ["{\"test\": \"x\", \"tool_calls\": []}\n{\"tool_calls\": 7}\n".to_owned()];
    let error = scored(&suite(), &texts, false, 2, 10).unwrap_err();
    assert!(error.starts_with("f:2:16: not a trace"), "{error}");
    let texts = ["{\"test\": \"one\", \"tool_calls\": []}\n{\"tool_calls\": []}\n".to_owned()];
    let error = scored(&suite(), &texts, false, 2, 10).unwrap_err();
    assert!(
        error.starts_with("trace 2 names no test; the suite has `one`, `two`"),
        "{error}"
    );
}

#[test]
fn each_trace_is_judged_once() {
    let line = "{\"test\": \"one\", \"tool_calls\": []}\n";
    for all_records in [false, true] {
        let _ = crate::verdicts::counter::take();
        scored(&suite(), &[line.repeat(9)], all_records, 1, 50).unwrap();
        assert_eq!(crate::verdicts::counter::take(), 9);
    }
}

#[test]
fn good_runs_are_stored_only_if_asked_for() {
    let good = "{\"test\":\"one\",\"tool_calls\":[{\"name\":\"a\",\"args\":{\"n\":1}}],\"final_response\":\"done\"}\n";
    let bad = "{\"test\":\"one\",\"tool_calls\":[]}\n";
    let records = |all_records| {
        let cases = scored(&suite(), &[format!("{good}{bad}")], all_records, 1, 50).unwrap();
        let runs = cases[0]["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| !run[5].is_null()).collect::<Vec<_>>()
    };
    assert_eq!(records(false), [false, true]);
    assert_eq!(records(true), [true, true]);
}

#[test]
fn the_record_of_a_failed_run_has_its_trace_only_with_text_of_a_server() {
    let calls = r#""tool_calls":[{"name":"b"},{"name":"b"}]"#;
    let silent = format!("{{\"test\":\"one\",{calls}}}\n");
    let failed = format!(
        "{{\"test\":\"one\",{calls},\"tool_results\":[{{\"is_error\":true}},{{\"is_error\":false}}]}}\n"
    );
    let stderr = format!("{{\"test\":\"one\",{calls},\"stderr\":{{\"s\":[\"oh\"]}}}}\n");
    let texts = [format!("{silent}{failed}{stderr}")];
    let recorded = |all_records| {
        let cases = scored(&suite(), &texts, all_records, 1, 1 << 20).unwrap();
        let runs = cases[0]["runs"].as_array().unwrap().clone();
        let calls = |run: &Value| {
            let record: Value = serde_json::from_str(&format!("{{{}", run[5].as_str()?)).ok()?;
            record["trace"]["tool_calls"].as_array().map(Vec::len)
        };
        runs.iter().map(calls).collect::<Vec<_>>()
    };
    assert_eq!(recorded(false), [Some(0), Some(2), Some(2)]);
    assert_eq!(recorded(true), [Some(2); 3]);
}
