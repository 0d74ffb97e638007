//! Partial results of any split of the traces, merged in any order, give the bytes of the whole,
//! for all gates.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use mcptest_score::{
    Environment, PartOf, ScoreSettings, ScoreSuite, TraceInput, lines, merge, to_json,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Every gate, once alone and once with other expectations.
const SUITE: &str = r#"
name: all gates
servers: { a: { command: [x] } }
faults: [{ name: hung, target: { tool: search }, kind: hang }]
tests:
  - name: one
    models: [builtin/scripted, builtin/lexical]
    script: [[{ say: x }]]
    servers: [a]
    runs: 9
    expect: [{ tool_names: { contains: search } }]
    equal_function_sets: &classes
      classes:
        - { name: search, members: [a.search, find] }
        - { name: write, members: [create_note] }
    token_efficiency: *classes
    orchestration: {}
    reliability: { tolerate_failed_runs: true }
    stability: {}
    tool_selection: { expected_tool: search, min_selection_rate: 0.5, max_total_tokens: 500 }
    distractors: { count: 2, source: { from: catalog }, correct: [a.search] }
  - name: two
    inject: [hung]
    servers: [a]
    trajectory:
      mode: exact_set
      calls: [{ name: search, args: { subset: { q: 1 } } }, { name: create_note }]
    trajectory_axes:
      dependencies: [{ producer: search, consumer: create_note }]
      order: [{ first: find, second: search }]
    golden_path: { calls: [search, create_note] }
    recovery: { max_detection_ms: 100 }
    tool_edges:
      allowed: [search, find]
      restricted: [create_note]
      delegation: [{ from: find, to: search }]
    narrative: { max_divergence_score: 0.4 }
"#;

/// Gates compare runs with higher numbers than this by their position until all runs are known.
const MAX_RUN: u64 = (1 << 22) - 2;

fn environment() -> Environment<'static> {
    Environment::new(mcptest_gates::GATES)
}

fn loaded(text: &str) -> ScoreSuite {
    ScoreSuite::from_text("suite.yml".as_ref(), text, &environment()).unwrap()
}

static LOADED: LazyLock<ScoreSuite> = LazyLock::new(|| loaded(SUITE));

fn settings() -> ScoreSettings {
    ScoreSettings {
        summary: true,
        ..ScoreSettings::default()
    }
}

fn trace_line() -> impl Strategy<Value = String> {
    let tool = prop::sample::select(vec!["search", "find", "create_note", "a__search", "other"]);
    let call = (
        tool,
        0..3_i64,
        prop::option::of(any::<bool>()),
        any::<bool>(),
    );
    let text = prop::sample::select(vec![
        "I created the note.",
        "Done.",
        "The note was deleted.",
    ]);
    (
        prop::sample::select(vec!["one", "one", "two"]),
        prop::option::of(prop::sample::select(vec![
            "builtin/lexical",
            "builtin/scripted",
            "m3",
            "a",
        ])),
        prop::option::weighted(0.5, prop_oneof![1..9_u64, 0..MAX_RUN]),
        prop::collection::vec(call, 0..5),
        prop::option::of(text),
        prop::option::of(0..1000_u64),
        0..20_u8,
    )
        .prop_map(|(test, model, run, calls, text, tokens, dice)| {
            let result = |(.., is_error, fault): &(&str, i64, Option<bool>, bool)| match is_error {
                Some(true) if *fault => {
                    json!({"is_error": true, "error_kind": "timeout", "fault": "hung"})
                }
                Some(is_error) => json!({"is_error": is_error}),
                None => json!({}),
            };
            let results: Value = calls.iter().map(result).collect();
            let calls = calls
                .iter()
                .map(|(name, q, ..)| json!({"name": name, "args": {"q": q}}));
            let mut trace = json!({
                "test": test, "tool_calls": calls.collect::<Value>(), "tool_results": results,
                "distractors": ["a.weather_now"],
            });
            let mut put = |key: &str, value: Option<Value>| {
                if let Some(value) = value {
                    trace[key] = value;
                }
            };
            put("model", model.map(Into::into));
            put("run", run.map(Into::into));
            put("final_response", text.map(Into::into));
            put(
                "conversation",
                tokens.map(|total| json!({"tokens": {"total": total}})),
            );
            let error = json!({"kind": "timeout", "message": "late"});
            put("error", (dice == 0).then_some(error));
            put("catalog", (dice == 1).then(|| json!([{"name": "search"}])));
            match dice {
                2 => "{\"test\": \"one\", \"tool_calls\": [\n".to_owned(),
                _ => format!("{trace}\n"),
            }
        })
}

