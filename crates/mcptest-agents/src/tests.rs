//! Tests of loading: presets, problems, templates.

use serde_json::{Map, Value, json};

use crate::file::AgentFile;
use crate::values::Values;
use crate::{Agent, AgentKind, ServerLaunch, presets};

fn file(text: &str) -> AgentFile {
    mcptest_yaml::from_bytes("agent.yml", text.as_bytes())
        .unwrap_or_else(|problems| panic!("{problems}"))
        .0
}

fn agent(text: &str) -> Agent {
    Agent::resolve(&file(text)).unwrap()
}

/// The problems of an agent: pointer, message, help.
fn problems(text: &str) -> Vec<(String, String, String)> {
    Agent::resolve(&file(text))
        .unwrap_err()
        .into_iter()
        .map(|problem| {
            (
                problem.pointer,
                problem.message,
                problem.help.unwrap_or_default(),
            )
        })
        .collect()
}

fn servers() -> Vec<ServerLaunch> {
    vec![
        ServerLaunch::Stdio {
            name: "weather".into(),
            argv: vec!["mcptest".into(), "proxy".into(), "a \"b\"".into()],
            env: vec![("K".into(), "v".into())],
        },
        ServerLaunch::Http {
            name: "shop".into(),
            url: "http://127.0.0.1:9/mcp".into(),
            headers: vec![("X-Run".into(), "1".into())],
        },
    ]
}

fn values<'a>(agent: &'a Agent, servers: &'a [ServerLaunch], run: Value) -> Values<'a> {
    let mut all = Map::new();
    for (name, value) in [
        ("prompt", json!("Hello")),
        ("home", json!("/room/home")),
        ("run_dir", json!("/room")),
        ("mcp_json_file", json!("/room/mcp.json")),
        ("call_timeout_ms", json!(60_000)),
        ("call_timeout_s", json!(60)),
        ("server_start_timeout_ms", json!(60_000)),
        ("server_start_timeout_s", json!(60)),
        ("server_timeout_ms", json!(60_000)),
    ] {
        all.insert(name.into(), value);
    }
    if let Value::Object(run) = run {
        all.extend(run);
    }
    Values::new(agent, servers, all)
}

#[test]
fn every_preset_is_valid() {
    for preset in presets() {
        let written = preset
            .file()
            .unwrap_or_else(|problems| panic!("{problems}"));
        assert!(
            written.about.is_some() && written.tested.is_some(),
            "{}",
            preset.name
        );
        let agent = Agent::resolve(&AgentFile {
            preset: Some(preset.name.to_owned()),
            ..AgentFile::default()
        })
        .unwrap_or_else(|problems| panic!("{}: {problems:?}", preset.name));
        assert_eq!(agent.name(), preset.name);
        let is_acp = preset.name.ends_with("-acp");
        assert_eq!(agent.kind() == AgentKind::Acp, is_acp, "{}", preset.name);
        assert!(
            agent.can_continue() && agent.takes_http_servers(),
            "{}",
            preset.name
        );
    }
}

/// The settings files that presets write are valid JSON, whatever is set.
#[test]
fn json_settings_of_presets_are_valid() {
    let servers = servers();
    let settings = [
        json!({}),
        json!({"base_url": "http://x/v1", "api_key": "k", "model": "m\"1", "system": "be\nshort"}),
    ];
    for preset in presets() {
        for permissions in ["allow", "reject", "[weather.get_weather, shop.*]"] {
            let agent = agent(&format!(
                "{{preset: {}, permissions: {permissions}}}",
                preset.name
            ));
            for run in &settings {
                let values = values(&agent, &servers, run.clone());
                for (path, text) in &agent.files {
                    if values.text(path).ends_with(".json") {
                        let text = values.text(text);
                        let parsed = serde_json::from_str::<Value>(&text);
                        assert!(parsed.is_ok(), "{}: {text}", preset.name);
                    }
                }
            }
        }
    }
}

