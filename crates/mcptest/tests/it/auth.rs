//! Servers behind authorization: tokens are obtained and replaced, nothing shows them, and a
//! failure of authorization is never a failure of what is under test.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::guarded::{Guarded, Rules, SECRET, TOKEN, visit};
use crate::support::{Ran, files, folder, mcptest, ran, run};

/// A suite with ten calls of a tool.
fn suite(guarded: &Guarded, auth: &Value) -> Value {
    let tools: Vec<Value> = (1..=10)
        .map(|number| {
            json!({"name": format!("search {number}"), "server": "guarded", "tool": "search",
                   "serial": true,
                   "expect": [{"result.content[0].text": {"contains": "found with"}}]})
        })
        .collect();
    json!({"servers": {"guarded": {"url": guarded.url, "auth": auth}}, "tools": tools})
}

fn client_credentials() -> Value {
    json!({"type": "client_credentials", "client_id": "ci", "client_secret_env": "CI_SECRET"})
}

fn with_secret(dir: &Path, args: &[&str]) -> Ran {
    let mut command = mcptest(dir);
    ran(&command
        .args(args)
        .env("CI_SECRET", SECRET)
        .output()
        .unwrap())
}

/// Fails if a token or a secret is in any of the outputs, or in a file of the folder. The store of
/// logins is encrypted.
fn assert_no_secret(dir: &Path, ran: &Ran) {
    let mut texts = vec![ran.stdout.clone(), ran.stderr.clone()];
    for ending in ["json", "jsonl", "xml", "md", "html", "yml", "txt"] {
        for file in files(dir, ending) {
            texts.push(fs::read_to_string(file).unwrap());
        }
    }
    for text in texts {
        for secret in [TOKEN, SECRET, "c0de-of-the-login"] {
            if let Some(at) = text.find(secret) {
                let around = text[..at].chars().rev().take(80).collect::<String>();
                panic!(
                    "{secret} after {}",
                    around.chars().rev().collect::<String>()
                );
            }
        }
    }
}

