//! Pairs the calls of models with the executions of tools.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{Part, Run, messages};
use crate::content::{arguments, id, string};
use crate::otlp::Span;

/// A call in the answer of a model.
pub(super) struct Made {
    /// The number of the request.
    pub request: usize,
    pub id: Value,
    pub name: String,
    pub args: Option<Value>,
    /// The place of its execution.
    pub executed: Option<usize>,
}

/// The execution of a call: one span, with those within it that are the same call.
pub(super) struct Executed {
    /// The id of the outermost span.
    pub span: String,
    pub start: u64,
    pub id: Option<Value>,
    /// The name that the outermost span has.
    pub name: String,
    /// The name that the server has for the tool.
    pub tool: Option<String>,
    pub server: Option<String>,
    pub args: Option<Value>,
    pub result: Option<Value>,
    pub is_error: Option<bool>,
    /// The place of the model's call.
    pub made: Option<usize>,
}

/// The calls that the models made, in the order of the requests.
pub(super) fn made(run: &Run<'_, '_>, requests: &[usize]) -> Vec<Made> {
    let mut all = Vec::new();
    for (request, at) in requests.iter().enumerate() {
        let answers = messages::output(&run.spans[*at]);
        for (number, call) in answers.iter().flat_map(messages::calls).enumerate() {
            let made_up = || format!("{}/{number}", run.spans[*at].id).into();
            all.push(Made {
                request,
                id: id(call, "id").cloned().unwrap_or_else(made_up),
                name: string(call, "name").unwrap_or_default().to_owned(),
                args: call
                    .get("arguments")
                    .filter(|args| !args.is_null())
                    .map(arguments),
                executed: None,
            });
        }
    }
    all
}

/// The executions of tools, by start.
pub(super) fn executed(run: &Run<'_, '_>) -> Vec<Executed> {
    let mut all: Vec<Executed> = Vec::new();
    // The execution that a span is a part of.
    let mut place: HashMap<usize, usize> = HashMap::new();
    let tools = |at: &usize| matches!(run.parts[*at], Part::Tool | Part::Mcp);
    for at in (0..run.spans.len()).filter(tools) {
        let span = &run.spans[at];
        let outer = run.within(at, &[Part::Tool, Part::Mcp, Part::Request, Part::Agent]);
        let known = outer
            .filter(tools)
            .and_then(|outer| place.get(&outer).copied());
        let one = of_span(span, run.parts[at]);
        match known.and_then(|known| all.get_mut(known)) {
            Some(known_call) if is_same(known_call, &one, run.parts[at]) => {
                merge(known_call, one);
                if let Some(known) = known {
                    place.insert(at, known);
                }
            }
            _ => {
                place.insert(at, all.len());
                all.push(one);
            }
        }
    }
    all
}

fn of_span(span: &Span<'_>, part: Part) -> Executed {
    let named = span.text("gen_ai.tool.name");
    // `tools/call NAME`, with words before it in some SDKs.
    let target = || {
        span.name
            .split_once("tools/call ")
            .map(|(_, target)| target)
    };
    let name = named.or_else(target).unwrap_or_default().to_owned();
    let failed = span.failed || span.get("error.type").is_some();
    let server = ["mcp.server.name", "fastmcp.server.name"];
    let is_mcp = part == Part::Mcp;
    Executed {
        span: span.id.to_owned(),
        start: span.start,
        id: span
            .get("gen_ai.tool.call.id")
            .filter(|id| id.is_string())
            .cloned(),
        tool: (is_mcp && !name.is_empty()).then(|| name.clone()),
        name,
        server: server
            .iter()
            .find_map(|key| span.text(key))
            .map(str::to_owned),
        args: span.json("gen_ai.tool.call.arguments"),
        result: span.json("gen_ai.tool.call.result").or_else(|| {
            let message = span.message.filter(|_| failed)?;
            Some(message.into())
        }),
        // Spans that do not follow the conventions do not show failed tools either.
        is_error: if failed {
            Some(true)
        } else {
            named.map(|_| false)
        },
        made: None,
    }
}

/// Returns true if a span within another one is the same call.
fn is_same(outer: &Executed, inner: &Executed, part: Part) -> bool {
    if inner.name.is_empty() && inner.id.is_none() {
        return true;
    }
    match (&outer.id, &inner.id) {
        (Some(outer), Some(inner)) => return outer == inner,
        (None, Some(_)) | (Some(_), None) if part == Part::Tool => {
            return outer.name == inner.name;
        }
        _ => {}
    }
    let same_args = match (&outer.args, &inner.args) {
        (Some(outer), Some(inner)) => outer == inner,
        _ => true,
    };
    same_args && (inner.name == outer.name || prefix(&outer.name, &inner.name).is_some())
}

