//! Everything that is read from outside, mangled: real files with parts cut out, repeated, replaced
//! by what nobody expects. Whatever the result, nothing panics or hangs, and nothing that could
//! act on a terminal comes out. Through the libraries: a process per case would be slow.

use std::path::PathBuf;
use std::sync::Arc;

use mcptest_catalog::tool_bench::Tdqs;
use mcptest_catalog::{diff, lint, quality, similar_names, tokens};
use mcptest_gates::GATES;
use mcptest_report::{
    REPORTERS, Redactor, Report, RunRow, ScoredRow, Spool, Style, TestReport, compare, merge,
};
use mcptest_runner::ScoreSettings;
use mcptest_suite::{LoadOptions, Purpose, Suite};
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::support::{folder, root};

/// Values that are inserted in wrong places.
const STRAY: [&[u8]; 20] = [
    b"null",
    b"-1",
    b"1e999",
    b"99999999999999999999999",
    b"\"",
    b"\\u0000",
    b"\x1b[31m",
    b"\xff\xfe",
    b"{",
    b"}",
    b"[",
    b"]",
    b": ",
    b"\n",
    b"\t",
    b"&a [*a, *a]",
    b"<<: *a",
    b"${saved.x}",
    "\u{202e}\u{feff}".as_bytes(),
    b"- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - ",
];

#[derive(Debug, Clone)]
enum Change {
    Cut(Index),
    Drop(Index, usize),
    Repeat(Index, usize, usize),
    Put(Index, usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        any::<Index>().prop_map(Change::Cut),
        (any::<Index>(), 1..40_usize).prop_map(|(at, length)| Change::Drop(at, length)),
        (any::<Index>(), 1..40_usize, 1..20_usize)
            .prop_map(|(at, length, times)| Change::Repeat(at, length, times)),
        (any::<Index>(), 0..STRAY.len()).prop_map(|(at, which)| Change::Put(at, which)),
    ];
    prop::collection::vec(change, 1..4)
}

fn mangle(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = bytes.len();
        let part = |at: &Index, most: usize| {
            let at = at.index(length + 1);
            at..(at + most).min(length)
        };
        match change {
            Change::Cut(at) => bytes.truncate(at.index(length + 1)),
            Change::Drop(at, most) => drop(bytes.drain(part(at, *most))),
            Change::Repeat(at, most, times) => {
                let part = part(at, *most);
                let again = bytes[part.clone()].repeat(*times);
                bytes.splice(part.start..part.start, again);
            }
            Change::Put(at, which) => {
                let at = at.index(length + 1);
                bytes.splice(at..at, STRAY[*which].iter().copied());
            }
        }
    }
    bytes
}

/// Values that are good JSON, and nothing else.
fn odd_value() -> impl Strategy<Value = Value> {
    let deep = (0..100).fold(json!(0), |inner, _| json!([inner]));
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!(""),
        json!("\u{1b}[31m\u{0}\u{202e}"),
        json!("a".repeat(5000)),
        json!([]),
        json!({}),
        json!([null, [], {}]),
        json!({"": {"~/": null}, "name": 5}),
        deep,
    ])
}

#[derive(Debug, Clone)]
enum Swap {
    Replace(Index, Value),
    Remove(Index),
    Double(Index),
}

fn swaps() -> impl Strategy<Value = Vec<Swap>> {
    let swap = prop_oneof![
        4 => (any::<Index>(), odd_value()).prop_map(|(at, value)| Swap::Replace(at, value)),
        2 => any::<Index>().prop_map(Swap::Remove),
        1 => any::<Index>().prop_map(Swap::Double),
    ];
    prop::collection::vec(swap, 1..5)
}

fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    let step = |key: &str| mcptest_json::pointer_join(at, key);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                all.push(step(&index.to_string()));
                pointers(item, &step(&index.to_string()), all);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                all.push(step(key));
                pointers(item, &step(key), all);
            }
        }
        _ => {}
    }
}

/// The same document with some of its values replaced, left out or doubled.
fn swapped(mut value: Value, swaps: &[Swap]) -> Value {
    for swap in swaps {
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        let (Swap::Replace(at, _) | Swap::Remove(at) | Swap::Double(at)) = swap;
        let Some(pointer) = (!all.is_empty()).then(|| &all[at.index(all.len())]) else {
            break;
        };
        if let Swap::Replace(_, new) = swap {
            *value.pointer_mut(pointer).unwrap() = new.clone();
            continue;
        }
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let keep = matches!(swap, Swap::Double(_));
        match value.pointer_mut(parent).unwrap() {
            Value::Array(items) => {
                let at: usize = key.parse().unwrap();
                if keep {
                    items.insert(at, items[at].clone());
                } else {
                    items.remove(at);
                }
            }
            Value::Object(fields) if !keep => {
                drop(fields.remove(&key.replace("~1", "/").replace("~0", "~")))
            }
            _ => {}
        }
    }
    value
}

