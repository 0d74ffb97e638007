//! Live models, against a provider of ours on a socket.

use serde_json::{Value, json};

use crate::stand_in::{Answer, Seen, StandIn};
use crate::support::{Ran, files, folder, mcptest, ran};

const MANIFEST: &str = "
mock_server:
  name: s
  tools:
    - {name: search, description: search the web, input_schema: {type: object, required: [q], properties: {q: {type: string}}}, response: 'found ${args.q}'}
";

/// A suite with one server `s`, and providers at the stand-in.
pub fn suite(stand_in: &StandIn, rest: &str) -> tempfile::TempDir {
    let text = format!(
        "servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml]}}}}
providers:
  anthropic: {{base_url: '{root}'}}
  google: {{base_url: '{root}', stream: false}}
  openai: {{base_url: '{root}/v1', api: openai_responses}}
  mine: {{base_url: '{root}/v1', api_key_env: MY_PROVIDER_KEY, headers: {{X-Team: blue}}, body: {{temperature: 0}}}}
{rest}",
        root = stand_in.url("")
    );
    folder(&[("s.yml", &text), ("m.yml", MANIFEST)])
}

fn run(dir: &tempfile::TempDir, more: &[&str]) -> Ran {
    let mut command = mcptest(dir.path());
    command
        .args(["run", "s.yml", "--reporter", "json", "--traces", "t.jsonl"])
        .args(more);
    ran(&command
        .env("MY_PROVIDER_KEY", "pk-planted-42")
        .output()
        .unwrap())
}

/// Chat Completions: a turn of calls, or of text.
fn chat(text: &str, calls: &[(&str, &str)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, args))| {
            json!({"id": format!("call_{index}"), "type": "function", "function": {"name": name, "arguments": args}})
        })
        .collect();
    let reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
                  "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 4}},
    })
}

fn has_results(seen: &Seen) -> bool {
    let body = seen.body.to_string();
    [
        "\"role\":\"tool\"",
        "tool_result",
        "function_call_output",
        "functionResponse",
    ]
    .iter()
    .any(|mark| body.contains(mark))
}

