//! `mcptest mcp`: its tools, and what they answer to bad arguments.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{folder, mcptest, ran, root, run};

/// A message that does not come within this time never comes.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

const TOOLS: [&str; 6] = ["validate", "run", "explain", "doctor", "score", "report"];

/// A client over standard input and output. Ends the server with the test.
pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
    /// Notifications, in the order in which they came.
    pub notes: Vec<Value>,
}

impl Client {
    pub fn start(dir: &Path, args: &[&str]) -> Self {
        Self::with(mcptest(dir).arg("mcp").args(args))
    }

    pub fn with(command: &mut std::process::Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut client = Self {
            stdin: child.stdin.take(),
            child,
            lines,
            last_id: 0,
            notes: Vec::new(),
        };
        let hello = client.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "t", "version": "1"}}),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "mcptest");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(MAX_WAIT).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            self.notes.push(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}});
        self.request("tools/call", params)["result"].clone()
    }

    /// The structured content of a call that succeeded.
    pub fn good(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let structured = &result["structuredContent"];
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *structured);
        structured.clone()
    }

    /// The message of a call that failed.
    pub fn bad(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes standard input and waits for the end.
    pub fn leave(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn quickstart() -> std::path::PathBuf {
    root().join("examples/quickstart")
}

#[test]
fn doctor_finds_nothing_to_criticise() {
    for args in [&["mcp"][..], &["mcp", "--allow-run"]] {
        let dir = folder(&[]);
        let mut command = vec!["doctor", "--lint-descriptions", "--deny", "warning"];
        command.extend(["--format", "json", "--", "mcptest"]);
        command.extend(args);
        let ran = run(dir.path(), &command);
        let report = ran.json();
        let fired = |finding: &&Value| !finding["rule"].is_null();
        let findings = report["lint"]["findings"].as_array().unwrap();
        assert_eq!(findings.iter().find(fired), None);
        assert_eq!(report["servers"][0]["problems"], json!([]), "{report}");
        assert_eq!(report["lint"]["clean"], TOOLS.len());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

#[test]
fn tools_are_listed_with_hints_that_are_true() {
    let dir = folder(&[]);
    for (args, acting) in [(&[][..], &[][..]), (&["--allow-run"], &["run", "doctor"])] {
        let mut client = Client::start(dir.path(), args);
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let names: Vec<&str> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| {
                let name = tool["name"].as_str().unwrap();
                let hints = &tool["annotations"];
                assert_eq!(hints["readOnlyHint"], !acting.contains(&name), "{tool}");
                assert_eq!(hints["openWorldHint"], acting.contains(&name), "{tool}");
                let destroys = args.contains(&"--allow-run") && name == "run";
                assert_eq!(hints["destructiveHint"], destroys, "{tool}");
                assert_eq!(tool["inputSchema"]["additionalProperties"], false);
                name
            })
            .collect();
        assert_eq!(names, TOOLS);
    }
}

#[test]
fn every_tool_gives_what_its_output_schema_states() {
    let poor = json!({"name": "a", "inputSchema": {"type": "object"}});
    let clean = json!({
        "name": "list_cities", "description": "List all cities. Returns their names as a list.",
        "inputSchema": {"type": "object", "additionalProperties": false}, "annotations": {},
    });
    let mixed = json!({"tools": [clean, poor]}).to_string();
    let poor = json!({"tools": [poor]}).to_string();
    let dir = folder(&[("tools.json", &poor), ("mixed.json", &mixed)]);
    let suite = quickstart().join("mcptest.yml");
    let traces = dir.path().join("traces.jsonl");
    let made = mcptest(dir.path())
        .args(["run", "--no-history", "--traces"])
        .args([&traces, &suite])
        .output()
        .unwrap();
    assert_eq!(ran(&made).code, 0);
    std::fs::create_dir(dir.path().join("servers")).unwrap();
    for file in ["mcptest.yml", "failing.yml", "servers/weather.yml"] {
        std::fs::copy(quickstart().join(file), dir.path().join(file)).unwrap();
    }
    for suite in ["failing.yml", "mcptest.yml"] {
        run(dir.path(), &["run", suite]);
    }
    let mut client = Client::start(dir.path(), &[]);
    let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
    for (tool, arguments, pointer, wanted) in [
        ("validate", json!({}), "/valid", json!(true)),
        (
            "validate",
            json!({"suite": "failing.yml", "purpose": "score"}),
            "/errors",
            json!(0),
        ),
        ("run", json!({}), "/verdict", json!("pass")),
        (
            "run",
            json!({"suite": "failing.yml"}),
            "/exit_code",
            json!(1),
        ),
        (
            "run",
            json!({"suite": "failing.yml", "detail": "failures", "filter": "subscribing"}),
            "/tests/0/problems/0",
            json!("result.is_error: expected {\"exact\":false}, actual true (the values differ)"),
        ),
        (
            "run",
            json!({"detail": "all"}),
            "/tests/1/figures/floor.selection_rate",
            json!(66),
        ),
        ("explain", json!({}), "/topic", json!("help")),
        (
            "explain",
            json!({"topic": "desc-009"}),
            "/cut",
            json!(false),
        ),
        ("explain", json!({"topic": "suites"}), "/cut", json!(false)),
        (
            "explain",
            json!({"topic": "tool_selection"}),
            "/topic",
            json!("tool_selection"),
        ),
        (
            "explain",
            json!({"topic": "report merge"}),
            "/cut",
            json!(false),
        ),
        (
            "doctor",
            json!({"catalog": "tools.json"}),
            "/healthy",
            json!(false),
        ),
        (
            "doctor",
            json!({"catalog": "mixed.json", "rules": ["DESC-001"]}),
            "/findings/0/rule",
            json!("DESC-001"),
        ),
        (
            "score",
            json!({"suite": "mcptest.yml", "traces": ["traces.jsonl"], "filter": "selection"}),
            "/verdict",
            json!("pass"),
        ),
        ("report", json!({}), "/verdict", json!("pass")),
        ("report", json!({"list": true}), "/tests", json!([])),
        (
            "report",
            json!({"detail": "all"}),
            "/tests/0/verdict",
            json!("pass"),
        ),
    ] {
        let result = client.good(tool, arguments.clone());
        assert_eq!(
            result.pointer(pointer),
            Some(&wanted),
            "{tool} {arguments}: {result}"
        );
        let of = list
            .as_array()
            .unwrap()
            .iter()
            .find(|of| of["name"] == tool);
        let schema = &of.unwrap()["outputSchema"];
        let problem = jsonschema::validate(schema, &result).map_err(|error| error.to_string());
        assert_eq!(problem, Ok(()), "{tool}: {result}");
    }
    // The history is from the command line: the tools of a read-only server added nothing.
    let listed = client.good("report", json!({"list": true}));
    let runs: Vec<&str> = listed["summary"].as_str().unwrap().lines().collect();
    assert_eq!(runs.len(), 2, "{listed}");
    let id = |line: &str| line.split(' ').next().unwrap().to_owned();
    let compared = client.good(
        "report",
        json!({"run": id(runs[0]), "compare_with": id(runs[1])}),
    );
    assert_eq!(compared["meaning"], "nothing regressed", "{compared}");
    assert_eq!(client.leave(), 0);
}

#[test]
fn bad_arguments_are_answered_and_the_server_continues() {
    let dir = folder(&[("mcptest.yml", "name: x\n"), ("a*.jsonl", "{}")]);
    let mut client = Client::start(dir.path(), &[]);
    let long = "x".repeat(5000);
    for (tool, arguments, words) in [
        ("validate", json!({"suit": "x"}), "did you mean `suite`?"),
        ("validate", json!({"suite": 7}), "is not of type"),
        ("validate", json!({"suite": long}), "longer than 1024"),
        (
            "validate",
            json!({"suite": "mcptst.yml"}),
            "did you mean `mcptest.yml`?",
        ),
        (
            "validate",
            json!({"purpose": "fun"}),
            "\"run\" or \"score\"",
        ),
        ("run", json!({"suite": "--help"}), "there is no `--help`"),
        ("run", json!({"max_seconds": 0}), "less than the minimum"),
        ("explain", json!({"topic": "--version"}), "does not match"),
        (
            "explain",
            json!({"topic": "matchrs"}),
            "did you mean `matchers`?",
        ),
        ("doctor", json!({}), "give one of"),
        (
            "doctor",
            json!({"catalog": "mcptest.yml", "url": "http://x"}),
            "give one of",
        ),
        (
            "doctor",
            json!({"catalog": "mcptest.yml", "rules": ["NO-1"]}),
            "NO-1",
        ),
        (
            "score",
            json!({"suite": "mcptest.yml", "traces": []}),
            "less than 1",
        ),
        (
            "score",
            json!({"suite": "mcptest.yml", "traces": ["a*.jsonl"]}),
            "pattern",
        ),
        ("report", json!({}), "no run in the history"),
        ("report", json!({"list": true, "run": "x"}), "leave out"),
    ] {
        let message = client.bad(tool, arguments.clone());
        assert!(message.contains(words), "{tool} {arguments}: {message}");
        assert!(message.len() < 5000, "{tool}: {message}");
    }
    let refused = client.request("tools/call", json!({"name": "validat"}));
    assert_eq!(refused["error"]["code"], -32602);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("did you mean `validate`?"), "{words}");
    let refused = client.request("tools/call", json!({"name": "validate", "arguments": [1]}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    for method in ["prompts/list", "resources/list", "nonsense"] {
        assert_eq!(client.request(method, json!({}))["error"]["code"], -32601);
    }
    writeln!(client.stdin.as_mut().unwrap(), "{{not json").unwrap();
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert_eq!(client.leave(), 0);
}
