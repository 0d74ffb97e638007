//! Tests over the logs of real producers (`cargo xtask fixtures` regenerates them), and helpers for
//! tests of readers.

use mcptest_trace::trace::Trace;
use serde_json::{Value, json};

use crate::error::FormatError;
use crate::{Input, by_name, detect};

/// Reads a log whose format must be detected.
pub(crate) fn detected(format: &str, text: &str) -> Vec<Trace> {
    let input = Input::parse(text.as_bytes()).unwrap();
    let reader = detect(&input).unwrap();
    assert_eq!(reader.format().name, format);
    reader.read(&input).unwrap()
}

/// Reads a log with one trace, whose format must be detected.
pub(crate) fn one(format: &str, text: &str) -> Trace {
    let mut traces = detected(format, text);
    assert_eq!(traces.len(), 1);
    traces.remove(0)
}

/// Reads a log with a reader that rejects it.
pub(crate) fn rejected(format: &str, text: &str) -> FormatError {
    let input = Input::parse(text.as_bytes()).unwrap();
    by_name(format).unwrap().read(&input).unwrap_err()
}

/// Events, one per line.
pub(crate) fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// The ids (`server.tool`) of a trace's calls.
pub(crate) fn calls(trace: &Trace) -> Vec<String> {
    trace.tool_calls.iter().map(|call| call.full_id()).collect()
}

/// The text and the error flag of the result of each call.
pub(crate) fn results(trace: &Trace) -> Vec<Option<(String, Option<bool>)>> {
    let text = |content: &Value| -> String {
        let blocks = content.as_array().unwrap();
        blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect()
    };
    let results = trace.results_by_call();
    results
        .into_iter()
        .map(|result| {
            Some((
                result?.content().map(text).unwrap_or_default(),
                result?.is_error,
            ))
        })
        .collect()
}

/// Input, output and total tokens of a trace.
pub(crate) fn tokens(trace: &Trace) -> [Option<u64>; 3] {
    let tokens = trace.conversation.tokens.as_ref();
    tokens.map_or([None; 3], |tokens| {
        [tokens.input, tokens.output, tokens.total]
    })
}

/// The calls of a script: server, tool, arguments, turn, error flag.
type Scripted = (&'static str, &'static str, Value, u64, bool);

fn script(name: &str) -> Vec<Scripted> {
    let weather = |city: &str, turn| ("weather", "get_weather", json!({"city": city}), turn, false);
    let time =
        |zone: &str| json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": zone});
    match name {
        "one" | "refused" => vec![weather("Rome", 1)],
        "turns" => vec![
            weather("Rome", 1),
            ("weather", "delete-city", json!({"city": "Rome"}), 2, true),
            ("time", "convert_time", time("Asia/Tokyo"), 3, false),
            weather("Bern", 3),
        ],
        "parallel" => vec![
            weather("Rome", 1),
            ("time", "convert_time", time("Mars/Base"), 1, true),
            weather("Oslo", 1),
        ],
        "broken" => vec![("weather", "get_weather", json!("{\"city\": \"Ro"), 1, true)],
        other => panic!("no script {other}"),
    }
}

/// Checks the trace of a fixture. Parts that its format lacks are `None` in the trace.
fn check(file: &str, name: &str, trace: &Trace) {
    let wanted = script(name);
    assert_eq!(trace.tool_calls.len(), wanted.len(), "{file}");
    let results = results(trace);
    for ((call, result), (server, tool, args, turn, failed)) in
        trace.tool_calls.iter().zip(results).zip(wanted)
    {
        assert_eq!(call.name(), tool, "{file}");
        assert_eq!(call.server.as_deref().unwrap_or(server), server, "{file}");
        assert_eq!(call.turn.unwrap_or(turn), turn, "{file}");
        // The output of `gemini -o json` has none.
        if !file.ends_with("output.json") {
            assert_eq!(call.args(), Some(&args), "{file}");
        }
        if name != "broken" {
            let (text, is_error) = result.unwrap();
            assert_eq!(is_error.unwrap_or(failed), failed, "{file}: {text}");
            if failed && tool == "delete-city" {
                assert!(text.contains("The city is protected."), "{file}: {text}");
            }
        }
    }
    let (input, output, text) = match name {
        "turns" => (5000, 90, "Bern has 22 degrees; Rome could not be deleted."),
        "parallel" => (2300, 43, "Rome and Oslo have 22 degrees."),
        "one" => (2300, 43, "It is 22 degrees in Rome."),
        _ => return,
    };
    let known = tokens(trace);
    assert_eq!(known[0].unwrap_or(input), input, "{file}");
    assert_eq!(known[1].unwrap_or(output), output, "{file}");
    assert_eq!(known[2].unwrap_or(input + output), input + output, "{file}");
    assert_eq!(trace.final_text().as_deref(), Some(text), "{file}");
}

#[test]
fn the_logs_of_real_producers_have_the_calls_of_their_scripts() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut seen = 0;
    for format in [
        "claude-code",
        "claude-stream",
        "codex",
        "gemini-cli",
        "opencode",
        "langchain",
        "inspect",
        "adk",
        "otel",
    ] {
        for entry in std::fs::read_dir(folder.join(format)).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            if file == "README.md" {
                continue;
            }
            let stem = file.split('.').next().unwrap();
            let name = stem.rsplit('-').next().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let input = Input::parse(&bytes).unwrap();
            let reader = detect(&input).unwrap();
            assert_eq!(reader.format().name, format, "{file}");
            let traces = reader.read(&input).unwrap();
            let runs = if format == "inspect" { 2 } else { 1 };
            assert_eq!(traces.len(), runs, "{file}");
            for trace in &traces {
                check(&format!("{format}/{file}"), name, trace);
                // Session files of Gemini CLI do not show how a run ended.
                let shown =
                    name == "refused" && !(format == "gemini-cli" && file.contains("session"));
                assert_eq!(trace.error.is_some(), shown, "{format}/{file}");
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} fixtures");
}

#[test]
fn formats_that_record_servers_turns_and_tokens_have_them_in_every_fixture() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let trace = |file: &str| {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let input = Input::parse(&bytes).unwrap();
        detect(&input).unwrap().read(&input).unwrap().remove(0)
    };
    for (file, servers, turns, tokens_known) in [
        ("claude-code/turns.session.jsonl", true, true, true),
        ("claude-stream/turns.stream.jsonl", true, true, true),
        ("codex/turns.exec.jsonl", true, false, true),
        ("codex/turns.rollout.jsonl", true, true, true),
        ("gemini-cli/turns.stream.jsonl", true, true, true),
        ("gemini-cli/turns.session.jsonl", true, true, true),
        ("opencode/turns.run.jsonl", true, true, true),
        ("opencode/turns.export.json", true, true, true),
        ("langchain/turns.dict.json", false, true, true),
        ("inspect/turns.eval", false, true, true),
        ("adk/turns.evalset.json", false, true, true),
        ("adk/turns.old.evalset.json", false, false, false),
        ("otel/pydantic-ai-turns.jsonl", false, true, true),
        ("otel/openai-turns.jsonl", false, true, true),
    ] {
        let trace = trace(file);
        let all =
            |has: fn(&mcptest_trace::trace::ToolCall) -> bool| trace.tool_calls.iter().all(has);
        assert_eq!(all(|call| call.server.is_some()), servers, "{file}");
        assert_eq!(all(|call| call.turn.is_some()), turns, "{file}");
        assert_eq!(tokens(&trace)[0].is_some(), tokens_known, "{file}");
        assert!(
            trace.tool_results.iter().all(|one| one.is_error.is_some()),
            "{file}"
        );
    }
}
