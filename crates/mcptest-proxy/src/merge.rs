//! The connections of a run as one trace.

use std::collections::BTreeSet;
use std::time::Instant;

use mcptest_trace::server_messages;
use mcptest_trace::trace::{ToolCall, ToolResult, Trace};
use serde_json::Value;

use crate::pump::Shared;
use crate::run_state::CallPlace;

/// The trace of all connections.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) trace: Trace,
    /// The time of each call.
    pub(crate) times: Vec<Instant>,
}

/// Merges the traces of connections. Calls are in the order in which they were made; JSON-RPC ids
/// of different connections may be equal, so calls are numbered again.
pub(crate) fn observed<'a>(connections: impl Iterator<Item = &'a Shared>) -> Merged {
    let mut calls: Vec<(CallPlace, ToolCall, Option<ToolResult>)> = Vec::new();
    let mut merged = Merged::default();
    let mut listed = BTreeSet::new();
    let mut messages: Vec<(Instant, Value)> = Vec::new();
    for connection in connections {
        let observer = connection.observer();
        let trace = &observer.trace;
        let results: Vec<Option<ToolResult>> = trace
            .results_by_call()
            .into_iter()
            .map(|result| result.cloned())
            .collect();
        let own = trace.tool_calls.iter().cloned().zip(results);
        calls.extend(
            observer
                .places
                .iter()
                .zip(own)
                .map(|(place, (call, result))| (*place, call, result)),
        );
        if let Some(catalog) = &trace.catalog {
            let all = merged.trace.catalog.get_or_insert_default().tools_mut();
            for tool in catalog.tools() {
                let id = (tool.server().map(str::to_owned), tool.name().to_owned());
                if listed.insert(id) {
                    all.push(tool.clone());
                }
            }
        }
        if let Some(distractors) = &trace.distractors {
            let all = merged.trace.distractors.get_or_insert_default();
            for id in distractors {
                if !all.contains(id) {
                    all.push(id.clone());
                }
            }
        }
        if trace.extra.get("truncated").is_some() {
            merged.trace.extra.insert("truncated", true);
        }
        let sent = observer.messages.messages().iter().cloned();
        messages.extend(observer.messages.times.iter().copied().zip(sent));
        if let Some(omitted) = observer.messages.omitted() {
            let extra = &mut merged.trace.extra;
            extra.insert(server_messages::OMITTED_KEY, omitted);
        }
    }
    if !messages.is_empty() {
        messages.sort_by_key(|(at, _)| *at);
        let messages: Vec<Value> = messages.into_iter().map(|(_, message)| message).collect();
        merged.trace.extra.insert(server_messages::KEY, messages);
    }
    calls.sort_by_key(|(place, ..)| place.order);
    for (number, (place, mut call, result)) in calls.into_iter().enumerate() {
        let id = Value::from(format!("call_{}", number + 1));
        call.id = Some(id.clone().into());
        if let Some(mut result) = result {
            result.call_id = Some(id.into());
            merged.trace.tool_results.push(result);
        }
        merged.trace.tool_calls.push(call);
        merged.times.push(place.at);
    }
    merged
}
