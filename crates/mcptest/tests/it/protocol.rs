//! Resources, prompts, and what servers ask of clients, through the whole program: both revisions,
//! over stdio and HTTP.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{HttpMock, Ran, folder, mcptest, ran, run};

const MANIFEST: &str = "
mock_server:
  name: notes
  page_size: 2
  tools:
    - name: order
      description: Order something.
      input_schema: {type: object, required: [sku], properties: {sku: {type: string}}}
      ask:
        - confirmation: {method: elicitation/create, params: {message: 'Order ${args.sku}?', requestedSchema: {type: object, required: [ok], properties: {ok: {type: boolean}, count: {type: integer, default: 3}}}}}
        - text: {method: sampling/createMessage, params: {messages: [{role: user, content: {type: text, text: 'Describe ${args.sku}.'}}], systemPrompt: Be brief., maxTokens: 20}}
          folders: {method: roots/list}
      responses:
        - {when_answered: {confirmation: {action: decline}}, content: [Not ordered.], is_error: true}
        - {content: ['${answers.confirmation.content.count} of ${args.sku}: ${answers.text.content.text} in ${answers.folders.roots[0].uri}']}
    - name: work
      description: Work for a while.
      response:
        before:
          - {log: starting, level: debug, logger: worker}
          - {progress: 1, total: 2, message: half}
          - {log: {step: 2}}
          - {progress: 2, total: 2}
        content: [worked]
    - name: edit
      description: Edit a note.
      response: {before: [{updated: 'note://1'}], content: [edited]}
    - name: unlock
      description: Unlock more.
      response: {before: [{reveal: secret}, {reveal: 'note://3'}, {reveal: hidden}], content: [unlocked]}
    - {name: secret, description: A secret., hidden: true, response: hush}
    - {name: dig, description: Dig., task: {support: required, polls: 2}, response: dug}
    - {name: refuse, description: Fail., task: optional, response: {rpc_error: {code: -32603, message: broken}}}
    - {name: survey, description: Ask in a task., task: optional, ask: [{vote: {method: elicitation/create, params: {message: Yes?, requestedSchema: {type: object, properties: {}}}}}], response: 'You ${answers.vote.action}.'}
    - {name: hang, description: Hang., task: optional, fault: hang}
    - {name: stubborn, description: Answer anyway., fault: 'reply-after-cancel:100', response: anyway}
    - name: slow
      description: Report, then hang.
      response: {before: [{progress: 1, total: 2}, {wait_ms: 60000}], content: [late]}
  resources:
    - {uri: 'note://1', name: first, mime_type: text/plain, text: one, updates: [two], subscribe: true}
    - {uri: 'note://2', name: second, blob: AAEC}
    - {uri: 'note://3', name: third, text: three, hidden: true}
  resource_templates:
    - {uri_template: 'book://{author}/{title}', text: '${args.title} by ${args.author}', complete: {author: [austen, atwood, eliot]}}
  prompts:
    - {name: greet, description: Greet., arguments: [{name: who, required: true, complete: [Ada, Alan, Grace]}], messages: [{role: user, content: 'Hello, ${args.who}!'}]}
    - {name: part, messages: [{role: assistant, content: Bye.}]}
    - {name: hidden, hidden: true, messages: [{role: user, content: Psst.}]}
";

/// The ways to reach the same server.
const WAYS: [&str; 4] = ["older", "newer", "older_http", "newer_http"];

/// A suite whose tests are made once for each way to reach the server.
struct Lab {
    dir: tempfile::TempDir,
    _mock: HttpMock,
}

impl Lab {
    /// `suite` has `WAY` in place of the server's name.
    fn new(suite: &str) -> Self {
        Self::with(suite, "")
    }

    fn with(suite: &str, head: &str) -> Self {
        let dir = folder(&[("m.yml", MANIFEST)]);
        let mock = HttpMock::start(dir.path(), "m.yml");
        let mut text = format!(
            "{head}
servers:
  older: {{command: [mcptest, mock, --tools-from, m.yml], lifecycle: initialize}}
  newer: {{command: [mcptest, mock, --tools-from, m.yml], lifecycle: discover}}
  older_http: {{url: '{url}', lifecycle: initialize}}
  newer_http: {{url: '{url}', lifecycle: discover}}
",
            url = mock.url
        );
        let mut sections: std::collections::BTreeMap<String, String> = Default::default();
        let mut section = String::new();
        for line in suite.lines() {
            if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
                section = name.to_owned();
            } else {
                sections.entry(section.clone()).or_default().push_str(line);
                sections.entry(section.clone()).or_default().push('\n');
            }
        }
        for (name, tests) in sections {
            text.push_str(&format!("{name}:\n"));
            for way in WAYS {
                text.push_str(&tests.replace("WAY", way));
            }
        }
        std::fs::write(dir.path().join("s.yml"), text).unwrap();
        Self { dir, _mock: mock }
    }

    fn run(&self) -> Value {
        self.ran().json()
    }

    fn ran(&self) -> Ran {
        run(self.dir.path(), &["run", "s.yml", "--reporter", "json"])
    }
}

