//! Reading of an agent's output: a fold over its events.

use std::time::Instant;

use mcptest_trace::target::Target;
use serde_json::Value;

use crate::agent::Output;
use crate::file::FormatFile;
use crate::outcome::{AgentTokens, BuiltinCall};
use crate::rules::{CallRules, Rule, TokenRule};

/// The longest line that is parsed; longer ones are skipped.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The bytes of the output that are kept.
pub(crate) const MAX_STREAM_BYTES: usize = 8 << 20;

/// The number of built-in calls and of messages that are kept.
const MAX_ITEMS: usize = 10_000;

/// Reads an agent's output, in chunks.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    output: &'a Output,
    /// The beginnings of the names of MCP tools.
    mcp_prefixes: Vec<String>,
    /// The number of the user's message.
    turn: u32,
    line: Vec<u8>,
    line_too_long: bool,
    /// All of the output, up to a limit, unless it is one value per line.
    text: Vec<u8>,
    pub(crate) found: Found,
}

/// The content of the events.
#[derive(Debug, Default)]
pub(crate) struct Found {
    final_response: Observed,
    pub(crate) texts: Vec<String>,
    tokens: Option<AgentTokens>,
    /// The tokens and the cost of earlier messages: agents report those of the last one only.
    earlier_tokens: Option<AgentTokens>,
    earlier_cost: f64,
    cost: Observed,
    stop: Observed,
    error: Observed,
    error_status: Option<u16>,
    ended: Observed,
    session: Observed,
    pub(crate) calls: Vec<BuiltinCall>,
    call_ids: Vec<Option<String>>,
    pub(crate) failed_servers: Vec<(String, String)>,
    /// The number of events.
    pub(crate) events: u64,
    pub(crate) stream: Vec<u8>,
    pub(crate) truncated: bool,
}

/// The value of a rule so far.
#[derive(Debug, Default)]
struct Observed {
    value: Option<Value>,
    /// An event forbids the value.
    blocked: bool,
}

impl Observed {
    fn get(&self) -> Option<&Value> {
        self.value.as_ref().filter(|_| !self.blocked)
    }

    fn text(&self) -> Option<String> {
        self.get().map(text_of).filter(|text| !text.is_empty())
    }

    /// Applies a rule to an event; returns true if the event has a value.
    fn observe(&mut self, rule: &Rule, event: &Value) -> bool {
        if !rule.unless.is_empty() && rule.unless.holds(event) {
            self.blocked = true;
        }
        if !rule.after.is_empty() && rule.after.holds(event) {
            self.value = None;
        }
        if !rule.condition.holds(event) {
            return false;
        }
        let value = match &rule.take {
            None => Some(Value::Bool(true)),
            Some(take) => take.select(event),
        };
        let Some(value) = value.filter(|value| !value.is_null() && value != "") else {
            return false;
        };
        self.value = Some(match self.value.take() {
            Some(before) if rule.sum => sum(&before, &value),
            Some(before) if rule.join => Value::String(text_of(&before) + &text_of(&value)),
            _ => value,
        });
        true
    }
}

/// The sum of two numbers. Cents stay cents: sums of binary fractions are rounded.
fn sum(a: &Value, b: &Value) -> Value {
    match (a.as_u64(), b.as_u64()) {
        (Some(a), Some(b)) => Value::from(a.saturating_add(b)),
        _ => {
            let total = a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0);
            Value::from((total * 1e12).round() / 1e12)
        }
    }
}

