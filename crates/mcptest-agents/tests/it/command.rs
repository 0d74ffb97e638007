//! Command-line agents.

use std::time::{Duration, Instant};

use mcptest_agents::{AgentExit, TurnRole};

use crate::support::{folders, kind, outcome, processes_of, run_in, script};

const JSONL: &str = "output: {format: jsonl, final: {where: {type: text}, take: text}, \
                     error: {where: {type: error}, take: message, status: status}, \
                     ended: {where: {type: end}}}, \
                     errors: [{match: \"(?i)log in\", kind: login}]";

#[tokio::test]
async fn a_run_that_ends_is_evidence() {
    let agent = script(
        r#"echo '{"type":"text","text":"one"}'; echo noise; echo '{"type":"text","text":"sunny"}'
           echo '{"type":"end"}'"#,
        JSONL,
    );
    let outcome = outcome(&agent).await;
    assert_eq!(kind(&outcome), "none");
    assert!(outcome.ended);
    assert_eq!(outcome.final_response.as_deref(), Some("sunny"));
    assert_eq!(outcome.exit, Some(AgentExit::Code(0)));
    let roles: Vec<TurnRole> = outcome.turns.iter().map(|turn| turn.role).collect();
    assert_eq!(roles, [TurnRole::User, TurnRole::Assistant]);
    assert!(outcome.stream.starts_with(b"{\"type\":\"text\""));
}