/// Asserts that all tests of a report pass.
fn all_pass(report: &Value) {
    for test in report["tests"].as_array().unwrap() {
        assert_eq!(
            test["verdict"], "pass",
            "{}: {}",
            test["name"], test["runs"]
        );
    }
}

fn trace_of<'r>(report: &'r Value, name: &str) -> &'r Value {
    let tests = report["tests"].as_array().unwrap();
    let test = tests.iter().find(|test| test["name"] == name).unwrap();
    &test["runs"][0]["trace"]
}

#[test]
fn issue_14_resources_and_prompts_are_read_listed_and_completed() {
    let lab = Lab::new(
        "resources:
  - {name: WAY read, server: WAY, uri: 'note://1', expect: [{result.text: one}, {result.uri: 'note://1'}, {'result.contents[0].mimeType': text/plain}]}
  - {name: WAY blob, server: WAY, uri: 'note://2', expect: [{'result.contents[0].blob': AAEC}, {result.text: ''}]}
  - {name: WAY missing, server: WAY, uri: 'note://9', expect: [{result: null}, {error.message: {contains: 'note://9'}}]}
  - {name: WAY expanded, server: WAY, template: 'book://{author}/{title}', args: {author: Jane Austen, title: Emma}, expect: [{result.uri: 'book://Jane%20Austen/Emma'}, {result.text: Emma by Jane%20Austen}]}
  - {name: WAY listed, server: WAY, list: true, expect: [{'result.resources[*].uri': {exact: ['note://1', 'note://2']}}, {result.pages: 1}]}
  - {name: WAY templates, server: WAY, list: templates, expect: [{'result.resourceTemplates[0].uriTemplate': 'book://{author}/{title}'}]}
  - {name: WAY variable, server: WAY, template: 'book://{author}/{title}', complete: {author: a}, expect: [{result.completion.values: {exact: [austen, atwood]}}, {result.text: \"austen\\natwood\"}]}
prompts:
  - {name: WAY greeting, server: WAY, prompt: greet, args: {who: 7}, expect: [{result.text: 'Hello, 7!'}, {'result.messages[0].role': user}]}
  - {name: WAY without, server: WAY, prompt: greet, expect: [{error.code: -32602}]}
  - {name: WAY argument, server: WAY, prompt: greet, complete: {who: A}, expect: [{result.completion.values: {exact: [Ada, Alan]}}]}
  - {name: WAY prompts, server: WAY, list: true, expect: [{'result.prompts[*].name': {exact: [greet, part]}}]}
tools:
  - {name: WAY tools, server: WAY, list: true, expect: [{'result.tools[*].name': {contains: [order, slow]}}, {result.pages: 5}]}
",
    );
    let report = lab.run();
    all_pass(&report);
    let kinds: Vec<&str> = ["older read", "older greeting", "older tools"]
        .map(|name| {
            let tests = report["tests"].as_array().unwrap();
            let test = tests.iter().find(|test| test["name"] == name).unwrap();
            test["kind"].as_str().unwrap()
        })
        .to_vec();
    assert_eq!(kinds, ["resource", "prompt", "tool"]);
    // What was sent and answered is in the report.
    let trace = trace_of(&report, "newer expanded");
    assert_eq!(trace["requests"][0]["method"], "resources/read");
    assert_eq!(
        trace["requests"][0]["params"]["uri"],
        "book://Jane%20Austen/Emma"
    );
    assert_eq!(
        trace["requests"][0]["result"]["text"],
        "Emma by Jane%20Austen"
    );
    assert_eq!(trace["tool_calls"], json!([]));
}

const CLIENT: &str = "
client:
  roots: [file:///work]
  elicitation: [{when: {message: {contains: pen}}, action: accept}, decline]
  sampling: [{when: {text: {contains: pen}}, times: 1, answer: A fine pen.}, {answer: Again.}]
";

#[test]
fn issue_14_servers_get_the_scripted_answers_and_are_recorded() {
    let lab = Lab::with(
        "tools:
  - {name: WAY accepted, server: WAY, tool: order, args: {sku: pen}, expect: [{result.text: '3 of pen: A fine pen. in file:///work'}, {client.sampling: {length: 1}}, {'client.sampling[0].messages[0].content.text': Describe pen.}, {'client.sampling[0].text': Describe pen.}, {'client.sampling[0].systemPrompt': Be brief.}, {'client.elicitation[0].answer.content': {exact: {ok: false, count: 3}}}, {'client.roots[0].answer.roots[0].uri': 'file:///work'}, {client.other: {length: 0}}]}
  - {name: WAY declined, server: WAY, tool: order, args: {sku: cup}, expect: [{result.is_error: true}, {result.text: Not ordered.}, {'client.elicitation[0].answer.action': decline}]}
  - {name: WAY own, server: WAY, tool: order, args: {sku: ink}, client: {elicitation: {content: {ok: true, count: 9}}, sampling: {model: builtin/scripted, script: [[{say: Blue.}]]}}, expect: [{result.text: {contains: '9 of ink: Blue.'}}, {'client.sampling[0].answer.model': builtin/scripted}]}
",
        CLIENT,
    );
    let report = lab.run();
    all_pass(&report);
    let messages = &trace_of(&report, "older accepted")["server_messages"];
    assert_eq!(
        messages[0],
        json!({
            "server": "older", "method": "elicitation/create",
            "params": {
                "message": "Order pen?",
                "requestedSchema": {"type": "object", "required": ["ok"], "properties": {
                    "ok": {"type": "boolean"}, "count": {"type": "integer", "default": 3},
                }},
            },
            "answer": {"action": "accept", "content": {"ok": false, "count": 3}},
        })
    );
}

#[test]
fn issue_14_nothing_is_offered_that_is_not_configured() {
    let mut suite = "servers:\n".to_owned();
    for name in ["plain", "listening", "further", "off"] {
        suite.push_str(&format!(
            "  {name}: {{command: [mcptest, mock, --tools-from, m.yml, --record, {name}.jsonl], \
             lifecycle: initialize}}\n"
        ));
    }
    suite.push_str(
        "tools:
  - {name: plain, server: plain, tool: work}
  - {name: asked, server: plain, tool: order, args: {sku: pen}, expect: [{result.text: {contains: does not have the capability elicitation}}]}
  - {name: listening, server: listening, tool: order, args: {sku: pen}, expect: [{client.elicitation: {length: 0}}, {result.is_error: true}]}
  - {name: further, server: further, tool: work, client: {roots: [.], capabilities: {sampling: {tools: {}}, experimental: {x: 1}}}}
  - {name: off, server: off, tool: work, client: {roots: false, elicitation: accept}}
",
    );
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &suite)]);
    all_pass(&run(dir.path(), &["run", "s.yml", "--reporter", "json"]).json());
    let sent = |server: &str| -> Vec<Value> {
        let path = dir.path().join(format!("{server}.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        let message = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["message"].clone()
        };
        text.lines().map(message).collect()
    };
    for (server, declared) in [
        ("plain", "{}"),
        ("listening", "{}"),
        (
            "further",
            r#"{"roots":{},"sampling":{"tools":{}},"experimental":{"x":1}}"#,
        ),
        ("off", r#"{"elicitation":{}}"#),
    ] {
        let sent = sent(server);
        let opening = sent
            .iter()
            .find(|one| one["method"] == "initialize")
            .unwrap();
        let capabilities = &opening["params"]["capabilities"];
        assert_eq!(capabilities.to_string(), declared, "{server}");
    }
    // An ordinary call asks for nothing further.
    for message in sent("plain") {
        assert_eq!(message["params"].get("_meta"), None, "{message}");
        assert_ne!(message["method"], "logging/setLevel");
    }
}

#[test]
fn issue_14_changes_are_announced_and_seen() {
    let lab = Lab::new(
        "resources:
  - {name: WAY updated, server: WAY, uri: 'note://1', subscribe: true, trigger: [{tool: edit}], expect: [{updates: {exact: ['note://1']}}, {result.text: two}, {error: null}]}
  - {name: WAY by default, server: WAY, uri: 'note://1', subscribe: true, trigger: [{tool: edit}]}
  - {name: WAY new, server: WAY, list: true, trigger: [{tool: unlock}], expect: [{list_changed: {contains: resources}}, {'result.resources[*].uri': {contains: 'note://3'}}]}
prompts:
  - {name: WAY new prompt, server: WAY, list: true, trigger: [{tool: unlock}], expect: [{list_changed: {contains: prompts}}, {'result.prompts[*].name': {contains: hidden}}]}
tools:
  - {name: WAY new tool, server: WAY, list: true, trigger: [{tool: unlock}], expect: [{list_changed: {contains: tools}}, {'result.tools[*].name': {contains: secret}}]}
",
    );
    // The stateless server over HTTP has one state for all: its tests would see each other's.
    let path = lab.dir.path().join("s.yml");
    let text = std::fs::read_to_string(&path).unwrap();
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("name: newer_http "))
        .collect();
    std::fs::write(&path, without.join("\n")).unwrap();
    all_pass(&lab.run());
    let text: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("- {name: ") || line.contains("name: newer_http updated"))
        .filter(|line| !matches!(*line, "prompts:" | "tools:"))
        .collect();
    std::fs::write(&path, text.join("\n")).unwrap();
    all_pass(&lab.run());
}

#[test]
fn issue_14_a_change_that_is_not_announced_fails() {
    let suite = "
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml], lifecycle: initialize}
resources:
  - {name: no update, server: s, uri: 'note://1', subscribe: true, trigger: [{tool: work}], wait: 50ms}
  - {name: no list, server: s, list: true, trigger: [{tool: edit}], wait: 50ms}
  - {name: no trigger, server: s, list: true, trigger: [{tool: missing}]}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let report = run(dir.path(), &["run", "s.yml", "--reporter", "json"]).json();
    let verdict = |at: usize| report["tests"][at]["verdict"].as_str().unwrap();
    assert_eq!(
        [verdict(0), verdict(1), verdict(2)],
        ["fail", "fail", "error"]
    );
    let failed = |at: usize| {
        let assertions = report["tests"][at]["runs"][0]["assertions"]
            .as_array()
            .unwrap();
        let failed = assertions.iter().filter(|one| one["passed"] == false);
        failed
            .map(|one| one["target"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(failed(0), ["\"updates\""]);
    assert_eq!(failed(1), ["\"list_changed\""]);
    let error = &report["tests"][2]["runs"][0]["error"];
    assert_eq!(error["kind"], "fixture");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("trigger call 1"),
        "{error}"
    );
}

#[test]
fn issue_14_logs_and_progress_are_expected_and_recorded() {
    let lab = Lab::new(
        "tools:
  - {name: WAY both, server: WAY, tool: work, expect: [{logs: {length: 2}}, {'logs[0].level': debug}, {'logs[0].logger': worker}, {'logs[1].data.step': 2}, {progress: {length: 2}}, {'progress[0].message': half}, {'progress[*].total': {every: {exact: 2}}}, {notifications: {length: 4}}]}
  - {name: WAY less, server: WAY, tool: work, client: {log_level: info}, expect: [{'logs[*].level': {exact: [info]}}]}
",
    );
    all_pass(&lab.run());
}

#[test]
fn issue_14_tools_are_called_as_tasks_and_cancelled() {
    let lab = Lab::new(
        "tools:
  - {name: WAY task, server: WAY, tool: dig, task: true, expect: [{task.status: completed}, {task.statuses: {exact: [working, completed]}}, {result.text: dug}]}
  - {name: WAY default, server: WAY, tool: dig, task: {ttl_ms: 1000}}
  - {name: WAY asks, server: WAY, tool: survey, task: true, client: {elicitation: decline}, expect: [{task.statuses: {contains: [input_required, completed]}}, {result.text: You decline.}]}
  - {name: WAY failed, server: WAY, tool: refuse, task: true, expect: [{task.status: failed}, {error.code: -32603}]}
  - {name: WAY cancelled task, server: WAY, tool: hang, task: true, cancel_after_ms: 20}
  - {name: WAY cancelled, server: WAY, tool: hang, cancel_after_ms: 20, wait: 50ms}
  - {name: WAY on progress, server: WAY, tool: slow, cancel_on: progress, wait: 50ms, expect: [{cancellation.sent: true}, {progress: {length: 1}}, {result: null}]}
",
    );
    let report = lab.run();
    all_pass(&report);
    let task = &trace_of(&report, "older task")["task"];
    assert_eq!(task["statuses"], json!(["working", "completed"]));
    let cancellation = &trace_of(&report, "older cancelled")["cancellation"];
    assert_eq!(
        *cancellation,
        json!({"sent": true, "responsive": true, "answered": false})
    );
    let cancellation = &trace_of(&report, "newer cancelled task")["cancellation"];
    assert_eq!(
        *cancellation,
        json!({"sent": true, "responsive": true, "error": null})
    );
    // Over HTTP nobody can see an answer.
    let cancellation = &trace_of(&report, "newer_http cancelled")["cancellation"];
    assert_eq!(*cancellation, json!({"sent": true, "responsive": true}));
}

#[test]
fn issue_14_a_server_that_answers_a_cancelled_call_fails_and_a_late_cancel_is_an_error() {
    let suite = "
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml], lifecycle: initialize}
tools:
  - {name: answers, server: s, tool: stubborn, cancel_after_ms: 5, wait: 5s}
  - {name: too late, server: s, tool: edit, cancel_after_ms: 60000}
  - {name: never, server: s, tool: edit, cancel_on: progress}
  - {name: task ended, server: s, tool: dig, task: true, cancel_after_ms: 60000}
  - {name: no task, server: s, tool: dig}
  - {name: no support, server: s, tool: edit, task: true}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let report = run(dir.path(), &["run", "s.yml", "--reporter", "json"]).json();
    let runs: Vec<&Value> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| &test["runs"][0])
        .collect();
    assert_eq!(runs[0]["verdict"], "fail", "{}", runs[0]);
    let failed = runs[0]["assertions"].as_array().unwrap().iter();
    let failed: Vec<&Value> = failed.filter(|one| one["passed"] == false).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["target"], "cancellation.answered");
    for run in &runs[1..4] {
        assert_eq!(run["error"]["kind"], "suite", "{run}");
        let message = run["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("answered before it was cancelled"),
            "{message}"
        );
    }
    for (run, hint) in [
        (runs[4], "can only be called as a task: write `task: true`"),
        (runs[5], "does not say that it can be called as a task"),
    ] {
        assert_eq!(run["verdict"], "fail");
        assert!(run["assertions"].to_string().contains(hint), "{run}");
    }
}

