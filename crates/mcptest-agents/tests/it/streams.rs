//! The streams of real agents, read by the rules of their presets. They were recorded with a
//! stand-in for the model on the loopback interface, see `tests/fixtures/README.md`.

use std::path::Path;

use mcptest_agents::AgentOutcome;

use crate::support::{agent, kind, outcome};

/// Plays a recorded stream instead of the agent.
async fn play(preset: &str, stream: &str, exit: u8) -> AgentOutcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(format!("{preset}-{stream}.jsonl"));
    assert!(path.is_file(), "{}", path.display());
    let command = serde_json::json!(["/bin/sh", "-c", format!("cat \"$0\"; exit {exit}"), path]);
    outcome(&agent(&format!("{{preset: {preset}, command: {command}}}"))).await
}

#[tokio::test]
async fn good_runs_are_evidence() {
    for (preset, tokens, cost) in [
        ("claude-code", Some((3000, 40, 600)), Some(0.00798)),
        ("codex", Some((2400, 40, 600)), None),
        ("gemini-cli", Some((2400, 40, 600)), None),
        ("opencode", Some((3000, 40, 600)), Some(0.00798)),
        ("copilot", None, None),
    ] {
        let outcome = play(preset, "ok", 0).await;
        assert_eq!(kind(&outcome), "none", "{preset}: {:?}", outcome.error);
        assert!(outcome.ended, "{preset}");
        let answer = outcome.final_response.as_deref();
        assert_eq!(
            answer,
            Some("It is 22 degrees and sunny in Rome."),
            "{preset}"
        );
        let found = outcome
            .tokens
            .map(|it| (it.input.unwrap(), it.output.unwrap(), it.cached.unwrap()));
        assert_eq!(found, tokens, "{preset}");
        assert_eq!(outcome.cost_usd, cost, "{preset}");
        assert_eq!(
            outcome.builtin_calls,
            [],
            "{preset}: MCP calls are the proxy's"
        );
    }
}

#[tokio::test]
async fn calls_of_own_tools_are_read() {
    for (preset, tool) in [
        ("claude-code", "Bash"),
        ("codex", "command_execution"),
        ("gemini-cli", "run_shell_command"),
        ("opencode", "bash"),
        ("copilot", "bash"),
    ] {
        let outcome = play(preset, "shell", 0).await;
        assert_eq!(kind(&outcome), "none", "{preset}: {:?}", outcome.error);
        assert_eq!(outcome.builtin_calls.len(), 1, "{preset}");
        let call = &outcome.builtin_calls[0];
        assert_eq!(
            (call.name.as_str(), call.is_error),
            (tool, Some(false)),
            "{preset}"
        );
        assert!(
            call.args.to_string().contains("echo hello"),
            "{preset}: {}",
            call.args
        );
        let result = call.result.as_ref().map(ToString::to_string);
        assert!(
            result.is_some_and(|result| result.contains("hello")),
            "{preset}"
        );
    }
}

#[tokio::test]
async fn failed_runs_have_their_kinds() {
    for (preset, exit) in [
        ("claude-code", 1),
        ("codex", 1),
        ("gemini-cli", 145),
        ("opencode", 1),
        ("copilot", 1),
    ] {
        for (stream, expected) in [("401", "login"), ("429", "rate_limit")] {
            let outcome = play(preset, stream, exit).await;
            assert_eq!(kind(&outcome), expected, "{preset}: {:?}", outcome.error);
        }
    }
    let missing = play("claude-code", "no-server", 0).await;
    assert_eq!(kind(&missing), "server_missing", "{:?}", missing.error);
    let missing = play("copilot", "no-server", 0).await;
    assert_eq!(kind(&missing), "server_missing", "{:?}", missing.error);
}

/// A stream that stops anywhere before its end is never evidence.
#[tokio::test]
async fn a_stream_without_its_end_is_no_evidence() {
    for preset in ["claude-code", "codex", "gemini-cli", "opencode", "copilot"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(format!("{preset}-ok.jsonl"));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count() - 1;
        let command = serde_json::json!(["/bin/sh", "-c", format!("head -n {lines} \"$0\""), path]);
        let outcome = outcome(&agent(&format!("{{preset: {preset}, command: {command}}}"))).await;
        assert_eq!(kind(&outcome), "no_end", "{preset}: {:?}", outcome.error);
    }
}
