//! A tool that can be called, and its answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcptest_protocol::headers::{ParamHeader, param_headers};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::changes;
use crate::compile::{Answer, Ask, Before, Case, CompiledTool, Response};
use crate::database::SqlTool;
use crate::deferred::Schedule;
use crate::expression::Values;
use crate::fault::FaultState;
use crate::jsonrpc::{RpcError, write_json};
use crate::listed::{Outcome, members};
use crate::manifest::TaskSpec;
use crate::validate::ArgumentCheck;

/// A tool that can be called.
#[derive(Debug)]
pub(crate) struct CallableTool {
    pub(crate) arguments: ArgumentCheck,
    cases: Vec<(Case, AtomicUsize)>,
    /// The statements in place of an answer.
    sql: Option<SqlTool>,
    pub(crate) ask: Vec<Vec<Ask>>,
    /// The support for tasks.
    pub(crate) task: Option<TaskSpec>,
    pub(crate) fault: Option<FaultState>,
    /// The arguments that headers repeat.
    pub(crate) headers: Vec<ParamHeader>,
}

impl CallableTool {
    pub(crate) fn new(tool: CompiledTool) -> Self {
        let CompiledTool {
            input_schema,
            cases,
            sql,
            ask,
            task,
            fault,
            ..
        } = tool;
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
            task,
            fault: fault.map(FaultState::new),
        }
    }

    /// The answer for these values: the next one of the first case that matches.
    fn response(&self, values: Values<'_>) -> Option<&Response> {
        let applies = |when: &Option<Map<String, Value>>, given: &Value| {
            let mut conditions = when.iter().flatten();
            conditions
                .all(|(key, expected)| given.get(key).is_some_and(|given| matches(expected, given)))
        };
        let (case, calls) = self.cases.iter().find(|(case, _)| {
            applies(&case.when, values.args) && applies(&case.when_answered, values.answers)
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

/// The answer of a tool whose requests to the client are answered.
pub(crate) fn respond<'a>(
    tool: &CallableTool,
    caller: &Caller<'_>,
    params: &Map<String, Value>,
    arguments: &Value,
    answers: &Value,
    schedule: &mut Schedule,
) -> Result<Outcome<'a>, RpcError> {
    if let (Some(sql), Some((image, state))) = (&tool.sql, &caller.database) {
        return Ok(Outcome::fresh(members(&sql.call(state, image, arguments))));
    }
    let values = Values {
        args: arguments,
        answers,
    };
    let Some(response) = tool.response(values) else {
        return Err(RpcError::internal("Internal error: the tool has no answer"));
    };
    for before in &response.before {
        send_before(before, caller, params, values, schedule);
    }
    let mut text = Vec::new();
    match &response.answer {
        Answer::Result(template) => {
            template.render_with(values, &mut text);
            Ok(Outcome::fresh(text))
        }
        Answer::Error(code, template) => {
            template.render_with(values, &mut text);
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
    values: Values<'_>,
    schedule: &mut Schedule,
) {
    let mut frame = br#"{"jsonrpc":"2.0","method":"notifications/"#.to_vec();
    match before {
        Before::Wait(ms) => {
            schedule.wait += Duration::from_millis(*ms);
            return;
        }
        Before::Change(change) => return changes::apply(change, caller, schedule),
        Before::Progress(template) => {
            let token = params
                .get("_meta")
                .and_then(|meta| meta.get("progressToken"));
            let Some(token) = token.filter(|token| token.is_string() || token.is_number()) else {
                return;
            };
            frame.extend_from_slice(br#"progress","params":{"progressToken":"#);
            write_json(&mut frame, token);
            template.render_with(values, &mut frame);
        }
        Before::Log(level, template) => {
            if caller.log_level.is_none_or(|lowest| *level < lowest) {
                return;
            }
            frame.extend_from_slice(br#"message","params":{"#);
            template.render_with(values, &mut frame);
        }
    }
    frame.extend_from_slice(b"}}");
    schedule.send(frame);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