/// An agent that orders, with the client of the suite.
fn agent_suite(agent: &str) -> String {
    format!(
        "{CLIENT}
servers:
  s: {{command: [mcptest, mock, --tools-from, m.yml]}}
agents:
  - name: orders
    {agent}
    servers: [s]
    prompt: Order a pen.
    script: [[{{calls: [{{tool: order, args: {{sku: pen}}}}]}}, {{say: Done.}}]]
    expect:
      - tool_results[0].content[0].text: {{contains: A fine pen.}}
      - client.sampling[0].text: Describe pen.
      - client.elicitation[0].answer.action: accept
      - logs: {{length: 0}}
"
    )
}

#[test]
fn issue_14_the_built_in_agent_loop_has_a_client_and_replays_what_was_asked() {
    let suite = agent_suite("model: builtin/scripted");
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &suite)]);
    let args = ["run", "s.yml", "--reporter", "json", "--no-timing"];
    let live = run(dir.path(), &args);
    all_pass(&live.json());
    let recorded = run(dir.path(), &[&args[..], &["--record"]].concat());
    all_pass(&recorded.json());
    // Without servers, the messages are those of the recording.
    std::fs::remove_file(dir.path().join("m.yml")).unwrap();
    let replayed = run(dir.path(), &args);
    assert_eq!(replayed.stdout, recorded.stdout, "{}", replayed.stderr);
    assert_eq!(
        trace_of(&replayed.json(), "orders")["server_messages"],
        trace_of(&live.json(), "orders")["server_messages"]
    );
    // A trace is scored by the same messages, and one without them is no evidence.
    let mut trace = trace_of(&live.json(), "orders").clone();
    let traces = dir.path().join("t.jsonl");
    let score = |trace: &Value| {
        std::fs::write(&traces, trace.to_string()).unwrap();
        run(dir.path(), &["score", "s.yml", "--trace", "t.jsonl"])
    };
    let scored = score(&trace);
    assert_eq!(scored.code, 0, "{}{}", scored.stdout, scored.stderr);
    trace.as_object_mut().unwrap().remove("server_messages");
    let scored = score(&trace);
    assert_eq!(scored.code, 1, "{}", scored.stdout);
    assert!(
        scored.stdout.contains("client.sampling[0].text"),
        "{}",
        scored.stdout
    );
    // Other answers of the client make it another test.
    let changed = suite.replace("A fine pen.", "A poor pen.");
    std::fs::write(dir.path().join("s.yml"), changed).unwrap();
    let stale = run(dir.path(), &args);
    assert_eq!(stale.code, 2, "{}", stale.stdout);
}

