//! The protocol, on the official SDK: lists and calls.

use std::sync::Arc;
use std::time::Duration;

use mcptest_json::text::{lines, one_line, shorten};
use mcptest_yaml::suggest;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::Options;
use crate::call::{Call, ToolError};
use crate::root::Root;
use crate::{progress, tool};

/// The number of calls at the same time. Others wait: each is a process.
const MAX_CALLS: u32 = 4;

/// The time that calls have to end what they started, when the server ends.
const END_GRACE: Duration = Duration::from_secs(15);

const INSTRUCTIONS: &str = "mcptest tests MCP servers and the agents that use them, by suites in \
    YAML. To write or repair a suite: read `explain` with the topic `suites`, edit the file, \
    `validate` until it is valid, `run` it, and read the failures with `detail: failures`. A verdict \
    of `no_evidence` is not a pass: nothing was there to judge. Never weaken an expectation to get a \
    pass without asking. Paths are relative to the root folder of this server.";

/// The server of one or more sessions.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    options: Options,
    root: Root,
    tools: Vec<Tool>,
    calls: Semaphore,
}

impl Server {
    /// Prepares the server.
    ///
    /// # Errors
    /// The root folder does not exist.
    pub(crate) fn new(options: Options) -> std::io::Result<Self> {
        Ok(Self(Arc::new(Shared {
            root: Root::new(&options.root)?,
            tools: tool::list(options.allow_run),
            calls: Semaphore::new(MAX_CALLS as usize),
            options,
        })))
    }

    /// Waits until all calls have ended what they started, and ends the rest.
    pub(crate) async fn end(&self) {
        let all = self.0.calls.acquire_many(MAX_CALLS);
        let _ = tokio::time::timeout(END_GRACE, all).await;
        mcptest_wire::kill_all();
    }

    /// The result of a call; `None` if there is no such tool.
    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Option<CallToolResult> {
        let token = context.meta.get_progress_token();
        let (progress, sending) = progress::channel(context.peer, token);
        let work = async {
            let shared = &self.0;
            // Held until everything that the call started is ended.
            let permit = tokio::select! {
                permit = shared.calls.acquire() => permit.ok(),
                () = context.ct.cancelled() => None,
            };
            if permit.is_none() {
                return Some(Err(ToolError("the call was cancelled".to_owned())));
            }
            let call = match tempfile::tempdir() {
                Ok(scratch) => Call {
                    options: &shared.options,
                    root: &shared.root,
                    cancelled: &context.ct,
                    progress: &progress,
                    scratch,
                },
                Err(error) => return Some(Err(ToolError::from(error))),
            };
            let arguments = request.arguments.unwrap_or_default();
            let answer = tool::call(&request.name, arguments, &call).await;
            drop(call);
            drop(progress);
            answer
        };
        let (answer, ()) = tokio::join!(work, sending);
        Some(match answer? {
            Ok(mut value) => {
                self.0.options.redactor.value(&mut value);
                printable(&mut value);
                CallToolResult::structured(value)
            }
            Err(ToolError(message)) => {
                let message = lines(&self.0.options.redactor.text(&message));
                CallToolResult::error(vec![ContentBlock::text(message)])
            }
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("mcptest", env!("CARGO_PKG_VERSION")).with_title("mcptest"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        match self.answer(request, context).await {
            Some(result) => Ok(result.into()),
            None => Err(unknown_tool(&self.0.options.redactor.text(&name))),
        }
    }

    // There are only tools here; the SDK would answer with empty lists.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(unknown_method("prompts/list"))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(unknown_method("resources/list"))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(unknown_method("resources/templates/list"))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(unknown_method("completion/complete"))
    }

    /// The SDK forwards requests that it cannot read, also those of methods that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            let message = "invalid params of tools/call: `name` is a string, `arguments` an object";
            return Err(ErrorData::invalid_params(message, None));
        }
        let name = self.0.options.redactor.text(&request.method);
        Err(unknown_method(&name))
    }
}

fn unknown_method(name: &str) -> ErrorData {
    let message = format!("method not found: {}", shorten(&one_line(name), 100));
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

fn unknown_tool(name: &str) -> ErrorData {
    let known = tool::names();
    let hint = match suggest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    };
    let name = shorten(&one_line(name), 100);
    ErrorData::invalid_params(format!("there is no tool `{name}`; {hint}"), None)
}

/// Escapes control characters and hidden ones in all strings: they may be those of a file or a
/// server, and a client may print them.
fn printable(value: &mut Value) {
    match value {
        Value::String(text) => *text = lines(text),
        Value::Array(items) => items.iter_mut().for_each(printable),
        Value::Object(members) => members.values_mut().for_each(printable),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
