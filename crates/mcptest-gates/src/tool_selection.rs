//! How often a model reaches for the expected tool, and at what price (`tool_selection:`).
//!
//! # What it measures
//! One run is a coin flip. Over N runs of the same prompt the floor asks for two things at once: a
//! least rate of runs that call the expected tool, and, where a cap is set, that *every* run stays
//! within it.
//!
//! # Formula
//! A run *selects* the tool if any of its calls is that tool. A run is *within budget* if its
//! `conversation.tokens.total` is at most `max_total_tokens`.
//!
//! - selection rate = runs that select / runs
//! - pass^k = runs that select **and** are within budget / runs. This is the plain fraction of good
//!   runs, as the line prints it; it is not the estimator of the `reliability:` block.
//! - tokens: median (of an even count, the mean of the middle two, rounded down) and largest
//! - the floor passes if selection rate ≥ `min_selection_rate` and every run is within budget
//!
//! Percents are rounded down; the rate is compared as written, so 7 of 10 meets 0.7. A run of
//! unknown token usage is not a run of zero tokens: under a cap, it leaves the floor without
//! evidence.
//!
//! # Example
//! ```
//! use mcptest_gates::tool_selection::median;
//! assert_eq!(median(&[1500, 1840, 1541, 1200]), Some(1520));
//! ```
//!
//! # When not to use it
//! With one run: a rate over one run says nothing.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use super::outlook::{Imagined, Outlook, Reach, Reaches, Steady};
use super::{Context, Gate, LoadContext, Run, Score, TargetInfo, Unit};
use mcptest_json::text::one_line;
use mcptest_numbers::percent::{self, Rate};
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};

/// A floor under how often the expected tool is selected, and a cap on what each run may cost.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSelection {
    /// The tool that the model is supposed to call.
    #[schemars(length(min = 1))]
    pub expected_tool: String,
    /// The least fraction of runs that must call it, 0.0 to 1.0.
    #[schemars(schema_with = "fraction")]
    pub min_selection_rate: Number,
    /// The most tokens that any one run may use. Without it there is no cap.
    #[serde(default)]
    pub max_total_tokens: Option<u64>,
    /// More assertions, on `floor.*`. The floor itself always applies.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

fn fraction(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "number", "minimum": 0, "maximum": 1})
}

/// The middle of the values; of an even count, the mean of the middle two, rounded down.
#[must_use]
pub fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    // The mean lies between the two, so it fits.
    Some(lower + (upper - lower) / 2)
}

struct RunFigures {
    index: u64,
    selected: bool,
    tokens: Option<u64>,
    /// Unknown if there is a cap and no token count.
    within_budget: Option<bool>,
    called: Vec<String>,
}

impl ToolSelection {
    fn figures(&self, context: &Context<'_>, run: &Run<'_>) -> RunFigures {
        let calls = &run.trace.tool_calls;
        let tokens = run.trace.total_tokens();
        RunFigures {
            index: run.index,
            selected: calls
                .iter()
                .any(|call| call.is(&self.expected_tool, context.servers)),
            tokens,
            within_budget: match self.max_total_tokens {
                None => Some(true),
                Some(cap) => tokens.map(|tokens| tokens <= cap),
            },
            called: calls.iter().map(|call| call.name().to_owned()).collect(),
        }
    }

    fn breaches(&self, rate: Option<Rate>, runs: &[RunFigures], selected: u64) -> Vec<String> {
        let total = runs.len() as u64;
        let mut breaches = Vec::new();
        if let Some(rate) = rate.filter(|rate| !rate.met_by(selected, total)) {
            breaches.push(format!(
                "selection rate {}% is below the {}% floor ({selected} of {total} runs selected `{}`)",
                percent::down(selected, total).unwrap_or(0),
                rate.percent_text(),
                self.expected_tool
            ));
        }
        if let Some(cap) = self.max_total_tokens {
            let over: Vec<u64> = runs
                .iter()
                .filter(|run| run.within_budget == Some(false))
                .filter_map(|run| run.tokens)
                .collect();
            if let Some(worst) = over.iter().max() {
                breaches.push(format!(
                    "{} of {total} runs exceeded the {cap}-token budget (worst run {worst} tokens)",
                    over.len()
                ));
            }
        }
        breaches
    }

