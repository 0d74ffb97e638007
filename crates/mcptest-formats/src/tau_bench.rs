//! Results of tau-bench: `--format tau-bench`.
//!
//! Written for sierra-research/tau-bench as published in 2024: an array of results with `task_id`,
//! `trial`, `reward`, `info` and `traj`, a list of OpenAI chat messages. The environment marks a
//! failed call with a string that starts with `Error`. The closing message is the last one of the
//! assistant: a run often ends with the user or a tool.

use mcptest_trace::trace::Trace;
use serde_json::Value;

use crate::builder::TraceBuilder;
use crate::content::{count, text};
use crate::error::FormatError;
use crate::input::{Input, a_type};
use crate::openai_chat::add_message;
use crate::reader::{Detection, Format, Grouping, Reader, by_record};

/// The reader of tau-bench results.
pub(crate) struct TauBench;

static FORMAT: Format = Format {
    name: "tau-bench",
    reads: "the result file: an array of results with `task_id`, `trial`, `reward` and `traj`; also \
            as JSON Lines",
    versions: "sierra-research/tau-bench, results as published in 2024",
    unknown: "tokens, the model, the server",
};

impl Reader for TauBench {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn detect(&self, input: &Input<'_>) -> Detection {
        by_record(input, |record| {
            let has = |key: &str| record.get(key).is_some();
            match (has("traj"), has("task_id")) {
                (true, true) => Detection::Match,
                (true, false) => Detection::close("a result has no `task_id`"),
                _ => Detection::No,
            }
        })
    }

    fn grouping(&self, _: &Input<'_>) -> Grouping {
        Grouping::Document
    }

    fn read(&self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        let mut traces = Vec::new();
        for (document, record, at) in input.records() {
            document.object(FORMAT.name, record)?;
            let mut builder = TraceBuilder::new();
            for (index, message) in document
                .array(FORMAT.name, record, "traj")?
                .iter()
                .enumerate()
            {
                document.object(FORMAT.name, message)?;
                add_message(
                    &mut builder,
                    message,
                    &format!("{at}/traj/{index}"),
                    is_error,
                );
            }
            builder.trace.test = match record.get("task_id") {
                Some(Value::String(task)) => Some(task.clone().into()),
                Some(task @ Value::Number(_)) => Some(task.to_string().into()),
                other => {
                    let found = other.map_or_else(|| "nothing".to_owned(), a_type);
                    let message =
                        format!("expected a number or a string as `task_id`, found {found}");
                    return Err(document.wrong(FORMAT.name, other.unwrap_or(record), message));
                }
            };
            // Trials are counted from 0.
            builder.trace.run = count(record, &["trial"]).map(|trial| trial.saturating_add(1));
            if let Some(reward) = record.get("reward") {
                builder.trace.extra.insert("reward", reward.clone());
            }
            if let Some(cost) = record.pointer("/info/user_cost") {
                builder.trace.extra.insert("user_cost", cost.clone());
            }
            traces.push(builder.finish());
        }
        Ok(traces)
    }
}

/// The environment reports every failure as a string that starts with this word.
fn is_error(content: &Value) -> Option<bool> {
    Some(text(content).is_some_and(|text| text.starts_with("Error")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_a_run_of_its_task() {
        let call = |id: &str| {
            json!({"id": id, "type": "function",
            "function": {"name": "book", "arguments": "{}"}})
        };
        let value = json!([{"task_id": 3, "trial": 1, "reward": 0.0, "info": {}, "traj": [
            {"role": "user", "content": "Book."},
            {"role": "assistant", "content": null, "tool_calls": [call("a")]},
            {"role": "tool", "tool_call_id": "a", "name": "book", "content": "Error: full"},
            {"role": "assistant", "content": "It is full."},
            {"role": "user", "content": "###STOP###"},
        ]}]);
        let text = value.to_string();
        let input = Input::parse(text.as_bytes()).unwrap();
        let reader = crate::detect(&input).unwrap();
        assert_eq!(reader.format().name, "tau-bench");
        let traces = reader.read(&input).unwrap();
        let trace = &traces[0];
        assert_eq!((trace.test.as_deref(), trace.run), (Some("3"), Some(2)));
        assert_eq!(trace.tool_results[0].is_error, Some(true));
        assert_eq!(trace.final_text().unwrap(), "It is full.");
        assert_eq!(trace.extra("reward"), Some(&json!(0.0)));
    }

    #[test]
    fn errors_have_a_pointer() {
        let input = Input::parse(br#"[{"task_id": 1, "traj": [7]}]"#).unwrap();
        assert_eq!(
            TauBench.read(&input).unwrap_err().to_string(),
            "line 1, at /0/traj/0: not tau-bench: expected an object, found a number"
        );
    }
}
