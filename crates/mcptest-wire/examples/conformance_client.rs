//! Our client under the official conformance suite: the environment contains the scenario's name
//! and settings, the last argument is the server's URL. `cargo xtask e2e conformance` runs it.
//!
//! Most scenarios are the same: connect, list, call every tool. Only the arguments differ. Those
//! for authorization begin with `auth/`; there, this program is the browser, too.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::Request;
use mcptest_auth::{
    AuthConfig, Grant, Interaction, InteractionFuture, OAuth, OAuthOptions, SecretVariable,
};
use mcptest_http::credentials::Credentials;
use mcptest_http::{Address, Pool};
use mcptest_wire::{
    Answers, CallOptions, Client, ConnectOptions, Elicitation, HttpServer, Lifecycle, WireError,
};
use serde_json::{Value, json};

/// Time for each request; the suite limits the total time.
const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::print_stderr,
    reason = "the suite keeps what its client prints"
)]
async fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let context: Value =
        serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let url = std::env::args().next_back().unwrap_or_default();
    let options = ConnectOptions {
        lifecycle: if variable("MCP_CONFORMANCE_PROTOCOL_VERSION") == "2026-07-28" {
            Lifecycle::Discover
        } else {
            Lifecycle::Initialize
        },
        call_timeout: TIMEOUT,
        handler: Arc::new(Answers {
            roots: Some(vec!["file:///work".to_owned()]),
            elicitation: Some(Elicitation::Accept),
            sampling: Some("An answer.".to_owned()),
        }),
        ..ConnectOptions::default()
    };
    match drive(
        &variable("MCP_CONFORMANCE_SCENARIO"),
        &url,
        &options,
        &context,
    )
    .await
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn drive(
    scenario: &str,
    url: &str,
    options: &ConnectOptions,
    context: &Value,
) -> Result<(), WireError> {
    let credentials = scenario.starts_with("auth/").then(|| {
        let source = OAuth::new(authorization(scenario, url, context), oauth_options());
        Arc::new(source) as Arc<dyn Credentials>
    });
    let server = HttpServer {
        url: url.to_owned(),
        credentials,
        ..HttpServer::default()
    };
    let client = Client::connect_http(scenario, &server, options).await?;
    let tools = client.list_tools().await?;
    let planned: Vec<(&str, Value)> = match context.get("toolCalls").and_then(Value::as_array) {
        Some(calls) => calls
            .iter()
            .filter_map(|call| Some((call.get("name")?.as_str()?, call.get("arguments")?.clone())))
            .collect(),
        None => tools
            .iter()
            .filter_map(|tool| Some((tool.get("name")?.as_str()?, arguments(tool, &tools))))
            .collect(),
    };
    let mut refused = None;
    for (tool, arguments) in planned {
        if let Err(error) = client
            .call_tool(tool, &arguments, &CallOptions::default())
            .await
        {
            refused.get_or_insert(error);
        }
    }
    let capabilities = &client.server().capabilities;
    if capabilities.get("resources").is_some() {
        for resource in client.list_resources().await? {
            let params = json!({"uri": resource["uri"]});
            client
                .request("resources/read", Some(params), TIMEOUT)
                .await?;
        }
    }
    if capabilities.get("prompts").is_some() {
        for prompt in client.list_prompts().await? {
            let params = json!({"name": prompt["name"]});
            client.request("prompts/get", Some(params), TIMEOUT).await?;
        }
    }
    client.shutdown().await;
    refused.map_or(Ok(()), Err)
}

/// The settings of a scenario for authorization.
fn authorization(scenario: &str, url: &str, context: &Value) -> AuthConfig {
    let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    let grant = match scenario {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => Grant::ClientCredentials,
        _ => Grant::AuthorizationCode,
    };
    let document = (scenario == "auth/basic-cimd")
        .then(|| "https://conformance-test.local/client-metadata.json".to_owned());
    AuthConfig {
        client_id: document.or_else(|| text("client_id")),
        client_secret: text("client_secret").map(|secret| SecretVariable {
            name: "MCP_CONFORMANCE_CONTEXT".to_owned(),
            value: Some(secret),
        }),
        private_key_file: text("private_key_pem").and_then(|pem| {
            let file = std::env::temp_dir().join(format!("key-{}.pem", std::process::id()));
            std::fs::write(&file, pem).is_ok().then_some(file)
        }),
        issuer: text("issuer"),
        ..AuthConfig::new(url, grant)
    }
}

fn oauth_options() -> OAuthOptions {
    OAuthOptions {
        interaction: Some(Arc::new(Headless)),
        ..OAuthOptions::default()
    }
}

/// A browser that follows the redirects of the suite's authorization server.
#[derive(Debug)]
struct Headless;

impl Interaction for Headless {
    fn show<'a>(&'a self, url: &'a str) -> InteractionFuture<'a, ()> {
        Box::pin(async move {
            let mut next = Some(url.to_owned());
            while let Some(url) = next {
                next = get(&url).await;
            }
        })
    }
}

/// Requests a page. Returns the address that it redirects to.
async fn get(url: &str) -> Option<String> {
    let address = Address::parse(url).ok()?;
    let request = Request::get(address.path.as_str())
        .header("host", &address.authority)
        .body(Full::default())
        .ok()?;
    let (response, _sender) = Pool::new(&address, 0).send(request).await.ok()?;
    let target = response.headers().get("location")?;
    target.to_str().ok().map(str::to_owned)
}

/// Arguments for the tools of the scenarios.
fn arguments(tool: &Value, all: &[Value]) -> Value {
    match tool["name"].as_str() {
        Some("add_numbers") => json!({"a": 5, "b": 3}),
        // It expects another tool's schema, to check that it was preserved.
        _ if tool.pointer("/inputSchema/properties/schema").is_some() => {
            let other = all.iter().find(|other| other["name"] != tool["name"]);
            json!({"schema": other.map(|other| &other["inputSchema"])})
        }
        Some("valid_tool") => json!({"region": "eu"}),
        _ => json!({}),
    }
}
