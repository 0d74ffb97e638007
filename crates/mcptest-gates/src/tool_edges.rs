//! A policy on tools and their order (`tool_edges:`).
//!
//! **Did the agent keep to the policy?** A policy has a list of tools that may be used, a list of
//! tools that may not even be tried, and pairs of which the second tool must be called after the
//! first (a planner that hands over to a worker, a lookup before a write).
//!
//! # The block
//! ```yaml
//! tool_edges:
//!   allowed: [catalog.search, shop.order]
//!   restricted: [shop.refund]
//!   delegation:
//!     - { from: catalog.search, to: shop.order }
//!   expect:
//!     - edges.restricted_attempts: 0
//!     - edges.delegation_pct: 100
//! ```
//!
//! # Output
//! ```text
//! FAIL   books: tool_edges  1 restricted attempt · allowed 66 · delegation 100 · run 1: called restricted `shop.refund`
//!        edges.restricted_attempts
//!          expected  exact 0
//!          actual    1
//! ```
//!
//! # Formula
//! Over all runs:
//!
//! - `edges.allowed_pct`: calls whose tool is in `allowed` / all calls, in percent, rounded down.
//!   100 without an `allowed` list, and without any call.
//! - `edges.restricted_attempts`: the number of calls whose tool is in `restricted`. The attempt
//!   counts, whatever the result was, and also for a tool that is in both lists.
//! - `edges.delegation_pct`: declared pairs of which some call of `to` came after some call of
//!   `from`, counted in each run, / (declared pairs × runs), in percent, rounded down. 100 without
//!   pairs.
//! - `edges.gate_passed`: 1 if there was no restricted attempt, else 0.
//!
//! When `expect:` is omitted, only restricted attempts fail the gate; assert the others under
//! `expect:`. Runs without any call keep every policy: if no run made a call, the verdict is
//! `no_evidence`, except under `allowed: []`, which requires exactly that. A block without any rule
//! is `no_evidence` too.
//!
//! # When not to use it
//! For rules about arguments, or for exact plans: that is [`trajectory`](super::trajectory).
//!
//! # In Rust
//! ```
//! use mcptest_gates::tool_edges::{ToolEdges, score_tool_edges};
//! use mcptest_trace::{tool_id::KnownServers, trace::ToolCall};
//!
//! let policy: ToolEdges = serde_json::from_value(serde_json::json!({
//!     "allowed": ["billing.get_invoice", "billing.list_invoices"],
//!     "restricted": ["billing.refund"],
//!     "delegation": [{"from": "billing.list_invoices", "to": "billing.get_invoice"}]
//! })).unwrap();
//! let calls = ["list_invoices", "get_invoice", "refund"].map(|name| ToolCall::new(Some("billing"), name));
//! let report = score_tool_edges(&policy, &calls, &KnownServers::default());
//! assert_eq!((report.allowed, report.calls), (2, 3));
//! assert_eq!(report.restricted, [2]);
//! assert_eq!(report.delegated, [true]);
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::first_runs::earliest;
use crate::forecast::{Bounds, Forecast, PooledPercent};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, LoadContext, Run, Score, TargetInfo, ToolReference, Unit};
use mcptest_json::text::{one_line, shorten};
use mcptest_numbers::percent;
use mcptest_trace::detail::DetailBuilder;
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::{Matcher, Problem};
use mcptest_trace::tool_id::KnownServers;
use mcptest_trace::trace::ToolCallView;

/// A policy on which tools may be called and which must follow which.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolEdges {
    /// The tools that may be called, by name or `server.tool`. Without the list, all may.
    #[serde(default)]
    pub allowed: Option<Vec<String>>,
    /// The tools that may not be called, by name or `server.tool`.
    #[serde(default)]
    pub restricted: Vec<String>,
    /// Pairs of tools of which the second must be called after the first.
    #[serde(default)]
    pub delegation: Vec<Delegation>,
    /// Assertions on `edges.allowed_pct`, `.restricted_attempts`, `.delegation_pct` and
    /// `.gate_passed`. Default: `edges.restricted_attempts` is 0.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// A hand-over from one tool to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    /// The tool that hands over: its name, or `server.tool`.
    #[schemars(length(min = 1))]
    pub from: String,
    /// The tool that must be called after it.
    #[schemars(length(min = 1))]
    pub to: String,
}

/// One run against the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolEdgesReport {
    /// All calls.
    pub calls: u64,
    /// Calls of allowed tools.
    pub allowed: u64,
    /// Indices of the calls that are not allowed, from 0.
    pub not_allowed: Vec<usize>,
    /// Indices of the calls of restricted tools, from 0.
    pub restricted: Vec<usize>,
    /// For each declared pair, true if it was followed.
    pub delegated: Vec<bool>,
}

