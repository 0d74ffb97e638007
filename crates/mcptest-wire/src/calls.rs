//! Tool calls, including those that require input from the client or header annotations.

use mcptest_protocol::AnnotationError;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::client::Client;
use crate::error::WireError;
use crate::jsonrpc::{CallOutcome, Params, Response};
use crate::options::CallOptions;
use crate::time::after;
use mcptest_http::text::quote;

/// The number of times that the server may require input before a call fails.
const MAX_ROUNDS: usize = 10;

/// The error code of 2026-07-28 for headers that differ from the body.
const HEADER_MISMATCH: i64 = -32020;

impl Client {
    /// Calls a tool. `args` is an object, or null to send no `arguments`.
    ///
    /// A JSON-RPC error is an outcome like a result: the server answered. An `Err` means that there
    /// is no usable answer.
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

    /// Like [`Client::call_tool`], with the line of the answer.
    ///
    /// If the server requires input first and [`crate::Answers`] offers it, the call is repeated
    /// with that input.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        args: &Value,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        // The parameters that answer the previous round.
        let mut input = Map::new();
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
        let mut listed = false;
        loop {
            let remaining = deadline
                .saturating_duration_since(Instant::now())
                .min(timeout);
            let mut params = Params::Tool { name, args };
            if !input.is_empty()
                && let Some(Value::Object(mut sent)) = params.clone().into_value()
            {
                sent.extend(input.clone());
                params = Params::Value(Value::Object(sent));
            }
            let response = self
                .send(
                    "tools/call",
                    params,
                    remaining,
                    options.cancel.as_ref(),
                    &action,
                )
                .await?;
            let result = match &response.outcome {
                CallOutcome::Result(result) => result,
                // The tool may have header annotations; its listing shows them.
                CallOutcome::Error(error) if error.code == HEADER_MISMATCH && !listed => {
                    listed = true;
                    if self.learn_headers_of(name).await {
                        continue;
                    }
                    return Ok(response);
                }
                CallOutcome::Error(_) => return Ok(response),
            };
            if !self.requires_input(result) {
                self.check_tool_result(result, &action)?;
                self.check_result_type(result, &action)?;
                return Ok(response);
            }
            rounds += 1;
            if rounds > MAX_ROUNDS {
                let detail = format!(
                    "the server answered with `input_required` more than {MAX_ROUNDS} times"
                );
                return Err(self.protocol_error(&action, detail));
            }
            input.clear();
            // Without questions the server only wants the same call again, with its state.
            if let Some(questions) = result.get("inputRequests") {
                let answers = self
                    .options()
                    .answers
                    .answer_all(questions)
                    .map_err(|reason| {
                        let reason = quote(&reason, 300);
                        let detail = format!(
                            "the server requires input from the client \
                         (resultType \"input_required\"): {reason}"
                        );
                        self.protocol_error(&action, detail)
                    })?;
                input.insert("inputResponses".to_owned(), answers);
            }
            if let Some(state) = result.get("requestState") {
                input.insert("requestState".to_owned(), state.clone());
            }
        }
    }

    /// Returns true if a stateless result requires input first.
    fn requires_input(&self, result: &Value) -> bool {
        self.server().revision.is_stateless()
            && result.get("resultType").and_then(Value::as_str) == Some("input_required")
    }

    /// Lists the tools to learn their header annotations. Returns true if this tool has any.
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
