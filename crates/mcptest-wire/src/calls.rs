//! Calls of tools, and the other requests that may require input from the client: `resources/read`
//! and `prompts/get`. A tool may also have header annotations.

use std::fmt;
use std::time::Duration;

use mcptest_protocol::{AnnotationError, malformed_tool_result, meta};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::connection::Action;
use crate::error::WireError;
use crate::handler::Answering;
use crate::jsonrpc::{CallOutcome, Params, Response, RpcError};
use crate::options::CallOptions;
use crate::time::after;
use mcptest_http::text::quote;

/// The number of times that the server may require input before a call fails.
const MAX_ROUNDS: usize = 10;

/// The number of questions in one round.
const MAX_QUESTIONS: usize = 100;

/// The requests that a server may make of a client.
const CLIENT_METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// The error code of 2026-07-28 for headers that differ from the body.
const HEADER_MISMATCH: i64 = -32020;

/// A request that may require input.
pub(crate) struct InputCall<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    /// The purpose of the request, for errors.
    pub(crate) action: Action<'a>,
    /// The reason why a result is malformed, if it is.
    pub(crate) malformed: fn(&Value) -> Option<String>,
    /// The result type, other than `complete`, that the caller understands.
    pub(crate) also: Option<&'static str>,
}

/// The purpose of a tool call.
struct CallingTool<'a>(&'a str);

impl fmt::Display for CallingTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "calling tool `{}`", quote(self.0, 120))
    }
}

/// The reason why questions of the server have no answers.
pub(crate) enum Unanswered {
    /// The client refuses one on purpose.
    Refused(RpcError),
    /// The question is none, or the client has no answer.
    Failed(WireError),
}

impl Client {
    /// Calls a tool. `args` is an object, or null to send no `arguments`.
    ///
    /// A JSON-RPC error is an outcome like a result: the server answered. An `Err` means that there
    /// is not a usable answer.
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
    /// If the server requires input first and [`crate::ClientHandler`] offers it, the call is
    /// repeated with that input.
    pub async fn call_tool_raw(
        &self,
        name: &str,
        args: &Value,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        let action = CallingTool(name);
        self.check_annotation(name, &action)?;
        let call = InputCall {
            method: "tools/call",
            params: Params::Tool { name, args },
            action: &action,
            malformed: malformed_tool_result,
            also: None,
        };
        self.request_with_input(call, Some(name), options).await
    }

    /// Sends a request, and sends it again with the client's input as long as the server requires
    /// some. `tool` is the tool that it calls.
    pub(crate) async fn request_with_input(
        &self,
        call: InputCall<'_>,
        tool: Option<&str>,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        // The parameters that answer the previous round.
        let mut input = Map::new();
        let timeout = options.timeout.unwrap_or(self.options().call_timeout);
        let mut deadline = after(timeout);
        let mut waited = Duration::ZERO;
        let mut rounds = 0;
        let mut listed = false;
        let action = call.action;
        loop {
            let remaining = deadline
                .saturating_duration_since(Instant::now())
                .min(timeout);
            let mut params = call.params.clone();
            let meta = self.requested_meta(options);
            if (!input.is_empty() || !meta.is_empty())
                && let Some(Value::Object(mut sent)) = params.clone().into_value()
            {
                sent.extend(input.clone());
                if !meta.is_empty() {
                    sent.insert("_meta".to_owned(), meta.into());
                }
                params = Params::Value(Value::Object(sent));
            }
            let cancel = options.cancel.as_ref();
            let mut response = self
                .send(call.method, params, remaining, cancel, action)
                .await?;
            deadline += response.credential_wait;
            waited += response.credential_wait;
            response.credential_wait = waited;
            let result = match &response.outcome {
                CallOutcome::Result(result) => result,
                // The tool may have header annotations; its listing shows them.
                CallOutcome::Error(error) if error.code == HEADER_MISMATCH && !listed => {
                    listed = true;
                    if let Some(tool) = tool
                        && Box::pin(self.learn_headers_of(tool)).await
                    {
                        continue;
                    }
                    return Ok(response);
                }
                CallOutcome::Error(_) => return Ok(response),
            };
            let kind = result.get("resultType").and_then(Value::as_str);
            if !self.requires_input(result) {
                if call.also.is_some() && kind == call.also {
                    return Ok(response);
                }
                self.check_form(call.malformed, result, action)?;
                self.check_result_type(result, action)?;
                return Ok(response);
            }
            rounds += 1;
            if rounds > MAX_ROUNDS {
                let detail = format!(
                    "the server answered with `input_required` more than {MAX_ROUNDS} times"
                );
                return Err(self.protocol_error(action, detail));
            }
            input.clear();
            // Without questions the server only wants the same call again, with its state.
            if let Some(questions) = result.get("inputRequests") {
                // In a box, because it is rare: the futures of all calls would be larger.
                match Box::pin(self.answer_questions(questions, action)).await {
                    Ok(answers) => input.insert("inputResponses".to_owned(), answers),
                    Err(Unanswered::Failed(error)) => return Err(error),
                    Err(Unanswered::Refused(error)) => {
                        let outcome = CallOutcome::Error(error);
                        return Ok(Response {
                            outcome,
                            ..response
                        });
                    }
                };
            }
            if let Some(state) = result.get("requestState") {
                input.insert("requestState".to_owned(), state.clone());
            }
        }
    }