    /// What the rates and the floor can still become. With a cap, a later run may exceed it or not
    /// tell its tokens, so only a breach is certain.
    fn rate_reach(&self, selected: Steady, remaining: u64, over_budget: bool) -> Reaches {
        let mut reach = vec![("floor.selection_rate", selected.reach(remaining))];
        let capped = self.max_total_tokens.is_some();
        if !capped {
            reach.push(("floor.pass_hat_k", selected.reach(remaining)));
        }
        let Some(rate) = Rate::from_number(&self.min_selection_rate) else {
            return reach;
        };
        let total = selected.whole + remaining;
        if over_budget || !rate.met_by(selected.part + remaining, total) {
            reach.push(("floor.passed", Reach::between(0, 0)));
        } else if !capped {
            let certain = rate.met_by(selected.part, total);
            reach.push(("floor.passed", Reach::between(u64::from(certain), 1)));
        }
        reach
    }

    /// The runs that missed, one line each.
    fn misses(&self, runs: &[RunFigures]) -> Vec<String> {
        runs.iter()
            .filter_map(|run| {
                let mut parts = Vec::new();
                if !run.selected {
                    let called = if run.called.is_empty() {
                        "no tool".to_owned()
                    } else {
                        one_line(&run.called.join(", "))
                    };
                    parts.push(format!(
                        "did not select `{}`, called {called}",
                        self.expected_tool
                    ));
                }
                if let (Some(false), Some(tokens)) = (run.within_budget, run.tokens) {
                    parts.push(format!("{tokens} tokens, over budget"));
                }
                (!parts.is_empty()).then(|| format!("  run {}: {}", run.index, parts.join("; ")))
            })
            .collect()
    }
}

/// What the outlook needs of the runs so far.
#[derive(Default)]
pub struct Tally {
    selected: Steady,
    over_budget: bool,
    /// The most tokens that a run told.
    largest: u64,
    /// Whether a run did not tell its tokens.
    untold: bool,
}