/// Calls `search` once and then answers, in whichever dialect it is asked.
pub fn searches(seen: &Seen, _: usize) -> Answer {
    let done = has_results(seen);
    Answer::ok(match seen.path.as_str() {
        "/v1/messages" => {
            let content = if done {
                json!([{"type": "text", "text": "Found."}])
            } else {
                json!([{"type": "a_new_block", "secret_sauce": 1},
                       {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "cats"},
                        "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}])
            };
            json!({"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": content,
                   "stop_reason": if done { "end_turn" } else { "tool_use" },
                   "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0, "output_tokens": 10}})
        }
        "/v1/responses" => {
            let output = if done {
                json!([{"type": "message", "role": "assistant", "id": "m", "status": "completed",
                        "content": [{"type": "output_text", "text": "Found.", "annotations": []}]}])
            } else {
                json!([{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "arguments": "{\"q\":\"cats\"}", "status": "completed"}])
            };
            json!({"id": "resp", "object": "response", "status": "completed", "output": output,
                   "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 10,
                             "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 110}})
        }
        "/v1/chat/completions" if done => chat("Found.", &[]),
        "/v1/chat/completions" => chat("", &[("search", "{\"q\":\"cats\"}")]),
        path => {
            assert!(path.starts_with("/v1beta/models/gemini-x:"), "{path}");
            let parts = if done {
                json!([{"text": "Found."}])
            } else {
                json!([{"functionCall": {"name": "search", "args": {"q": "cats"}}, "thoughtSignature": "c2ln"}])
            };
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                   "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 6,
                                     "thoughtsTokenCount": 4, "totalTokenCount": 110}})
        }
    })
}

pub const AGENT: &str = "
agents:
  - name: searches
    models: [claude-x, gpt-x, gemini-x, mine/m]
    servers: [s]
    prompt: search for cats
    expect:
      - tool_calls[0].args: {exact: {q: cats}}
      - tool_results[0].is_error: false
      - final_response: Found.
";

#[test]
fn every_dialect_leaves_the_same_evidence() {
    let stand_in = StandIn::start(searches);
    let dir = suite(&stand_in, AGENT);
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let reasons = [
        ["tool_use", "end_turn"],
        ["completed", "completed"],
        ["STOP", "STOP"],
        ["tool_calls", "stop"],
    ];
    for (test, reasons) in report["tests"].as_array().unwrap().iter().zip(reasons) {
        let trace = &test["runs"][0]["trace"];
        let tokens = &trace["conversation"]["tokens"];
        assert_eq!(
            (&tokens["input"], &tokens["output"], &tokens["cached_input"]),
            (&json!(200), &json!(20), &json!(80)),
            "{tokens}"
        );
        let turns = trace["conversation"]["turns"].as_array().unwrap();
        let found: Vec<&Value> = turns
            .iter()
            .filter_map(|turn| turn.get("stop_reason"))
            .collect();
        assert_eq!(found, reasons, "{trace}");
        assert!(turns[1].get("native").is_some(), "{trace}");
    }
    let trace = |index: usize| &report["tests"][index]["runs"][0]["trace"];
    assert_eq!(
        trace(0)["tool_calls"][0]["caller"]["type"],
        "code_execution_20250825"
    );
    assert_eq!(trace(1)["conversation"]["tokens"]["reasoning"], 8);
    // What we do not know goes back as it came.
    let second = |path: &str| {
        let all = stand_in.seen();
        let found = all
            .iter()
            .find(|seen| seen.path.starts_with(path) && has_results(seen));
        found.unwrap().body.to_string()
    };
    assert!(second("/v1/messages").contains("secret_sauce"));
    assert!(second("/v1beta/").contains("c2ln"));
    let seen = stand_in.seen();
    let mine = seen
        .iter()
        .find(|seen| seen.path == "/v1/chat/completions")
        .unwrap();
    assert_eq!(mine.header("authorization"), Some("Bearer pk-planted-42"));
    assert_eq!(mine.header("x-team"), Some("blue"));
    assert_eq!(
        (&mine.body["temperature"], &mine.body["model"]),
        (&json!(0), &json!("m"))
    );
}

#[test]
fn a_streamed_answer_leaves_the_evidence_of_a_whole_one() {
    let event = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"object": "chat.completion.chunk", "choices": [choice]})
        )
    };
    let stand_in = StandIn::start(move |seen, _| {
        assert_eq!(seen.body["stream"], true);
        let mut parts = if has_results(seen) {
            vec![
                event(json!({"role": "assistant", "content": "Fou"}), None),
                event(json!({"content": "nd."}), Some("stop")),
            ]
        } else {
            let call = |more: Value| json!({"tool_calls": [more]});
            let begin = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\"q\":"}});
            vec![
                event(call(begin), None),
                ": still there\n\n".to_owned(),
                event(
                    call(json!({"index": 0, "function": {"arguments": "\"cats\"}"}})),
                    None,
                ),
                event(json!({}), Some("tool_calls")),
            ]
        };
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        parts.push(format!(
            "data: {}\n\ndata: [DONE]\n\n",
            json!({"choices": [], "usage": usage})
        ));
        Answer::Stream { parts, cut: false }
    });
    let dir = suite(&stand_in, AGENT);
    let text = std::fs::read_to_string(dir.path().join("s.yml")).unwrap();
    let text = text.replace("api_key_env: MY_PROVIDER_KEY", "stream: true");
    std::fs::write(dir.path().join("s.yml"), text).unwrap();
    let ran = run(&dir, &["--model", "mine/m"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let trace = &ran.json()["tests"][0]["runs"][0]["trace"];
    assert_eq!(trace["conversation"]["tokens"]["total"], 220);
    assert_eq!(trace["conversation"]["turns"][2]["stop_reason"], "stop");
}

#[test]
fn what_a_model_or_a_provider_does_wrong_is_one_row() {
    let stand_in = StandIn::start(|seen, _| {
        let done = has_results(seen);
        Answer::ok(match seen.body["model"].as_str().unwrap() {
            "invents" if !done => chat("", &[("no_such_tool", "{}")]),
            "breaks" if !done => chat("", &[("search", "{\"q\": "), ("search", "{}")]),
            "endless" => chat("", &[("search", "{\"q\":\"x\"}")]),
            "refused" => {
                return Answer::Json(
                    401,
                    Vec::new(),
                    json!({"error": {"message": "no such key: pk-planted-42", "type": "invalid_request_error", "code": "invalid_api_key"}}),
                );
            }
            "fine" if !done => chat("", &[("search", "{\"q\":\"x\"}")]),
            _ => chat("Done.", &[]),
        })
    });
    let dir = suite(
        &stand_in,
        "agents:
  - {name: invents, model: mine/invents, servers: [s], prompt: p, expect: [{'tool_calls[0].name': no_such_tool}, {'tool_results[0].is_error': true}, {final_response: Done.}]}
  - {name: breaks, model: mine/breaks, servers: [s], prompt: p, expect: [{'tool_calls[0].args': '{\"q\": '}, {'tool_results[*].is_error': {every: {exact: true}}}]}
  - {name: endless, model: mine/endless, servers: [s], prompt: p, max_turns: 3, expect: [{tool_calls: {length: 3}}, {final_response: {exists: false}}]}
  - {name: refused, model: mine/refused, servers: [s], prompt: p, expect: [{tool_calls: {length: 1}}]}
  - {name: fine, model: mine/fine, servers: [s], prompt: p, expect: [{final_response: Done.}]}
  - {name: keyless, model: openrouter/x, servers: [s], prompt: p, expect: [{final_response: Done.}]}
",
    );
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let report = ran.json();
    let verdicts: Vec<&Value> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| &test["verdict"])
        .collect();
    assert_eq!(
        verdicts,
        ["pass", "pass", "pass", "error", "pass", "error"],
        "{report}"
    );
    let error = |index: usize| &report["tests"][index]["runs"][0]["error"];
    assert_eq!(error(3)["kind"], "auth");
    assert_eq!(
        error(3)["message"],
        "mine answered for refused with HTTP 401 Unauthorized: no such key: [redacted]. Check the key in MY_PROVIDER_KEY, and its permissions."
    );
    assert_eq!(error(5)["kind"], "auth");
    let words = error(5)["message"].as_str().unwrap();
    assert!(words.contains("set OPENROUTER_API_KEY"), "{words}");
    let traces = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
    for text in [&ran.stdout, &ran.stderr, &traces] {
        assert!(!text.contains("pk-planted"), "{text}");
    }
    // A tool's error goes back as an error.
    let all = stand_in.seen();
    let told: Vec<String> = all
        .iter()
        .filter(|seen| seen.body["model"] == "invents" && has_results(seen))
        .map(|seen| seen.body.to_string())
        .collect();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("Unknown tool: no_such_tool"),
        "{}",
        told[0]
    );
}

