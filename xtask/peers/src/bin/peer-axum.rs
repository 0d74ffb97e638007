//! A bare axum handler on loopback: parses the body of a JSON-RPC `tools/call` and echoes its
//! message. It checks nothing.

use axum::extract::Json;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};

async fn answer(Json(request): Json<Value>) -> Json<Value> {
    Json(json!({
        "jsonrpc": "2.0",
        "id": request["id"],
        "result": {"content": [{"type": "text", "text": request["params"]["arguments"]["message"]}]},
    }))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // As the mock does. A connection that is gone already fails at its first read.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().route("/mcp", post(answer))).await
}
