//! The entries of a trace: calls, results and the catalog.

use mcptest_json::text::shorten;
use mcptest_protocol::malformed_tool_result;
use mcptest_trace::catalog::Tool;
use mcptest_trace::trace::{ToolCall, ToolResult};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value, json};

use super::{LineAction, Observer, TOOLS_LISTED, millis};
use crate::fault::CallEffect;

/// The largest number of recorded calls. Beyond that the session continues, and the trace is marked
/// as truncated.
const MAX_CALLS: usize = 100_000;

/// The longest part of an invalid result in a message.
const MAX_SHOWN_CHARS: usize = 300;

impl Observer {
    /// Records a call.
    pub(super) fn record_call(
        &mut self,
        message: &Value,
        params: Option<&Value>,
        effect: Option<CallEffect>,
    ) {
        self.changed = true;
        self.trace.extra.remove(TOOLS_LISTED);
        if self.trace.tool_calls.len() >= MAX_CALLS {
            self.trace.extra.insert("truncated", true);
            return;
        }
        let id = message.get("id").cloned();
        let params = params.and_then(Value::as_object);
        let place = self.run.as_ref().map(|run| run.called());
        self.places.extend(place);
        self.trace.tool_calls.push(ToolCall {
            turn: place.map(|place| place.turn),
            id: id.clone().map(Into::into),
            raw_name: params
                .and_then(|params| params.get("name"))
                .cloned()
                .unwrap_or(Value::Null)
                .into(),
            server: self.server.clone().map(Into::into),
            args: params
                .and_then(|params| params.get("arguments"))
                .cloned()
                .map(Into::into),
            ..ToolCall::default()
        });
        if effect == Some(CallEffect::Dropped) {
            let extra = Map::from_iter([
                ("error_kind".to_owned(), "timeout".into()),
                ("fault".to_owned(), self.fault.name().into()),
            ]);
            self.trace.tool_results.push(ToolResult {
                call_id: id.map(Into::into),
                is_error: Some(true),
                content: None,
                extra: extra.into(),
            });
        }
    }

    /// Records a page of a list of tools, and adds the distractors to the last one.
    pub(super) fn record_tools(
        &mut self,
        message: &Value,
        line: Option<&[u8]>,
        first_page: bool,
    ) -> LineAction {
        let Some(tools) = message
            .get("result")
            .and_then(|result| result.get("tools")?.as_array())
        else {
            return LineAction::Pass;
        };
        self.changed = true;
        self.trace.extra.remove(TOOLS_LISTED);
        let catalog = self.trace.catalog.get_or_insert_default().tools_mut();
        if first_page {
            catalog.clear();
        }
        let server = self.server.as_deref();
        catalog.extend(
            tools
                .iter()
                .filter_map(|tool| Tool::from_listing(server, tool)),
        );
        let (Some(distractors), Some(line)) = (&mut self.distractors, line) else {
            return LineAction::Pass;
        };
        let Some((new, fakes)) = distractors.add_to_page(line, server, first_page) else {
            return LineAction::Pass;
        };
        catalog.extend(fakes);
        self.trace.distractors = Some(distractors.ids.clone());
        LineAction::Replace(new)
    }

    /// Records the result of a call.
    pub(super) fn record_result(
        &mut self,
        message: &Value,
        effect: Option<CallEffect>,
        mut extra: Map<String, Value>,
    ) {
        self.changed = true;
        if self.trace.tool_results.len() >= MAX_CALLS {
            return;
        }
        let (is_error, content) = match (message.get("result"), message.get("error")) {
            (Some(result), _) => {
                if let Some(structured) = result.get("structuredContent") {
                    extra.insert("structured_content".to_owned(), structured.clone());
                }
                if let Some(problem) = malformed_tool_result(result) {
                    let message = format!("the tool result is malformed: {problem}");
                    extra.insert("error_kind".to_owned(), "protocol".into());
                    let text = format!(
                        "{message}: {}",
                        shorten(&result.to_string(), MAX_SHOWN_CHARS)
                    );
                    // The agent saw something that is not an answer: nothing that it does next is
                    // evidence.
                    self.trace.error.get_or_insert(RunError {
                        kind: ErrorKind::Protocol,
                        message,
                    });
                    (true, Some(json!([{"type": "text", "text": text}])))
                } else {
                    let is_error = result.get("isError").and_then(Value::as_bool);
                    (is_error.unwrap_or(false), result.get("content").cloned())
                }
            }
            (None, error) => {
                let error = error.cloned().unwrap_or(Value::Null);
                let code = error.get("code").cloned().unwrap_or(Value::Null);
                let text = error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let text = format!("Error {code}: {text}");
                extra.insert("error".to_owned(), error);
                (true, Some(json!([{"type": "text", "text": text}])))
            }
        };
        if let Some(CallEffect::Delayed(delay) | CallEffect::DelayedAlways(delay)) = effect {
            extra.insert("fault".to_owned(), self.fault.name().into());
            extra.insert("delay_ms".to_owned(), millis(delay).into());
        }
        self.trace.tool_results.push(ToolResult {
            call_id: message.get("id").cloned().map(Into::into),
            is_error: Some(is_error),
            content: content.map(Into::into),
            extra: extra.into(),
        });
    }
}
