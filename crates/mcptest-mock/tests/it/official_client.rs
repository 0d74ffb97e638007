//! The official Rust SDK as a client of a mock process.

use std::path::PathBuf;
use std::process::Stdio;

use rmcp::model::{
    CallToolRequestParams, ClientConfig, ErrorCode, GetPromptRequestParams, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::RunningService;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::data;

/// A client that requests one revision.
#[derive(Clone)]
struct Client(ProtocolVersion);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.protocol_version = self.0.clone();
        info
    }
}

/// Cargo builds examples before it runs tests, beside them.
fn mock_program() -> PathBuf {
    let test = std::env::current_exe().expect("this program's path");
    let profile = test.ancestors().nth(2).expect("the profile's folder");
    let program = profile
        .join("examples/mock")
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "build it: cargo build --example mock");
    program
}

async fn connect(
    file: &str,
    revision: ProtocolVersion,
) -> (RunningService<RoleClient, Client>, Child) {
    let mut child = Command::new(mock_program())
        .arg(data(file))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the mock starts");
    let pipes = (
        child.stdout.take().expect("its output"),
        child.stdin.take().expect("its input"),
    );
    let mode = if revision.has_initialize() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover {
            preferred_versions: vec![revision.clone()],
        }
    };
    let client = Client(revision)
        .serve_with_lifecycle(pipes, mode)
        .await
        .expect("the handshake succeeds");
    (client, child)
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

fn code<T>(result: Result<T, ServiceError>) -> ErrorCode {
    match result {
        Err(ServiceError::McpError(error)) => error.code,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    }
}

async fn talk(revision: ProtocolVersion) {
    let (client, mut child) = connect("full.yml", revision.clone()).await;

    let server = client.peer_info().expect("the server introduced itself");
    assert_eq!(server.protocol_version, revision);
    assert_eq!(
        server.instructions.as_deref(),
        Some("Search before you buy.")
    );
    let info = server.server_info.clone().expect("a name and a version");
    assert_eq!((info.name.as_str(), info.version.as_str()), ("full", "1.0"));

    let tools = client.list_all_tools().await.expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["order", "greet", "picture", "broken", "echo"]);
    assert_eq!(to_json(&tools[0])["outputSchema"]["type"], "object");

    let call = async |name: &'static str, arguments: Value| {
        let params = CallToolRequestParams::new(name).with_arguments(object(arguments));
        client.call_tool(params).await
    };
    let greeting = to_json(
        call("greet", json!({"name": "Ann"}))
            .await
            .expect("a greeting"),
    );
    assert_eq!(
        greeting["content"][0]["text"],
        "Hello Ann, ${args.name} is literal."
    );
    let order = call("order", json!({"sku": "s", "count": 2})).await;
    let order = to_json(order.expect("an order"));
    let expected = json!({"sku": "s", "count": 2, "gift": null, "label": "2 x s"});
    assert_eq!(order["structuredContent"], expected);
    assert_eq!(order["content"][0]["text"], expected.to_string());
    let picture = to_json(call("picture", json!({})).await.expect("a picture"));
    assert_eq!(picture["content"][1]["mimeType"], "image/png");
    let broken = to_json(call("broken", json!({})).await.expect("a failure"));
    assert_eq!(broken["isError"], true);

    let wrong = call("order", json!({"count": "2"})).await;
    if revision.as_str() >= "2025-11-25" {
        let wrong = to_json(wrong.expect("a result"));
        assert_eq!(wrong["isError"], true);
        let text = wrong["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("- /sku: is required"), "{text}");
        assert!(text.contains("- /count: "), "{text}");
    } else {
        assert_eq!(code(wrong), ErrorCode::INVALID_PARAMS);
    }
    assert_eq!(
        code(call("nope", json!({})).await),
        ErrorCode::INVALID_PARAMS
    );

    let resources = client.list_all_resources().await.expect("resources");
    assert_eq!(resources.len(), 2);
    let templates = client.list_all_resource_templates().await;
    assert!(templates.expect("templates").is_empty());
    let read = async |uri: &str| {
        client
            .read_resource(ReadResourceRequestParams::new(uri))
            .await
    };
    let text = to_json(read("test://static").await.expect("a text"));
    assert_eq!(text["contents"][0]["text"], "Hello ${args.name}");
    let missing = if revision.has_initialize() {
        ErrorCode::RESOURCE_NOT_FOUND
    } else {
        ErrorCode::INVALID_PARAMS
    };
    assert_eq!(code(read("test://nope").await), missing);

    let prompts = client.list_all_prompts().await.expect("prompts");
    assert_eq!(prompts[0].name, "review");
    let mut params = GetPromptRequestParams::new("review");
    assert_eq!(
        code(client.get_prompt(params.clone()).await),
        ErrorCode::INVALID_PARAMS
    );
    params.arguments = Some(object(json!({"topic": "this"})));
    let prompt = to_json(client.get_prompt(params).await.expect("a prompt"));
    assert_eq!(prompt["messages"][0]["content"]["text"], "Review this. ");
    assert_eq!(prompt["messages"][1]["role"], "assistant");

    client.cancel().await.expect("the client closes");
    let status = child.wait().await.expect("the mock ends");
    assert!(status.success(), "{status}");
}