#[test]
fn issue_14_what_servers_ask_of_an_agent_under_test_is_recorded() {
    let inner = format!(
        "{{\"client\": {{\"elicitation\": \"accept\", \"sampling\": \"A pen.\", \"roots\": \
         [\"file:///agent\"]}}, \"servers\": {{ {{{{servers}}}} }}, \"agents\": [{{\"name\": \
         \"inner\", \"model\": \"builtin/scripted\", \"prompt\": {{{{prompt|json}}}}, \"servers\": \
         [\"s\"], \"script\": {}, \"expect\": [{{\"conversation\": {{\"type\": \"object\"}}}}]}}]}}",
        json!([[{"calls": [{"tool": "order", "args": {"sku": "pen"}}]}, {"say": "Done."}]])
    );
    for lifecycle in ["initialize", "discover"] {
        let agent = json!({
            "name": "inner agent",
            "command": [
                env!("CARGO_BIN_EXE_mcptest"), "run", "{{cwd}}/inner.yml", "--reporter", "json",
                "--no-history", "--quiet",
            ],
            "env": {"CI": "true"},
            "files": {"{{cwd}}/inner.yml": inner},
            "servers": {
                "each": format!(
                    "{{{{name|json}}}}: {{\"command\": {{{{argv|json}}}}, \"lifecycle\": \"{lifecycle}\"}}"
                ),
                "join": ", ",
            },
            "timeout": "60s",
            "output": {"format": "json", "final": "tests[0].runs[0].trace.final_response"},
        });
        let suite = json!({
            "servers": {"s": {"command": ["mcptest", "mock", "--tools-from", "m.yml"]}},
            "agents": [{
                "name": "orders", "agent": agent, "servers": ["s"], "prompt": "Order a pen.",
                "expect": [
                    {"tool_names": {"exact": ["order"]}},
                    {"tool_results[0].content[0].text": {"contains": "A pen. in file:///agent"}},
                    {"client.sampling[0].text": "Describe pen."},
                    {"client.roots[0].answer.roots[0].uri": "file:///agent"},
                    {"client.elicitation[0].answer.action": "accept"},
                ],
            }],
        });
        let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &suite.to_string())]);
        let report = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
        all_pass(&report.json());
    }
}