/// Compares the calls of one run with the policy.
#[must_use]
pub fn score_tool_edges(
    policy: &ToolEdges,
    calls: &[ToolCallView<'_>],
    servers: &KnownServers,
) -> ToolEdgesReport {
    let is_in =
        |list: &[String], call: &ToolCallView<'_>| list.iter().any(|tool| call.is(tool, servers));
    let indices = |fits: &dyn Fn(&ToolCallView<'_>) -> bool| -> Vec<usize> {
        (0..calls.len())
            .filter(|index| fits(&calls[*index]))
            .collect()
    };
    let not_allowed = match &policy.allowed {
        Some(allowed) => indices(&|call| !is_in(allowed, call)),
        None => Vec::new(),
    };
    let delegated = policy
        .delegation
        .iter()
        .map(|pair| {
            let first = calls.iter().position(|call| call.is(&pair.from, servers));
            let last = calls.iter().rposition(|call| call.is(&pair.to, servers));
            matches!((first, last), (Some(first), Some(last)) if first < last)
        })
        .collect();
    ToolEdgesReport {
        calls: calls.len() as u64,
        allowed: (calls.len() - not_allowed.len()) as u64,
        not_allowed,
        restricted: indices(&|call| is_in(&policy.restricted, call)),
        delegated,
    }
}

impl ToolEdges {
    fn has_rules(&self) -> bool {
        self.allowed.is_some() || !self.restricted.is_empty() || !self.delegation.is_empty()
    }

    fn no_evidence(&self, calls: u64) -> Option<String> {
        if !self.has_rules() {
            return Some("no rule is declared".to_owned());
        }
        let asks_for_no_calls = self.allowed.as_ref().is_some_and(Vec::is_empty);
        (calls == 0 && !asks_for_no_calls)
            .then(|| "no tool was called, so no rule could be broken".to_owned())
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EdgesAccumulator {
    calls: u64,
    /// Calls of allowed tools.
    allowed: u64,
    /// Calls of restricted tools.
    attempts: u64,
    /// Delegations that were followed.
    followed: u64,
    runs: u64,
    /// The first run that violated a rule, and the rule.
    first_finding: Option<(u64, String)>,
    findings: RunRows,
    rows: RunRows,
}

impl Accumulator for EdgesAccumulator {
    fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.allowed += other.allowed;
        self.attempts += other.attempts;
        self.followed += other.followed;
        self.runs += other.runs;
        self.first_finding = earliest(self.first_finding.take(), other.first_finding);
        self.findings.merge(other.findings);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        if let Some((run, _)) = &mut self.first_finding {
            *run = number(*run);
        }
        self.findings.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.findings.leave_out();
        self.rows.leave_out();
    }
}

impl ToolEdgesReport {
    /// The rules that the run violated.
    fn findings<'a>(
        &'a self,
        policy: &'a ToolEdges,
        calls: &'a [ToolCallView<'_>],
    ) -> impl Iterator<Item = Finding> {
        let name = |index: &usize| one_line(&shorten(&calls[*index].full_id(), 100));
        let finding = |kind, recorded_index, reason| Finding {
            kind,
            recorded_index,
            reason,
        };
        let tried = self.restricted.iter().map(move |index| {
            let reason = format!("called restricted `{}`", name(index));
            finding("restricted", Some(*index), reason)
        });
        let not_allowed = self.not_allowed.iter().map(move |index| {
            let reason = format!("called `{}`, which is not allowed", name(index));
            finding("not_allowed", Some(*index), reason)
        });
        let pairs = policy.delegation.iter().zip(&self.delegated);
        let unfollowed = pairs.filter(|(_, held)| !**held).map(move |(pair, _)| {
            let reason = format!("no call of `{}` came after `{}`", pair.to, pair.from);
            finding("delegation", None, reason)
        });
        tried.chain(not_allowed).chain(unfollowed)
    }
}

/// A rule that a run violated.
#[derive(Serialize)]
struct Finding {
    kind: &'static str,
    recorded_index: Option<usize>,
    reason: String,
}

/// A row of the report's detail.
#[derive(Serialize)]
struct EdgesRow<'a> {
    calls: u64,
    allowed: u64,
    restricted_attempts: usize,
    delegated: &'a [bool],
}