/// A value as text: strings as they are, lists of strings joined.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(text_of).collect(),
        other => other.to_string(),
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(output: &'a Output, mcp_prefixes: Vec<String>) -> Self {
        Self {
            output,
            mcp_prefixes,
            turn: 1,
            line: Vec::new(),
            line_too_long: false,
            text: Vec::new(),
            found: Found::default(),
        }
    }

    /// Begins the answer to a further message of the user: its end and its answer are its own.
    pub(crate) fn next_turn(&mut self) {
        self.turn += 1;
        self.text.clear();
        self.found.earlier_tokens = self.tokens();
        self.found.tokens = None;
        self.found.earlier_cost = self.cost().unwrap_or(0.0);
        self.found.cost = Observed::default();
        self.found.final_response = Observed::default();
        self.found.ended = Observed::default();
    }

    /// The tokens of all messages.
    pub(crate) fn tokens(&self) -> Option<AgentTokens> {
        let cumulative = self.output.tokens.as_ref().is_some_and(|it| it.cumulative);
        match (self.found.earlier_tokens, self.found.tokens) {
            (Some(_), Some(last)) if cumulative => Some(last),
            (Some(earlier), Some(last)) => Some(earlier.plus(last)),
            (earlier, last) => earlier.or(last),
        }
    }

    /// Adds a chunk of the output.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let remaining = MAX_STREAM_BYTES.saturating_sub(self.found.stream.len());
        let kept = &chunk[..chunk.len().min(remaining)];
        self.found.stream.extend_from_slice(kept);
        self.found.truncated |= kept.len() < chunk.len();
        if self.output.format != FormatFile::Jsonl {
            let remaining = MAX_LINE_BYTES.saturating_sub(self.text.len());
            self.text
                .extend_from_slice(&chunk[..chunk.len().min(remaining)]);
            return;
        }
        let mut lines = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = lines.next() {
            if self.line.len() + piece.len() > MAX_LINE_BYTES {
                self.line_too_long = true;
            } else {
                self.line.extend_from_slice(piece);
            }
            if lines.peek().is_some() {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !std::mem::take(&mut self.line_too_long)
            && let Ok(event @ Value::Object(_)) = serde_json::from_slice(&line)
        {
            self.event(&event);
        }
    }

    /// Adds a server-sent event: its data as JSON, with its name as `event` if the data has none.
    pub(crate) fn sse(&mut self, kind: &str, data: &[u8]) {
        let remaining = MAX_STREAM_BYTES.saturating_sub(self.found.stream.len());
        let kept = &data[..data.len().min(remaining)];
        self.found.stream.extend_from_slice(kept);
        self.found.stream.push(b'\n');
        self.found.truncated |= kept.len() < data.len();
        if let Ok(Value::Object(mut event)) = serde_json::from_slice(data) {
            if !kind.is_empty() {
                event.entry("event").or_insert_with(|| Value::from(kind));
            }
            self.event(&Value::Object(event));
        }
    }

    /// Ends the output of one process, or of one answer.
    pub(crate) fn finish(&mut self) {
        match self.output.format {
            FormatFile::Jsonl => self.end_line(),
            FormatFile::Json => {
                if let Some(value) = last_json(&self.text) {
                    self.event(&value);
                }
            }
            FormatFile::Text => {}
        }
    }

    /// Applies all rules to an event.
    pub(crate) fn event(&mut self, event: &Value) {
        let found = &mut self.found;
        found.events += 1;
        let output = self.output;
        for (rule, value) in [
            (&output.final_response, &mut found.final_response),
            (&output.cost, &mut found.cost),
            (&output.stop, &mut found.stop),
            (&output.ended, &mut found.ended),
            (&output.session, &mut found.session),
        ] {
            if let Some(rule) = rule {
                value.observe(rule, event);
            }
        }
        if let Some(rule) = &output.error
            && found.error.observe(rule, event)
        {
            let status = rule.status.as_ref().and_then(|path| path.select(event));
            found.error_status = status.as_ref().and_then(status_of).or(found.error_status);
        }
        if let Some(rule) = &output.texts
            && found.texts.len() < MAX_ITEMS
        {
            let mut text = Observed::default();
            text.observe(rule, event);
            found.texts.extend(text.text());
        }
        if let Some(rule) = &output.tokens {
            tokens(rule, event, &mut found.tokens);
        }
        if let Some(rule) = &output.servers
            && rule.condition.holds(event)
            && let Some(Value::Array(servers)) = rule.take.select(event)
        {
            found.failed_servers = servers
                .iter()
                .filter_map(|server| {
                    let name = text_of(&rule.name.select(server)?);
                    let status = text_of(&rule.status.select(server)?);
                    let has_failed = !rule.ok.contains(&status);
                    // The reason is beside the state, if an agent reports one.
                    let status = match server["error"].as_str() {
                        Some(reason) => format!("{status}: {reason}"),
                        None => status,
                    };
                    has_failed.then_some((name, status))
                })
                .collect();
        }
        if let Some(rules) = &output.calls {
            self.calls(rules, event);
        }
    }

    fn calls(&mut self, rules: &CallRules, event: &Value) {
        let found = &mut self.found;
        if let Some(rule) = &rules.call {
            for item in rule.items.of(event) {
                let select = |path: &Option<Target>| path.as_ref()?.select(&item);
                let Some(name) = rule.name.select(&item).map(|name| text_of(&name)) else {
                    continue;
                };
                let is_mcp = select(&rule.server).is_some_and(|server| !server.is_null())
                    || is_mcp_name(&self.mcp_prefixes, &name);
                if is_mcp || found.calls.len() >= MAX_ITEMS {
                    continue;
                }
                let result = select(&rule.result);
                let has_failed = !rule.failed.is_empty() && rule.failed.holds(&item);
                found.call_ids.push(select(&rule.id).map(|id| text_of(&id)));
                found.calls.push(BuiltinCall {
                    name,
                    args: select(&rule.args).unwrap_or(Value::Null),
                    is_error: (rules.result.is_none()).then_some(has_failed),
                    result,
                    turn: self.turn,
                    at: Instant::now(),
                });
            }
        }
        if let Some(rule) = &rules.result {
            for item in rule.items.of(event) {
                let Some(id) = rule.id.select(&item).map(|id| text_of(&id)) else {
                    continue;
                };
                let place = found
                    .call_ids
                    .iter()
                    .rposition(|known| known.as_deref() == Some(id.as_str()));
                if let Some(call) = place.and_then(|place| found.calls.get_mut(place)) {
                    call.is_error = Some(!rule.failed.is_empty() && rule.failed.holds(&item));
                    call.result = rule.result.as_ref().and_then(|path| path.select(&item));
                }
            }
        }
    }

    /// The final answer.
    pub(crate) fn final_response(&self) -> Option<String> {
        match (&self.output.final_response, self.output.format) {
            (Some(_), _) => self.found.final_response.text(),
            (None, FormatFile::Jsonl) => None,
            (None, _) => {
                let text = String::from_utf8_lossy(&self.text);
                Some(text.trim().to_owned()).filter(|text| !text.is_empty())
            }
        }
    }

    /// True if the output reports the end of the agent's work, or need not report it.
    pub(crate) fn has_ended(&self) -> bool {
        match (&self.output.ended, self.output.format) {
            (Some(_), _) => self.found.ended.get().is_some(),
            (None, FormatFile::Text) => true,
            (None, _) => self.found.events > 0,
        }
    }

    /// True if an event reports the end, while the process may still run.
    pub(crate) fn has_end_event(&self) -> bool {
        self.output.ended.is_some() && self.found.ended.get().is_some()
    }

    /// The error that the output reports, with its HTTP status.
    pub(crate) fn error(&self) -> Option<(String, Option<u16>)> {
        self.found
            .error
            .get()
            .map(|error| (text_of(error), self.found.error_status))
    }

    pub(crate) fn session(&self) -> Option<String> {
        self.found.session.text()
    }

    pub(crate) fn stop(&self) -> Option<String> {
        self.found.stop.text()
    }

    /// The cost of all messages.
    pub(crate) fn cost(&self) -> Option<f64> {
        let cost = self.found.cost.get().and_then(|cost| match cost {
            Value::String(text) => text.trim_start_matches('$').parse().ok(),
            cost => cost.as_f64(),
        });
        let earlier = self.found.earlier_cost;
        let cumulative = self.output.cost.as_ref().is_some_and(|it| it.cumulative);
        match cost {
            Some(cost) if earlier > 0.0 && !cumulative => {
                Some(((cost + earlier) * 1e12).round() / 1e12)
            }
            None if earlier > 0.0 => Some(earlier),
            cost => cost,
        }
    }
}