/// A server in a shell script. Ids count our requests: 1 is `initialize`.
fn scripted(call: &str) -> String {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
    let script = format!(
        "while read -r line; do case \"$line\" in
  *'\"initialize\"'*) {early}; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}';;
  *tools/call*) {call};;
  *'\"ping\"'*) id=${{line#*'\"id\":'}}; echo '{{\"jsonrpc\":\"2.0\",\"id\":'${{id%%,*}}',\"result\":{{}}}}';;
esac; done",
        early = "echo '{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"roots/list\"}'",
    );
    serde_json::to_string(&script).unwrap()
}

const DONE: &str = r#"echo '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'"#;

fn hostile(call: &str, test: &str) -> Value {
    let suite = format!(
        "servers:
  bad: {{command: [sh, -c, {script}], lifecycle: initialize, timeout: 20s}}
tools:
  - {{name: hostile, server: bad, tool: t, {test}}}
",
        script = scripted(call)
    );
    let dir = folder(&[("s.yml", &suite)]);
    let report = run(dir.path(), &["run", "s.yml", "--reporter", "json"]).json();
    report["tests"][0]["runs"][0].clone()
}

#[test]
fn issue_14_hostile_servers_end_in_bounded_time_with_a_clear_error() {
    let flood = |message: &str| {
        format!(
            "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); echo '{message}'; done; {DONE}",
            message = message.replace("NUMBER", "'$i'")
        )
    };
    let sampling =
        flood(r#"{"jsonrpc":"2.0","id":"qNUMBER","method":"sampling/createMessage","params":{}}"#);
    let run = hostile(&sampling, "client: {sampling: yes}");
    assert_eq!(run["error"]["kind"], "protocol", "{run}");
    let message = run["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("more than 1000 requests of the client"),
        "{message}"
    );
    assert_eq!(
        run["trace"]["server_messages"].as_array().unwrap().len(),
        1000
    );

    let logs = flood(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"NUMBER"}}"#,
    );
    let run = hostile(&logs, "expect: [{'logs[*].data': {none: {exact: secret}}}]");
    assert_eq!(run["error"]["kind"], "protocol", "{}", run["error"]);
    let message = run["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("10000 log messages, of which 9000"),
        "{message}"
    );
    // Where they do not matter, they are counted.
    let run = hostile(&logs, "expect: [{client.sampling: {length: 0}}]");
    assert_eq!(run["verdict"], "pass", "{}", run["error"]);
    assert_eq!(
        run["trace"]["server_messages_omitted"],
        json!({"logs": 9000})
    );

    let huge = format!(
        "printf '%s' '{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"data\":\"'; \
         head -c 3000000 /dev/zero | tr '\\0' x; echo '\"}}}}'; {DONE}"
    );
    let run = hostile(&huge, "expect: [{logs: {length: 1}}]");
    assert_eq!(run["error"]["kind"], "protocol", "{}", run["error"]);
    assert!(run.to_string().len() < 100_000);

    // Before the handshake, with an unknown method, and after the result.
    let odd = format!(
        "echo '{{\"jsonrpc\":\"2.0\",\"id\":\"o\",\"method\":\"no/such\",\"params\":[1]}}'; {DONE}; \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"roots/list\"}}'"
    );
    let run = hostile(
        &odd,
        "client: {roots: ['file:///r']}, expect: [{client.roots: {length: 2}}, {'client.other[0].method': no/such}, {'client.other[0].error.code': -32601}, {result.is_error: false}]",
    );
    assert_eq!(run["verdict"], "pass", "{run}");
}

