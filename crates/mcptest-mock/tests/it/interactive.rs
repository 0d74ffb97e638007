//! Answers that depend on the client: what it is asked, what it subscribes to, the tasks it polls.

use mcptest_attack::AttackRun;
use mcptest_mock::{Deferred, MockServer, Session, TransportEvent, load};
use serde_json::{Value, json};

/// A client on a connection without a clock.
struct Client {
    server: MockServer,
    session: Session,
    /// The answers that wait for the client.
    waiting: Vec<Deferred>,
    next_id: u64,
    /// The `_meta` of every request.
    meta: Option<Value>,
}

const STATELESS: &str = "2026-07-28";

impl Client {
    /// A client of an older revision with these capabilities.
    fn older(revision: &str, capabilities: Value) -> Self {
        let mut client = Self::new(None);
        let params = json!({"protocolVersion": revision, "capabilities": capabilities});
        client.result("initialize", params);
        client
    }

    /// A client of the stateless revision with these capabilities.
    fn stateless(capabilities: Value) -> Self {
        Self::new(Some(json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })))
    }

    fn new(meta: Option<Value>) -> Self {
        let server = crate::server("interactive.yml");
        let session = server.session();
        Self {
            server,
            session,
            waiting: Vec::new(),
            next_id: 0,
            meta,
        }
    }

    /// Adds an attack.
    fn attacked(mut self, attack: &Value) -> Self {
        let tool = json!({"name": "order"});
        let manifest = json!({"mock_server": {
            "name": "interactive", "attacks": [attack], "tools": [tool],
        }});
        let manifest = load("m.json", manifest.to_string().as_bytes()).expect("a manifest");
        let run = AttackRun::new(manifest.attacks(), "t", 1, &["interactive".to_owned()]);
        self.server = self.server.with_attacks(run);
        self
    }

    /// Sends a message, and returns all messages of the server that follow.
    fn send(&mut self, message: &Value) -> Vec<Value> {
        let mut out = Vec::new();
        let line = message.to_string();
        self.server
            .handle_line(&mut self.session, line.as_bytes(), &mut out);
        for event in self.session.take_events() {
            match event {
                TransportEvent::Deferred(deferred) => self.waiting.push(deferred),
                TransportEvent::Answered(id, answer) => {
                    for deferred in &mut self.waiting {
                        deferred.answered(&id, answer.clone());
                        if deferred.can_resume() {
                            self.server.resume(deferred);
                        }
                        while deferred.waiting.is_none() && !deferred.messages.is_empty() {
                            let message = deferred.messages.remove(0);
                            out.extend_from_slice(&message.frame);
                            out.push(b'\n');
                            deferred.waiting = message.ask;
                        }
                    }
                }
                _ => {}
            }
        }
        let text = String::from_utf8(out).expect("UTF-8");
        let parse = |line: &str| serde_json::from_str(line).expect("JSON");
        text.lines().map(parse).collect()
    }

    fn request(&mut self, method: &str, params: Value) -> Vec<Value> {
        self.next_id += 1;
        let mut params = params;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let message = json!({
            "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params,
        });
        self.send(&message)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let messages = self.request(method, params);
        let last = messages.last().expect("a reply");
        assert!(last.get("error").is_none(), "{method}: {last}");
        last["result"].clone()
    }

    fn error(&mut self, method: &str, params: Value) -> Value {
        let messages = self.request(method, params);
        messages.last().expect("a reply")["error"].clone()
    }

    fn call(&mut self, tool: &str, args: Value) -> Vec<Value> {
        self.request("tools/call", json!({"name": tool, "arguments": args}))
    }

    fn answer(&mut self, id: &Value, result: Value) -> Vec<Value> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn names(&mut self, list: &str) -> Vec<String> {
        let listed = self.result(&format!("{list}/list"), json!({}));
        let items = listed[list].as_array().expect("a list").iter();
        let name = |item: &Value| item["name"].as_str().expect("a name").to_owned();
        items.map(name).collect()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

fn sampled(text: &str) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
}