#[test]
fn a_key_that_a_server_or_a_model_repeats_is_hidden() {
    let stand_in = StandIn::start(|seen, _| {
        let key = seen.header("authorization").unwrap_or_default().to_owned();
        let args = json!({"q": key}).to_string();
        Answer::ok(if has_results(seen) {
            chat(&format!("I am {key}"), &[])
        } else {
            chat(&key, &[("search", &args)])
        })
    });
    let dir = suite(
        &stand_in,
        "agents: [{name: a, model: mine/m, servers: [s], prompt: p, expect: [{'tool_results[0].content[0].text': {contains: Bearer}}, {final_response: nothing}]}]\n",
    );
    for reporter in ["json", "pretty"] {
        let ran = run(&dir, &["--reporter", &format!("{reporter}=out.txt")]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let traces = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
        let out = std::fs::read_to_string(dir.path().join("out.txt")).unwrap();
        for text in [&ran.stdout, &ran.stderr, &traces, &out] {
            assert!(!text.contains("pk-planted"), "{text}");
        }
        assert!(out.contains("[redacted]"), "{out}");
    }
    run(&dir, &["--record"]);
    let cassettes = files(&dir.path().join("cassettes"), "json");
    assert_eq!(cassettes.len(), 1);
    let text = std::fs::read_to_string(&cassettes[0]).unwrap();
    assert!(
        !text.contains("pk-planted") && text.contains("Bearer [redacted]"),
        "{text}"
    );
}

#[test]
fn runs_tests_and_models_overlap() {
    // Nothing is answered before twenty requests are under way at the same time: two models, ten
    // runs.
    let stand_in = StandIn::start_together(20, searches);
    let dir = suite(
        &stand_in,
        "agents: [{name: a, models: [mine/m, claude-x], servers: [s], prompt: search, runs: 10, expect: [{final_response: Found.}]}]\n",
    );
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        stand_in.max_in_flight() >= 20,
        "{}",
        stand_in.max_in_flight()
    );
    assert_eq!(stand_in.seen().len(), 40);
}

