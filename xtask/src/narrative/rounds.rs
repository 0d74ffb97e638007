//! Messages that were written by hand, in rounds: each round before the rules had seen it.
//!
//! A line of a round is one run (its calls with their results) with harmless messages and lies
//! about it. A message is scored as the closing message of the run.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::path::PathBuf;

use mcptest_trace::trace::Trace;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{alarms, percent, score};
use crate::workspace;

/// One run with messages about it.
#[derive(Deserialize)]
struct Context {
    context: String,
    calls: Vec<Call>,
    harmless: Vec<String>,
    /// The kind of each lie, and its message.
    lies: Vec<(String, String)>,
}

/// A call with its result.
#[derive(Deserialize)]
pub(super) struct Call {
    name: String,
    args: Value,
    result: Value,
    #[serde(default)]
    error: bool,
}

/// The run of some calls with a closing message.
pub(super) fn trace(calls: &[Call], message: &str) -> Result<Trace> {
    let id = |index: usize| format!("call-{index}");
    let recorded: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| json!({"id": id(index), "name": call.name, "args": call.args}))
        .collect();
    let results: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            json!({"call_id": id(index), "is_error": call.error, "content": call.result})
        })
        .collect();
    let trace = json!({
        "tool_calls": recorded,
        "tool_results": results,
        "final_response": message,
    });
    serde_json::from_value(trace).map_err(Error::other)
}

/// The share of lies that are caught, and of harmless messages that raise an alarm, over all
/// rounds. Prints a line for each round; with `show`, every message that is judged wrongly.
pub fn measure(show: bool) -> Result<(f64, f64)> {
    let (mut caught, mut lies, mut raised, mut harmless) = (0, 0, 0, 0);
    for (name, contexts) in rounds()? {
        let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut alarmed = 0;
        let mut all = 0;
        for context in &contexts {
            for message in &context.harmless {
                let found = score(&trace(&context.calls, message)?);
                all += 1;
                if alarms(&found) > 0 {
                    alarmed += 1;
                    if show {
                        let context = &context.context;
                        println!("  alarm ({context}): {message:?} {:?}", found.actions());
                    }
                }
            }
            for (kind, message) in &context.lies {
                let (own, of) = kinds.entry(kind).or_default();
                *of += 1;
                let found = score(&trace(&context.calls, message)?);
                if alarms(&found) > 0 {
                    *own += 1;
                } else if show {
                    let claimed: Vec<_> = found
                        .claimed
                        .iter()
                        .map(|claim| format!("{} = {}", claim.action, claim.calls.join("+")))
                        .collect();
                    let context = &context.context;
                    println!("  missed {kind} ({context}): {message:?} {claimed:?}");
                }
            }
        }
        let own: usize = kinds.values().map(|(own, _)| own).sum();
        let of: usize = kinds.values().map(|(_, of)| of).sum();
        let kinds: Vec<String> = kinds
            .iter()
            .map(|(kind, (own, of))| format!("{kind} {own}/{of}"))
            .collect();
        println!(
            "{name}: {own} of {of} lies caught ({:.1} %: {}), {alarmed} of {all} harmless \
             messages raised an alarm ({:.1} %)",
            percent(own, of) * 100.0,
            kinds.join(", "),
            percent(alarmed, all) * 100.0
        );
        caught += own;
        lies += of;
        raised += alarmed;
        harmless += all;
    }
    Ok((percent(caught, lies), percent(raised, harmless)))
}

/// The rounds by name, in their order.
fn rounds() -> Result<Vec<(String, Vec<Context>)>> {
    files("rounds")?
        .into_iter()
        .map(|(name, text)| {
            let contexts: std::result::Result<Vec<Context>, _> =
                text.lines().map(serde_json::from_str).collect();
            let contexts = contexts.map_err(|error| Error::other(format!("{name}: {error}")))?;
            Ok((name, contexts))
        })
        .collect()
}

/// The JSON Lines files of a folder of the crate's tests, with their names, in order.
pub(super) fn files(folder: &str) -> Result<Vec<(String, String)>> {
    let folder = workspace::root()
        .join("crates/mcptest-narrative/tests")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path
                .file_stem()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            Ok((name, std::fs::read_to_string(&path)?))
        })
        .collect()
}
