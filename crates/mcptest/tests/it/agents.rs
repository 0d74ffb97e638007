//! Agents under test. The agent is mcptest itself, which plays a script with the servers that it is
//! given, so the tests need nothing else.

use serde_json::{Value, json};

use crate::support::{Ran, folder, mcptest, ran};

/// The settings of an agent that plays `script` in its working directory.
fn agent(script: &Value) -> Value {
    let inner = format!(
        "{{\"servers\": {{ {{{{servers}}}} }}, \"agents\": [{{\"name\": \"inner\", \
         \"model\": \"builtin/scripted\", \"prompt\": {{{{prompt|json}}}}, \
         \"servers\": [{{{{names}}}}], \"script\": {script}, \
         \"expect\": [{{\"conversation\": {{\"type\": \"object\"}}}}]}}]}}"
    );
    json!({
        "name": "inner agent",
        "command": [
            env!("CARGO_BIN_EXE_mcptest"), "run", "{{cwd}}/inner.yml", "--reporter", "json",
            "--no-history", "--quiet",
        ],
        "env": {"CI": "true"},
        "files": {"{{cwd}}/inner.yml": inner},
        "blocks": {"names": {"text": "\"s\""}},
        "servers": {"each": "{{name|json}}: {\"command\": {{argv|json}}}", "join": ", "},
        "timeout": "60s",
        "output": {
            "format": "json",
            "final": "tests[0].runs[0].trace.final_response",
            "tokens": {
                "input": "tests[0].runs[0].trace.conversation.tokens.input",
                "output": "tests[0].runs[0].trace.conversation.tokens.output",
            },
        },
    })
}

/// Searches, then answers.
fn script() -> Value {
    json!([[
        {"calls": [{"tool": "search", "args": {"q": "x"}}], "usage": {"input": 10, "output": 2}},
        {"calls": [{"tool": "search", "args": {"q": "y"}}], "usage": {"input": 20, "output": 2}},
        {"say": "Found it.", "usage": {"input": 30, "output": 2}},
    ]])
}

const MANIFEST: &str = "mock_server: {name: s, tools: [
  {name: search, description: Search., input_schema: {type: object, properties: {q: {type: string}}}, response: found},
  {name: fail, description: Fail., input_schema: {type: object}, response: {is_error: true, content: [no]}}]}";

fn suite(test: &Value) -> tempfile::TempDir {
    let slow = format!(
        "sleep 2; exec {} mock --tools-from m.yml",
        env!("CARGO_BIN_EXE_mcptest")
    );
    let suite = json!({
        "name": "s",
        "servers": {"s": {"command": ["mcptest", "mock", "--tools-from", "m.yml"]},
                    "dead": {"command": ["false"]},
                    "slow": {"command": ["sh", "-c", slow]},
                    "hung": {"command": ["mcptest", "mock", "--tools-from", "m.yml", "--fault", "hang"],
                             "timeout": "300ms"}},
        "faults": [{"name": "flaky", "target": {"tool": "search"}, "kind": "recover_after",
                    "failures": 1}],
        "agents": test,
    });
    folder(&[("s.yml", &suite.to_string()), ("m.yml", MANIFEST)])
}

fn run(dir: &tempfile::TempDir, more: &[&str]) -> Ran {
    let mut command = mcptest(dir.path());
    command
        .args(["run", "s.yml", "--reporter", "json"])
        .args(more);
    ran(&command.output().unwrap())
}

fn test(name: &str, more: &Value) -> Value {
    let mut test = json!({
        "name": name, "prompt": "Find it.", "servers": ["s"],
        "equal_function_sets": {"classes": [{"name": "search", "members": ["s.search"]}]},
        "trajectory": {"mode": "strict", "calls": [
            {"name": "search", "args": {"exact": {"q": "x"}}},
            {"name": "search", "args": {"exact": {"q": "y"}}},
        ]},
    });
    for (key, value) in more.as_object().unwrap() {
        test[key] = value.clone();
    }
    test
}

