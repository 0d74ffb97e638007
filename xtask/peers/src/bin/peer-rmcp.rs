//! An echo server on the official Rust SDK, over stdio, as its own examples write one.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServiceExt as _, schemars, tool, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    /// What to say back.
    message: String,
}

#[derive(Clone)]
struct Echo;

#[tool_router(server_handler)]
impl Echo {
    #[tool(description = "Says the message back.")]
    fn echo(&self, Parameters(Said { message }): Parameters<Said>) -> String {
        message
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let running = Echo.serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}