#[test]
fn a_token_that_ends_in_the_middle_of_a_run_is_replaced() {
    // Each token is good for three calls.
    let guarded = Guarded::start(Rules {
        uses: Some(3),
        ..Rules::default()
    });
    let dir = folder(&[("s.yml", &suite(&guarded, &client_credentials()).to_string())]);
    let report = |name: &str| format!("{name}={}", dir.path().join(name).display());
    let ran = with_secret(
        dir.path(),
        &[
            "run",
            "s.yml",
            "-vv",
            "--reporter",
            "pretty",
            "--reporter",
            &report("json").replace("/json", "/r.json"),
            "--reporter",
            &report("junit").replace("/junit", "/r.xml"),
            "--reporter",
            &report("markdown").replace("/markdown", "/r.md"),
            "--reporter",
            &report("html").replace("/html", "/r.html"),
            "--traces",
            "traces.jsonl",
        ],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let report: Value =
        serde_json::from_slice(&fs::read(dir.path().join("r.json")).unwrap()).unwrap();
    let tests = report["tests"].as_array().unwrap();
    assert!(tests.iter().all(|test| test["verdict"] == "pass"));
    assert_eq!(guarded.calls().len(), 10);
    assert_eq!(guarded.grants().len(), 4);
    assert!(ran.stderr.contains("mcptest::auth"), "{}", ran.stderr);
    assert_no_secret(dir.path(), &ran);
    let shown = report.to_string();
    assert!(shown.contains("found with [redacted]"));
}

#[test]
fn failing_authorization_is_an_error_of_kind_auth() {
    let guarded = Guarded::start(Rules::default());
    let mut suite = suite(&guarded, &client_credentials());
    suite["agents"] = json!([{
        "name": "agent", "model": "builtin/scripted", "servers": ["guarded"], "prompt": "Go.",
        "script": [[{"calls": [{"tool": "search", "args": {}}]}, {"say": "Done."}]],
        "expect": [{"tool_calls[0].name": "search"}],
    }]);
    let dir = folder(&[("s.yml", &suite.to_string())]);
    for (secret, part) in [
        (Some("wrong-secret"), "`invalid_client`: who are you?"),
        (None, "the environment variable CI_SECRET is not set"),
    ] {
        let mut command = mcptest(dir.path());
        command.args(["run", "s.yml", "--reporter", "json", "--no-history"]);
        match secret {
            Some(secret) => command.env("CI_SECRET", secret),
            None => command.env_remove("CI_SECRET"),
        };
        let ran = ran(&command.output().unwrap());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        let report = ran.json();
        for test in report["tests"].as_array().unwrap() {
            assert_eq!(test["verdict"], "error", "{test}");
            let error = &test["runs"][0]["error"];
            assert_eq!(error["kind"], "auth", "{error}");
            assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        }
    }
}

#[test]
fn authorization_that_fails_during_a_run_is_not_a_failure_of_the_agent() {
    // The first token is good for one call, and there is no second one.
    let guarded = Guarded::start(Rules {
        uses: Some(1),
        max_tokens: Some(1),
    });
    let mut suite = suite(&guarded, &client_credentials());
    suite["tools"] = json!([]);
    suite["agents"] = json!([{
        "name": "agent", "model": "builtin/scripted", "servers": ["guarded"], "prompt": "Go.",
        "script": [[
            {"calls": [{"tool": "search", "args": {"n": 1}}]},
            {"calls": [{"tool": "search", "args": {"n": 2}}]},
            {"say": "Done."},
        ]],
        "expect": [{"tool_calls[1].args.n": 2}, {"tool_results[1].is_error": false}],
    }]);
    let dir = folder(&[("s.yml", &suite.to_string())]);
    let ran = with_secret(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let report = ran.json();
    assert_eq!(report["tests"][0]["verdict"], "error");
    let error = &report["tests"][0]["runs"][0]["error"];
    assert_eq!(error["kind"], "auth", "{error}");
    assert_eq!(guarded.calls(), ["search"]);
    assert_no_secret(dir.path(), &ran);
}

/// An agent under test, which is mcptest itself.
fn agent_suite(guarded: &Guarded) -> Value {
    let script = json!([[
        {"calls": [{"tool": "search", "args": {"n": 1}}]},
        {"calls": [{"tool": "search", "args": {"n": 2}}]},
        {"calls": [{"tool": "search", "args": {"n": 3}}]},
        {"say": "Done."},
    ]]);
    let inner = format!(
        "{{\"servers\": {{ {{{{servers}}}} }}, \"agents\": [{{\"name\": \"inner\", \
         \"model\": \"builtin/scripted\", \"prompt\": \"x\", \"servers\": [\"guarded\"], \
         \"script\": {script}, \"expect\": [{{\"conversation\": {{\"type\": \"object\"}}}}]}}]}}"
    );
    json!({
        "servers": {"guarded": {"url": guarded.url, "auth": client_credentials()}},
        "agents": [{
            "name": "agent", "servers": ["guarded"], "prompt": "Go.",
            "expect": [{"tool_calls[2].args.n": 3}],
            "agent": {
                "name": "inner agent",
                "command": [env!("CARGO_BIN_EXE_mcptest"), "run", "{{cwd}}/inner.yml",
                            "--reporter", "json", "--no-history", "--quiet"],
                "env": {"CI": "true"},
                "files": {"{{cwd}}/inner.yml": inner},
                "servers": {"each": "{{name|json}}: {\"command\": {{argv|json}}}", "join": ", "},
                "timeout": "60s",
                "output": {"format": "json", "final": "tests[0].runs[0].trace.final_response"},
            },
        }],
    })
}

#[test]
fn an_agent_under_test_needs_no_token() {
    let guarded = Guarded::start(Rules {
        uses: Some(1),
        ..Rules::default()
    });
    let dir = folder(&[("s.yml", &agent_suite(&guarded).to_string())]);
    let ran = with_secret(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(guarded.calls().len(), 3);
    assert_eq!(guarded.grants().len(), 3);
    assert_no_secret(dir.path(), &ran);
}

#[test]
fn an_agent_under_test_is_not_blamed_for_authorization() {
    // Enough for its first call.
    let guarded = Guarded::start(Rules {
        uses: Some(1),
        max_tokens: Some(1),
    });
    let dir = folder(&[("s.yml", &agent_suite(&guarded).to_string())]);
    let ran = with_secret(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let report = ran.json();
    let test = &report["tests"][0];
    assert_eq!(test["verdict"], "error", "{test}");
    assert_eq!(test["runs"][0]["error"]["kind"], "auth", "{test}");
    assert_eq!(guarded.calls().len(), 1);
    assert_no_secret(dir.path(), &ran);
}

#[test]
fn cassettes_have_no_token_and_need_no_secret() {
    let guarded = Guarded::start(Rules::default());
    let suite = json!({
        "servers": {"guarded": {"url": guarded.url, "auth": client_credentials()}},
        "agents": [{
            "name": "agent", "model": "builtin/scripted", "servers": ["guarded"], "prompt": "Go.",
            "script": [[{"calls": [{"tool": "search", "args": {}}]}, {"say": "Done."}]],
            "expect": [{"tool_results[0].content[0].text": {"contains": "found with"}}],
        }],
    });
    let dir = folder(&[("s.yml", &suite.to_string())]);
    let recorded = with_secret(dir.path(), &["run", "s.yml", "--record"]);
    assert_eq!(recorded.code, 0, "{}{}", recorded.stdout, recorded.stderr);
    assert_no_secret(dir.path(), &recorded);
    let replayed = run(dir.path(), &["run", "s.yml", "--replay", "both"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert_eq!(guarded.calls().len(), 1);
}

#[test]
fn doctor_explains_step_by_step() {
    let guarded = Guarded::start(Rules::default());
    let dir = folder(&[(
        "s.yml",
        &json!({"servers": {"guarded": {"url": guarded.url}}}).to_string(),
    )]);
    let ran = run(dir.path(), &["doctor", "--suite", "s.yml"]);
    assert_eq!(ran.code, 2);
    let base = guarded.url.strip_suffix("/mcp").unwrap();
    for part in [
        "does not start: auth:",
        &format!("the server requires a token of {base}, with the scopes tools"),
        "authorization, step by step:",
        &format!("1. ok      request to {} without a token", guarded.url),
        "HTTP 401 Unauthorized, WWW-Authenticate: Bearer resource_metadata=",
        &format!("2. ok      GET {base}/.well-known/oauth-protected-resource/mcp"),
        &format!("3. ok      GET {base}/.well-known/oauth-authorization-server"),
        "in the suite:",
        "auth: {type: client_credentials, client_id: …, client_secret_env: …",
        "then `mcptest auth login guarded`",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    // Nothing was issued or registered.
    assert!(guarded.grants().is_empty());
    // With what it asks for, it works; a wrong secret fails at the last step.
    let flags = [
        "doctor",
        "--url",
        &guarded.url,
        "--auth",
        "client_credentials",
        "--client-id",
        "ci",
        "--client-secret-env",
        "CI_SECRET",
    ];
    let fine = with_secret(dir.path(), &flags);
    assert_eq!(fine.code, 0, "{}", fine.stdout);
    let line = format!("authorized    client_credentials at {base}, scopes tools, for 3");
    assert!(fine.stdout.contains(&line), "{}", fine.stdout);
    let mut command = mcptest(dir.path());
    command
        .args(flags)
        .args(["--format", "json"])
        .env("CI_SECRET", "wrong-secret-0815");
    let wrong = ran_json(&command.output().unwrap());
    let steps = wrong["servers"][0]["authorization"]["steps"]
        .as_array()
        .unwrap();
    let last = steps.last().unwrap();
    assert_eq!(last["outcome"], "failed");
    assert!(
        last["action"]
            .as_str()
            .unwrap()
            .contains("/token (client_credentials)")
    );
    assert!(!wrong.to_string().contains("wrong-secret-0815"));
}

fn ran_json(output: &std::process::Output) -> Value {
    ran(output).json()
}

/// Logs in, with this test as the browser.
fn log_in(dir: &Path, args: &[&str]) -> Ran {
    log_in_with(dir, args, &[])
}

fn log_in_with(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut child = mcptest(dir)
        .args(["auth", "login", "--no-browser"])
        .args(args)
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut read = String::new();
    loop {
        let mut line = String::new();
        if stderr.read_line(&mut line).unwrap() == 0 {
            break;
        }
        read.push_str(&line);
        let address = line.trim();
        if address.starts_with("http://") && address.contains("/authorize?") {
            let target = visit(address).unwrap();
            assert_eq!(visit(&target), None);
        }
    }
    let mut ran = ran(&child.wait_with_output().unwrap());
    ran.stderr = read;
    ran
}

#[test]
fn a_login_is_used_by_all_commands_until_it_is_ended() {
    let guarded = Guarded::start(Rules {
        uses: Some(5),
        ..Rules::default()
    });
    let suite = suite(&guarded, &json!({"type": "authorization_code"}));
    let dir = folder(&[("mcptest.yml", &suite.to_string())]);
    let path = dir.path();
    let before = run(path, &["run", "--reporter", "json", "--no-history"]);
    let error = &before.json()["tests"][0]["runs"][0]["error"];
    assert_eq!(error["kind"], "auth");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("nobody is logged in: run `mcptest auth login guarded`"));

    let login = log_in(path, &["guarded"]);
    assert_eq!(login.code, 0, "{}{}", login.stdout, login.stderr);
    assert!(
        login
            .stdout
            .contains("logged in to guarded at http://127.0.0.1:")
    );
    assert!(
        login
            .stdout
            .contains("the key is in the file `key` beside it")
    );
    assert!(login.stderr.contains("code_challenge_method=S256"));
    assert_no_secret(path, &login);

    let status = run(path, &["auth", "status", "--format", "json"]).json();
    assert_eq!(status["key"], "file");
    assert_eq!(status["logins"][0]["server"], guarded.url);
    assert_eq!(status["logins"][0]["can_refresh"], true);

    // Its tokens end in the middle; refresh tokens replace them.
    let ran = run(path, &["run", "--reporter", "json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(guarded.grants().contains(&"refresh_token".to_owned()));
    assert_no_secret(path, &ran);
    let doctor = run(path, &["doctor", "--url", &guarded.url]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert!(
        doctor
            .stdout
            .contains("authorized    authorization_code at")
    );
    let same = run(path, &["diff", &guarded.url, &guarded.url]);
    assert_eq!(same.code, 0, "{}{}", same.stdout, same.stderr);

    let logout = run(path, &["auth", "logout", "guarded"]);
    assert!(
        logout.stdout.contains("its tokens are revoked and deleted"),
        "{}",
        logout.stdout
    );
    let status = run(path, &["auth", "status"]);
    assert!(status.stdout.contains("(no logins)"), "{}", status.stdout);
    assert_eq!(run(path, &["run", "--no-history"]).code, 2);
}

#[test]
fn a_passphrase_encrypts_the_logins() {
    let guarded = Guarded::start(Rules::default());
    let dir = folder(&[]);
    let path = dir.path();
    let with = |passphrase: Option<&str>, args: &[&str]| {
        let mut command = mcptest(path);
        command.args(args);
        if let Some(passphrase) = passphrase {
            command.env("MCPTEST_AUTH_PASSPHRASE", passphrase);
        }
        ran(&command.output().unwrap())
    };
    let login = log_in(path, &["--url", &guarded.url]);
    assert_eq!(login.code, 0, "{}{}", login.stdout, login.stderr);
    // Under a passphrase, the next write encrypts again.
    let phrase = Some("correct horse battery staple");
    let used = with(
        phrase,
        &["auth", "logout", "--url", "http://127.0.0.1:1/other"],
    );
    assert_eq!(used.code, 0);
    let wrong = with(Some("wrong"), &["auth", "status"]);
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.stderr.contains("the passphrase does not match"),
        "{}",
        wrong.stderr
    );
    let none = with(None, &["doctor", "--url", &guarded.url]);
    assert_eq!(none.code, 2);
    assert!(
        none.stdout.contains("set MCPTEST_AUTH_PASSPHRASE"),
        "{}",
        none.stdout
    );
    let right = with(phrase, &["doctor", "--url", &guarded.url]);
    assert_eq!(right.code, 0, "{}", right.stdout);
    // Logins that nobody can decrypt can be removed.
    let cleared = with(None, &["auth", "logout", "--all"]);
    assert_eq!(cleared.code, 0, "{}", cleared.stderr);
    assert!(
        with(None, &["auth", "status"])
            .stdout
            .contains("(no logins)")
    );
}

#[test]
fn the_key_of_the_logins_is_in_the_keychain_where_there_is_one() {
    use std::os::unix::fs::PermissionsExt as _;

    // A stand-in for the program of the Secret Service: one entry, in a file.
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$@\" >> arguments.log\ncase $1 in\n\
                  store) cat > entry ;;\nlookup) cat entry 2>/dev/null ;;\nesac\n";
    let dir = folder(&[("secret-tool", script)]);
    let path = dir.path();
    let tool = path.join("secret-tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let guarded = Guarded::start(Rules::default());
    let programs = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let env = [
        ("PATH", programs.as_str()),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent"),
        ("MCPTEST_AUTH_KEYCHAIN", "1"),
    ];
    let with = |args: &[&str]| {
        let mut command = mcptest(path);
        ran(&command.args(args).envs(env).output().unwrap())
    };
    let login = log_in_with(path, &["--url", &guarded.url], &env);
    assert_eq!(login.code, 0, "{}{}", login.stdout, login.stderr);
    assert!(
        login.stdout.contains("the key is in the system's keychain"),
        "{}",
        login.stdout
    );
    assert!(!path.join("logins/key").exists());
    assert_eq!(with(&["doctor", "--url", &guarded.url]).code, 0);
    // The key is not an argument, which other users could see.
    let key = fs::read_to_string(path.join("entry")).unwrap();
    let arguments = fs::read_to_string(path.join("arguments.log")).unwrap();
    assert_eq!(key.len(), 44);
    assert!(!arguments.contains(&key));
    // An entry that somebody removed is named.
    fs::remove_file(path.join("entry")).unwrap();
    let lost = with(&["auth", "status"]);
    assert_eq!(lost.code, 2);
    assert!(
        lost.stderr.contains("not in the system's keychain"),
        "{}",
        lost.stderr
    );
    assert_eq!(with(&["auth", "logout", "--all"]).code, 0);
    // A keychain that does not work is not used.
    fs::write(&tool, "#!/bin/sh\nexit 1\n").unwrap();
    let login = log_in_with(path, &["--url", &guarded.url], &env);
    assert!(
        login.stdout.contains("the key is in the file `key`"),
        "{}",
        login.stdout
    );
}

/// A session of a client on stdio with a server over HTTP.
fn proxied(dir: &Path, args: &[&str]) -> (Vec<Value>, Ran) {
    let mut child = mcptest(dir)
        .args(["proxy"])
        .args(args)
        .env("CI_SECRET", SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
               "params": {"name": "search", "arguments": {}}}),
    ] {
        writeln!(stdin, "{message}").unwrap();
        if message.get("id").is_some() {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            answers.push(serde_json::from_str(&line).unwrap_or_default());
        }
    }
    drop(stdin);
    let ran = ran(&child.wait_with_output().unwrap());
    (answers, ran)
}

#[test]
fn a_client_on_stdio_reaches_a_guarded_server_through_the_proxy() {
    let guarded = Guarded::start(Rules::default());
    let dir = folder(&[]);
    let flags = [
        "--url",
        &guarded.url,
        "--record",
        "t.json",
        "--auth",
        "client_credentials",
        "--client-id",
        "ci",
        "--client-secret-env",
        "CI_SECRET",
    ];
    let (answers, ran) = proxied(dir.path(), &flags);
    // The client gets what the server sent.
    let text = answers[2]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(TOKEN), "{answers:?} {}", ran.stderr);
    let trace = fs::read_to_string(dir.path().join("t.json")).unwrap();
    assert!(trace.contains("found with [redacted]"), "{trace}");
    assert_no_secret(dir.path(), &ran);

    // Nobody is logged in: an error of kind auth, not an answer of the server.
    let (answers, _) = proxied(dir.path(), &["--url", &guarded.url, "--record", "u.json"]);
    let message = answers[0]["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("nobody is logged in: run `mcptest auth login --url"),
        "{message}"
    );
    let trace: Value =
        serde_json::from_slice(&fs::read(dir.path().join("u.json")).unwrap()).unwrap();
    assert_eq!(trace["error"]["kind"], "auth", "{trace}");
}

#[test]
fn flags_that_do_not_fit_together_are_refused() {
    let dir = folder(&[]);
    let refused = run(
        dir.path(),
        &[
            "doctor",
            "--url",
            "http://127.0.0.1:1/mcp",
            "--auth",
            "client_credentials",
        ],
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("`--client-id`"),
        "{}",
        refused.stderr
    );
    let program = json!({"servers": {"s": {"command": ["true"]}}});
    let dir = folder(&[("mcptest.yml", &program.to_string())]);
    let refused = run(dir.path(), &["auth", "login", "s"]);
    assert!(
        refused
            .stderr
            .contains("only servers with a `url` have logins")
    );
    let unknown = run(dir.path(), &["auth", "login", "x"]);
    assert!(unknown.stderr.contains("the suite has no server `x`"));
}