/// The files of a kind below the examples.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no {ending} in {folder}");
    found
}

fn contents(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let files = files(folder, ending).into_iter();
    files.map(|path| std::fs::read(path).unwrap()).collect()
}

/// Output must not control the terminal.
fn assert_harmless(text: &str) {
    let acts = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(acts), "{text:?}");
}

fn load(path: &std::path::Path) -> Result<Suite, String> {
    let options = LoadOptions {
        purpose: Purpose::Score,
        gates: GATES,
        env: &|_| None,
        check_model: &mcptest_runner::check_model,
        providers: &mcptest_runner::built_in_providers(),
        models: &[],
    };
    let loaded = mcptest_suite::load(path, &options);
    loaded
        .map(|loaded| loaded.suite)
        .map_err(|problems| problems.to_string())
}

/// One test with every gate there is.
fn every_gate() -> Suite {
    let mut test = json!({"name": "a", "runs": 3, "expect": [{"tool_calls[*].args": {"exists": true}}, {"final_response": {"contains": "x"}}]});
    for gate in GATES {
        test[gate.block] = crate::bounds::block(gate);
    }
    test["inject"] = json!(["attack"]);
    let attack = json!({"name": "attack", "target": {"tool": "t"}, "payload": "plain-ask"});
    let suite = json!({"attacks": [attack], "tests": [test]});
    let dir = folder(&[("s.yml", &suite.to_string())]);
    load(&dir.path().join("s.yml")).unwrap()
}

