//! The requests with arguments: `tools/call` and `prompts/get`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcptest_protocol::Revision;
use mcptest_protocol::headers::{ParamHeader, param_headers};
use serde_json::{Map, Value, json};

use crate::ask::ask_client;
use crate::caller::Caller;
use crate::compile::{Answer, Ask, Before, Case, Prompt, Response};
use crate::database::SqlTool;
use crate::deferred::Schedule;
use crate::fault::{CallEffect, FaultState, MockFault};
use crate::jsonrpc::{RpcError, clip, write_json};
use crate::listed::{Listed, Outcome, members};
use crate::validate::{ArgumentCheck, ArgumentProblem};

/// A tool that can be called.
#[derive(Debug)]
pub(crate) struct CallableTool {
    arguments: ArgumentCheck,
    cases: Vec<(Case, AtomicUsize)>,
    /// The statements in place of an answer.
    sql: Option<SqlTool>,
    ask: Vec<Vec<Ask>>,
    fault: Option<FaultState>,
    /// The arguments that headers repeat.
    pub(crate) headers: Vec<ParamHeader>,
}

impl CallableTool {
    pub(crate) fn new(
        input_schema: Option<Value>,
        cases: Vec<Case>,
        sql: Option<SqlTool>,
        ask: Vec<Vec<Ask>>,
        fault: Option<MockFault>,
    ) -> Self {
        Self {
            // Clients must not call a tool with invalid annotations, so there is nothing to check.
            headers: input_schema
                .as_ref()
                .and_then(|schema| param_headers(schema).ok())
                .unwrap_or_default(),
            arguments: ArgumentCheck::new(input_schema),
            cases: cases
                .into_iter()
                .map(|case| (case, AtomicUsize::new(0)))
                .collect(),
            sql,
            ask,
            fault: fault.map(FaultState::new),
        }
    }

    /// The answer for these arguments: the next one of the first case that matches.
    fn response(&self, arguments: &Value) -> Option<&Response> {
        let (case, calls) = self.cases.iter().find(|(case, _)| match &case.when {
            None => true,
            Some(when) => when.iter().all(|(key, expected)| {
                arguments
                    .get(key)
                    .is_some_and(|given| matches(expected, given))
            }),
        })?;
        let last = case.responses.len() - 1;
        // A single answer needs no counting.
        let index = if last == 0 {
            0
        } else {
            calls.fetch_add(1, Ordering::Relaxed).min(last)
        };
        case.responses.get(index)
    }
}

/// Returns true if an argument matches the value in a `when`: objects may have more members, lists
/// are compared item by item, numbers by value.
fn matches(expected: &Value, given: &Value) -> bool {
    match (expected, given) {
        (Value::Object(expected), Value::Object(given)) => expected
            .iter()
            .all(|(key, expected)| given.get(key).is_some_and(|given| matches(expected, given))),
        (Value::Array(expected), Value::Array(given)) => {
            expected.len() == given.len()
                && expected
                    .iter()
                    .zip(given)
                    .all(|(expected, given)| matches(expected, given))
        }
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        _ => expected == given,
    }
}

pub(crate) fn call_tool<'a>(
    tools: &'a Listed<CallableTool>,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    schedule: &mut Schedule,
) -> Result<Outcome<'a>, RpcError> {
    let name = string_param(params, "name");
    let tool = name.as_ref().ok().and_then(|name| tools.by_name.get(*name));
    let fault = tool
        .and_then(|tool| tool.fault.as_ref())
        .unwrap_or(caller.fault);
    match fault.next_effect() {
        CallEffect::None => {}
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
    if let Some(outcome) = ask_client(&tool.ask, name, caller, params, arguments, schedule)? {
        return Ok(outcome);
    }
    if let (Some(sql), Some((image, state))) = (&tool.sql, &caller.database) {
        return Ok(Outcome::fresh(members(&sql.call(state, image, arguments))));
    }
    let Some(response) = tool.response(arguments) else {
        return Err(RpcError::internal("Internal error: the tool has no answer"));
    };
    for before in &response.before {
        send_before(before, caller, params, arguments, schedule);
    }
    let mut text = Vec::new();
    match &response.answer {
        Answer::Result(template) => {
            template.render(arguments, &mut text);
            Ok(Outcome::fresh(text))
        }
        Answer::Error(code, template) => {
            template.render(arguments, &mut text);
            let body: Value = serde_json::from_slice(&text).unwrap_or_default();
            let message = body
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let error = RpcError::new(*code, message);
            Err(match body.get("data") {
                Some(data) => error.with_data(data.clone()),
                None => error,
            })
        }
    }
}

fn send_before(
    before: &Before,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    arguments: &Value,
    schedule: &mut Schedule,
) {
    let mut frame = br#"{"jsonrpc":"2.0","method":"notifications/"#.to_vec();
    match before {
        Before::Wait(ms) => {
            schedule.wait += Duration::from_millis(*ms);
            return;
        }
        Before::Progress(template) => {
            let token = params
                .get("_meta")
                .and_then(|meta| meta.get("progressToken"));
            let Some(token) = token.filter(|token| token.is_string() || token.is_number()) else {
                return;
            };
            frame.extend_from_slice(br#"progress","params":{"progressToken":"#);
            write_json(&mut frame, token);
            template.render(arguments, &mut frame);
        }
        Before::Log(level, template) => {
            if caller.log_level.is_none_or(|lowest| *level < lowest) {
                return;
            }
            frame.extend_from_slice(br#"message","params":{"#);
            template.render(arguments, &mut frame);
        }
    }
    frame.extend_from_slice(b"}}");
    schedule.send(frame);
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
    if caller.revision.is_stateless() {
        let mut schedule = Schedule::default();
        if let Some(outcome) =
            ask_client(&prompt.ask, name, caller, params, arguments, &mut schedule)?
        {
            return Ok(outcome);
        }
    }
    let mut members = Vec::new();
    prompt.response.render(arguments, &mut members);
    Ok(Outcome::fresh(members))
}

pub(crate) fn string_param<'a>(
    params: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, RpcError> {
    params
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| RpcError::invalid_params(format!("Invalid params: {name} is not a string")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_when_matches_arguments_with_at_least_its_members() {
        let fit = |expected: Value, given: Value| matches(&expected, &given);
        assert!(fit(
            json!({"a": {"b": 1}}),
            json!({"a": {"b": 1.0, "c": 2}, "d": 3})
        ));
        assert!(!fit(json!({"a": 1}), json!({"b": 1})));
        assert!(fit(json!([1, {"x": "y"}]), json!([1, {"x": "y", "z": 0}])));
        assert!(!fit(json!([1]), json!([1, 2])));
        assert!(fit(json!(null), json!(null)));
        assert!(!fit(json!("1"), json!(1)));
        // Beyond the precision of a float.
        assert!(!fit(
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992_u64)
        ));
    }
}
