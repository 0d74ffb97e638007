//! Requests about resources, prompts, completions and log levels.

use mcptest_protocol::{
    malformed_completion_result, malformed_prompt_result, malformed_resource_result,
};
use serde_json::{Map, Value, json};

use crate::calls::InputCall;
use crate::client::Client;
use crate::error::WireError;
use crate::jsonrpc::{CallOutcome, Params, Response};
use crate::options::CallOptions;
use mcptest_http::text::quote;

/// The thing whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionRef {
    /// A prompt, by its name.
    Prompt(String),
    /// A resource template, by its pattern.
    Resource(String),
}

impl Client {
    /// Reads a resource.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        let call = InputCall {
            method: "resources/read",
            params: Params::Value(json!({ "uri": uri })),
            action: &format!("reading resource `{}`", quote(uri, 200)),
            malformed: malformed_resource_result,
            also: None,
        };
        self.request_with_input(call, None, options).await
    }

    /// Gets a prompt. `args` is an object, or null to send no `arguments`.
    pub async fn get_prompt(
        &self,
        name: &str,
        args: &Value,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        let call = InputCall {
            method: "prompts/get",
            params: Params::Tool { name, args },
            action: &format!("getting prompt `{}`", quote(name, 120)),
            malformed: malformed_prompt_result,
            also: None,
        };
        self.request_with_input(call, None, options).await
    }

    /// Completes an argument, of which `typed` has been written. `others` are the values of the
    /// other arguments.
    pub async fn complete(
        &self,
        of: &CompletionRef,
        argument: &str,
        typed: &str,
        others: Option<&Map<String, Value>>,
        options: &CallOptions,
    ) -> Result<Response, WireError> {
        let reference = match of {
            CompletionRef::Prompt(name) => json!({"type": "ref/prompt", "name": name}),
            CompletionRef::Resource(pattern) => json!({"type": "ref/resource", "uri": pattern}),
        };
        let mut params = json!({
            "ref": reference, "argument": {"name": argument, "value": typed},
        });
        if let Some(others) = others.filter(|others| !others.is_empty()) {
            params["context"] = json!({ "arguments": others });
        }
        let action = format!("completing argument `{}`", quote(argument, 120));
        let timeout = options.timeout.unwrap_or(self.options().call_timeout);
        let cancel = options.cancel.as_ref();
        let response = self
            .send(
                "completion/complete",
                Params::Value(params),
                timeout,
                cancel,
                &action,
            )
            .await?;
        if let CallOutcome::Result(result) = &response.outcome {
            self.check_form(malformed_completion_result, result, &action)?;
            self.check_result_type(result, &action)?;
        }
        Ok(response)
    }

    /// Sets the lowest level of log messages for the connection. The stateless revision has no
    /// such request ([`CallOptions::log_level`]).
    pub async fn set_log_level(&self, level: &str) -> Result<CallOutcome, WireError> {
        let params = Params::Value(json!({ "level": level }));
        let timeout = self.options().call_timeout;
        let action = &"setting the log level (logging/setLevel)";
        let sent = self.send("logging/setLevel", params, timeout, None, action);
        Ok(sent.await?.outcome)
    }
}