#[test]
fn issue_14_a_refusal_ends_a_call_where_it_cannot_be_sent() {
    let suite = "
client: {elicitation: {error: {code: -7, message: the user left}}}
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml], lifecycle: discover}
tools:
  - {name: call, server: s, tool: survey, expect: [{error: {contains: {code: -7, message: the user left}}}, {'client.elicitation[0].error.code': -7}]}
  - {name: task, server: s, tool: survey, task: true, expect: [{error.code: -7}, {task.status: input_required}]}
agents:
  - {name: agent, model: builtin/scripted, servers: [s], prompt: Ask., script: [[{calls: [{tool: survey}]}, {say: Sorry.}]], expect: [{'tool_results[0].is_error': true}, {'client.elicitation[0].error.code': -7}]}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    all_pass(&ran.json());
}

#[test]
fn issue_14_a_client_whose_model_fails_is_an_error_and_an_unanswered_request_is_shown() {
    let suite = "
providers: {local: {api: openai_chat, base_url: 'http://127.0.0.1:9/v1', keyless: true}}
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml]}
tools:
  - {name: no model, server: s, tool: order, args: {sku: pen}, timeout: 60s, client: {elicitation: accept, roots: [.], sampling: {model: local/m}}}
  - {name: no rule, server: s, tool: order, args: {sku: pen}, client: {elicitation: [{when: {message: {contains: cup}}}], roots: [.], sampling: x}}
  - {name: error, server: s, tool: order, args: {sku: pen}, client: {elicitation: {error: the user left}, roots: [.], sampling: x}, expect: [{'client.elicitation[0].error.message': the user left}]}
