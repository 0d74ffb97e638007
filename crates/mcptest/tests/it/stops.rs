//! Turns of live models that end in other ways than by themselves, against a provider of ours on
//! a socket.

use serde_json::{Value, json};

use crate::models::suite;
use crate::stand_in::{Answer, Seen, StandIn};
use crate::support::{Ran, mcptest, ran};

const AGENT: &str = "agents:
  - {name: a, model: claude-haiku-4-5, servers: [s], prompt: search, expect: [{tool_names: {exact: [search]}}, {trace.stop_reason: end}]}
";

fn run(dir: &tempfile::TempDir, more: &[&str]) -> Ran {
    let mut command = mcptest(dir.path());
    command.args(["run", "s.yml", "--no-timing"]).args(more);
    ran(&command.env("ANTHROPIC_API_KEY", "k").output().unwrap())
}

fn message(content: &Value, reason: &str) -> Answer {
    Answer::ok(json!({
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content, "stop_reason": reason,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }))
}

/// Pauses while it searches, calls a tool, and answers.
fn pauses(seen: &Seen, _: usize) -> Answer {
    let paused = json!([{"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}]);
    let messages = seen.body["messages"].as_array().unwrap();
    match messages.len() {
        1 => message(&paused, "pause_turn"),
        2 => {
            assert_eq!(messages[1], json!({"role": "assistant", "content": paused}));
            message(
                &json!([{"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}}]),
                "tool_use",
            )
        }
        _ => message(&json!([{"type": "text", "text": "Found."}]), "end_turn"),
    }
}

#[test]
fn a_paused_turn_continues_live_and_replayed() {
    let stand_in = StandIn::start(pauses);
    let dir = suite(&stand_in, AGENT);
    let live = run(&dir, &["--record", "--reporter", "json"]);
    assert_eq!(live.code, 0, "{}{}", live.stdout, live.stderr);
    assert_eq!(stand_in.seen().len(), 3);
    let trace = &live.json()["tests"][0]["runs"][0]["trace"];
    assert_eq!(trace["final_response"], "Found.");
    assert_eq!(
        trace["conversation"]["turns"][1]["stop_reason"],
        "pause_turn"
    );
    assert_eq!(trace["tool_calls"][0]["turn"], 2);
    let replayed = run(&dir, &["--replay-only", "--reporter", "json"]);
    assert_eq!(replayed.stdout, live.stdout);
    assert_eq!(stand_in.seen().len(), 3, "nobody was asked");
}

#[test]
fn a_truncated_answer_is_marked() {
    let stand_in =
        StandIn::start(|_, _| message(&json!([{"type": "text", "text": "It is"}]), "max_tokens"));
    let dir = suite(&stand_in, AGENT);
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 1, "evidence, not an error: {}", ran.stderr);
    assert!(
        ran.stdout
            .contains("FAIL   a  (0 calls, 15 tokens, cut off: out of tokens)"),
        "{}",
        ran.stdout
    );
}
