//! A server on the official SDK, the reference for our tests: five tools on pages of two, among
//! them one that fails, one that is refused, and one that requires input. With the argument `http`,
//! it uses streamable HTTP.

use std::io::Write as _;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, InputRequiredResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt};

const TOOLS: [&str; 5] = ["echo", "fail", "refuse", "ask", "sleep"];
const PAGE: usize = 2;

struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rmcp-oracle", "1.2.3"))
            .with_instructions("be kind")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let start = request
            .and_then(|r| r.cursor)
            .and_then(|cursor| cursor.to_string().parse().ok())
            .unwrap_or(0);
        let schema = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        let page = TOOLS[start..]
            .iter()
            .take(PAGE)
            .map(|name| Tool::new(*name, "a tool", schema.clone()))
            .collect();
        let mut result = ListToolsResult::with_all_items(page);
        if start + PAGE < TOOLS.len() {
            result.next_cursor = Some((start + PAGE).to_string());
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.as_ref() {
            "echo" => {
                let arguments = request.arguments.map_or("none".to_owned(), |arguments| {
                    serde_json::Value::Object(arguments).to_string()
                });
                Ok(CallToolResult::success(vec![ContentBlock::text(arguments)]).into())
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it failed")]).into()),
            "ask" => {
                Ok(InputRequiredResult::new(Some(Default::default()), Some("state".into())).into())
            }
            "sleep" => {
                context.ct.cancelled().await;
                Ok(CallToolResult::success(vec![]).into())
            }
            other => Err(ErrorData::invalid_params(
                format!("unknown tool {other}"),
                Some(serde_json::json!({"tool": other})),
            )),
        }
    }
}

/// Streamable HTTP on a free port, which it prints on stdout.
async fn serve_http() -> Result<(), Box<dyn std::error::Error>> {
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(
        || Ok(Server),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            // A client may disconnect.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("http") {
        return serve_http().await;
    }
    let service = Server.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}
