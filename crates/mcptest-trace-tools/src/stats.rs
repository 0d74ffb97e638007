//! Statistics over traces: calls, tools, errors, tokens, cost, repeated work.
//!
//! Traces are observed one at a time, in any order. What a trace does not record is counted as
//! unknown, never as zero.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use mcptest_catalog::prices::{Prices, Usd};
use mcptest_json::canonical;
use mcptest_json::text::one_line;
use mcptest_numbers::percent;
use mcptest_trace::trace::TraceView;
use serde::Serialize;

use crate::tool_names::{RecordedTool, Servers};

/// The number of times that each value occurred: small for counts, exact for every quantile.
#[derive(Debug, Clone, Default, PartialEq)]
struct Histogram {
    counts: BTreeMap<u64, u64>,
    total: u64,
    sum: u128,
}

impl Histogram {
    fn add(&mut self, value: u64) {
        *self.counts.entry(value).or_default() += 1;
        self.total += 1;
        self.sum += u128::from(value);
    }

    /// The value at a rank, from 1.
    fn at(&self, rank: u64) -> u64 {
        let mut passed = 0;
        for (value, count) in &self.counts {
            passed += count;
            if passed >= rank {
                return *value;
            }
        }
        0
    }

    fn spread(&self) -> Option<Spread> {
        let (min, max) = (self.counts.keys().next()?, self.counts.keys().next_back()?);
        let (low, high) = (self.at(self.total.div_ceil(2)), self.at(self.total / 2 + 1));
        Some(Spread {
            traces: self.total,
            sum: u64::try_from(self.sum).unwrap_or(u64::MAX),
            min: *min,
            // Of an even count: the mean of the middle two, rounded down, as the floor's median.
            median: low.midpoint(high),
            // The smallest value that at least 95 % of the values do not exceed.
            p95: self.at((self.total * 95).div_ceil(100)),
            max: *max,
        })
    }
}

/// The distribution of a figure over the traces that report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// The traces that report it.
    pub traces: u64,
    /// The sum.
    pub sum: u64,
    /// The smallest.
    pub min: u64,
    /// The median; of an even count, the mean of the middle two, rounded down.
    pub median: u64,
    /// The smallest value that at least 95 % of the values do not exceed.
    pub p95: u64,
    /// The largest.
    pub max: u64,
}

/// Figures of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// `server.tool`, or the bare name.
    pub tool: String,
    /// Its calls.
    pub calls: u64,
    /// The traces with at least one of them.
    pub traces: u64,
    /// Calls whose result is an error.
    pub errors: u64,
    /// Calls without a result.
    pub unanswered: u64,
    /// Calls with the arguments of an earlier call of the same trace.
    pub repeated: u64,
}

impl ToolStats {
    /// Adds the figures of another spelling of the tool.
    fn add(&mut self, tool: String, more: &Self) {
        self.tool = tool;
        self.calls += more.calls;
        self.traces += more.traces;
        self.errors += more.errors;
        self.unanswered += more.unanswered;
        self.repeated += more.repeated;
    }
}

/// All figures, ready to be written as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The traces.
    pub traces: u64,
    /// Traces of runs that failed for a reason that is not the agent's.
    pub failed_runs: u64,
    /// The tests that traces name, with their number of traces.
    pub tests: BTreeMap<String, u64>,
    /// The models that traces name, with their number of traces.
    pub models: BTreeMap<String, u64>,
    /// Calls per trace.
    pub calls: Option<Spread>,
    /// Calls whose result is an error.
    pub errors: u64,
    /// Errors by the kind that the trace records, such as `timeout`.
    pub error_kinds: BTreeMap<String, u64>,
    /// Calls without a result.
    pub unanswered: u64,
    /// Calls with the tool and the arguments of an earlier call of the same trace.
    pub repeated_calls: u64,
    /// Traces with at least one of them.
    pub traces_with_repeats: u64,
    /// Input tokens per trace.
    pub input_tokens: Option<Spread>,
    /// Output tokens per trace.
    pub output_tokens: Option<Spread>,
    /// All tokens per trace.
    pub total_tokens: Option<Spread>,
    /// Traces without a total of tokens.
    pub unknown_tokens: u64,
    /// The cost of the traces whose tokens and price are known, in dollars.
    pub cost_usd: Option<f64>,
    /// Traces whose cost is unknown.
    pub unknown_cost: u64,
    /// The date of the built-in prices.
    pub prices_of: &'static str,
    /// The tools, most called first.
    pub tools: Vec<ToolStats>,
}

