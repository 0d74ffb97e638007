//! A trace as a readable timeline: turns, calls with their results, the answer, the cost.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mcptest_catalog::prices::Prices;
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::trace::{ToolCallView, ToolResultView, TraceView, TurnView};
use serde_json::Value;

use crate::result_text::result_text;

/// The layout of a timeline.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The most characters of a line; longer ones are truncated.
    pub width: Option<usize>,
}

/// The lines of a result that are shown if lines are truncated.
const RESULT_LINES: usize = 3;
/// The lines of a message that are shown if lines are truncated.
const MESSAGE_LINES: usize = 8;
/// The column in which texts of the conversation begin.
const LABEL: usize = 10;

/// The timeline of one trace.
#[must_use]
pub fn timeline(trace: &TraceView<'_>, layout: Layout) -> String {
    let mut timeline = Timeline {
        out: String::new(),
        layout,
    };
    timeline.heading(trace);
    timeline.conversation(trace);
    timeline.summary(trace);
    timeline.out
}

/// The attacks whose text a result carried.
fn attacks_of<'r>(result: &'r ToolResultView<'_>) -> Vec<&'r str> {
    match result.extra("attack") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// An attack of a run in words: its name, place, wording and canary.
fn attack_words(attack: &Value) -> String {
    let text = |key: &str| attack.get(key).and_then(Value::as_str).map(one_line);
    let mut parts: Vec<String> = text("name").into_iter().collect();
    parts.extend(text("place").map(|place| format!("in the {place}")));
    parts.extend(text("payload").map(|wording| format!("wording {wording}")));
    parts.extend(text("canary").map(|canary| format!("canary {canary}")));
    let offered = attack.get("offered_after_calls").and_then(Value::as_u64);
    parts.extend(offered.map(|calls| format!("offered after {}", plural_calls(calls))));
    parts.join(" · ")
}

fn plural_calls(calls: u64) -> String {
    plural(usize::try_from(calls).unwrap_or(usize::MAX), "call")
}

/// A call and its result.
type Exchange<'t, 'a> = (&'t ToolCallView<'a>, Option<&'t ToolResultView<'a>>);

struct Timeline {
    out: String,
    layout: Layout,
}

impl Timeline {
    fn line(&mut self, text: &str) {
        let text = match self.layout.width {
            Some(width) => shorten(text, width),
            None => text.to_owned(),
        };
        let _ = writeln!(self.out, "{}", text.trim_end());
    }

    /// A text under a label; further lines are indented below it.
    fn labelled(&mut self, label: &str, text: &str, most: usize) {
        let lines: Vec<&str> = text.trim().lines().collect();
        let shown = match self.layout.width {
            Some(_) => lines.len().min(most),
            None => lines.len(),
        };
        for (at, line) in lines[..shown].iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            self.line(&format!("  {label:<LABEL$} {}", one_line(line)));
        }
        let hidden = lines.len() - shown;
        if hidden > 0 {
            self.line(&format!("  {:<LABEL$} … {hidden} more lines", ""));
        }
        if lines.is_empty() {
            self.line(&format!("  {label}"));
        }
    }

    fn heading(&mut self, trace: &TraceView<'_>) {
        let mut parts = vec![match &trace.test {
            Some(test) => one_line(test),
            None => "trace".to_owned(),
        }];
        parts.extend(trace.run.map(|run| format!("run {run}")));
        parts.extend(trace.model.as_deref().map(one_line));
        self.line(&parts.join(" · "));
        let attacks = trace.extra("attacks").and_then(Value::as_array);
        for attack in attacks.into_iter().flatten() {
            self.line(&format!("  {:<LABEL$} {}", "attack", attack_words(attack)));
        }
    }

    fn conversation(&mut self, trace: &TraceView<'_>) {
        let mut by_turn: BTreeMap<u64, Vec<Exchange<'_, '_>>> = BTreeMap::new();
        let mut without_turn = Vec::new();
        for exchange in trace.tool_calls.iter().zip(trace.results_by_call()) {
            match exchange.0.turn {
                Some(turn) => by_turn.entry(turn).or_default().push(exchange),
                None => without_turn.push(exchange),
            }
        }
        let mut assistant_turns = 0;
        let mut last_text = String::new();
        for turn in trace.conversation.turns.iter().flatten() {
            match turn.role.as_deref() {
                Some("assistant") => {
                    assistant_turns += 1;
                    // Calls of turns that the conversation does not have come in their order.
                    while let Some(entry) = by_turn.first_entry() {
                        if *entry.key() >= assistant_turns {
                            break;
                        }
                        self.calls(&entry.remove());
                    }
                    let text = turn.text();
                    let calls = by_turn.remove(&assistant_turns).unwrap_or_default();
                    if !text.trim().is_empty() || !calls.is_empty() {
                        self.labelled(&format!("turn {assistant_turns}"), &text, MESSAGE_LINES);
                    }
                    self.calls(&calls);
                    if !text.trim().is_empty() {
                        last_text = text;
                    }
                }
                // Results are shown with their calls.
                Some("tool") if !trace.tool_results.is_empty() => {}
                role => self.message(role.unwrap_or("unknown"), turn),
            }
        }
        for (turn, calls) in by_turn {
            self.line(&format!("  turn {turn}"));
            self.calls(&calls);
        }
        self.calls(&without_turn);
        if let Some(answer) = trace.final_response.as_deref()
            && answer.trim() != last_text.trim()
        {
            self.labelled("answer", answer, MESSAGE_LINES);
        }
    }

    fn message(&mut self, role: &str, turn: &TurnView<'_>) {
        self.labelled(&one_line(role), &turn.text(), MESSAGE_LINES);
    }

    fn calls(&mut self, calls: &[Exchange<'_, '_>]) {
        for (call, result) in calls {
            let args = call.args().map(ToString::to_string).unwrap_or_default();
            let id = one_line(&call.full_id());
            self.line(&format!("    {id} {}", one_line(&args)));
            match result {
                None => self.line("      no result"),
                Some(result) => self.result(result),
            }
        }
    }

    fn result(&mut self, result: &ToolResultView<'_>) {
        let label = match (result.is_error, result.extra("error_kind")) {
            (Some(true), Some(kind)) => {
                format!("error ({}): ", one_line(kind.as_str().unwrap_or("unknown")))
            }
            (Some(true), None) => "error: ".to_owned(),
            _ => String::new(),
        };
        let fault = result.extra("fault").and_then(|fault| fault.as_str());
        let mut marks = fault.map_or_else(String::new, |name| {
            format!("[injected fault `{}`] ", one_line(name))
        });
        for name in attacks_of(result) {
            marks.push_str(&format!("[attack `{}` delivered] ", one_line(name)));
        }
        if result.extra("contained") == Some(&true.into()) {
            marks.push_str("[contained: it met the attacker's goal and was not sent] ");
        }
        let text = result_text(result);
        let lines: Vec<&str> = text.lines().collect();
        let shown = match self.layout.width {
            Some(_) => lines.len().min(RESULT_LINES),
            None => lines.len(),
        };
        let first = lines.first().copied().unwrap_or("(no content)");
        self.line(&format!("      → {marks}{label}{}", one_line(first)));
        for line in &lines[shown.min(1)..shown] {
            self.line(&format!("        {}", one_line(line)));
        }
        let hidden = lines.len().saturating_sub(shown.max(1));
        if hidden > 0 {
            self.line(&format!("        … {hidden} more lines"));
        }
    }

    fn summary(&mut self, trace: &TraceView<'_>) {
        let mut parts = vec![plural(trace.tool_calls.len(), "call")];
        let errors = trace.failed_results();
        if errors > 0 {
            parts.push(plural(errors, "error"));
        }
        match &trace.conversation.tokens {
            None => parts.push("tokens unknown".to_owned()),
            Some(tokens) => {
                let figure =
                    |name, value: Option<u64>| value.map(|value| format!("{value} {name}"));
                let figures = [
                    figure("tokens", tokens.total),
                    figure("in", tokens.input),
                    figure("out", tokens.output),
                ];
                parts.extend(figures.into_iter().flatten());
                let price = trace
                    .model
                    .as_deref()
                    .and_then(|it| Prices::builtin().find(it));
                let cost = price.and_then(|price| price.cost(tokens));
                parts.extend(cost.map(|cost| format!("${:.4}", cost.to_f64())));
            }
        }
        self.line(&format!("  {}", parts.join(", ")));
        if let Some(error) = &trace.error {
            let message = one_line(&error.message);
            self.line(&format!(
                "  run failed ({}): {message}",
                error.kind.as_str()
            ));
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use mcptest_trace::trace::TraceView;

    use super::*;

    const TRACE: &str = r#"{"test": "weather", "run": 2, "model": "m",
        "tool_calls": [
          {"id": "a", "name": "get", "server": "w", "args": {"city": "Rome"}, "turn": 1},
          {"id": "b", "name": "alerts", "turn": 2},
          {"id": "c", "name": "late", "args": "{broken"}],
        "tool_results": [
          {"call_id": "b", "is_error": true, "error_kind": "timeout", "fault": "hang",
           "content": [{"type": "text", "text": "no answer"}]},
          {"call_id": "a", "content": [{"type": "text", "text": "1\n2\n3\n4\u001b[31m"}]}],
        "conversation": {"turns": [
            {"role": "user", "content": "Weather?"},
            {"role": "assistant", "content": "I will see."},
            {"role": "tool", "content": "1"},
            {"role": "assistant", "content": ""}],
          "tokens": {"input": 900, "output": 120, "total": 1020}},
        "final_response": "Sunny."}"#;

    #[test]
    fn a_timeline_has_turns_calls_results_and_the_answer_in_order() {
        let trace = TraceView::parse(TRACE).unwrap();
        let expected = "\
weather · run 2 · m
  user       Weather?
  turn 1     I will see.
    w.get {\"city\":\"Rome\"}
      → 1
        2
        3
        … 1 more lines
  turn 2
    alerts
      → [injected fault `hang`] error (timeout): no answer
    late \"{broken\"
      no result
  answer     Sunny.
  3 calls, 1 error, 1020 tokens, 900 in, 120 out
";
        let layout = Layout { width: Some(80) };
        assert_eq!(timeline(&trace, layout), expected);
    }

    #[test]
    fn lines_are_truncated_only_if_asked_and_never_carry_escapes() {
        let trace = TraceView::parse(TRACE).unwrap();
        let all = timeline(&trace, Layout { width: None });
        assert!(all.contains("        4\\u{1b}[31m"), "{all}");
        assert!(!all.contains('\u{1b}'), "{all}");
        let narrow = timeline(&trace, Layout { width: Some(20) });
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 20),
            "{narrow}"
        );
    }

    #[test]
    fn turns_that_are_not_in_the_conversation_are_shown_too() {
        let text = r#"{"tool_calls": [{"name": "b", "turn": 2}, {"name": "a", "turn": 1}]}"#;
        let trace = TraceView::parse(text).unwrap();
        let shown = timeline(&trace, Layout { width: None });
        let expected = "\
trace
  turn 1
    a
      no result
  turn 2
    b
      no result
  2 calls, tokens unknown
";
        assert_eq!(shown, expected);
    }
}