impl Gate for ToolEdges {
    const BLOCK: &'static str = "tool_edges";
    const SUMMARY: &'static str =
        "A policy on which tools may be called and which must follow which.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "edges.allowed_pct",
            Unit::Percent,
            "Calls of allowed tools, over all runs.",
        ),
        TargetInfo::new(
            "edges.restricted_attempts",
            Unit::Count,
            "Calls of restricted tools, over all runs.",
        ),
        TargetInfo::new(
            "edges.delegation_pct",
            Unit::Percent,
            "Declared pairs that were followed, over all runs.",
        ),
        TargetInfo::new(
            "edges.gate_passed",
            Unit::Flag,
            "1 if no restricted tool was called.",
        ),
    ];

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "edges.restricted_attempts",
            Matcher::at_most(0),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    fn check(&mut self, _: &LoadContext<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !self.has_rules() {
            problems.push(
                Problem::new(
                    "",
                    "none of `allowed`, `restricted` and `delegation` has a rule to judge",
                )
                .as_warning(),
            );
        } else if self.restricted.is_empty() && self.expect.is_empty() {
            problems.push(
                Problem::new(
                    "",
                    "without `restricted` tools the default assertion cannot fail",
                )
                .help("assert `edges.allowed_pct` or `edges.delegation_pct` under `expect:`")
                .as_warning(),
            );
        }
        for (index, tool) in self.restricted.iter().enumerate() {
            if self
                .allowed
                .as_ref()
                .is_some_and(|allowed| allowed.contains(tool))
            {
                problems.push(
                    Problem::new(
                        format!("/restricted/{index}"),
                        format!("`{tool}` is both allowed and restricted"),
                    )
                    .help("a call of it counts as allowed, and as a restricted attempt")
                    .as_warning(),
                );
            }
        }
        problems
    }

    fn tool_names(&self) -> Vec<ToolReference> {
        let allowed = self.allowed.as_deref().unwrap_or_default();
        let mut names: Vec<_> = ToolReference::of_list("/allowed", allowed).collect();
        let restricted = ToolReference::of_list("/restricted", &self.restricted);
        names.extend(restricted.map(ToolReference::optional));
        for (index, pair) in self.delegation.iter().enumerate() {
            let at = format!("/delegation/{index}");
            names.push(ToolReference::new(format!("{at}/from"), &pair.from));
            names.push(ToolReference::new(format!("{at}/to"), &pair.to));
        }
        names
    }

    type Accumulator = EdgesAccumulator;

    fn observe(&self, accumulator: &mut EdgesAccumulator, context: &Context<'_>, run: &Run<'_>) {
        let calls = &run.trace.tool_calls;
        let report = score_tool_edges(self, calls, context.servers);
        accumulator.calls += report.calls;
        accumulator.allowed += report.allowed;
        accumulator.attempts += report.restricted.len() as u64;
        accumulator.followed += report.delegated.iter().filter(|held| **held).count() as u64;
        accumulator.runs += 1;
        let is_earlier = |(first, _): &(u64, String)| run.index < *first;
        if accumulator.first_finding.as_ref().is_none_or(is_earlier)
            && let Some(finding) = report.findings(self, calls).next()
        {
            accumulator.first_finding = Some((run.index, finding.reason));
        }
        if accumulator.rows.are_kept() {
            for finding in report.findings(self, calls) {
                accumulator.findings.push(run.index, &finding);
            }
            let row = EdgesRow {
                calls: report.calls,
                allowed: report.allowed,
                restricted_attempts: report.restricted.len(),
                delegated: &report.delegated,
            };
            accumulator.rows.push(run.index, &row);
        }
    }

    fn finish(&self, accumulator: EdgesAccumulator, _: &Context<'_>) -> Score {
        let EdgesAccumulator {
            calls,
            allowed,
            attempts,
            followed,
            runs,
            first_finding,
            findings,
            rows,
        } = accumulator;
        let declared = self.delegation.len() as u64 * runs;
        let allowed_pct = percent::down(allowed, calls).unwrap_or(100);
        let delegation_pct = percent::down(followed, declared).unwrap_or(100);
        let noun = if attempts == 1 { "attempt" } else { "attempts" };
        let mut summary = format!(
            "{attempts} restricted {noun} · allowed {allowed_pct} · delegation {delegation_pct}"
        );
        if let Some((run, reason)) = first_finding {
            summary.push_str(&format!(" · run {run}: {reason}"));
        }
        let mut detail = DetailBuilder::default();
        findings.write("findings", "run", &mut detail);
        rows.write("per_run", "index", &mut detail);
        Score {
            values: vec![
                ("edges.allowed_pct", allowed_pct.into()),
                ("edges.restricted_attempts", attempts.into()),
                ("edges.delegation_pct", delegation_pct.into()),
                ("edges.gate_passed", u8::from(attempts == 0).into()),
            ],
            detail: detail.into(),
            summary,
            no_evidence: self.no_evidence(calls),
            ..Score::default()
        }
    }

    fn forecast(&self, accumulator: &EdgesAccumulator, remaining: u64) -> Option<Forecast> {
        let pairs = self.delegation.len();
        let delegation = PooledPercent {
            part: accumulator.followed,
            whole: pairs as u64 * accumulator.runs,
            per_run: pairs as u64,
        };
        let violated = accumulator.allowed < accumulator.calls;
        let allowed = match (&self.allowed, violated) {
            (None, _) => Bounds::between(100, 100),
            (Some(_), false) => Bounds::between(0, 100),
            (Some(list), true) if list.is_empty() => Bounds::between(0, 0),
            (Some(_), true) => Bounds::between(0, 99),
        };
        let attempts = accumulator.attempts;
        let (attempts, passed) = if self.restricted.is_empty() {
            (Bounds::between(0, 0), Bounds::between(1, 1))
        } else {
            (
                Bounds::at_least(attempts),
                Bounds::between(0, u64::from(attempts == 0)),
            )
        };
        Some(Forecast {
            bounds: vec![
                ("edges.allowed_pct", allowed),
                ("edges.restricted_attempts", attempts),
                ("edges.delegation_pct", delegation.bounds(remaining)),
                ("edges.gate_passed", passed),
            ],
            may_lack_evidence: self.no_evidence(accumulator.calls).is_some(),
        })
    }
}

#[cfg(test)]
mod tests;