/// The summary of all lines in one input.
fn whole(suite: &ScoreSuite, text: &str, settings: &ScoreSettings) -> Vec<u8> {
    let report = suite.report(lines("t", 0, text.as_bytes()), settings);
    to_json(&report.unwrap()).unwrap()
}

/// Leaves out the places of broken lines, which have other line numbers in other inputs.
fn without_places(json: &[u8]) -> Value {
    let mut report: Value = serde_json::from_slice(json).unwrap();
    if let Some(broken) = report.get_mut("broken_lines") {
        broken["first"] = Value::Null;
    }
    report
}

fn is_broken(line: &str) -> bool {
    line.ends_with("[\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn any_split_merged_in_any_order_gives_the_bytes_of_the_whole(
        all in prop::collection::vec((trace_line(), 0..64_usize), 1..60),
        parts in 2..65_usize,
        seed in any::<prop::sample::Index>(),
        threads in 1..4_usize,
    ) {
        let good = |lines: &[(String, usize)]| lines.iter().filter(|(line, _)| !is_broken(line)).count();
        // A file without any trace is an error.
        prop_assume!(good(&all) > 0);
        let settings = ScoreSettings { threads: NonZeroUsize::new(threads), ..settings() };
        let text: String = all.iter().map(|(line, _)| line.as_str()).collect();
        let expected = whole(&LOADED, &text, &settings);

        // Any traces in any part: each has its position in the whole.
        let mut inputs: Vec<Vec<TraceInput<'_>>> = (0..parts).map(|_| Vec::new()).collect();
        let mut position = 0;
        let mut broken = 0;
        for (line, part) in &all {
            if is_broken(line) {
                broken += 1;
                continue;
            }
            inputs[part % parts].extend(lines("t", position, line.as_bytes()));
            position += 1;
        }
        let partials = inputs.into_iter().enumerate().map(|(at, inputs)| {
            (at.to_string(), LOADED.partial(inputs, &settings, None).unwrap())
        });
        let mut partials: Vec<(String, Vec<u8>)> = partials.collect();
        let middle = seed.index(parts);
        partials.rotate_left(middle);
        partials[middle..].reverse();
        let merged = to_json(&merge(partials, &environment()).unwrap()).unwrap();
        if broken == 0 {
            prop_assert_eq!(
                String::from_utf8(merged).unwrap(),
                String::from_utf8(expected.clone()).unwrap()
            );
        }

        // Neighbouring lines in files whose names have numbers, broken lines included.
        let size = all.len().div_ceil(parts).max(1);
        let chunks: Vec<&[(String, usize)]> = all.chunks(size).collect();
        if chunks.iter().all(|chunk| good(chunk) > 0) {
            let count = u32::try_from(chunks.len()).unwrap();
            let mut texts = Vec::new();
            for chunk in &chunks {
                texts.push(chunk.iter().map(|(line, _)| line.as_str()).collect::<String>());
            }
            let files = (1..).zip(&texts).map(|(number, text)| {
                let name = format!("part-{number}.jsonl");
                let part = PartOf { number, of: count };
                let by_name = LOADED.partial(lines(&name, 0, text.as_bytes()), &settings, None);
                let by_part = LOADED.partial(lines("-", 0, text.as_bytes()), &settings, Some(part));
                ((name.clone(), by_name.unwrap()), (name, by_part.unwrap()))
            });
            let (mut by_name, mut by_part): (Vec<_>, Vec<_>) = files.unzip();
            by_name.reverse();
            by_part.reverse();
            for partials in [by_name, by_part] {
                let merged = to_json(&merge(partials, &environment()).unwrap()).unwrap();
                prop_assert_eq!(without_places(&merged), without_places(&expected));
            }
        }
    }
}