/// Pages, patterns, answers in turn, protocol errors, notifications before the answer.
async fn behave(revision: ProtocolVersion) {
    let (client, mut child) = connect("behaviour.yml", revision).await;
    let tools = client.list_all_tools().await.expect("all pages");
    assert_eq!(tools.len(), 5);
    let templates = client
        .list_all_resource_templates()
        .await
        .expect("templates");
    assert_eq!(
        to_json(&templates[0])["uriTemplate"],
        "test://item/{id}/data"
    );
    let item = ReadResourceRequestParams::new("test://item/7/data");
    let item = to_json(client.read_resource(item).await.expect("an item"));
    assert_eq!(item["contents"][0]["text"], "Item 7");
    let call = async |name: &'static str, arguments: Value| {
        let params = CallToolRequestParams::new(name).with_arguments(object(arguments));
        client.call_tool(params).await
    };
    for expected in ["first", "second 1", "last", "last"] {
        let result = to_json(call("steps", json!({"x": 1})).await.expect("a step"));
        assert_eq!(result["content"][0]["text"], expected);
    }
    let refused = call("refused", json!({"what": "it"})).await;
    assert_eq!(code(refused), ErrorCode(-32001));
    let talk = to_json(
        call("talkative", json!({"x": "keys"}))
            .await
            .expect("an answer"),
    );
    assert_eq!(talk["content"][0]["text"], "done");
    client.cancel().await.expect("the client closes");
    assert!(child.wait().await.expect("the mock ends").success());
}

#[tokio::test]
async fn behaviour_2025_11_25() {
    behave(ProtocolVersion::LATEST_WITH_INITIALIZE).await;
}

#[tokio::test]
async fn behaviour_2026_07_28() {
    behave(ProtocolVersion::V_2026_07_28).await;
}

#[tokio::test]
async fn initialize_2024_11_05() {
    talk(ProtocolVersion::V_2024_11_05).await;
}

#[tokio::test]
async fn initialize_2025_03_26() {
    talk(ProtocolVersion::V_2025_03_26).await;
}

#[tokio::test]
async fn initialize_2025_06_18() {
    talk(ProtocolVersion::V_2025_06_18).await;
}

#[tokio::test]
async fn initialize_2025_11_25() {
    talk(ProtocolVersion::LATEST_WITH_INITIALIZE).await;
}

#[tokio::test]
async fn discover_2026_07_28() {
    talk(ProtocolVersion::V_2026_07_28).await;
}

#[tokio::test]
async fn the_documented_manifest() {
    let (client, _child) = connect("catalog.yml", ProtocolVersion::LATEST_WITH_INITIALIZE).await;
    assert_eq!(client.list_all_tools().await.expect("tools").len(), 2);
    let params =
        CallToolRequestParams::new("get_product").with_arguments(object(json!({"sku": "sku-7"})));
    let result = to_json(client.call_tool(params).await.expect("a product"));
    assert_eq!(result["content"][0]["text"], "Product sku-7: in stock.");
}