    /// The `_meta` that the caller asks for.
    fn requested_meta(&self, options: &CallOptions) -> Map<String, Value> {
        let mut meta = Map::new();
        if options.progress {
            let token = self.next_progress_token();
            meta.insert("progressToken".to_owned(), token.into());
        }
        if let Some(level) = &options.log_level
            && self.server().revision.is_stateless()
        {
            meta.insert(meta::LOG_LEVEL.to_owned(), json!(level));
        }
        meta
    }

    /// The answers to all questions of the server, by the names of the questions.
    pub(crate) async fn answer_questions(
        &self,
        questions: &Value,
        action: Action<'_>,
    ) -> Result<Value, Unanswered> {
        let fail = |reason: &str| {
            let reason = quote(reason, 300);
            let detail = format!(
                "the server requires input from the client (resultType \"input_required\"): \
                 {reason}"
            );
            Unanswered::Failed(self.protocol_error(action, detail))
        };
        let Some(questions) = questions.as_object() else {
            return Err(fail("`inputRequests` is not an object"));
        };
        if questions.len() > MAX_QUESTIONS {
            return Err(fail(&format!(
                "it asks more than {MAX_QUESTIONS} questions together"
            )));
        }
        let mut answers = Map::new();
        for (name, question) in questions {
            let method = question.get("method").and_then(Value::as_str);
            let method = method.unwrap_or_default();
            if !CLIENT_METHODS.contains(&method) {
                return Err(fail(&format!("the client does not offer {method}")));
            }
            let handler = &self.options().handler;
            let answer = match handler.asked(method, question.get("params")) {
                Answering::Now(answer) => answer,
                Answering::Later(answer) => answer.await,
                Answering::Refuse(error) => return Err(Unanswered::Refused(error)),
                Answering::End(reason) => return Err(fail(&reason)),
            };
            let answer = answer.map_err(|RpcError { message, .. }| fail(&message))?;
            answers.insert(name.clone(), answer);
        }
        Ok(Value::Object(answers))
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

    /// Checks that a tool is not listed with an invalid annotation.
    pub(crate) fn check_annotation(&self, tool: &str, action: Action<'_>) -> Result<(), WireError> {
        let Some(error) = self.annotation_error(tool) else {
            return Ok(());
        };
        let error = quote(&error.to_string(), 300);
        Err(self.protocol_error(
            action,
            format!("a client must not call it over HTTP: {error}"),
        ))
    }

    fn annotation_error(&self, tool: &str) -> Option<AnnotationError> {
        self.endpoint()
            .filter(|_| self.server().revision.is_stateless())?
            .annotation_error(tool)
    }
}
