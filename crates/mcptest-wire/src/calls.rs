//! Calling tools: the rounds of a call that asks back, and what headers must repeat of its
//! arguments.

use mcptest_protocol::AnnotationError;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::client::Client;
use crate::connection::after;
use crate::error::WireError;
use crate::jsonrpc::{CallOutcome, Response};
use crate::options::CallOptions;
use mcptest_http::text::quote;

/// How often a call may ask back before it is given up.
const MOST_ROUNDS: usize = 10;

/// The code of 2026-07-28 for headers that do not say what the body says.
const HEADER_MISMATCH: i64 = -32020;

impl Client {
    /// Calls a tool. `args` is an object, or null to send no `arguments`.
    ///
    /// A JSON-RPC error is an outcome like a result: the server answered. An
    /// `Err` means that there is no usable answer.
    pub async fn call_tool(
        &self,
        name: &str,
        args: &Value,
        options: &CallOptions,
    ) -> Result<CallOutcome, WireError> {
        self.call_tool_raw(name, args, options)
            .await
            .map(|response| response.outcome)
    }

    /// Like [`Client::call_tool`], with the line the answer came in.
    ///
    /// A result that wants input first is answered from [`crate::Answers`], if that offers it, and
    /// the call is made again.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        args: &Value,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        // What a round adds to the call.
        let mut told = Map::new();
        let action = format!("calling tool `{}`", quote(name, 120));
        if let Some(error) = self.annotation_error(name) {
            let error = quote(&error.to_string(), 300);
            return Err(self.protocol_error(
                &action,
                format!("a client must not call it over HTTP: {error}"),
            ));
        }
        let timeout = options.timeout.unwrap_or(self.options().call_timeout);
        let deadline = after(timeout);
        let mut rounds = 0;
        let mut knows_headers = false;
        loop {
            let remaining = deadline
                .saturating_duration_since(Instant::now())
                .min(timeout);
            let mut params = Map::with_capacity(2 + told.len());
            params.insert("name".to_owned(), name.into());
            if !args.is_null() {
                params.insert("arguments".to_owned(), args.clone());
            }
            params.extend(told.clone());
            let sent = Some(Value::Object(params));
            let response = self
                .send(
                    "tools/call",
                    sent,
                    remaining,
                    options.cancel.as_ref(),
                    &action,
                )
                .await?;
            let result = match &response.outcome {
                CallOutcome::Result(result) => result,
                // The tool may name arguments that headers must repeat; its listing tells.
                CallOutcome::Error(error) if error.code == HEADER_MISMATCH && !knows_headers => {
                    knows_headers = true;
                    if self.learn_headers_of(name).await {
                        continue;
                    }
                    return Ok(response);
                }
                CallOutcome::Error(_) => return Ok(response),
            };
            if !self.wants_input(result) {
                self.check_result_type(result, &action)?;
                return Ok(response);
            }
            rounds += 1;
            if rounds > MOST_ROUNDS {
                let words = format!(
                    "the server answered with `input_required` more than {MOST_ROUNDS} times"
                );
                return Err(self.protocol_error(&action, words));
            }
            // What one round was told belongs to that round alone.
            told.clear();
            // Without questions the server only wants the same call again, with its state.
            if let Some(questions) = result.get("inputRequests") {
                let answers = self.options().answers.to_all(questions).map_err(|why| {
                    let why = quote(&why, 300);
                    self.protocol_error(
                        &action,
                        format!("the server wants input from the client first (resultType \"input_required\"): {why}"),
                    )
                })?;
                told.insert("inputResponses".to_owned(), answers);
            }
            if let Some(state) = result.get("requestState") {
                told.insert("requestState".to_owned(), state.clone());
            }
        }
    }

    /// Whether a stateless result is no result yet.
    fn wants_input(&self, result: &Value) -> bool {
        self.server().revision.is_stateless()
            && result.get("resultType").and_then(Value::as_str) == Some("input_required")
    }

    /// Lists the tools for the sake of their headers. Says whether this one has any.
    async fn learn_headers_of(&self, tool: &str) -> bool {
        let Some(endpoint) = self.endpoint() else {
            return false;
        };
        !endpoint.knows_headers_of(tool)
            && self.list_tools().await.is_ok()
            && endpoint.knows_headers_of(tool)
    }

    /// The invalid annotation of the tool, if it is listed with one.
    fn annotation_error(&self, tool: &str) -> Option<AnnotationError> {
        self.endpoint()
            .filter(|_| self.server().revision.is_stateless())?
            .annotation_error(tool)
    }
}
