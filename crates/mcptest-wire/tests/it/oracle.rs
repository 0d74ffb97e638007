//! Our client against the official SDK's server.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use mcptest_wire::{
    CallOptions, CallOutcome, Client, HttpServer, Lifecycle, Revision, RpcError, WireErrorKind,
};
use serde_json::{Value, json};

use crate::support::{call, command, example, options, result, run};

async fn connect(lifecycle: Lifecycle) -> Client {
    let command = command(&[&example("rmcp_server")]);
    Client::connect_stdio("oracle", &command, &options(lifecycle))
        .await
        .unwrap()
}

/// The same server over streamable HTTP; ends when dropped.
struct HttpOracle {
    process: std::process::Child,
    server: HttpServer,
}

impl HttpOracle {
    fn start() -> Self {
        let mut process = std::process::Command::new(example("rmcp_server"))
            .arg("http")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let server = HttpServer {
            url: format!("http://{}/mcp", address.trim()),
            ..HttpServer::default()
        };
        Self { process, server }
    }

    async fn connect(&self, lifecycle: Lifecycle) -> Client {
        Client::connect_http("oracle", &self.server, &options(lifecycle))
            .await
            .unwrap()
    }
}

impl Drop for HttpOracle {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn over_http_in_all_lifecycles() {
    let oracle = HttpOracle::start();
    for (lifecycle, revision) in [
        (Lifecycle::Initialize, Revision::V2025_11_25),
        (Lifecycle::Discover, Revision::V2026_07_28),
        (Lifecycle::Auto, Revision::V2026_07_28),
    ] {
        run(async { exercise(oracle.connect(lifecycle).await, revision).await });
    }
}

#[test]
fn many_parallel_calls_over_http() {
    let oracle = HttpOracle::start();
    run(async { many_calls(oracle.connect(Lifecycle::Initialize).await).await });
}

async fn list_call_and_fail(lifecycle: Lifecycle, revision: Revision) {
    exercise(connect(lifecycle).await, revision).await;
}

async fn exercise(client: Client, revision: Revision) {
    let info = client.server();
    assert_eq!(info.revision, revision);
    assert!(info.capabilities["tools"].is_object());
    assert_eq!(info.server_info.as_ref().unwrap()["name"], "rmcp-oracle");
    assert_eq!(info.instructions.as_deref(), Some("be kind"));
    assert!(!info.restarted_after_probe);

    // Five tools on three pages.
    let tools = client.list_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|t| t["name"].as_str()).collect();
    assert_eq!(names, ["echo", "fail", "refuse", "ask", "sleep"]);
    assert!(client.list_prompts().await.unwrap().is_empty());
    assert!(client.list_resources().await.unwrap().is_empty());

    let arguments = json!({"z": 1, "a": {"deep": [true, null, "ü\n"]}});
    let none = CallOptions::default();
    let echoed = client.call_tool("echo", &arguments, &none).await.unwrap();
    let text = result(echoed)["content"][0]["text"].clone();
    let text: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(text, arguments);

    let echoed = client.call_tool_raw("echo", &Value::Null, &none).await;
    let echoed = echoed.unwrap();
    assert!(echoed.raw.contains(r#""text":"none""#), "{}", echoed.raw);

    assert_eq!(
        result(call(&client, "fail").await.unwrap())["isError"],
        true
    );
    assert_eq!(
        call(&client, "refuse").await.unwrap(),
        CallOutcome::Error(RpcError {
            code: -32602,
            message: "unknown tool refuse".into(),
            data: Some(json!({"tool": "refuse"})),
        })
    );

    // The server ends this call because we notify it of the cancellation.
    let short = CallOptions {
        timeout: Some(Duration::from_millis(200)),
        ..CallOptions::default()
    };
    let error = client.call_tool("sleep", &json!({}), &short).await;
    assert_eq!(error.unwrap_err().kind, WireErrorKind::Timeout);

    // The session continues without violations.
    result(call(&client, "echo").await.unwrap());
    assert_eq!(client.violations(), []);
    assert!(client.is_alive());
    client.shutdown().await;
    assert!(!client.is_alive());
    client.shutdown().await;
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(error.kind, WireErrorKind::Transport);
}

#[test]
fn initialize_lifecycle() {
    run(list_call_and_fail(
        Lifecycle::Initialize,
        Revision::V2025_11_25,
    ));
}

#[test]
fn discover_lifecycle() {
    run(list_call_and_fail(
        Lifecycle::Discover,
        Revision::V2026_07_28,
    ));
}

#[test]
fn auto_finds_the_stateless_revision() {
    run(list_call_and_fail(Lifecycle::Auto, Revision::V2026_07_28));
}

#[test]
fn a_result_that_requires_input_is_an_error() {
    run(async {
        let client = connect(Lifecycle::Discover).await;
        let error = call(&client, "ask").await.unwrap_err();
        assert_eq!(error.kind, WireErrorKind::Protocol);
        assert!(error.detail.contains("input_required"), "{error}");
        client.shutdown().await;
    });
}

#[test]
fn many_parallel_calls_on_clones() {
    run(async { many_calls(connect(Lifecycle::Auto).await).await });
}

async fn many_calls(client: Client) {
    {
        let calls: Vec<_> = (0..300)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(async move {
                    let arguments = json!({ "n": n });
                    let options = CallOptions::default();
                    let outcome = client.call_tool("echo", &arguments, &options).await;
                    let text = result(outcome.unwrap())["content"][0]["text"].clone();
                    assert_eq!(text, arguments.to_string());
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        client.shutdown().await;
    }
}

#[test]
fn works_on_a_multi_thread_runtime_and_across_tasks() {
    fn assert_send_sync<T: Send + Sync + Clone + 'static>() {}
    assert_send_sync::<Client>();
}