/// The part of a name before the name that the server has for the tool, without separators.
fn prefix<'n>(name: &'n str, tool: &str) -> Option<&'n str> {
    let prefix = name.strip_suffix(tool)?;
    let server = prefix.trim_end_matches(SEPARATORS);
    (!tool.is_empty() && !server.is_empty() && server.len() < prefix.len()).then_some(server)
}

const SEPARATORS: [char; 5] = ['_', '.', '/', ':', '-'];

fn merge(known: &mut Executed, inner: Executed) {
    if known.tool.is_none() {
        known.tool = inner.tool;
    }
    known.server = known.server.take().or(inner.server);
    known.id = known.id.take().or(inner.id);
    known.args = known.args.take().or(inner.args);
    known.result = known.result.take().or(inner.result);
    known.is_error = match (known.is_error, inner.is_error) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (known, inner) => known.or(inner),
    };
}

/// Joins executions with the calls of models, and completes both.
pub(super) fn join(made: &mut [Made], executed: &mut [Executed]) {
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut by_name: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (at, call) in made.iter().enumerate() {
        by_id.entry(call.id.to_string()).or_insert(at);
        for key in keys(&call.name) {
            by_name.entry(key.to_owned()).or_default().push_back(at);
        }
    }
    let mut guessed: HashMap<(usize, String), Vec<usize>> = HashMap::new();
    for (place, one) in executed.iter_mut().enumerate() {
        let found = match &one.id {
            Some(id) => by_id.get(&id.to_string()).copied(),
            None => {
                let found = open_call(made, &mut by_name, one);
                if let Some(at) = found.filter(|_| one.args.is_none()) {
                    let key = (made[at].request, made[at].name.clone());
                    guessed.entry(key).or_default().push(place);
                }
                found
            }
        };
        if let Some(call) = found.and_then(|at| made.get_mut(at)) {
            call.executed.get_or_insert(place);
            one.made = found;
        }
        if one.server.is_none() {
            let name = found.map_or(one.name.as_str(), |at| made[at].name.as_str());
            let server = one.tool.as_deref().and_then(|tool| prefix(name, tool));
            one.server = server.map(|server| {
                let server = server.strip_prefix("mcp_").unwrap_or(server);
                server.trim_start_matches('_').to_owned()
            });
        }
    }
    // Calls of one tool in one answer are not distinguishable without arguments: their flags count
    // only if they are all the same.
    for places in guessed.values().filter(|places| places.len() > 1) {
        let flags: Vec<_> = places.iter().map(|at| executed[*at].is_error).collect();
        if flags.windows(2).any(|pair| pair[0] != pair[1]) {
            for at in places {
                executed[*at].is_error = None;
                executed[*at].result = None;
            }
        }
    }
}

/// The first call of a model that fits an execution and has none yet.
fn open_call(
    made: &[Made],
    by_name: &mut HashMap<String, VecDeque<usize>>,
    one: &Executed,
) -> Option<usize> {
    let names = [Some(one.name.as_str()), one.tool.as_deref()];
    for name in names.into_iter().flatten() {
        let Some(waiting) = by_name.get_mut(name) else {
            continue;
        };
        while waiting
            .front()
            .is_some_and(|at| made[*at].executed.is_some())
        {
            waiting.pop_front();
        }
        let fits = |at: &&usize| {
            let call = &made[**at];
            let same_args = match (&call.args, &one.args) {
                (Some(made), Some(executed)) => made == executed,
                _ => true,
            };
            call.executed.is_none() && same_args
        };
        // Few calls are made at the same time.
        if let Some(at) = waiting.iter().take(64).find(fits) {
            return Some(*at);
        }
    }
    None
}

/// A name, and its ends after a separator: a model may see `server_tool`.
fn keys(name: &str) -> impl Iterator<Item = &str> {
    let ends = name
        .char_indices()
        .filter(|(_, c)| SEPARATORS.contains(c))
        .map(|(at, c)| &name[at + c.len_utf8()..])
        .filter(|end| !end.is_empty());
    std::iter::once(name).chain(ends.take(16))
}