#[test]
fn max_concurrency_is_never_exceeded() {
    let most = |more: &[&str], isolation: &str, runs: u32| {
        let stand_in = StandIn::start(searches);
        let text = format!(
            "servers: {{s: {{command: [mcptest, mock, --tools-from, m.yml], isolation: {isolation}}}}}
providers: {{mine: {{base_url: '{}'}}}}
agents: [{{name: a, model: mine/m, servers: [s], prompt: search, runs: {runs}, expect: [{{final_response: Found.}}]}}]\n",
            stand_in.url("/v1")
        );
        let dir = folder(&[("s.yml", &text), ("m.yml", MANIFEST)]);
        let ran = run(&dir, more);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        stand_in.max_in_flight()
    };
    assert!(most(&["--jobs", "2"], "shared", 12) <= 2);
    // A process for each run: as few as any other work on this machine.
    assert!(most(&[], "run", 20) <= 8);
}

#[test]
fn refusals_and_broken_connections_lose_no_run() {
    let stand_in = StandIn::start(|seen, number| match number % 10 {
        2 => Answer::Json(
            429,
            vec![("retry-after-ms", "1".to_owned())],
            json!({"error": {"message": "slow down"}}),
        ),
        6 => Answer::Raw(Vec::new()),
        _ => searches(seen, number),
    });
    let dir = suite(
        &stand_in,
        "agents: [{name: a, model: mine/m, servers: [s], prompt: search, runs: 60, expect: [{final_response: Found.}]}]\n",
    );
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.json()["tests"][0]["runs"].as_array().unwrap().len(), 60);
}

#[test]
fn models_of_the_command_line_replace_those_of_the_tests() {
    let stand_in = StandIn::start(searches);
    // One of the tests names no model at all.
    let dir = suite(
        &stand_in,
        "agents:
  - {name: a, model: builtin/lexical, servers: [s], prompt: search, expect: [{final_response: Found.}]}
  - {name: b, servers: [s], prompt: search, expect: [{final_response: Found.}]}
",
    );
    let ran = run(&dir, &["--model", "mine/m", "--model", "claude-x"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let names: Vec<String> = ran.json()["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| format!("{} {}", test["name"], test["model"]).replace('"', ""))
        .collect();
    assert_eq!(names, ["a mine/m", "a claude-x", "b mine/m", "b claude-x"]);
    for (model, words) in [
        ("clod", "--model: unknown model `clod`"),
        ("builtin/scripted", "`builtin/scripted` has no `script:`"),
    ] {
        let ran = run(&dir, &["--model", model]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn validate_warns_of_keys_that_are_not_set() {
    let dir = folder(&[(
        "s.yml",
        "servers: {s: {command: [x]}}\nagents: [{name: a, models: [claude-x, claude-y, ollama/x, gemini-x], servers: [s], prompt: p}]\n",
    )]);
    let validate = |set: &[(&str, &str)]| {
        let mut command = mcptest(dir.path());
        command
            .args(["validate", "s.yml"])
            .envs(set.iter().copied());
        ran(&command.output().unwrap())
    };
    let ran = validate(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning: ").count(), 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("ANTHROPIC_API_KEY is not set"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("GEMINI_API_KEY or GOOGLE_API_KEY is not set"),
        "{}",
        ran.stderr
    );
    let ran = validate(&[("ANTHROPIC_API_KEY", "k"), ("GOOGLE_API_KEY", "k")]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}
