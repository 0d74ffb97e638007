//! The requests with arguments: `tools/call` and `prompts/get`.

use std::time::Duration;

use mcptest_protocol::Revision;
use serde_json::{Map, Value, json};

use crate::ask::{Asked, ask_client};
use crate::callable_tool::{CallableTool, respond};
use crate::caller::Caller;
use crate::compile::Prompt;
use crate::deferred::{Continuation, Schedule, Work};
use crate::expression::Values;
use crate::fault::CallEffect;
use crate::jsonrpc::{RpcError, clip, string_param};
use crate::listed::{Listed, Outcome, members};
use crate::manifest::AskTime;
use crate::tasks::{TaskStore, wants_task};
use crate::validate::ArgumentProblem;

pub(crate) fn call_tool<'a>(
    tools: &'a Listed<CallableTool>,
    tasks: &TaskStore,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    schedule: &mut Schedule,
) -> Result<Outcome<'a>, RpcError> {
    let name = string_param(params, "name");
    let tool = name.as_ref().ok().and_then(|name| tools.by_name.get(*name));
    let fault = tool
        .and_then(|tool| tool.fault.as_ref())
        .unwrap_or(caller.fault);
    let effect = fault.next_effect();
    let as_task = match tool {
        Some(tool) => wants_task(tool.task, tasks, caller, params)?,
        None => false,
    };
    let hangs = effect == CallEffect::NeverAnswered;
    match effect {
        CallEffect::None => {}
        // A task hangs, not its creation.
        _ if as_task => {}
        CallEffect::NeverAnswered => {
            schedule.never = true;
            return Ok(Outcome::fresh(Vec::new()));
        }
        CallEffect::Late { ms, honours_cancel } => {
            schedule.wait = Duration::from_millis(ms);
            schedule.ignores_cancel = !honours_cancel;
        }
    }
    let name = name?;
    let Some(tool) = tool else {
        return Err(RpcError::invalid_params(format!(
            "Unknown tool: {}",
            clip(name)
        )));
    };
    let nothing = Value::Object(Map::new());
    let arguments = match params.get("arguments") {
        None => &nothing,
        Some(arguments @ Value::Object(_)) => arguments,
        Some(_) => {
            return Err(RpcError::invalid_params(
                "Invalid params: arguments is not an object",
            ));
        }
    };
    let problems = tool.arguments.problems(arguments);
    if !problems.is_empty() {
        return bad_arguments(name, &problems, caller.revision);
    }
    let mut answers = Map::new();
    let task = tool.task.filter(|_| as_task);
    if task.is_none_or(|task| task.ask == AskTime::Before) {
        match ask_client(&tool.ask, name, caller, params, arguments, schedule)? {
            Asked::Answered(given) => answers = given,
            Asked::Ends(outcome) => return Ok(outcome),
            Asked::Sent(asked) => {
                schedule.rest = Some(Box::new(Continuation {
                    work: Work::Call {
                        tool: name.to_owned(),
                        params: params.clone(),
                        arguments: arguments.clone(),
                    },
                    asked,
                    answers,
                    context: caller.context(),
                }));
                return Ok(Outcome::fresh(Vec::new()));
            }
        }
    }
    if let Some(task) = task {
        return Ok(tasks.create((name, task), caller, arguments, answers, hangs));
    }
    respond(tool, caller, params, arguments, &answers.into(), schedule)
}

fn bad_arguments<'a>(
    tool: &str,
    problems: &[ArgumentProblem],
    revision: Revision,
) -> Result<Outcome<'a>, RpcError> {
    let title = format!("Invalid arguments for tool {}", clip(tool));
    let lines: Vec<_> = problems.iter().map(ArgumentProblem::line).collect();
    if revision.reports_bad_arguments_as_result() {
        let text = format!("{title}:\n- {}", lines.join("\n- "));
        let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
        return Ok(Outcome::fresh(members(&result)));
    }
    let data: Vec<_> = problems.iter().map(ArgumentProblem::to_json).collect();
    Err(
        RpcError::invalid_params(format!("{title}: {}", lines.join("; ")))
            .with_data(json!({"problems": data})),
    )
}

pub(crate) fn get_prompt<'a>(
    prompts: &'a Listed<Prompt>,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
) -> Result<Outcome<'a>, RpcError> {
    let name = string_param(params, "name")?;
    let Some(prompt) = prompts.by_name.get(name) else {
        return Err(RpcError::invalid_params(format!(
            "Unknown prompt: {}",
            clip(name)
        )));
    };
    let nothing = Value::Object(Map::new());
    let arguments = params.get("arguments").unwrap_or(&nothing);
    let Some(given) = arguments.as_object() else {
        return Err(RpcError::invalid_params(
            "Invalid params: arguments is not an object",
        ));
    };
    if let Some((name, _)) = given.iter().find(|(_, value)| !value.is_string()) {
        return Err(RpcError::invalid_params(format!(
            "Invalid params: the prompt argument {} is not a string",
            clip(name)
        )));
    }
    if let Some(name) = prompt
        .required
        .iter()
        .find(|name| !given.contains_key(*name))
    {
        return Err(RpcError::invalid_params(format!(
            "Missing required argument: {name}"
        )));
    }
    let mut answers = Value::Null;
    if caller.revision.is_stateless() {
        let mut schedule = Schedule::default();
        match ask_client(&prompt.ask, name, caller, params, arguments, &mut schedule)? {
            Asked::Ends(outcome) => return Ok(outcome),
            Asked::Answered(given) => answers = given.into(),
            Asked::Sent(_) => {}
        }
    }
    let mut members = Vec::new();
    let values = Values {
        args: arguments,
        answers: &answers,
    };
    prompt.response.render_with(values, &mut members);
    Ok(Outcome::fresh(members))
}