#[test]
fn permissions_have_the_form_of_each_agent() {
    let servers = servers();
    let argv = |preset: &str, permissions: &str| {
        let agent = agent(&format!("{{preset: {preset}, permissions: {permissions}}}"));
        values(&agent, &servers, json!({})).argv().join(" ")
    };
    let list = "[weather.get_weather, shop.*]";
    assert!(argv("claude-code", "allow").contains("--allowedTools mcp__weather,mcp__shop,Bash"));
    assert!(
        argv("claude-code", list).contains("--allowedTools mcp__weather__get_weather,mcp__shop --")
    );
    assert!(!argv("claude-code", "reject").contains("--allowedTools"));
    assert!(argv("copilot", "allow").contains("--allow-all-tools"));
    assert!(argv("copilot", list).contains("--allow-tool=weather(get_weather) --allow-tool=shop"));
    assert!(!argv("copilot", "reject").contains("--allow"));
    assert!(argv("gemini-cli", "allow").contains("--approval-mode yolo"));
    assert!(argv("gemini-cli", list).contains("--policy"));
    let config = |permissions: &str| {
        let agent = agent(&format!("{{preset: codex, permissions: {permissions}}}"));
        values(&agent, &servers, json!({})).text(&agent.files[0].1)
    };
    assert_eq!(
        config("allow")
            .matches("default_tools_approval_mode")
            .count(),
        2
    );
    assert_eq!(
        config(list).matches("default_tools_approval_mode").count(),
        1
    );
    assert!(config(list).contains("[mcp_servers.\"weather\".tools.\"get_weather\"]"));
    assert!(!config("reject").contains("approval_mode = "));
}

/// Their own limits are too short if many agents start in parallel.
#[test]
fn presets_wait_for_servers_as_long_as_the_run_does() {
    let servers = servers();
    for preset in ["claude-code", "claude-code-acp"] {
        let agent = agent(&format!("{{preset: {preset}}}"));
        let limits = values(
            &agent,
            &servers,
            json!({"server_start_timeout_ms": 120_000}),
        );
        let variable = agent.env.iter().find(|(name, _)| name == "MCP_TIMEOUT");
        let limit = variable.map(|(_, value)| limits.text(value));
        assert_eq!(limit.as_deref(), Some("120000"), "{preset}");
    }
    for (preset, limit) in [
        ("codex", "startup_timeout_sec = 120"),
        ("codex-acp", "startup_timeout_sec = 120"),
        ("copilot", "\"timeout\": 150000"),
        ("copilot-acp", "\"timeout\": 150000"),
        ("gemini-cli", "\"timeout\": 150000"),
    ] {
        let agent = agent(&format!("{{preset: {preset}}}"));
        let limits = json!({"server_start_timeout_s": 120, "server_timeout_ms": 150_000});
        let values = values(&agent, &servers, limits);
        let found = agent
            .files
            .iter()
            .any(|(_, text)| values.text(text).contains(limit));
        assert!(found, "{preset}");
    }
}

#[test]
fn conditions_leave_arguments_and_variables_out() {
    let servers = servers();
    let agent = agent("{preset: claude-code, env: {EXTRA: \"{{base_url}}!\", PLAIN: 3}}");
    let bare = values(&agent, &servers, json!({}));
    assert!(!bare.argv().contains(&"--model".to_owned()));
    let named = values(&agent, &servers, json!({"model": "m", "session": "s1"}));
    let argv = named.argv();
    assert!(argv.windows(2).any(|pair| pair == ["--model", "m"]));
    assert!(argv.windows(2).any(|pair| pair == ["--resume", "s1"]));
    assert_eq!(argv.last().map(String::as_str), Some("Hello"));
    let env = |values: &Values<'_>, name: &str| {
        let (_, template) = agent.env.iter().find(|(key, _)| key == name).unwrap();
        values.text_if_set(template)
    };
    assert_eq!(env(&bare, "ANTHROPIC_BASE_URL"), None);
    assert_eq!(env(&bare, "EXTRA"), None);
    assert_eq!(env(&bare, "PLAIN"), Some("3".into()));
    assert_eq!(env(&bare, "ENABLE_TOOL_SEARCH"), None);
    let own = values(&agent, &servers, json!({"base_url": "http://x"}));
    assert_eq!(env(&own, "EXTRA"), Some("http://x!".into()));
    assert_eq!(env(&own, "ENABLE_TOOL_SEARCH"), Some("false".into()));
}