";
    let suite = suite.replace(", keyless: true", "");
    let older = suite.replace("m.yml]}", "m.yml], lifecycle: initialize}");
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", &older)]);
    let ran = run(dir.path(), &["run", "s.yml", "--reporter", "json"]);
    let report = ran.json();
    let runs: Vec<&Value> = report["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| &test["runs"][0])
        .collect();
    assert_eq!(runs[0]["verdict"], "error", "{}", runs[0]);
    let message = runs[0]["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("model `local/m` of `client.sampling`"),
        "{message}"
    );
    assert_eq!(runs[1]["error"]["kind"], "suite", "{}", runs[1]);
    let message = runs[1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("Order pen?"), "{message}");
    assert!(
        message.contains("no answer in `client.elicitation` applies"),
        "{message}"
    );
    assert_eq!(runs[2]["verdict"], "pass", "{}", runs[2]);
    let pretty = run(dir.path(), &["run", "s.yml", "--filter", "no rule"]);
    assert!(
        pretty
            .stdout
            .contains("s asked for elicitation/create, and got an error:"),
        "{}",
        pretty.stdout
    );
}

#[test]
fn issue_14_secrets_in_what_was_asked_and_answered_are_redacted() {
    let suite = "
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml], env: {API_TOKEN: '${PLANTED_TOKEN}'}}
tools:
  - {name: asked, server: s, tool: order, args: {sku: '${PLANTED_TOKEN}'}, client: {elicitation: accept, roots: ['file:///${PLANTED_TOKEN}'], sampling: 'It is ${PLANTED_TOKEN}.'}, expect: [{'client.sampling[0].text': {contains: Describe}}]}
