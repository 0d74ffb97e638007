//! ACP agents, as shell scripts: our ids count from 1.

use std::time::{Duration, Instant};

use crate::support::{acp_script, agent, folders, kind, outcome, processes_of, run_in};

/// Opens a session.
const OPEN: &str = r#"
read -r hello; echo "$hello" > "$HOME/hello"
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"9.9"}}}'
read -r new; echo "$new" > "$HOME/new"
echo 'a banner that is not a message'
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1","modes":{"availableModes":[{"id":"ask"},{"id":"full"}]}}}'
"#;

fn update(fields: &str) -> String {
    format!(
        r#"echo '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s1","update":{{{fields}}}}}}}'"#
    )
}

fn chunk(text: &str) -> String {
    update(&format!(
        r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#
    ))
}

#[tokio::test]
async fn a_session_gives_messages_calls_tokens_and_cost() {
    let script = [
        OPEN.to_owned(),
        "read -r prompt".to_owned(),
        chunk("Let me "),
        chunk("look."),
        update(r#""sessionUpdate":"tool_call","toolCallId":"c1","title":"mcp__weather__get_weather","status":"pending""#),
        r#"echo '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"get_weather"},"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"once","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'"#.to_owned(),
        r#"read -r answer; echo "$answer" > "$HOME/permission""#.to_owned(),
        r#"echo '{"jsonrpc":"2.0","id":"f1","method":"fs/read_text_file","params":{}}'"#.to_owned(),
        r#"read -r answer; echo "$answer" > "$HOME/file""#.to_owned(),
        update(r#""sessionUpdate":"tool_call","toolCallId":"c2","title":"ls -la","kind":"execute","rawInput":{"command":"ls -la"}"#),
        update(r#""sessionUpdate":"tool_call_update","toolCallId":"c2","status":"completed","rawOutput":"x""#),
        update(r#""sessionUpdate":"usage_update","used":5,"size":9,"cost":{"amount":0.25,"currency":"USD"}"#),
        chunk("Sunny."),
        r#"echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":10,"outputTokens":3,"cachedReadTokens":5,"totalTokens":18}}}'"#.to_owned(),
        "cat > /dev/null".to_owned(),
    ]
    .join("\n");
    let folders = folders();
    let outcome = run_in(
        &folders,
        &acp_script(&script, "permissions: [weather.get_weather]"),
        &[],
    )
    .await;
    assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
    assert!(outcome.ended);
    assert_eq!(outcome.final_response.as_deref(), Some("Sunny."));
    let texts: Vec<&str> = outcome
        .turns
        .iter()
        .map(|turn| turn.content.as_str())
        .collect();
    assert_eq!(texts, ["What is the weather?", "Let me look.", "Sunny."]);
    let tokens = outcome.tokens.unwrap();
    assert_eq!(
        (tokens.input, tokens.output, tokens.total),
        (Some(15), Some(3), Some(18))
    );
    assert_eq!(outcome.cost_usd, Some(0.25));
    assert_eq!(outcome.version.as_deref(), Some("9.9"));
    assert_eq!(outcome.builtin_calls.len(), 1);
    let call = &outcome.builtin_calls[0];
    assert_eq!(
        (call.name.as_str(), call.is_error, call.turn),
        ("execute", Some(false), 1)
    );
    let read = |name: &str| std::fs::read_to_string(folders.home().join(name)).unwrap();
    let new: serde_json::Value = serde_json::from_str(&read("new")).unwrap();
    assert_eq!(
        new["params"]["mcpServers"],
        serde_json::json!([{"name": "weather", "command": "weather-server", "args": ["--fast"],
                            "env": [{"name": "TOKEN", "value": "t"}]}])
    );
    assert!(read("hello").contains(r#""terminal":false"#));
    assert!(
        read("permission").contains(r#""optionId":"once""#),
        "{}",
        read("permission")
    );
    assert!(read("file").contains("-32601"));
}

#[tokio::test]
async fn further_messages_are_prompts_of_the_same_session() {
    let script = [
        OPEN.to_owned(),
        "read -r p".to_owned(),
        chunk("one"),
        r#"echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}}'"#.to_owned(),
        "read -r p".to_owned(),
        chunk("two"),
        r#"echo '{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}}'"#.to_owned(),
    ]
    .join("\n");
    let outcome = run_in(&folders(), &acp_script(&script, "mode: \"\""), &["More"]).await;
    assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
    let texts: Vec<&str> = outcome
        .turns
        .iter()
        .map(|turn| turn.content.as_str())
        .collect();
    assert_eq!(texts, ["What is the weather?", "one", "More", "two"]);
    assert_eq!(outcome.tokens.unwrap().total, Some(4));
}

#[tokio::test]
async fn errors_of_acp_have_their_kinds() {
    let rules = "errors: [{match: \"\\\\b429\\\\b\", kind: rate_limit}]";
    let prompt_error = |error: &str| {
        format!("{OPEN} read -r p; echo '{{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{error}}}'; cat")
    };
    for (script, expected) in [
        (prompt_error(r#"{"code":-32000,"message":"Authentication required"}"#), "login"),
        (prompt_error(r#"{"code":401,"message":"no"}"#), "login"),
        (prompt_error(r#"{"code":-32603,"message":"x","data":{"errorKind":"rate_limit"}}"#), "rate_limit"),
        (prompt_error(r#"{"code":-32603,"message":"Internal","data":"HTTP 429"}"#), "rate_limit"),
        (prompt_error(r#"{"code":-32603,"message":"Internal error"}"#), "provider"),
        (format!("{OPEN} read -r p; exit 7"), "crashed"),
        (format!("{OPEN} read -r p; exit 0"), "no_end"),
        (format!("{OPEN} read -r p; {}; echo '{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"stopReason\":\"end_turn\",\"usage\":null}}}}'; cat", chunk("Error: HTTP 429 from the provider")), "rate_limit"),
        (format!("{OPEN} read -r p; {}; echo '{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"stopReason\":\"end_turn\",\"usage\":{{\"outputTokens\":9}}}}}}'; cat", chunk("HTTP 429 means too many requests")), "none"),
        (format!("{OPEN} read -r p; echo '{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{\"stopReason\":\"cancelled\"}}}}'; cat"), "no_end"),
        ("read -r p; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":2}}'; cat".to_owned(), "protocol"),
        ("read -r p; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}'; read -r n; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,\"message\":\"no key\"}}'; cat".to_owned(), "login"),
        ("exit 1".to_owned(), "crashed"),
    ] {
        let outcome = outcome(&acp_script(&script, rules)).await;
        assert_eq!(kind(&outcome), expected, "{script}: {:?}", outcome.error);
    }
    let login = prompt_error(r#"{"code":-32000,"message":"Authentication required"}"#);
    let message = outcome(&acp_script(&login, "api_key_env: KEY")).await.error;
    let message = message.map(|error| error.message).unwrap_or_default();
    assert!(message.contains("required; set KEY, or name"), "{message}");
    let refused = format!(
        "{OPEN} read -r m; echo '{{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{{\"code\":-32602,\"message\":\"bad mode\"}}}}'; cat"
    );
    let outcome = outcome(&acp_script(&refused, "mode: yolo")).await;
    assert_eq!(kind(&outcome), "not_started");
    assert!(
        outcome
            .error
            .unwrap()
            .message
            .contains("its modes are ask, full")
    );
}

/// Both end a turn that failed normally, with the error as its text and without tokens.
#[tokio::test]
async fn an_answer_without_tokens_is_an_error_of_these_presets() {
    // codex-acp is set to a mode before its prompt.
    let mode = r#"read -r m; echo '{"jsonrpc":"2.0","id":3,"result":{}}';"#;
    for (preset, before, id) in [("codex-acp", mode, 4), ("copilot-acp", "", 3)] {
        for (text, usage, expected) in [
            (
                "unexpected status 500 Internal Server Error",
                "null",
                "provider",
            ),
            ("unexpected status 401 Unauthorized", "null", "login"),
            (
                "exceeded retry limit, last status: 429",
                "null",
                "rate_limit",
            ),
            ("The status was 500 once.", r#"{"outputTokens":9}"#, "none"),
        ] {
            let script = format!(
                "{OPEN} {before} read -r p; {}; echo '{{\"jsonrpc\":\"2.0\",\"id\":{id},\
                 \"result\":{{\"stopReason\":\"end_turn\",\"usage\":{usage}}}}}'; cat",
                chunk(text)
            );
            let command = serde_json::json!(["/bin/sh", "-c", script]);
            let agent = agent(&format!("{{preset: {preset}, acp: {command}}}"));
            let outcome = outcome(&agent).await;
            assert_eq!(
                kind(&outcome),
                expected,
                "{preset} {text}: {:?}",
                outcome.error
            );
        }
    }
}

#[tokio::test]
async fn a_turn_that_hangs_is_cancelled_and_ended() {
    let started = Instant::now();
    let folders = folders();
    let script = format!(
        "{OPEN} read -r p; {}; read -r cancel; echo \"$cancel\" > \"$HOME/cancel\"; sleep 631",
        chunk("working")
    );
    let outcome = run_in(&folders, &acp_script(&script, "timeout: 400ms"), &[]).await;
    assert_eq!(kind(&outcome), "timeout");
    assert_eq!(outcome.final_response.as_deref(), Some("working"));
    assert!(
        started.elapsed() < Duration::from_secs(12),
        "{:?}",
        started.elapsed()
    );
    let cancel = std::fs::read_to_string(folders.home().join("cancel")).unwrap();
    assert!(cancel.contains("session/cancel"));
    assert_eq!(processes_of(folders.run_dir()), Vec::<String>::new());
    let silent = crate::support::outcome(&acp_script("sleep 632", "startup_timeout: 200ms")).await;
    assert!(silent.error.unwrap().message.contains("`startup_timeout`"));
}