#[test]
fn keys_of_the_suite_override_the_preset() {
    let agent = agent(
        "{preset: codex, model: gpt-9, env: {A: b}, timeout: 10s, keep: failed, \
         output: {final: {take: other}}, errors: [{match: x, kind: login}]}",
    );
    assert_eq!(agent.model(), Some("gpt-9"));
    assert_eq!(agent.timeout().as_secs(), 10);
    assert_eq!(agent.env.len(), 4);
    assert!(agent.output.tokens.is_some());
    let taken = agent.output.final_response.unwrap().take.unwrap();
    assert_eq!(taken.as_str(), "other");
    assert_eq!(agent.errors[0].0.as_str(), "x");
    let own = super::tests::agent("{preset: codex, acp: [mine, --acp]}");
    assert_eq!(own.kind(), AgentKind::Acp);
    assert_eq!(own.name(), "codex");
}

#[test]
fn a_program_names_the_agent() {
    assert_eq!(
        agent("{command: [python, agents/mine.py, \"{{prompt}}\"]}").name(),
        "mine.py"
    );
    assert_eq!(
        agent("{acp: [/opt/bin/my-agent, --acp]}").name(),
        "my-agent"
    );
    assert_eq!(
        agent("{url: \"http://agents.example/run?x=1\"}").name(),
        "agents.example"
    );
    assert_eq!(agent("{name: Mine, acp: [x]}").name(), "Mine");
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let unknown = &problems("{preset: zzz}")[0];
    assert_eq!(
        (unknown.0.as_str(), unknown.1.as_str()),
        ("/preset", "unknown preset `zzz`")
    );
    assert!(unknown.2.starts_with("the presets are claude-code, codex"));
    assert_eq!(
        problems("{preset: gemini-cil}")[0].2,
        "did you mean `gemini-cli`?"
    );
    let found = problems(
        "{command: [x, \"{{promt}}\", \"{{prompt|jsn}}\", {when: modle, args: [\"{{name}}\"]}], \
          files: {\"{{home}}/a\": \"{{servers\"}, output: {final: {take: \"a..b\"}, cost: {}}, \
          errors: [{match: \"(\", kind: login}], permissions: [weather]}",
    );
    let shown: Vec<(&str, &str, &str)> = found
        .iter()
        .map(|(at, message, help)| (at.as_str(), message.as_str(), help.as_str()))
        .collect();
    let expected = [
        (
            "/command/1",
            "unknown value `promt`",
            "did you mean `prompt`?",
        ),
        ("/command/2", "unknown filter `jsn`", "did you mean `json`?"),
        (
            "/command/3/when",
            "unknown value `modle`",
            "did you mean `model`?",
        ),
        (
            "/command/3/args/0",
            "`name` is a value of one server: it is not known here",
            "",
        ),
        ("/files/{{home}}~1a", "`{{servers` is not a value", ""),
        ("/output/final/take", "`a..b` is not a path", ""),
        ("/output/cost", "`take` is missing", ""),
        ("/errors/0/match", "not a valid regular expression", ""),
        (
            "/permissions/0",
            "`weather` does not name a tool of a server",
            "",
        ),
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:#?}");
    for ((at, message, help), (wanted_at, wanted, wanted_help)) in shown.iter().zip(expected) {
        assert_eq!(*at, wanted_at);
        assert!(message.starts_with(wanted), "{message}");
        assert!(help.starts_with(wanted_help), "{help}");
    }
    assert_eq!(
        problems("{name: x}")[0].1,
        "the agent has no command and no address"
    );
    assert_eq!(
        problems("{command: [a], url: \"http://x\"}")[0].1,
        "an agent has only one of `command` and `url`"
    );
    // A mistake in a key of the suite is not blamed on the preset, and the other way round.
    assert_eq!(
        problems("{preset: codex, env: {A: \"{{hom}}\"}}")[0].0,
        "/env/A"
    );
}