fn rendered(name: &str, report: &Report) -> String {
    let mut out = Vec::new();
    mcptest_report::render(name, report, Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Shows a report in every way.
fn show(report: &Report) {
    for (name, ..) in REPORTERS.iter().copied() {
        let text = rendered(name, report);
        if name != "json" {
            assert_harmless(&text);
        }
    }
}

/// The report of a trace file.
fn scored(suite: &Suite, file: PathBuf, settings: &ScoreSettings) -> Report {
    let mut spool = Spool::new();
    let cases = mcptest_runner::score(
        suite,
        &[file],
        settings,
        &Redactor::default(),
        &mut |text| spool.append(text),
    );
    let store = Arc::new(spool.into_store().unwrap());
    let tests = cases.unwrap().cases.into_iter().map(|case| {
        let mut test = TestReport::new(case.id, case.kind, case.label, Arc::clone(&store));
        test.verdict = case.verdict;
        test.gates = case.gates;
        test.no_evidence = case.no_evidence;
        let numbered = case.runs.len() > 1;
        let row = |run: &mcptest_runner::ScoredRun| {
            RunRow::from(ScoredRow {
                index: run.index,
                numbered,
                verdict: run.verdict,
                error: run.error,
                calls: run.calls,
                errors: run.errors,
                tokens: run.tokens,
                stop_reason: run.stop_reason.as_deref(),
                has_details: run.has_details,
                record: run.record.clone(),
            })
        };
        test.runs = case.runs.iter().map(|run| row(&run)).collect();
        test
    });
    Report::conclude(tests.collect(), false)
}

/// Whatever traces say: they are judged by every gate, mutated, and the reports are shown.
fn judge(suite: &Suite, traces: Vec<trace::Trace>) {
    let settings = ScoreSettings {
        test: Some("a".to_owned()),
        all_records: true,
        ..ScoreSettings::default()
    };
    let lines: String = traces.iter().map(|trace| trace.to_json() + "\n").collect();
    let dir = folder(&[("t.jsonl", &lines)]);
    let report = scored(suite, dir.path().join("t.jsonl"), &settings);
    show(&report);
    let written = rendered("json", &report);
    assert_eq!(
        mcptest_report::read(&written).unwrap().tests.len(),
        report.tests.len()
    );
    mcptest_runner::mutate(suite, traces, &settings).unwrap();
}

fn recorded() -> Vec<Value> {
    let mut all = vec![json!({
        "test": "a", "model": "m", "run": 1,
        "tool_calls": [{"id": "1", "name": "t", "server": "s", "args": {"q": 1}, "turn": 1}, {"id": "2", "name": "u", "args": {"q": 1}}],
        "tool_results": [{"call_id": "1", "is_error": true, "error_kind": "timeout", "fault": "hung", "content": [{"type": "text", "text": "x"}]}, {"call_id": "2"}],
        "conversation": {"turns": [{"role": "user", "content": "p"}, {"role": "assistant", "content": [{"type": "text", "text": "I created 3 issues."}]}],
            "tokens": {"input": 5, "output": 6, "total": 11}},
        "final_response": "I created the issue 7 and sent \"it\" to x@example.com.",
        "catalog": [{"server": "s", "name": "t", "inputSchema": {"type": "object"}}], "distractors": ["s.u"],
        "error": {"kind": "timeout", "message": "m"},
    })];
    for bytes in contents("examples", ".jsonl") {
        let traces = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        all.extend(
            traces
                .map(Result::unwrap)
                .filter(|one| one.get("tool_calls").is_some()),
        );
    }
    all
}

proptest! {
    #[test]
    fn trace_files(file in any::<Index>(), changes in changes()) {
        let all = contents("examples", ".jsonl");
        let bytes = mangle(file.get(&all).clone(), &changes);
        if let Err(error) = trace::read(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(error.line > 0);
        }
    }

    #[test]
    fn traces(picked in prop::collection::vec(any::<Index>(), 1..4), swaps in swaps()) {
        let (suite, all) = (every_gate(), recorded());
        let traces: Vec<Value> = picked.iter().map(|at| swapped(at.get(&all).clone(), &swaps)).collect();
        if let Ok(traces) = trace::read(&Value::from(traces).to_string()) {
            judge(&suite, traces);
        }
    }

    #[test]
    fn suites(file in any::<Index>(), changes in changes()) {
        let all = contents("examples", ".yml");
        let dir = folder(&[]);
        let path = dir.path().join("s.yml");
        std::fs::write(&path, mangle(file.get(&all).clone(), &changes)).unwrap();
        if let Err(words) = load(&path) {
            assert_harmless(&words);
        }
    }

    #[test]
    fn manifests(file in any::<Index>(), changes in changes()) {
        let all = contents("examples/servers", ".yml");
        let bytes = mangle(file.get(&all).clone(), &changes);
        match mcptest_mock::load("m.yml", &bytes) {
            Ok(manifest) => drop(mcptest_mock::MockServer::new(manifest)),
            Err(problems) => assert_harmless(&problems.to_string()),
        }
    }

    #[test]
    fn cassettes(swaps in swaps(), changes in changes()) {
        let original = &contents("examples/cassettes", ".json")[0];
        let whole = mcptest_cassette::parse("c.json", original).unwrap();
        let swapped = swapped(serde_json::from_slice(original).unwrap(), &swaps).to_string();
        for bytes in [swapped.into_bytes(), mangle(original.clone(), &changes)] {
            match mcptest_cassette::parse("c.json", &bytes) {
                Ok(cassette) => {
                    assert_harmless(&mcptest_cassette::show(&cassette, None));
                    assert_harmless(&mcptest_cassette::diff(&whole, &cassette).text());
                    drop(mcptest_cassette::verify(&cassette, &Redactor::default()));
                    drop(mcptest_cassette::merge(&whole, &cassette));
                    drop(mcptest_cassette::traces(cassette));
                }
                Err(error) => assert_harmless(&error.to_string()),
            }
        }
    }

    #[test]
    fn reports(file in any::<Index>(), swaps in swaps(), changes in changes()) {
        let all = contents("examples/reports", ".json");
        let original = file.get(&all);
        let whole = mcptest_report::read(String::from_utf8_lossy(original)).unwrap();
        let swapped = swapped(serde_json::from_slice(original).unwrap(), &swaps).to_string();
        for bytes in [swapped.into_bytes(), mangle(original.clone(), &changes)] {
            let Ok(report) = mcptest_report::read(String::from_utf8_lossy(&bytes)) else {
                continue;
            };
            show(&report);
            for (first, second) in [(&whole, &report), (&report, &whole)] {
                let comparison = compare::compare(first, second);
                for name in ["pretty", "markdown", "pr"] {
                    let mut out = Vec::new();
                    compare::render(name, &comparison, second, Style::default(), &mut out).unwrap();
                    assert_harmless(&String::from_utf8(out).unwrap());
                }
            }
            drop(merge::merge(vec![("a".to_owned(), whole.clone()), ("b".to_owned(), report)]));
        }
    }

    #[test]
    fn catalogs(file in any::<Index>(), swaps in swaps()) {
        let all = contents("examples/catalog-diff", ".json");
        let original: Value = serde_json::from_slice(&all[file.index(all.len())]).unwrap();
        let tools = |value: &Value| -> Vec<Value> {
            value.get("tools").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let listed = tools(&swapped(original.clone(), &swaps));
        prop_assert_eq!(tokens::price_list(&listed).len(), listed.len());
        for finding in lint::lint(Some("s"), &listed) {
            drop(finding);
        }
        drop(quality::assess(&listed));
        let known = |listed: &[Value]| -> Vec<Tool> {
            listed.iter().filter_map(|entry| Tool::from_listing(Some("s"), entry)).collect()
        };
        let (old, new) = (known(&tools(&original)), known(&listed));
        drop(diff::diff(&old, &new, &Tdqs));
        drop(diff::diff(&new, &old, &Tdqs));
        let names: Vec<(String, String)> = new.iter().map(|tool| ("s".to_owned(), tool.name().to_owned())).collect();
        drop(similar_names::find(&names));
    }
}
