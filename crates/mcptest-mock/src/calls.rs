//! The requests with arguments of their own: `tools/call` and `prompts/get`.

use serde_json::{Map, Value, json};

use crate::compile::Prompt;
use crate::jsonrpc::{RpcError, clip};
use crate::listed::{Listed, Outcome, members};
use crate::revision::Revision;
use crate::template::Template;
use crate::validate::{ArgumentCheck, ArgumentProblem};

/// A tool that can be called.
#[derive(Debug)]
pub(crate) struct Tool {
    arguments: ArgumentCheck,
    response: Template,
}

impl Tool {
    pub(crate) fn new(input_schema: Option<Value>, response: Template) -> Self {
        Self {
            arguments: ArgumentCheck::new(input_schema),
            response,
        }
    }
}

pub(crate) fn call_tool<'a>(
    tools: &'a Listed<Tool>,
    revision: Revision,
    params: &Map<String, Value>,
) -> Result<Outcome<'a>, RpcError> {
    let name = text_param(params, "name")?;
    let Some(tool) = tools.by_name.get(name) else {
        return Err(RpcError::invalid_params(format!("Unknown tool: {}", clip(name))));
    };
    let nothing = Value::Object(Map::new());
    let arguments = match params.get("arguments") {
        None => &nothing,
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => {
            return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
        }
    };
    let problems = tool.arguments.problems(arguments);
    if !problems.is_empty() {
        return bad_arguments(name, &problems, revision);
    }
    let mut members = Vec::new();
    tool.response.render(arguments, &mut members);
    Ok(Outcome::fresh(members))
}

fn bad_arguments<'a>(tool: &str, problems: &[ArgumentProblem], revision: Revision) -> Result<Outcome<'a>, RpcError> {
    let title = format!("Invalid arguments for tool {}", clip(tool));
    let lines: Vec<_> = problems.iter().map(ArgumentProblem::line).collect();
    if revision.reports_bad_arguments_as_result() {
        let text = format!("{title}:\n- {}", lines.join("\n- "));
        let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
        return Ok(Outcome::fresh(members(&result)));
    }
    let data: Vec<_> = problems.iter().map(ArgumentProblem::to_json).collect();
    Err(RpcError::invalid_params(format!("{title}: {}", lines.join("; "))).with_data(json!({"problems": data})))
}

pub(crate) fn get_prompt<'a>(
    prompts: &'a Listed<Prompt>,
    params: &Map<String, Value>,
) -> Result<Outcome<'a>, RpcError> {
    let name = text_param(params, "name")?;
    let Some(prompt) = prompts.by_name.get(name) else {
        return Err(RpcError::invalid_params(format!("Unknown prompt: {}", clip(name))));
    };
    let nothing = Value::Object(Map::new());
    let arguments = params.get("arguments").unwrap_or(&nothing);
    let Some(given) = arguments.as_object() else {
        return Err(RpcError::invalid_params("Invalid params: arguments is not an object"));
    };
    if let Some((name, _)) = given.iter().find(|(_, value)| !value.is_string()) {
        return Err(RpcError::invalid_params(format!(
            "Invalid params: the prompt argument {} is not a string",
            clip(name)
        )));
    }
    if let Some(name) = prompt.required.iter().find(|name| !given.contains_key(*name)) {
        return Err(RpcError::invalid_params(format!("Missing required argument: {name}")));
    }
    let mut members = Vec::new();
    prompt.response.render(arguments, &mut members);
    Ok(Outcome::fresh(members))
}

pub(crate) fn text_param<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, RpcError> {
    params
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params(format!("Invalid params: {name} is not a string")))
}