#[test]
fn an_answer_depends_on_what_the_client_answered() {
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    for (action, expected, is_error) in [
        ("accept", "Ordered pen: A fine pen.", false),
        ("decline", "Not ordered.", true),
    ] {
        // While the call is in progress.
        let mut client = Client::older("2025-11-25", capabilities.clone());
        let asked = client.call("order", json!({"sku": "pen"}));
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert_eq!(asked[0]["params"]["message"], "Order pen?");
        let asked = client.answer(&asked[0]["id"], json!({ "action": action }));
        assert_eq!(asked[0]["method"], "sampling/createMessage");
        let reply = client.answer(&asked[0]["id"], sampled("A fine pen."));
        assert_eq!(text(&reply[0]["result"]), expected);
        assert_eq!(reply[0]["result"]["isError"] == true, is_error);

        // By repeated calls.
        let mut client = Client::stateless(capabilities.clone());
        let args = json!({"name": "order", "arguments": {"sku": "pen"}});
        let first = client.result("tools/call", args.clone());
        assert_eq!(first["resultType"], "input_required");
        let mut again = args.clone();
        again["requestState"] = first["requestState"].clone();
        again["inputResponses"] = json!({"confirmation": {"action": action}});
        let second = client.result("tools/call", again);
        let mut again = args;
        again["requestState"] = second["requestState"].clone();
        again["inputResponses"] = json!({"note": sampled("A fine pen.")});
        let done = client.result("tools/call", again);
        assert_eq!(text(&done), expected);
    }
}

#[test]
fn subscribers_are_notified_of_updates_and_read_the_new_content() {
    let mut client = Client::older("2025-06-18", json!({}));
    let capabilities = client.result(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    );
    let resources = &capabilities["capabilities"]["resources"];
    assert_eq!(resources, &json!({"listChanged": true, "subscribe": true}));
    let read = |client: &mut Client| {
        let contents = client.result("resources/read", json!({"uri": "note://1"}));
        contents["contents"][0]["text"].as_str().map(str::to_owned)
    };
    assert_eq!(read(&mut client).as_deref(), Some("one"));
    assert_eq!(client.call("edit", json!({})).len(), 1);
    assert_eq!(read(&mut client).as_deref(), Some("one again"));
    client.result("resources/subscribe", json!({"uri": "note://1"}));
    let messages = client.call("edit", json!({}));
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(
        messages[0],
        json!({
            "jsonrpc": "2.0", "method": "notifications/resources/updated",
            "params": {"uri": "note://1"},
        })
    );
    assert_eq!(read(&mut client).as_deref(), Some("one at last"));
    client.result("resources/unsubscribe", json!({"uri": "note://1"}));
    assert_eq!(client.call("edit", json!({})).len(), 1);
    assert_eq!(read(&mut client).as_deref(), Some("one at last"));
    // Another session has its own state.
    let mut other = client.server.session();
    std::mem::swap(&mut client.session, &mut other);
    client.result(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
    );
    assert_eq!(read(&mut client).as_deref(), Some("one"));
}

#[test]
fn hidden_entries_are_listed_once_they_are_revealed() {
    let mut client = Client::older("2025-11-25", json!({}));
    assert!(!client.names("tools").contains(&"secret".to_owned()));
    assert_eq!(client.names("prompts"), ["part"]);
    let messages = client.call("unlock", json!({}));
    let methods: Vec<&str> = messages
        .iter()
        .filter_map(|one| one["method"].as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ]
    );
    assert!(client.names("tools").contains(&"secret".to_owned()));
    assert_eq!(client.names("prompts"), ["greet", "part"]);
    assert_eq!(client.names("resources").len(), 3);
    // Nothing changes a second time.
    assert_eq!(client.call("unlock", json!({})).len(), 1);
}