impl Gate for ToolSelection {
    const BLOCK: &'static str = "tool_selection";
    const SUMMARY: &'static str = "A floor under how often the expected tool is selected across runs, with an optional token cap per run.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "floor.selection_rate",
            Unit::Percent,
            "Runs that selected the tool.",
        ),
        TargetInfo::new(
            "floor.pass_hat_k",
            Unit::Percent,
            "Runs that selected the tool within the token cap (the plain fraction).",
        ),
        TargetInfo::new(
            "floor.tokens_median",
            Unit::Tokens,
            "Median of the runs' total tokens.",
        ),
        TargetInfo::new(
            "floor.tokens_max",
            Unit::Tokens,
            "Largest of the runs' total tokens.",
        ),
        TargetInfo::new(
            "floor.passed",
            Unit::Flag,
            "1 if the rate is met and every run is within the cap.",
        ),
    ];
    const DEFAULTS_ALWAYS: bool = true;

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "floor.passed",
            Matcher::at_least(1),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        if Rate::from_number(&self.min_selection_rate).is_some() {
            Vec::new()
        } else {
            vec![Problem::new(
                "/min_selection_rate",
                format!(
                    "{} is not a fraction from 0.0 to 1.0",
                    self.min_selection_rate
                ),
            )]
        }
    }

    fn score(&self, context: &Context<'_>, runs: &[Run<'_>]) -> Score {
        let figures: Vec<RunFigures> = runs.iter().map(|run| self.figures(context, run)).collect();
        let total = figures.len() as u64;
        let count = |fits: &dyn Fn(&RunFigures) -> bool| {
            figures.iter().filter(|run| fits(run)).count() as u64
        };
        let selected = count(&|run| run.selected);
        let good = count(&|run| run.selected && run.within_budget == Some(true));
        let unknown: Vec<u64> = figures
            .iter()
            .filter(|run| run.within_budget.is_none())
            .map(|run| run.index)
            .collect();
        let tokens: Vec<u64> = figures.iter().filter_map(|run| run.tokens).collect();
        // Figures over part of the runs would look like figures over all of them.
        let all_known = tokens.len() == figures.len();
        let tokens_median = median(&tokens).filter(|_| all_known);
        let tokens_max = tokens.iter().max().copied().filter(|_| all_known);

        let rate = Rate::from_number(&self.min_selection_rate);
        let breaches = self.breaches(rate, &figures, selected);
        let passed = if !breaches.is_empty() {
            Some(false)
        } else if unknown.is_empty() {
            Some(true)
        } else {
            None
        };
        let selection_rate = percent::down(selected, total).unwrap_or(0);
        let pass_hat_k = unknown
            .is_empty()
            .then(|| percent::down(good, total).unwrap_or(0));

        let mut score = Score::default();
        let why_tokens = "token usage is unknown in some runs";
        for (target, known) in [
            ("floor.tokens_median", all_known),
            ("floor.tokens_max", all_known),
            ("floor.pass_hat_k", pass_hat_k.is_some()),
            ("floor.passed", passed.is_some()),
        ] {
            if !known {
                score.absent.push((target, why_tokens.to_owned()));
            }
        }
        if !unknown.is_empty() {
            score.undetermined.push("floor.pass_hat_k");
            if passed.is_none() {
                score.undetermined.push("floor.passed");
            }
            let list: Vec<String> = unknown.iter().map(u64::to_string).collect();
            score.no_evidence = Some(format!(
                "token usage is unknown under a token cap (run {})",
                list.join(", ")
            ));
        }

        let verdict = match passed {
            Some(true) => "PASS",
            Some(false) => "FAIL",
            None => "NO EVIDENCE",
        };
        let spent = match (tokens_median, tokens_max) {
            (Some(median), Some(max)) => format!("tokens {median} median / {max} max"),
            _ => "tokens unknown".to_owned(),
        };
        let hat = pass_hat_k.map_or_else(|| "unknown".to_owned(), |percent| format!("{percent}%"));
        score.summary =
            format!("selection {selected}/{total} ({selection_rate}%), pass^k {hat}, {spent}");
        score.status_lines.push(format!(
            "tool-selection floor [{verdict}] {}: {}",
            context.label, score.summary
        ));
        score.status_lines.extend(
            breaches
                .iter()
                .map(|breach| format!("FLOOR {}: {breach}", context.label)),
        );
        if !breaches.is_empty() {
            score.status_lines.extend(self.misses(&figures));
        }
        score.values = vec![
            ("floor.selection_rate", selection_rate.into()),
            ("floor.pass_hat_k", pass_hat_k.into()),
            ("floor.tokens_median", tokens_median.into()),
            ("floor.tokens_max", tokens_max.into()),
            ("floor.passed", passed.map(u8::from).into()),
        ];
        let per_run: Vec<Value> = figures
            .iter()
            .map(|run| json!({"index": run.index, "selected": run.selected, "tokens": run.tokens, "within_budget": run.within_budget, "called": run.called}))
            .collect();
        score.detail = Map::from_iter([
            (
                "expected_tool".to_owned(),
                self.expected_tool.as_str().into(),
            ),
            ("passed".to_owned(), passed.into()),
            ("runs".to_owned(), total.into()),
            ("selected".to_owned(), selected.into()),
            ("selection_rate".to_owned(), selection_rate.into()),
            ("pass_hat_k".to_owned(), pass_hat_k.into()),
            (
                "pass_hat_k_estimator".to_owned(),
                "fraction of runs that selected the tool within budget".into(),
            ),
            ("tokens_median".to_owned(), tokens_median.into()),
            ("tokens_max".to_owned(), tokens_max.into()),
            ("breaches".to_owned(), breaches.into()),
            ("per_run".to_owned(), per_run.into()),
        ]);
        score
    }
    const DECIDES_EARLY: bool = true;

    type Tally = Tally;

    fn count(&self, tally: &mut Tally, context: &Context<'_>, run: &Run<'_>) {
        let figures = self.figures(context, run);
        tally.selected.count_run(figures.selected);
        tally.over_budget |= figures.within_budget == Some(false);
        match figures.tokens {
            Some(tokens) => tally.largest = tally.largest.max(tokens),
            None => tally.untold = true,
        }
    }

    fn outlook(&self, tally: &Tally, remaining: u64) -> Outlook {
        let mut reach = self.rate_reach(tally.selected, remaining, tally.over_budget);
        if tally.untold {
            reach.push(("floor.tokens_median", Reach::Absent));
            reach.push(("floor.tokens_max", Reach::Absent));
        } else {
            // A later run may not tell its tokens, and then no figure is given for all.
            reach.push((
                "floor.tokens_max",
                Reach::at_least(tally.largest).or_absent(),
            ));
        }
        Outlook {
            reach,
            may_lack_evidence: self.max_total_tokens.is_some(),
        }
    }

    fn imagine(&self, tally: &Tally, next: Imagined, remaining: u64) -> Option<Reaches> {
        // Under a cap, one run can break the floor.
        if self.max_total_tokens.is_some() {
            return None;
        }
        Some(self.rate_reach(tally.selected.after(next), remaining, false))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{GateOutcome, testing};
    use mcptest_trace::trace::{Conversation, Tokens, ToolCall, Trace};
    use mcptest_trace::verdict::Verdict;

    fn run(tool: &str, tokens: Option<u64>) -> Trace {
        Trace {
            tool_calls: if tool.is_empty() {
                vec![]
            } else {
                vec![ToolCall::new(Some("weather"), tool)]
            },
            conversation: Conversation {
                tokens: tokens.map(|total| Tokens {
                    total: Some(total),
                    ..Tokens::default()
                }),
                ..Conversation::default()
            },
            ..Trace::default()
        }
    }

    fn judge(block: Value, traces: &[Trace]) -> GateOutcome {
        testing::judge("tool_selection", &block, traces)
    }

    fn floor(rate: f64, cap: Option<u64>) -> Value {
        let mut block = json!({"expected_tool": "get_weather", "min_selection_rate": rate});
        if let Some(cap) = cap {
            block["max_total_tokens"] = cap.into();
        }
        block
    }

    #[test]
    fn the_documented_passing_line() {
        let mut runs: Vec<_> = [1500, 1510, 1520, 1400, 1840, 1520, 1600, 1700, 1300]
            .iter()
            .map(|tokens| run("get_weather", Some(*tokens)))
            .collect();
        runs.push(run("search", Some(1520)));
        let outcome = judge(floor(0.8, Some(2000)), &runs);
        assert_eq!(outcome.verdict, Verdict::Pass);
        assert_eq!(
            outcome.status_lines,
            [
                "tool-selection floor [PASS] test: selection 9/10 (90%), pass^k 90%, tokens 1520 median / 1840 max"
            ]
        );
        assert_eq!(
            outcome.detail.to_value()["per_run"][9],
            json!({"index": 10, "selected": false, "tokens": 1520, "within_budget": true, "called": ["search"]})
        );
    }

    #[test]
    fn the_documented_failing_lines() {
        let runs = [
            run("get_weather", Some(100)),
            run("search", Some(100)),
            run("get_weather", Some(3120)),
            run("get_weather", Some(2400)),
            run("get_weather", Some(100)),
            run("", Some(100)),
            run("search", Some(100)),
            run("get_weather", Some(2100)),
            run("get_weather", Some(100)),
            run("search", Some(100)),
        ];
        let outcome = judge(floor(0.8, Some(2000)), &runs);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(
            outcome.status_lines[1],
            "FLOOR test: selection rate 60% is below the 80% floor (6 of 10 runs selected `get_weather`)"
        );
        assert_eq!(
            outcome.status_lines[2],
            "FLOOR test: 3 of 10 runs exceeded the 2000-token budget (worst run 3120 tokens)"
        );
        assert!(
            outcome
                .status_lines
                .contains(&"  run 4: 2400 tokens, over budget".to_owned())
        );
        assert!(
            outcome
                .status_lines
                .contains(&"  run 7: did not select `get_weather`, called search".to_owned())
        );
        assert!(
            outcome
                .status_lines
                .contains(&"  run 6: did not select `get_weather`, called no tool".to_owned())
        );
        assert_eq!(outcome.values["floor.pass_hat_k"], 30);
    }

    #[test]
    fn the_rate_is_compared_as_written() {
        let runs: Vec<_> = (0..10)
            .map(|index| run(if index < 7 { "get_weather" } else { "x" }, None))
            .collect();
        assert_eq!(judge(floor(0.7, None), &runs).verdict, Verdict::Pass);
        assert_eq!(judge(floor(0.71, None), &runs).verdict, Verdict::Fail);
    }

    #[test]
    fn the_cap_is_all_or_nothing_and_inclusive() {
        assert_eq!(
            judge(floor(0.0, Some(100)), &[run("get_weather", Some(100))]).verdict,
            Verdict::Pass
        );
        let outcome = judge(
            floor(0.0, Some(100)),
            &[run("get_weather", Some(100)), run("get_weather", Some(101))],
        );
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert_eq!(outcome.values["floor.selection_rate"], 100);
    }

    #[test]
    fn unknown_usage_is_not_zero() {
        let outcome = judge(
            floor(0.5, Some(100)),
            &[run("get_weather", Some(50)), run("get_weather", None)],
        );
        assert_eq!(outcome.verdict, Verdict::NoEvidence);
        assert_eq!(outcome.values["floor.passed"], Value::Null);
        assert_eq!(outcome.values["floor.tokens_max"], Value::Null);
        assert!(outcome.no_evidence.unwrap().contains("run 2"));
        // What is certain stays certain: a missed rate, or a known run over the cap.
        assert_eq!(
            judge(floor(1.0, Some(100)), &[run("x", None)]).verdict,
            Verdict::Fail
        );
        assert_eq!(
            judge(
                floor(0.0, Some(100)),
                &[run("x", None), run("x", Some(101))]
            )
            .verdict,
            Verdict::Fail
        );
        // Without a cap nobody asks for tokens.
        assert_eq!(
            judge(floor(0.5, None), &[run("get_weather", None)]).verdict,
            Verdict::Pass
        );
    }

    #[test]
    fn an_assertion_on_unknown_tokens_fails_and_says_why() {
        let mut block = floor(0.0, None);
        block["expect"] = json!([{"floor.tokens_max": {"<=": 10}}]);
        let outcome = judge(block, &[run("x", None)]);
        assert_eq!(outcome.verdict, Verdict::Fail);
        assert!(
            outcome.assertions[1]
                .reason
                .as_ref()
                .unwrap()
                .contains("token usage is unknown")
        );
    }

    #[test]
    fn further_expectations_do_not_replace_the_floor() {
        let mut block = floor(1.0, None);
        block["expect"] = json!([{"floor.selection_rate": {">=": 0}}]);
        assert_eq!(judge(block, &[run("x", None)]).verdict, Verdict::Fail);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[5]), Some(5));
        assert_eq!(median(&[1, 2]), Some(1));
        assert_eq!(median(&[4, 1, 9]), Some(4));
        assert_eq!(median(&[u64::MAX, u64::MAX - 1]), Some(u64::MAX - 1));
    }

    proptest! {
        #[test]
        fn order_of_runs_changes_no_value(mut runs in prop::collection::vec((any::<bool>(), prop::option::of(0_u64..300)), 1..9)) {
            let traces = |runs: &[(bool, Option<u64>)]| -> Vec<Trace> {
                runs.iter().map(|(hit, tokens)| run(if *hit { "get_weather" } else { "x" }, *tokens)).collect()
            };
            let before = judge(floor(0.5, Some(200)), &traces(&runs));
            runs.reverse();
            let after = judge(floor(0.5, Some(200)), &traces(&runs));
            prop_assert_eq!(&before.values, &after.values);
            prop_assert_eq!(before.verdict, after.verdict);
            if let Some(hat) = before.values["floor.pass_hat_k"].as_u64() {
                prop_assert!(hat <= before.values["floor.selection_rate"].as_u64().unwrap());
            }
        }
    }
}