/// Returns true if a tool's name begins with one of the prefixes of MCP tools.
pub(crate) fn is_mcp_name(prefixes: &[String], name: &str) -> bool {
    prefixes
        .iter()
        .any(|prefix| !prefix.is_empty() && name.starts_with(prefix.as_str()))
}

/// An HTTP status, as a number or a string.
fn status_of(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64().and_then(|status| status.try_into().ok()),
    }
}

/// The last JSON value of an output that may begin with other lines.
fn last_json(text: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Some(value);
    }
    // Programs print banners and warnings before their result.
    let mut start = 0;
    while let Some(offset) = text[start..].iter().position(|byte| *byte == b'\n') {
        start += offset + 1;
        let rest = &text[start..];
        if matches!(rest.first(), Some(b'{' | b'['))
            && let Ok(value) = serde_json::from_slice(rest)
        {
            return Some(value);
        }
    }
    None
}

fn tokens(rule: &TokenRule, event: &Value, found: &mut Option<AgentTokens>) {
    if !rule.condition.holds(event) {
        return;
    }
    let count = |path: &Option<Target>| number(&path.as_ref()?.select(event)?);
    let cached = count(&rule.cached);
    let cache_write = count(&rule.cache_write);
    let input = count(&rule.input).map(|input| {
        if rule.input_includes_cached {
            input
        } else {
            input
                .saturating_add(cached.unwrap_or(0))
                .saturating_add(cache_write.unwrap_or(0))
        }
    });
    let output = count(&rule.output);
    let total = count(&rule.total).or_else(|| Some(input?.saturating_add(output?)));
    if input.is_none() && output.is_none() && total.is_none() {
        return;
    }
    let event = AgentTokens {
        input,
        output,
        cached,
        total,
    };
    *found = Some(match found.take() {
        Some(before) if rule.sum => before.plus(event),
        _ => event,
    });
}

/// A number, or the sum of a list of numbers.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => {
            let mut numbers = items.iter().filter_map(number).peekable();
            numbers.peek()?;
            Some(numbers.fold(0, u64::saturating_add))
        }
        value => value.as_u64(),
    }
}

impl AgentTokens {
    /// The sum; a part that only one of the two has is that part.
    pub(crate) fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cached: add(self.cached, other.cached),
            total: add(self.total, other.total),
        }
    }
}