/// The statistics of the traces that were observed so far.
#[derive(Debug, Clone, Default)]
pub struct TraceStats {
    traces: u64,
    failed_runs: u64,
    tests: BTreeMap<String, u64>,
    models: BTreeMap<String, u64>,
    calls: Histogram,
    error_kinds: BTreeMap<String, u64>,
    traces_with_repeats: u64,
    input: Histogram,
    output: Histogram,
    total: Histogram,
    priced: u64,
    cost: Usd,
    tools: BTreeMap<RecordedTool, ToolStats>,
    servers: Servers,
}

impl TraceStats {
    /// Adds a trace.
    pub fn observe(&mut self, trace: &TraceView<'_>) {
        self.traces += 1;
        self.failed_runs += u64::from(trace.error.is_some());
        count(&mut self.tests, trace.test.as_deref());
        count(&mut self.models, trace.model.as_deref());
        self.calls.add(trace.tool_calls.len() as u64);
        self.servers.observe(trace);
        self.observe_calls(trace);
        let Some(tokens) = &trace.conversation.tokens else {
            return;
        };
        let figures = [
            (&mut self.input, tokens.input),
            (&mut self.output, tokens.output),
            (&mut self.total, tokens.total),
        ];
        for (histogram, figure) in figures {
            if let Some(figure) = figure {
                histogram.add(figure);
            }
        }
        let price = trace
            .model
            .as_deref()
            .and_then(|model| Prices::builtin().find(model));
        if let Some(cost) = price.and_then(|price| price.cost(tokens)) {
            self.priced += 1;
            self.cost = self.cost.plus(cost);
        }
    }

    fn observe_calls(&mut self, trace: &TraceView<'_>) {
        let mut seen = HashSet::new();
        let mut tools = BTreeSet::new();
        let mut repeats = false;
        for (call, result) in trace.tool_calls.iter().zip(trace.results_by_call()) {
            let id = RecordedTool::of(call);
            let stats = self.tools.entry(id.clone()).or_default();
            stats.calls += 1;
            stats.traces += u64::from(tools.insert(id.clone()));
            let args = call.args().map(canonical).unwrap_or_default();
            let repeated = !seen.insert((id, args));
            stats.repeated += u64::from(repeated);
            repeats |= repeated;
            match result {
                None => stats.unanswered += 1,
                Some(result) if result.is_error == Some(true) => {
                    stats.errors += 1;
                    let kind = result.extra("error_kind").and_then(|kind| kind.as_str());
                    count(&mut self.error_kinds, kind);
                }
                Some(_) => {}
            }
        }
        self.traces_with_repeats += u64::from(repeats);
    }

