//! Comparison of the expected calls with the recorded ones.

use serde::Serialize;

use super::args::{ArgsMismatch, ArgsOptions, ExpectedArgs};
use super::assign::{largest_assignment, largest_ordered_assignment};
use super::{Mode, Trajectory};
use mcptest_json::text::{one_line, shorten};
use mcptest_trace::catalog::Tool;
use mcptest_trace::matcher::{Difference, Problem};
use mcptest_trace::tool_id::{KnownServers, full_id};
use mcptest_trace::trace::{ToolCallView, TraceView};

/// The result of comparing one trace with the expected calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TraceValidation {
    /// True if the trace is as expected under the mode.
    pub passed: bool,
    /// All differences.
    pub mismatches: Vec<TraceMismatch>,
    /// For each expected call, the recorded call that it was matched with.
    pub assignment: Vec<Option<usize>>,
}

/// One expected call without its recorded one, or one recorded call too many. Indices count from 0,
/// as in `tool_calls[0]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TraceMismatch {
    /// The expected call; `None` for a call that was not expected.
    pub expected_index: Option<usize>,
    /// The recorded call that it was compared with; `None` if there is none.
    pub recorded_index: Option<usize>,
    /// The reason, in one line.
    pub reason: String,
    /// The places where the arguments differ.
    pub diff: Vec<Difference>,
}

/// The compiled expected calls.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    mode: Mode,
    calls: Vec<PlannedCall>,
}

#[derive(Debug, Clone)]
struct PlannedCall {
    name: String,
    server: Option<String>,
    args: ExpectedArgs,
}

impl Plan {
    pub(super) fn compile(written: &Trajectory) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let calls = written
            .calls
            .iter()
            .enumerate()
            .map(|(index, call)| {
                let options = ArgsOptions {
                    ignore_keys: written
                        .ignore_keys
                        .iter()
                        .chain(&call.ignore_keys)
                        .cloned()
                        .collect(),
                    defaults: call.defaults.unwrap_or(written.defaults),
                };
                PlannedCall {
                    name: call.name.clone(),
                    server: call.server.clone(),
                    args: ExpectedArgs::compile(
                        &call.args,
                        options,
                        &format!("/calls/{index}/args"),
                        &mut problems,
                    ),
                }
            })
            .collect();
        if problems.is_empty() {
            Ok(Self {
                mode: written.mode,
                calls,
            })
        } else {
            Err(problems)
        }
    }

    /// The number of mismatches, which are not explained.
    pub(super) fn count_mismatches(&self, trace: &TraceView<'_>, servers: &KnownServers) -> usize {
        self.comparison(trace, servers).count()
    }

    pub(super) fn validate(
        &self,
        trace: &TraceView<'_>,
        servers: &KnownServers,
    ) -> TraceValidation {
        let (assignment, mismatches) = self.comparison(trace, servers).line_up();
        TraceValidation {
            passed: mismatches.is_empty(),
            mismatches,
            assignment,
        }
    }

    fn comparison<'a>(
        &'a self,
        trace: &'a TraceView<'a>,
        servers: &'a KnownServers,
    ) -> Comparison<'a> {
        // Reading the catalog costs more than all the rest.
        let needs_tools = self.calls.iter().any(|call| call.args.wants_defaults());
        let calls = trace.tool_calls.iter().filter(|_| needs_tools);
        let tools = calls.map(|call| offered(call, trace)).collect();
        Comparison {
            plan: self,
            trace,
            servers,
            tools,
        }
    }
}

/// The catalog's entry for a call's tool, if it is unambiguous.
fn offered<'a>(call: &ToolCallView<'_>, trace: &'a TraceView<'a>) -> Option<&'a Tool> {
    let named = || {
        let tools = trace.catalog().unwrap_or_default().iter();
        tools.filter(|tool| !call.name().is_empty() && tool.name() == call.name())
    };
    if let Some(same) = named().find(|tool| tool.server() == call.server.as_deref()) {
        return Some(same);
    }
    let mut unclear = named().filter(|tool| tool.server().is_none() || call.server.is_none());
    unclear.next().filter(|_| unclear.next().is_none())
}