resources:
  - {name: read, server: s, template: 'book://{author}/{title}', args: {author: a, title: '${PLANTED_TOKEN}'}}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let secret = "tok-1234567890abcdefghij";
    let outputs = ["json", "pretty", "markdown", "junit", "html", "ndjson"];
    for reporter in outputs {
        let output = mcptest(dir.path())
            .env("PLANTED_TOKEN", secret)
            .args(["run", "s.yml", "--reporter", reporter])
            .output()
            .unwrap();
        let ran = ran(&output);
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains(secret), "{reporter}");
        assert!(!ran.stderr.contains(secret), "{reporter}");
    }
    assert_no_secret(dir.path(), secret);
}

/// Asserts that no file below a folder has the secret, except the suite itself.
fn assert_no_secret(dir: &Path, secret: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_secret(&path, secret);
        } else {
            let text = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains(secret), "{}", path.display());
        }
    }
}

#[test]
fn issue_14_parts_of_the_clients_side_have_known_names() {
    let suite = "
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml]}
tools:
  - {name: a, server: s, tool: work, expect: [{client.smapling: {length: 1}}]}
  - {name: b, server: s, tool: hang, cancel_after_ms: 5, expect: [{target: cancellation.eror, matcher: {exact: null}}]}
  - {name: c, server: s, tool: work, expect: [{client: {exact: {}}}, {'client.roots[0].answer': {type: object}}]}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let ran = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    for words in [
        "unknown target `client.smapling`",
        "did you mean `client.sampling`?",
        "unknown target `cancellation.eror`",
        "`cancellation` has sent, responsive, answered, error",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("error: ").count(), 2, "{}", ran.stderr);
}

#[test]
fn issue_14_names_that_a_mock_does_not_have_are_warned_of() {
    let suite = "
servers:
  s: {command: [mcptest, mock, --tools-from, m.yml]}
resources:
  - {name: a, server: s, uri: 'nota://1'}
  - {name: b, server: s, uri: 'book://x/y'}
  - {name: c, server: s, template: 'book://{autor}', args: {autor: x}}
  - {name: d, server: s, uri: 'nota://2', expect: [{error.code: -32602}]}
prompts:
  - {name: e, server: s, prompt: great}
  - {name: f, server: s, prompt: greet, args: {who: x}}
";
    let dir = folder(&[("m.yml", MANIFEST), ("s.yml", suite)]);
    let ran = run(dir.path(), &["validate", "s.yml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for words in [
        "server `s` has no resource `nota://1`",
        "did you mean `note://1`?",
        "server `s` has no resource template `book://{autor}`",
        "server `s` has no prompt `great`",
        "did you mean `greet`?",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(ran.stderr.matches("warning").count(), 3, "{}", ran.stderr);
    // A name that is only found when it is requested has the same hint.
    let hidden = suite.replace("m.yml]}", "./m.yml, --record, r.jsonl]}");
    let other = hidden.replace(
        "command: [mcptest, mock",
        "command: [sh, -c, 'exec \"$0\" mock \"$@\"', PROGRAM",
    );
    let other = other.replace("PROGRAM", env!("CARGO_BIN_EXE_mcptest"));
    std::fs::write(dir.path().join("s.yml"), other).unwrap();
    let ran = run(dir.path(), &["run", "s.yml", "--filter", "e"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("server `s` lists no prompt `great`; did you mean `greet`?"),
        "{}",
        ran.stdout
    );
    let ran = run(dir.path(), &["run", "s.yml", "--filter", "a"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let hint = "server `s` lists no resource `nota://1`; did you mean `note://1`?";
    assert!(ran.stdout.contains(hint), "{}", ran.stdout);
}