    /// The figures of all observed traces.
    #[must_use]
    pub fn finish(self) -> Stats {
        let id = self.servers.into_ids();
        let mut by_id: BTreeMap<String, ToolStats> = BTreeMap::new();
        for (tool, stats) in self.tools {
            let tool = id(&tool);
            by_id.entry(tool.clone()).or_default().add(tool, &stats);
        }
        let mut tools: Vec<ToolStats> = by_id.into_values().collect();
        // Stable: tools with the same number of calls stay in the order of their names.
        tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
        let sum = |figure: fn(&ToolStats) -> u64| tools.iter().map(figure).sum();
        Stats {
            traces: self.traces,
            failed_runs: self.failed_runs,
            tests: self.tests,
            models: self.models,
            calls: self.calls.spread(),
            errors: sum(|tool| tool.errors),
            error_kinds: self.error_kinds,
            unanswered: sum(|tool| tool.unanswered),
            repeated_calls: sum(|tool| tool.repeated),
            traces_with_repeats: self.traces_with_repeats,
            input_tokens: self.input.spread(),
            output_tokens: self.output.spread(),
            unknown_tokens: self.traces - self.total.total,
            total_tokens: self.total.spread(),
            cost_usd: (self.priced > 0).then(|| self.cost.to_f64()),
            unknown_cost: self.traces - self.priced,
            prices_of: Prices::builtin().date(),
            tools,
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, key: Option<&str>) {
    if let Some(key) = key {
        match counts.get_mut(key) {
            Some(count) => *count += 1,
            None => {
                counts.insert(key.to_owned(), 1);
            }
        }
    }
}

/// The number of tools that the text shows.
const SHOWN_TOOLS: usize = 30;

impl Stats {
    /// The figures as text, the important ones first.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let calls = self.calls.map_or(0, |calls| calls.sum);
        let mut line = |name: &str, text: String| {
            if !text.is_empty() {
                let _ = writeln!(out, "{name:<15} {text}");
            }
        };
        line("traces", self.traces_line());
        line("calls", self.calls_line(calls));
        line(
            "errors",
            share(self.errors, calls, &kinds(&self.error_kinds)),
        );
        let in_traces = format!("in {}", counted(self.traces_with_repeats, "trace"));
        line(
            "repeated calls",
            share(self.repeated_calls, calls, &in_traces),
        );
        line("tokens", self.tokens_line());
        line("cost", self.cost_line());
        if self.tools.is_empty() {
            return out;
        }
        let shown = &self.tools[..self.tools.len().min(SHOWN_TOOLS)];
        let names: Vec<String> = shown.iter().map(|tool| one_line(&tool.tool)).collect();
        let width = names.iter().map(|name| name.chars().count()).max();
        let width = width.unwrap_or(0).max(4);
        let _ = writeln!(out, "\n{:<width$}  calls  traces  errors  repeated", "tool");
        for (name, tool) in names.iter().zip(shown) {
            let ToolStats {
                calls,
                traces,
                errors,
                repeated,
                ..
            } = tool;
            let _ = writeln!(
                out,
                "{name:<width$}  {calls:>5}  {traces:>6}  {errors:>6}  {repeated:>8}"
            );
        }
        let hidden = self.tools.len() - shown.len();
        if hidden > 0 {
            let _ = writeln!(
                out,
                "and {} (--json lists all)",
                counted(hidden as u64, "more tool")
            );
        }
        out
    }

    fn traces_line(&self) -> String {
        let mut parts = vec![self.traces.to_string()];
        if !self.tests.is_empty() {
            parts.push(counted(self.tests.len() as u64, "test"));
        }
        if !self.models.is_empty() {
            parts.push(counted(self.models.len() as u64, "model"));
        }
        if self.failed_runs > 0 {
            let failed = counted(self.failed_runs, "run");
            parts.push(format!("{failed} could not be completed"));
        }
        parts.join(", ")
    }

    fn calls_line(&self, calls: u64) -> String {
        let Some(spread) = self.calls else {
            return "0".to_owned();
        };
        let mut text = format!("{calls} of {}; ", counted(self.tools.len() as u64, "tool"));
        text += &format!("per trace {}", spread.text());
        if self.unanswered > 0 {
            let _ = write!(text, "; {} without a result", self.unanswered);
        }
        text
    }

    fn tokens_line(&self) -> String {
        let Some(total) = self.total_tokens else {
            return "unknown".to_owned();
        };
        let mut text = total.sum.to_string();
        if let (Some(input), Some(output)) = (self.input_tokens, self.output_tokens) {
            let _ = write!(text, " ({} in, {} out)", input.sum, output.sum);
        }
        let _ = write!(text, "; per trace {}", total.text());
        if self.unknown_tokens > 0 {
            let unknown = counted(self.unknown_tokens, "trace");
            let _ = write!(text, "; unknown in {unknown}");
        }
        text
    }

    fn cost_line(&self) -> String {
        let Some(cost) = self.cost_usd else {
            return "unknown: no trace has both its tokens and a model with a known price"
                .to_owned();
        };
        let mut text = format!("${cost:.4} (list prices of {})", self.prices_of);
        if self.unknown_cost > 0 {
            let unknown = counted(self.unknown_cost, "trace");
            let _ = write!(text, "; unknown in {unknown}");
        }
        text
    }
}

impl Spread {
    fn text(self) -> String {
        let Self {
            min,
            median,
            p95,
            max,
            ..
        } = self;
        format!("{min} to {max}, median {median}, 95th percentile {p95}")
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn kinds(kinds: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("{count} {}", one_line(kind)))
        .collect();
    parts.join(", ")
}

/// A count with its share of all calls and a remark.
fn share(part: u64, calls: u64, remark: &str) -> String {
    match percent::down(part, calls) {
        Some(percent) if part > 0 && remark.is_empty() => format!("{part} ({percent} % of calls)"),
        Some(percent) if part > 0 => format!("{part} ({percent} % of calls), {remark}"),
        _ => part.to_string(),
    }
}

#[cfg(test)]
mod tests;
