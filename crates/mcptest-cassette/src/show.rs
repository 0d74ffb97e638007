//! A cassette as readable text.

use mcptest_agent::ToolReply;
use mcptest_json::text::{one_line, shorten};
use serde_json::Value;

use crate::format::{CallAnswer, CallExchange, Cassette, FedResult, ModelAnswer, RecordedRun};

/// The most characters of a string that are shown.
const MAX_SHOWN: usize = 300;

fn short(text: &str) -> String {
    shorten(&one_line(text), MAX_SHOWN)
}

/// Returns a readable summary: subject, tools, and the events of every run, or of one run with its
/// volatile values.
#[must_use]
pub fn show(cassette: &Cassette, run: Option<u32>) -> String {
    let subject = &cassette.subject;
    let mut lines = vec![
        format!("{} [{}]", short(&subject.test), short(&subject.model)),
        format!("suite    {}", short(&cassette.suite)),
    ];
    if let Some(system) = &subject.system {
        lines.push(format!("system   {}", short(system)));
    }
    lines.push(format!("prompt   {}", short(&subject.prompt)));
    for (key, value) in &subject.settings {
        lines.push(format!(
            "setting  {} = {}",
            short(key),
            short(&value.to_string())
        ));
    }
    for catalog in &cassette.catalogs {
        let names: Vec<String> = catalog
            .tools()
            .iter()
            .map(|tool| short(tool.name()))
            .collect();
        lines.push(format!(
            "server   {}: {}",
            short(&catalog.server),
            names.join(", ")
        ));
    }
    let missing = if cassette.is_complete() {
        String::new()
    } else {
        format!(" of {} (not finished)", cassette.planned)
    };
    lines.push(format!("runs     {}{missing}", cassette.runs.len()));
    for recorded in cassette
        .runs
        .iter()
        .filter(|one| run.is_none_or(|wanted| one.run == wanted))
    {
        let took = cassette
            .volatile_of(recorded.run)
            .map_or(0, |of| of.duration_ms);
        lines.push(String::new());
        lines.push(format!("run {} ({took} ms)", recorded.run));
        lines.extend(events(recorded).into_iter().map(|line| format!("  {line}")));
        let volatile = cassette.volatile_of(recorded.run).map(|of| &of.values);
        for (name, value) in volatile.into_iter().flatten().filter(|_| run.is_some()) {
            let value = value.as_str().unwrap_or_default();
            lines.push(format!("  {} = {}", short(name), short(value)));
        }
    }
    format!("{}\n", lines.join("\n"))
}

/// Returns the events of a run in order, one line each.
pub(crate) fn events(run: &RecordedRun) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(error) = &run.error {
        lines.push(format!(
            "error    {}: {}",
            error.kind.as_str(),
            short(&error.message)
        ));
    }
    if let Some(distractors) = &run.distractors {
        let names: Vec<String> = distractors
            .tools
            .iter()
            .map(|one| short(one.tool.name()))
            .collect();
        lines.push(format!("fakes    {}", names.join(", ")));
    }
    for (role, exchanges) in &run.models {
        let mut shown = 0;
        let who = if role == "agent" {
            String::new()
        } else {
            format!("{} ", short(role))
        };
        for exchange in exchanges {
            if let Some(prompt) = &exchange.request.prompt {
                lines.push(format!("{who}asked    {}", short(prompt)));
            }
            for fed in &exchange.request.results {
                match fed {
                    FedResult::Call(index) => {
                        // Each server answer is shown once, where it was fed back.
                        lines.extend(
                            run.calls
                                .get(shown..=*index)
                                .into_iter()
                                .flatten()
                                .map(call),
                        );
                        shown = index + 1;
                    }
                    FedResult::Reply(reply) => lines.push(format!("refused  {}", answer(reply))),
                }
            }
            match &exchange.answer {
                ModelAnswer::Turn(turn) => {
                    if !turn.text.is_empty() || turn.calls.is_empty() {
                        lines.push(format!("{who}says     {}", short(&turn.text)));
                    }
                    for call in &turn.calls {
                        let args = call.args.as_ref().map(Value::to_string).unwrap_or_default();
                        lines.push(format!(
                            "{who}wants    {} {}",
                            short(&call.wire_name),
                            short(&args)
                        ));
                    }
                }
                ModelAnswer::Error(error) => {
                    lines.push(format!(
                        "{who}error    {}: {}",
                        error.kind.as_str(),
                        short(&error.message)
                    ));
                }
            }
        }
        if role == "agent" {
            lines.extend(run.calls.get(shown..).into_iter().flatten().map(call));
        }
    }
    lines
}

fn call(call: &CallExchange) -> String {
    let id = format!("{}.{}", short(&call.server), short(&call.tool));
    let outcome = match &call.answer {
        CallAnswer::Reply(reply) => answer(reply),
        CallAnswer::Error(error) => format!("{}: {}", error.kind.as_str(), short(&error.message)),
    };
    format!(
        "called   {id} {} → {outcome}",
        short(&call.args.to_string())
    )
}

fn answer(reply: &ToolReply) -> String {
    let text = reply.text();
    let text = if text.is_empty() {
        reply.content.to_string()
    } else {
        text
    };
    let error = if reply.is_error { "error: " } else { "" };
    format!("{error}{}", short(&text))
}