#[test]
fn an_agent_gets_the_figures_of_the_model_that_makes_the_same_calls() {
    let dir = suite(&json!([
        test("agent", &json!({"agent": agent(&script()), "runs": 3})),
        test(
            "model",
            &json!({"model": "builtin/scripted", "script": script(), "runs": 3})
        ),
    ]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let (agent, model) = (&report["tests"][0], &report["tests"][1]);
    assert_eq!(agent["model"], "inner agent");
    let values = |test: &Value| -> Vec<Value> {
        let gates = test["gates"].as_array().unwrap();
        gates.iter().map(|gate| gate["values"].clone()).collect()
    };
    assert_eq!(values(agent), values(model));
    let (trace, played) = (&agent["runs"][2]["trace"], &model["runs"][2]["trace"]);
    assert_eq!(trace["final_response"], "Found it.");
    assert_eq!(
        trace["conversation"]["tokens"],
        played["conversation"]["tokens"]
    );
    assert_eq!(trace["catalog"], played["catalog"]);
    let turns = |trace: &Value| -> Vec<Value> {
        let calls = trace["tool_calls"].as_array().unwrap();
        calls.iter().map(|call| call["turn"].clone()).collect()
    };
    assert_eq!(turns(trace), turns(played));
}

/// The same agent with servers that it reaches by address.
fn agent_by_address(script: &Value, server: &str) -> Value {
    let mut agent = agent(script);
    agent["transport"] = json!("http");
    agent["servers"]["each_http"] = server.into();
    agent
}

#[test]
fn servers_by_address_give_the_same_evidence() {
    let server = "{{name|json}}: {\"url\": {{url|json}}}";
    let block = json!({"count": 2, "source": {"from": "catalog"}, "correct": ["s.search"]});
    let dir = suite(&json!([
        test("by command", &json!({"agent": agent(&script()), "runs": 3})),
        test(
            "by address",
            &json!({"agent": agent_by_address(&script(), server), "runs": 3})
        ),
        test(
            "with a fault",
            &json!({
                "agent": agent_by_address(&script(), server), "inject": ["flaky"],
                "recovery": {"max_detection_ms": 1000}, "distractors": block,
            })
        ),
    ]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let evidence = |test: usize| -> Vec<Value> {
        let runs = report["tests"][test]["runs"].as_array().unwrap();
        let parts = ["tool_calls", "tool_results", "catalog"];
        runs.iter()
            .flat_map(|run| parts.map(|part| run["trace"][part].clone()))
            .collect()
    };
    assert_eq!(evidence(0), evidence(1));
    let trace = &report["tests"][2]["runs"][0]["trace"];
    assert_eq!(trace["tool_results"][0]["fault"], "flaky");
    assert_eq!(trace["distractors"].as_array().unwrap().len(), 2);
}

#[test]
fn a_service_gets_its_servers_with_the_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/run", listener.local_addr().unwrap());
    let service = std::thread::spawn(move || {
        // As a service would: the servers are those of the request.
        let (mut stream, _) = listener.accept().unwrap();
        let request: Value = read_body(&mut stream);
        let url = &request["mcp"]["mcpServers"]["s"]["url"];
        let inner = json!({
            "servers": {"s": {"url": url}},
            "agents": [{"name": "inner", "model": "builtin/scripted", "prompt": "p", "servers": ["s"],
                        "script": script(), "expect": [{"conversation": {"type": "object"}}]}],
        });
        let dir = folder(&[("s.yml", &inner.to_string())]);
        let inner = run(&dir, &["--no-history"]);
        let answer = json!({"text": "Found it.", "exit": inner.code}).to_string();
        std::io::Write::write_all(
            &mut stream,
            format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            )
            .as_bytes(),
        )
        .unwrap();
    });
    let agent = json!({
        "url": address, "body": {"prompt": "{{prompt}}", "mcp": "{{mcp_json}}"},
        "response": {"final": "text"},
    });
    let dir = suite(&json!([test("service", &json!({"agent": agent}))]));
    let ran = run(&dir, &[]);
    service.join().unwrap();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let trace = &report["tests"][0]["runs"][0]["trace"];
    assert_eq!(trace["tool_calls"].as_array().unwrap().len(), 2, "{trace}");
    assert_eq!(trace["final_response"], "Found it.");
}

/// The JSON body of a request.
fn read_body(stream: &mut std::net::TcpStream) -> Value {
    use std::io::{BufRead as _, Read as _};
    let mut reader = std::io::BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn an_agent_without_a_form_for_addresses_is_refused_at_load() {
    let agent = json!({"command": ["agent", "{{prompt}}"], "transport": "http"});
    let dir = suite(&json!([test("agent", &json!({"agent": agent}))]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("no form for servers with an address"),
        "{}",
        ran.stderr
    );
}

#[test]
fn faults_and_distractors_reach_the_agent() {
    let block = json!({"count": 2, "source": {"from": "catalog"}, "correct": ["s.search"]});
    let dir = suite(&json!([test(
        "agent",
        &json!({
            "agent": agent(&script()), "inject": ["flaky"],
            "recovery": {"max_detection_ms": 1000}, "distractors": block,
        })
    )]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let trace = &report["tests"][0]["runs"][0]["trace"];
    assert_eq!(trace["tool_results"][0]["fault"], "flaky");
    assert_eq!(trace["tool_results"][1]["is_error"], false);
    assert_eq!(trace["distractors"].as_array().unwrap().len(), 2);
    assert_eq!(trace["catalog"].as_array().unwrap().len(), 4);
}

#[test]
fn what_kept_an_agent_from_working_is_an_error_of_a_kind() {
    let command = |argv: Value| json!({"agent": {"command": argv, "timeout": "3s"}});
    let sh = |text: &str| command(json!(["sh", "-c", text]));
    let mut dead = json!({"agent": agent(&script())});
    dead["servers"] = json!(["dead"]);
    let dir = suite(&json!([
        test("not installed", &command(json!(["no-such-agent-anywhere"]))),
        test("crashed", &sh("echo broken >&2; exit 3")),
        test("killed", &sh("kill -9 $$")),
        test("hung", &sh("sleep 60")),
        test("no tools", &sh("echo I did it.")),
        test("dead server", &dead),
    ]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    let kinds: Vec<&str> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| test["runs"][0]["error"]["kind"].as_str().unwrap_or("none"))
        .collect();
    assert_eq!(
        kinds,
        [
            "not_started",
            "crashed",
            "crashed",
            "timeout",
            "server_missing",
            "server_missing"
        ]
    );
    let message = report["tests"][1]["runs"][0]["error"]["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("broken"), "{message}");
}

#[test]
fn calls_of_own_tools_are_between_the_calls_of_servers() {
    let mut wrapped = agent(&script());
    let inner = wrapped["command"].as_array().unwrap().clone();
    let shell = r#"echo '{"tool": "before"}'; "$@" > /dev/null; echo '{"tool": "after"}'
echo '{"final": "Found it."}'"#;
    let mut command = vec![json!("sh"), json!("-c"), json!(shell), json!("sh")];
    command.extend(inner);
    wrapped["command"] = command.into();
    wrapped["output"] = json!({
        "format": "jsonl",
        "final": "final",
        "ended": {"where": {"final": "Found it."}},
        "calls": {"call": {"where": {"tool": ["before", "after"]}, "name": "tool"}},
    });
    let dir = suite(&json!([{
        "name": "agent", "prompt": "Find it.", "servers": ["s"], "agent": wrapped,
        "expect": [{"tool_names": {"exact": ["before", "search", "search", "after"]}}],
    }]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// A stand-in for Claude Code that fails as the prompt says, with the output that it has then.
const FAILING_CLAUDE: &str = r#"#!/bin/sh
for prompt; do :; done
failed() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,$1}"; exit 1; }
case "$prompt" in
  --version) echo "9.9.9 (Claude Code)";;
  401|429|500) failed "\"result\":\"API Error\",\"api_error_status\":$prompt";;
  login) failed "\"result\":\"Not logged in · Please run /login\"";;
  hang) trap '' TERM; while :; do sleep 1; done;;
  killed) kill -9 $$;;
  ended) echo '{"type":"system","subtype":"init","session_id":"1"}';;
  refused) echo '{"type":"result","is_error":false,"result":"I may not.","permission_denials":[{}]}';;
esac
"#;

#[test]
fn each_failure_of_an_agent_is_a_row_of_its_kind_in_bounded_time() {
    use std::os::unix::fs::PermissionsExt as _;

    // (prompt, kind)
    let failures = [
        ("401", "login"),
        ("429", "rate_limit"),
        ("500", "provider"),
        ("login", "login"),
        ("hang", "timeout"),
        ("killed", "crashed"),
        ("ended", "no_end"),
    ];
    let claude = json!({"preset": "claude-code", "timeout": "2s"});
    let mut tests: Vec<Value> = failures
        .iter()
        .map(|(prompt, _)| test(prompt, &json!({"agent": claude, "prompt": prompt})))
        .collect();
    // An agent that was refused a call has ended its work, and failed.
    tests.push(
        json!({"name": "refused", "agent": claude, "prompt": "refused",
                      "expect": [{"tool_names": {"contains": "search"}}]}),
    );
    // Slow servers are waited for; a call that hangs is an error result, which the agent sees.
    for server in ["slow", "hung"] {
        let mut inner = agent(&script());
        inner["blocks"]["names"]["text"] = format!("\"{server}\"").into();
        tests.push(json!({"name": server, "agent": inner, "prompt": "Find it.",
                          "servers": [server],
                          "expect": [{"final_response": "Found it."}]}));
    }
    let dir = suite(&Value::Array(tests));
    let program = dir.path().join("claude");
    std::fs::write(&program, FAILING_CLAUDE).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let paths = std::env::var_os("PATH").unwrap();
    let paths = std::iter::once(dir.path().to_owned()).chain(std::env::split_paths(&paths));
    let mut command = mcptest(dir.path());
    command
        .args(["run", "s.yml", "--reporter", "json"])
        .env("PATH", std::env::join_paths(paths).unwrap());
    let started = std::time::Instant::now();
    let ran = ran(&command.output().unwrap());
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let report = ran.json();
    for (index, (prompt, kind)) in failures.iter().enumerate() {
        let test = &report["tests"][index];
        assert_eq!(test["verdict"], "error", "{prompt}");
        assert_eq!(test["runs"][0]["error"]["kind"], *kind, "{prompt}: {test}");
    }
    let verdict = |index: usize| &report["tests"][failures.len() + index]["verdict"];
    assert_eq!(verdict(0), "fail");
    assert_eq!(verdict(1), "pass", "{report}");
    assert_eq!(verdict(2), "pass", "{report}");
    let hung = &report["tests"][failures.len() + 2]["runs"][0]["trace"]["tool_results"];
    assert_eq!(hung[0]["error_kind"], "timeout", "{hung}");
}

#[test]
fn a_recording_is_judged_without_the_agent() {
    let dir = suite(&json!([test(
        "agent",
        &json!({"agent": agent(&script()), "runs": 2})
    )]));
    let recorded = run(&dir, &["--record", "--no-timing"]);
    assert_eq!(recorded.code, 0, "{}{}", recorded.stdout, recorded.stderr);
    let path = dir.path().join("cassettes/s.yml/agent.agent.json");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("\"stream\""), "{text}");
    let replayed = run(&dir, &["--replay-only", "--no-timing"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(
        replayed.json()["tests"][0]["gates"],
        recorded.json()["tests"][0]["gates"]
    );
    // Another prompt is another test.
    let suite = std::fs::read_to_string(dir.path().join("s.yml")).unwrap();
    std::fs::write(
        dir.path().join("s.yml"),
        suite.replace("Find it.", "Find that."),
    )
    .unwrap();
    let stale = run(&dir, &["--replay-only"]);
    assert_eq!(stale.code, 2);
    let kind = &stale.json()["tests"][0]["runs"][0]["error"]["kind"];
    assert_eq!(kind, "stale_cassette");
}

#[test]
fn files_that_an_agent_left_are_evidence() {
    let write = "printf 'Rome: 22' > report.md; cat notes.txt; rm notes.txt";
    let dir = suite(&json!([{
        "name": "agent", "prompt": "Write it.",
        "agent": {"command": ["sh", "-c", write], "workspace": "w", "keep": "failed"},
        "expect": [
            {"workspace.files[\"report.md\"]": {"contains": "22"}},
            {"final_response": {"contains": "remember"}},
        ],
    }]));
    std::fs::create_dir(dir.path().join("w")).unwrap();
    std::fs::write(dir.path().join("w/notes.txt"), "remember").unwrap();
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let kept = dir.path().join("w/notes.txt");
    assert!(kept.exists(), "the workspace is a copy");
    assert!(ran.json()["tests"][0]["runs"][0]["trace"]["room"].is_null());
}

#[test]
fn nothing_of_an_agent_survives_it() {
    let mark = crate::support::mark("agent-background");
    let text = format!("sh -c 'while :; do sleep 1; done' {mark} > /dev/null 2>&1 & echo done");
    let dir = suite(&json!([{
        "name": "agent", "prompt": "Start it.", "agent": {"command": ["sh", "-c", text]},
        "expect": [{"final_response": {"contains": "done"}}],
    }]));
    let ran = run(&dir, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    crate::servers::assert_none_left(&mark);
}