#[tokio::test]
async fn the_environment_is_clean_and_stdin_is_closed() {
    let folders = folders();
    let agent = script(
        r#"env | sort; pwd; cat "$CONFIG"; cat; cat sub/notes.txt; stat -c %a sub/notes.txt"#,
        "pass_env: [PASSED, ABSENT], api_key_env: KEY, env: {CONFIG: \"{{mcp_json_file}}\", \
         API: \"{{api_key}}\", NONE: \"{{base_url}}\"}, files: {sub/notes.txt: \"run {{run}}\\n\"}",
    );
    let outcome = run_in(&folders, &agent, &[]).await;
    let text = outcome.final_response.unwrap();
    let folder = folders.run_dir().to_string_lossy().into_owned();
    for expected in [
        "API=k-1",
        "PASSED=yes",
        &format!("HOME={folder}/home"),
        &format!("TMPDIR={folder}/tmp"),
        &format!("{folder}/cwd\n"),
        r#"{"mcpServers":{"weather":{"type":"stdio","command":"weather-server","args":["--fast"],"env":{"TOKEN":"t"}}}}"#,
        "run 3\n600",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    for absent in ["NONE=", "CARGO_", "ABSENT", "USER="] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[tokio::test]
async fn agents_get_the_limits_of_their_servers() {
    let limits = "{{server_start_timeout_s}} {{server_timeout_ms}} {{call_timeout_s}}";
    for (keys, expected) in [
        // An agent gives up on a server before we give up on the agent.
        ("", "60 60000 60"),
        ("startup_timeout: 3m, ", "120 120000 60"),
        ("call_timeout: 2m, ", "60 120000 120"),
    ] {
        let agent = script(
            "echo \"$LIMITS\"",
            &format!("{keys}env: {{LIMITS: \"{limits}\"}}"),
        );
        let answer = outcome(&agent).await.final_response;
        assert_eq!(answer.as_deref().map(str::trim), Some(expected), "{keys}");
    }
}

#[tokio::test]
async fn the_reason_of_a_failed_server_is_shown() {
    let agent = script(
        r#"echo '{"type":"loaded","servers":[{"name":"weather","status":"failed","error":"no handshake"}]}'
           echo '{"type":"text","text":"sunny"}'; echo '{"type":"end"}'"#,
        &JSONL.replace(
            "output: {",
            "output: {servers: {where: {type: loaded}, take: servers, name: name, status: status, ok: [connected]}, ",
        ),
    );
    let outcome = outcome(&agent).await;
    assert_eq!(kind(&outcome), "server_missing");
    let message = outcome.error.unwrap().message;
    assert!(message.contains("`failed: no handshake`"), "{message}");
}

#[tokio::test]
async fn the_prompt_can_be_the_input() {
    let agent = script("cat", "stdin: prompt");
    let outcome = outcome(&agent).await;
    assert_eq!(
        outcome.final_response.as_deref(),
        Some("What is the weather?")
    );
}

#[tokio::test]
async fn failures_have_their_kinds() {
    for (text, keys, expected) in [
        ("exit 3", JSONL, "crashed"),
        ("kill -9 $$", JSONL, "crashed"),
        ("echo '{\"type\":\"end\"}'; exit 1", JSONL, "crashed"),
        ("echo 'Please Log In' >&2; exit 1", JSONL, "login"),
        ("echo hello", JSONL, "no_end"),
        (
            r#"echo '{"type":"error","message":"x","status":429}'; echo '{"type":"end"}'"#,
            JSONL,
            "rate_limit",
        ),
        (
            r#"echo '{"type":"error","message":"x","status":"401"}'; exit 1"#,
            JSONL,
            "login",
        ),
        (
            r#"echo '{"type":"error","message":"overloaded","status":529}'; exit 1"#,
            JSONL,
            "provider",
        ),
        (
            r#"echo '{"type":"error","message":"you must log in"}'"#,
            JSONL,
            "login",
        ),
        (
            "echo not json",
            "output: {format: json, final: result}",
            "no_end",
        ),
        ("exit 2", "stdin: none", "crashed"),
        ("true", "stdin: none", "none"),
    ] {
        let agent = script(text, keys);
        let outcome = outcome(&agent).await;
        assert_eq!(kind(&outcome), expected, "{text}: {:?}", outcome.error);
    }
    let missing = crate::support::agent("{command: [no-such-agent-program, \"{{prompt}}\"]}");
    let outcome = outcome(&missing).await;
    assert_eq!(kind(&outcome), "not_started");
    assert!(outcome.error.unwrap().message.contains("not found on PATH"));
    let outside = script("true", "files: {/etc/x/y: z}");
    assert_eq!(
        kind(&crate::support::outcome(&outside).await),
        "not_started"
    );
}

#[tokio::test]
async fn json_after_other_lines_is_read() {
    let agent = script(
        r#"echo "warning: {old}"; echo '{"result": "fine", "usage": {"i": 7, "o": 2}, "usd": "0.25"}'"#,
        "output: {format: json, final: result, cost: usd, tokens: {input: usage.i, output: usage.o}}",
    );
    let outcome = outcome(&agent).await;
    assert_eq!(kind(&outcome), "none");
    assert_eq!(outcome.final_response.as_deref(), Some("fine"));
    assert_eq!(outcome.tokens.unwrap().total, Some(9));
    assert_eq!(outcome.cost_usd, Some(0.25));
}

#[tokio::test]
async fn an_agent_that_hangs_is_ended_in_bounded_time() {
    let started = Instant::now();
    let folders = folders();
    let agent = script("sleep 600 & sleep 600", &format!("timeout: 300ms, {JSONL}"));
    let outcome = run_in(&folders, &agent, &[]).await;
    assert_eq!(kind(&outcome), "timeout");
    assert!(!outcome.ended && outcome.exit.is_none());
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(processes_of(folders.run_dir()), Vec::<String>::new());
    let silent = script("sleep 600", &format!("startup_timeout: 200ms, {JSONL}"));
    let outcome = crate::support::outcome(&silent).await;
    assert!(outcome.error.unwrap().message.contains("`startup_timeout`"));
    let idle = script(
        r#"echo '{"type":"text","text":"a"}'; sleep 600"#,
        &format!("idle_timeout: 300ms, {JSONL}"),
    );
    let outcome = crate::support::outcome(&idle).await;
    assert_eq!(outcome.final_response.as_deref(), Some("a"));
    assert!(outcome.error.unwrap().message.contains("`idle_timeout`"));
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed() {
    let started = Instant::now();
    let folders = folders();
    let agent = script(
        "trap '' TERM; while :; do sleep 1; done",
        &format!("timeout: 200ms, {JSONL}"),
    );
    let outcome = run_in(&folders, &agent, &[]).await;
    assert_eq!(kind(&outcome), "timeout");
    assert!(
        started.elapsed() < Duration::from_secs(12),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(processes_of(folders.run_dir()), Vec::<String>::new());
}

/// Background processes end with the run, also in their own sessions, without our variables, and
/// with a parent that is gone.
#[tokio::test]
async fn nothing_survives_a_normal_end() {
    let folders = folders();
    let marker = folders
        .run_dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let agent = script(
        "setsid sh -c 'sleep 601' >/dev/null 2>&1 &
         (setsid env -i HOME=\"$HOME\" /bin/sleep 602 >/dev/null 2>&1 &)
         (cd \"$HOME\" && setsid env -i /bin/sleep 603 >/dev/null 2>&1 &)
         (cd / && exec setsid env -i /bin/sh -c \"/bin/sleep 604; : $TMPDIR\" >/dev/null 2>&1 &)
         sleep 0.3; echo '{\"type\":\"end\"}'",
        JSONL,
    );
    let outcome = run_in(&folders, &agent, &[]).await;
    assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
    let left = sleeping(&["601", "602", "603", "604"]);
    assert_eq!(left, Vec::<String>::new(), "{marker}");
}

/// Dropping the future kills everything.
#[tokio::test]
async fn nothing_survives_cancellation() {
    let folders = folders();
    let agent = script(
        "setsid sleep 611 & (env -i setsid sleep 612 &) ; sleep 613",
        JSONL,
    );
    let run = run_in(&folders, &agent, &[]);
    let cancelled = tokio::time::timeout(Duration::from_millis(400), run).await;
    assert!(cancelled.is_err());
    assert_eq!(sleeping(&["611", "612", "613"]), Vec::<String>::new());
}

/// The live `sleep` processes with one of these arguments.
fn sleeping(seconds: &[&str]) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "))
        .filter(|line| {
            seconds
                .iter()
                .any(|it| line.trim_end().ends_with(&format!("sleep {it}")))
        })
        .collect()
}

#[tokio::test]
async fn huge_and_invalid_output_is_bounded() {
    let agent = script(
        r#"head -c 40000000 /dev/zero | tr '\0' 'x'; echo; printf '\377\376\n'
           head -c 2000000 /dev/zero | tr '\0' 'e' >&2
           printf '{"type":"text","text":"caf\303\251"}\n{"type":"end"}'"#,
        JSONL,
    );
    let outcome = outcome(&agent).await;
    assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
    assert_eq!(outcome.final_response.as_deref(), Some("café"));
    assert!(outcome.stream_truncated && outcome.stream.len() <= 8 << 20);
    assert!(outcome.stderr_tail.iter().map(String::len).sum::<usize>() < 20_000);
    let text = script(r"printf 'ok \377'", "stdin: none");
    let outcome = crate::support::outcome(&text).await;
    assert_eq!(outcome.final_response.as_deref(), Some("ok \u{fffd}"));
}

/// A background process that keeps the output open does not hold the run.
#[tokio::test]
async fn an_open_output_does_not_hold_the_run() {
    let started = Instant::now();
    let agent = script("sleep 621 & echo done", "stdin: none");
    let outcome = outcome(&agent).await;
    assert_eq!(outcome.final_response.as_deref(), Some("done"));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn further_messages_resume_the_session() {
    let command = serde_json::json!([
        "/bin/sh", "-c",
        r#"printf '{"type":"start","id":"s-7"}\n{"type":"text","text":"%s"}\n{"type":"end","n":10,"usd":0.1}\n' "$*""#,
        "agent", {"when": "session", "args": ["--resume={{session}}"]}, "{{prompt}}"
    ]);
    let agent = crate::support::agent(&format!(
        "{{command: {command}, output: {{format: jsonl, final: {{where: {{type: text}}, take: text}}, \
         ended: {{where: {{type: end}}}}, session: {{where: {{type: start}}, take: id}}, cost: usd, \
         tokens: {{output: n}}}}}}"
    ));
    assert!(agent.can_continue());
    let outcome = run_in(&folders(), &agent, &["And tomorrow?"]).await;
    let texts: Vec<&str> = outcome
        .turns
        .iter()
        .map(|turn| turn.content.as_str())
        .collect();
    assert_eq!(
        texts,
        [
            "What is the weather?",
            "What is the weather?",
            "And tomorrow?",
            "--resume=s-7 And tomorrow?"
        ]
    );
    assert_eq!(outcome.tokens.unwrap().output, Some(20));
    assert_eq!(outcome.cost_usd, Some(0.2));
    // Some agents report the sum over the whole session.
    let agent = crate::support::agent(&format!(
        "{{command: {command}, output: {{format: jsonl, final: {{where: {{type: text}}, take: text}}, \
         ended: {{where: {{type: end}}}}, session: {{where: {{type: start}}, take: id}}, \
         cost: {{take: usd, cumulative: true}}, tokens: {{output: n, cumulative: true}}}}}}"
    ));
    let outcome = run_in(&folders(), &agent, &["And tomorrow?"]).await;
    assert_eq!(outcome.tokens.unwrap().output, Some(10));
    assert_eq!(outcome.cost_usd, Some(0.1));
}

/// Runs at the same time do not see each other, and one that ends leaves the others alone.
#[tokio::test]
async fn parallel_runs_do_not_collide() {
    let agent = script(
        r#"echo "$HOME" > "$HOME/own"; sleep 0.$(( $$ % 5 + 1 )); cat "$HOME/own"; ls "$HOME""#,
        "stdin: none",
    );
    let rooms: Vec<_> = (0..10).map(|_| folders()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    let local = tokio::task::LocalSet::new();
    for folders in rooms {
        let agent = agent.clone();
        tasks.spawn_local_on(
            async move {
                let outcome = run_in(&folders, &agent, &[]).await;
                let home = folders.home().to_string_lossy().into_owned();
                (home, outcome)
            },
            &local,
        );
    }
    local
        .run_until(async {
            while let Some(done) = tasks.join_next().await {
                let (home, outcome) = done.unwrap();
                assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
                assert_eq!(outcome.final_response, Some(format!("{home}\nown")));
            }
        })
        .await;
}