fn partial(suite: &ScoreSuite, name: &str, text: &str) -> (String, Vec<u8>) {
    let inputs = lines(name, 0, text.as_bytes());
    (
        name.to_owned(),
        suite.partial(inputs, &settings(), None).unwrap(),
    )
}

fn refused(partials: Vec<(String, Vec<u8>)>) -> String {
    merge(partials, &environment()).unwrap_err().to_string()
}

const LINE: &str = "{\"test\": \"one\", \"tool_calls\": [{\"name\": \"search\"}]}\n";

#[test]
fn partial_results_that_do_not_belong_together_are_refused() {
    let one = partial(&LOADED, "a", LINE);
    let other = loaded(&SUITE.replace("max_total_tokens: 500", "max_total_tokens: 501"));
    let message = refused(vec![one.clone(), partial(&other, "b", LINE)]);
    assert!(
        message.contains("`a` and `b` do not belong together: they have different suites"),
        "{message}"
    );
    let filtered = ScoreSettings {
        no_judges: true,
        ..settings()
    };
    let inputs = lines("b", 0, LINE.as_bytes());
    let filtered = LOADED.partial(inputs, &filtered, None).unwrap();
    let message = refused(vec![one.clone(), ("b".to_owned(), filtered)]);
    assert!(message.contains("different settings"), "{message}");
    let message = refused(vec![one.clone(), one.clone()]);
    assert!(message.contains("both have trace 1 of `a`"), "{message}");
    let newer = String::from_utf8(one.1.clone()).unwrap();
    let newer = newer
        .replacen("\"version\":", "\"version\":99", 1)
        .into_bytes();
    let message = refused(vec![("new".to_owned(), newer)]);
    assert!(message.starts_with("new: written by mcptest"), "{message}");
    for bytes in [
        &b"{}"[..],
        b"nonsense",
        b"{\"format\": \"other\", \"version\": 1}",
    ] {
        let message = refused(vec![("x".to_owned(), bytes.to_vec())]);
        assert!(message.starts_with("x: not a partial result"), "{message}");
    }
    let torn = one.1[..one.1.len() / 2].to_vec();
    assert!(refused(vec![("torn".to_owned(), torn)]).contains("torn: not a partial"));
    assert_eq!(refused(Vec::new()), "no partial results to merge");
}

#[test]
fn parts_are_complete_and_each_there_once() {
    let part = |number, of| {
        let inputs = lines("-", 0, LINE.as_bytes());
        let part = PartOf { number, of };
        let bytes = LOADED.partial(inputs, &settings(), Some(part)).unwrap();
        (format!("{number}/{of}"), bytes)
    };
    assert!(merge(vec![part(2, 2), part(1, 2)], &environment()).is_ok());
    assert!(refused(vec![part(2, 3), part(1, 3)]).starts_with("part 3 of 3 is missing"));
    assert!(refused(vec![part(1, 2), part(1, 2)]).contains("are both part 1"));
    assert!(refused(vec![part(1, 2), part(2, 3)]).contains("is part 2 of 3"));
    let without = partial(&LOADED, "x", LINE);
    assert!(refused(vec![part(1, 2), without]).contains("has no `--part`"));
}

#[test]
fn a_partial_result_has_no_secrets() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let line = LINE.replace("search", secret);
    let (_, bytes) = partial(&LOADED, "a", &line);
    assert!(!String::from_utf8(bytes.clone()).unwrap().contains(secret));
    let merged = merge(vec![("a".to_owned(), bytes)], &environment()).unwrap();
    let expected = whole(&LOADED, &line, &settings());
    assert_eq!(to_json(&merged).unwrap(), expected);
}