#[test]
fn a_stream_of_the_stateless_revision_receives_what_it_requested() {
    let mut client = Client::stateless(json!({}));
    assert_eq!(client.call("edit", json!({})).len(), 1);
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["note://1", "note://2"],
    }});
    let opened = client.request("subscriptions/listen", wanted);
    assert_eq!(opened.len(), 1, "{opened:?}");
    let stream = client.next_id;
    // Only one of the resources can be subscribed to.
    assert_eq!(
        opened[0]["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["note://1"]})
    );
    let messages = client.call("edit", json!({}));
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(
        messages[0]["params"],
        json!({"uri": "note://1", "_meta": {"io.modelcontextprotocol/subscriptionId": stream}})
    );
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": stream},
    });
    client.send(&cancelled);
    assert_eq!(client.call("edit", json!({})).len(), 1);
}

#[test]
fn a_task_of_2025_advances_by_polls() {
    let mut client = Client::older("2025-11-25", json!({}));
    let refused = client.error("tools/call", json!({"name": "dig"}));
    assert_eq!(refused["code"], -32601);
    let refused = client.error("tools/call", json!({"name": "edit", "task": {}}));
    assert_eq!(refused["code"], -32601);
    let created = client.result("tools/call", json!({"name": "dig", "task": {}}));
    let id = created["task"]["taskId"].clone();
    assert_eq!(created["task"]["status"], "working");
    assert_eq!(created["task"]["ttl"], 60_000);
    let poll = |client: &mut Client| {
        let task = client.result("tasks/get", json!({ "taskId": id }));
        task["status"].as_str().map(str::to_owned)
    };
    let statuses: Vec<_> = (0..4).filter_map(|_| poll(&mut client)).collect();
    assert_eq!(statuses, ["working", "working", "completed", "completed"]);
    let result = client.result("tasks/result", json!({ "taskId": id }));
    assert_eq!(text(&result), "Dug.");
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/related-task"],
        json!({ "taskId": id })
    );
    let refused = client.error("tasks/cancel", json!({ "taskId": id }));
    assert_eq!(refused["code"], -32602);
    let listed = client.result("tasks/list", json!({}));
    assert_eq!(listed["tasks"][0]["taskId"], id);
    // An error of the tool is a failure, in this revision.
    let created = client.result("tools/call", json!({"name": "fail", "task": {}}));
    let id = json!({"taskId": created["task"]["taskId"]});
    client.result("tasks/result", id.clone());
    assert_eq!(client.result("tasks/get", id)["status"], "failed");
    // A task that hangs can be cancelled.
    let created = client.result("tools/call", json!({"name": "hang", "task": {}}));
    let id = json!({"taskId": created["task"]["taskId"]});
    for _ in 0..5 {
        assert_eq!(client.result("tasks/get", id.clone())["status"], "working");
    }
    assert_eq!(
        client.result("tasks/cancel", id.clone())["status"],
        "cancelled"
    );
    assert_eq!(client.error("tasks/result", id)["code"], -32602);
    assert_eq!(
        client.error("tasks/get", json!({"taskId": "x"}))["code"],
        -32602
    );
    // Older revisions have no tasks.
    let mut older = Client::older("2025-06-18", json!({}));
    assert_eq!(older.error("tasks/list", json!({}))["code"], -32601);
}