struct Comparison<'a> {
    plan: &'a Plan,
    trace: &'a TraceView<'a>,
    servers: &'a KnownServers,
    /// For each recorded call; empty if no expected call asks for tools.
    tools: Vec<Option<&'a Tool>>,
}

type Assignment = Vec<Option<usize>>;

impl Comparison<'_> {
    /// The number of mismatches that [`line_up`](Self::line_up) explains.
    fn count(&self) -> usize {
        let expected = self.plan.calls.len();
        let recorded = self.trace.tool_calls.len();
        if expected == 0 && !self.plan.mode.forbids_calls_when_empty() {
            return 0;
        }
        let is_any_order = matches!(self.plan.mode, Mode::Unordered | Mode::Superset);
        if is_any_order && self.first_come() {
            return 0;
        }
        let matched = |assignment: Assignment| assignment.iter().flatten().count();
        match self.plan.mode {
            Mode::Strict => {
                let fitting = (0..expected.min(recorded)).filter(|at| self.fits(*at, *at));
                expected.max(recorded) - fitting.count()
            }
            Mode::Subsequence => expected - matched(self.in_order()),
            Mode::Unordered | Mode::Superset => expected - matched(self.any_order()),
            Mode::Subset => recorded - matched(self.any_order_of_recorded()),
            Mode::ExactSet => expected + recorded - 2 * matched(self.any_order()),
        }
    }

    fn line_up(&self) -> (Assignment, Vec<TraceMismatch>) {
        let expected = self.plan.calls.len();
        let recorded = self.trace.tool_calls.len();
        let allows_anything = expected == 0 && !self.plan.mode.forbids_calls_when_empty();
        if allows_anything {
            return (Vec::new(), Vec::new());
        }
        let mut mismatches = Vec::new();
        let assignment = match self.plan.mode {
            Mode::Strict => {
                let mut assignment: Assignment = Vec::new();
                for index in 0..expected.max(recorded) {
                    let found = self.at_position(index);
                    if index < expected {
                        assignment.push(found.is_none().then_some(index));
                    }
                    mismatches.extend(found);
                }
                assignment
            }
            Mode::Subsequence => {
                let assignment = self.in_order();
                for index in unassigned(&assignment) {
                    mismatches.push(self.missed_in_order(index, &assignment));
                }
                assignment
            }
            Mode::Unordered | Mode::Superset => {
                let assignment = self.any_order();
                for index in unassigned(&assignment) {
                    mismatches.push(self.missed(index, &assignment));
                }
                assignment
            }
            Mode::Subset => {
                let of_recorded = self.any_order_of_recorded();
                let assignment = inverted(&of_recorded, expected);
                for call in unassigned(&of_recorded) {
                    mismatches.push(self.extra(call, &assignment));
                }
                assignment
            }
            Mode::ExactSet => {
                let assignment = self.any_order();
                for index in unassigned(&assignment) {
                    mismatches.push(self.missed(index, &assignment));
                }
                for call in unassigned(&inverted(&assignment, recorded)) {
                    mismatches.push(self.extra(call, &assignment));
                }
                assignment
            }
        };
        (assignment, mismatches)
    }

    /// The assignment of each of the first `count` calls to the call at the same position, if all
    /// fit. Where it exists, every search below would find it: at each step the earlier positions
    /// are taken and this one is the first that is free.
    fn in_place(&self, count: usize) -> Option<Assignment> {
        let both = self.plan.calls.len().min(self.trace.tool_calls.len());
        (count <= both && (0..count).all(|index| self.fits(index, index)))
            .then(|| (0..count).map(Some).collect())
    }

    /// Returns true if each expected call finds a recorded one when it takes the first that fits.
    fn first_come(&self) -> bool {
        let recorded = self.trace.tool_calls.len();
        let mut taken = vec![false; recorded];
        (0..self.plan.calls.len()).all(|index| {
            let mut free = (0..recorded).filter(|call| !taken[*call]);
            let found = free.find(|call| self.fits(index, *call));
            found.map(|call| taken[call] = true).is_some()
        })
    }

    /// A largest assignment of expected calls to recorded ones that keeps their order.
    fn in_order(&self) -> Assignment {
        self.in_place(self.plan.calls.len()).unwrap_or_else(|| {
            largest_ordered_assignment(&self.edges(), self.trace.tool_calls.len())
        })
    }

    /// A largest assignment of expected calls to recorded ones.
    fn any_order(&self) -> Assignment {
        self.in_place(self.plan.calls.len())
            .unwrap_or_else(|| largest_assignment(&self.edges(), self.trace.tool_calls.len()))
    }

    /// A largest assignment of recorded calls to expected ones. From the recorded side, so that the
    /// calls left over are late ones.
    fn any_order_of_recorded(&self) -> Assignment {
        let recorded = self.trace.tool_calls.len();
        self.in_place(recorded).unwrap_or_else(|| {
            let mut edges = vec![Vec::new(); recorded];
            for (index, fitting) in self.edges().iter().enumerate() {
                for &call in fitting {
                    edges[call].push(index);
                }
            }
            largest_assignment(&edges, self.plan.calls.len())
        })
    }

    /// For each expected call, the recorded ones that fit, in order.
    fn edges(&self) -> Vec<Vec<usize>> {
        (0..self.plan.calls.len())
            .map(|index| {
                (0..self.trace.tool_calls.len())
                    .filter(|call| self.fits(index, *call))
                    .collect()
            })
            .collect()
    }

    fn fits(&self, expected: usize, recorded: usize) -> bool {
        let call = &self.trace.tool_calls[recorded];
        let args = &self.plan.calls[expected].args;
        self.is_tool(expected, recorded) && args.fits(call, self.tool(recorded))
    }

    /// The catalog's entry for a recorded call.
    fn tool(&self, recorded: usize) -> Option<&Tool> {
        self.tools.get(recorded).copied().flatten()
    }

    fn is_tool(&self, expected: usize, recorded: usize) -> bool {
        let wanted = &self.plan.calls[expected];
        let call = &self.trace.tool_calls[recorded];
        match &wanted.server {
            Some(server) => {
                call.server.as_deref() == Some(server)
                    && (call.name() == wanted.name || call.is(&wanted.name, self.servers))
            }
            None => call.is(&wanted.name, self.servers),
        }
    }

    fn check_args(&self, expected: usize, recorded: usize) -> Result<(), ArgsMismatch> {
        let args = &self.plan.calls[expected].args;
        let tool = self.tool(recorded);
        args.check(&self.trace.tool_calls[recorded], tool)
            .map_err(|mut mismatch| {
                mismatch.reason = one_line(&mismatch.reason);
                if args.wants_defaults() && tool.is_none() {
                    mismatch.reason.push_str(
                        " (no stored catalog has this tool, so its schema defaults are unknown)",
                    );
                }
                mismatch
            })
    }

    /// The mismatch at one position under `strict`.
    fn at_position(&self, index: usize) -> Option<TraceMismatch> {
        let is_expected = index < self.plan.calls.len();
        let is_recorded = index < self.trace.tool_calls.len();
        if !is_expected {
            return Some(mismatch(
                None,
                Some(index),
                format!(
                    "{} is one call more than the {} expected",
                    self.called(index),
                    self.plan.calls.len()
                ),
            ));
        }
        if !is_recorded {
            return Some(mismatch(
                Some(index),
                None,
                format!(
                    "expected {}, but the trace ended before it",
                    self.wanted(index)
                ),
            ));
        }
        if !self.is_tool(index, index) {
            return Some(mismatch(
                Some(index),
                Some(index),
                format!(
                    "expected {}, recorded {}",
                    self.wanted(index),
                    self.called(index)
                ),
            ));
        }
        let found = self.check_args(index, index).err()?;
        Some(self.of_args(index, index, found))
    }

    /// The mismatch of an expected call that has no place in a `subsequence`.
    fn missed_in_order(&self, expected: usize, assignment: &Assignment) -> TraceMismatch {
        let after = assignment[..expected].iter().rev().flatten().next();
        let before = assignment[expected..].iter().flatten().next();
        let in_window = |call: &usize| {
            after.is_none_or(|after| call > after) && before.is_none_or(|b| call < b)
        };
        let window: Vec<usize> = (0..self.trace.tool_calls.len()).filter(in_window).collect();
        if let Some((recorded, found)) = self.nearest_recorded(expected, window.into_iter()) {
            return self.of_args(expected, recorded, found);
        }
        let elsewhere = (0..self.trace.tool_calls.len()).find(|call| self.fits(expected, *call));
        match elsewhere {
            Some(recorded) => mismatch(
                Some(expected),
                Some(recorded),
                format!(
                    "{} was called, but not in the expected order or not often enough",
                    self.wanted(expected)
                ),
            ),
            None => self.missed(expected, assignment),
        }
    }

    /// The mismatch of an expected call that is left over.
    fn missed(&self, expected: usize, assignment: &Assignment) -> TraceMismatch {
        let free = inverted(assignment, self.trace.tool_calls.len());
        let candidates = (0..free.len()).filter(|call| free[*call].is_none());
        if let Some((recorded, found)) = self.nearest_recorded(expected, candidates) {
            return self.of_args(expected, recorded, found);
        }
        let called = (0..self.trace.tool_calls.len()).any(|call| self.is_tool(expected, call));
        let words = if called {
            "has no call of its own: every call of it belongs to another expected call"
        } else {
            "was never called"
        };
        mismatch(
            Some(expected),
            None,
            format!("{} {words}", self.wanted(expected)),
        )
    }

    /// The mismatch of a recorded call that is left over.
    fn extra(&self, recorded: usize, assignment: &Assignment) -> TraceMismatch {
        let nearest = (0..self.plan.calls.len())
            .filter(|expected| assignment[*expected].is_none() && self.is_tool(*expected, recorded))
            .filter_map(|expected| Some((expected, self.check_args(expected, recorded).err()?)))
            .min_by_key(|(_, found)| found.diff.len());
        if let Some((expected, found)) = nearest {
            return self.of_args(expected, recorded, found);
        }
        let known = (0..self.plan.calls.len()).any(|expected| self.is_tool(expected, recorded));
        let words = if known {
            "was called more often than expected"
        } else {
            "was not expected"
        };
        mismatch(
            None,
            Some(recorded),
            format!("{} {words}", self.called(recorded)),
        )
    }

    /// The call of the right tool whose arguments come nearest without fitting.
    fn nearest_recorded(
        &self,
        expected: usize,
        candidates: impl Iterator<Item = usize>,
    ) -> Option<(usize, ArgsMismatch)> {
        candidates
            .filter(|recorded| self.is_tool(expected, *recorded))
            .filter_map(|recorded| Some((recorded, self.check_args(expected, recorded).err()?)))
            .min_by_key(|(_, found)| found.diff.len())
    }

    fn of_args(&self, expected: usize, recorded: usize, found: ArgsMismatch) -> TraceMismatch {
        TraceMismatch {
            expected_index: Some(expected),
            recorded_index: Some(recorded),
            reason: format!("arguments of {}: {}", self.called(recorded), found.reason),
            diff: found.diff,
        }
    }

    fn wanted(&self, expected: usize) -> String {
        let call = &self.plan.calls[expected];
        quoted(&full_id(call.server.as_deref(), &call.name))
    }

    fn called(&self, recorded: usize) -> String {
        quoted(&self.trace.tool_calls[recorded].full_id())
    }
}

fn quoted(id: &str) -> String {
    format!("`{}`", one_line(&shorten(id, 100)))
}

fn mismatch(
    expected_index: Option<usize>,
    recorded_index: Option<usize>,
    reason: String,
) -> TraceMismatch {
    TraceMismatch {
        expected_index,
        recorded_index,
        reason,
        diff: Vec::new(),
    }
}

fn unassigned(assignment: &Assignment) -> impl Iterator<Item = usize> {
    assignment
        .iter()
        .enumerate()
        .filter(|(_, matched)| matched.is_none())
        .map(|(index, _)| index)
}

/// The same assignment from the other side.
fn inverted(assignment: &Assignment, others: usize) -> Assignment {
    let mut inverted = vec![None; others];
    for (index, other) in assignment.iter().enumerate() {
        if let Some(other) = other {
            inverted[*other] = Some(index);
        }
    }
    inverted
}