#[test]
fn a_task_of_2025_asks_while_its_result_is_awaited() {
    let mut client = Client::older("2025-11-25", json!({"elicitation": {}}));
    let created = client.result("tools/call", json!({"name": "ask_task", "task": {}}));
    let id = json!({"taskId": created["task"]["taskId"]});
    assert_eq!(
        client.result("tasks/get", id.clone())["status"],
        "input_required"
    );
    let asked = client.request("tasks/result", id.clone());
    assert_eq!(asked[0]["method"], "elicitation/create");
    let related = &asked[0]["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(*related, id);
    let form = json!({"action": "accept", "content": {"name": "Ada"}});
    let reply = client.answer(&asked[0]["id"], form);
    assert_eq!(text(&reply[0]["result"]), "It was Ada.");
    assert_eq!(client.result("tasks/get", id)["status"], "completed");
}

#[test]
fn a_task_of_2026_is_the_servers_choice_and_answered_by_updates() {
    let extension = json!({"io.modelcontextprotocol/tasks": {}});
    let mut client = Client::stateless(json!({"elicitation": {}, "extensions": extension}));
    let created = client.result("tools/call", json!({"name": "ask_task"}));
    assert_eq!(created["resultType"], "task");
    assert_eq!(created["ttlMs"], Value::Null);
    let id = json!({"taskId": created["taskId"]});
    let task = client.result("tasks/get", id.clone());
    assert_eq!(task["status"], "input_required");
    assert_eq!(task["inputRequests"]["who"]["method"], "elicitation/create");
    let mut update = id.clone();
    let form = json!({"action": "accept", "content": {"name": "Ada"}});
    update["inputResponses"] = json!({"who": form, "unknown": {}});
    assert_eq!(
        client.result("tasks/update", update)["resultType"],
        "complete"
    );
    let task = client.result("tasks/get", id.clone());
    assert_eq!(task["status"], "completed");
    assert_eq!(text(&task["result"]), "It was Ada.");
    // Cancelling a task that has ended is harmless.
    assert_eq!(client.result("tasks/cancel", id)["resultType"], "complete");
    // An error of the tool is a result.
    let created = client.result("tools/call", json!({"name": "fail"}));
    let id = json!({"taskId": created["taskId"]});
    client.result("tasks/get", id.clone());
    let task = client.result("tasks/get", id.clone());
    assert_eq!(
        (&task["status"], &task["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(client.error("tasks/result", id.clone())["code"], -32601);
    // Without the extension there are no tasks.
    client.meta = Client::stateless(json!({})).meta;
    assert_eq!(client.error("tasks/get", id)["code"], -32021);
    let refused = client.error("tools/call", json!({"name": "dig"}));
    assert_eq!(refused["code"], -32021);
    let plain = client.result("tools/call", json!({"name": "fail"}));
    assert_eq!(plain["resultType"], "complete");
}

#[test]
fn an_attack_is_in_the_answer_after_the_client_answered() {
    let attack = json!({"name": "a", "target": {"tool": "order"}, "text": "EVIL"});
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    let mut client = Client::older("2025-11-25", capabilities).attacked(&attack);
    let asked = client.call("order", json!({"sku": "pen"}));
    let asked = client.answer(&asked[0]["id"], json!({"action": "accept"}));
    let reply = client.answer(&asked[0]["id"], sampled("A fine pen."));
    assert_eq!(text(&reply[0]["result"]), "Ordered pen: A fine pen.\nEVIL");
}

#[test]
fn an_attack_does_not_make_a_result_of_a_task() {
    let attack = json!({"name": "a", "target": {"tool": "dig"}, "text": "EVIL"});
    let mut client = Client::older("2025-11-25", json!({})).attacked(&attack);
    let created = client.result("tools/call", json!({"name": "dig", "task": {}}));
    let members: Vec<&String> = created.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["task"]);
}

#[test]
fn a_changed_description_is_announced_on_a_stream() {
    let attack = json!({
        "name": "a", "place": "description", "target": {"tool": "edit"}, "text": "EVIL", "after": 1,
    });
    let mut client = Client::stateless(json!({})).attacked(&attack);
    client.result("tools/list", json!({}));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let opened = client.request("subscriptions/listen", wanted.clone());
    assert_eq!(
        opened[0]["params"],
        json!({
            "_meta": {"io.modelcontextprotocol/subscriptionId": client.next_id},
            "notifications": wanted["notifications"],
        })
    );
    let messages = client.call("edit", json!({}));
    let methods: Vec<&Value> = messages.iter().map(|message| &message["method"]).collect();
    assert_eq!(
        methods,
        [&json!("notifications/tools/list_changed"), &Value::Null]
    );
}
