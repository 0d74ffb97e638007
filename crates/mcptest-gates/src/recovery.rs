//! Recovery from a tool that does not answer (`recovery:`).
//!
//! **Does the agent notice a tool that hangs, and continue without it?** The hardest fault is the
//! silent one: the connection is open, the call never returns, and there is no error. A good agent
//! notices within its timeout, stops waiting and continues another way. The suite injects such a
//! fault, and this gate reads from the trace when the agent noticed and when it continued. The idea
//! is from ToolMisuseBench (arXiv:2604.01508).
//!
//! # The block
//! ```yaml
//! recovery:
//!   max_detection_ms: 3000
//!   max_recovery_ms: 5000
//!   require_clean_timeout: true
//! ```
//! The test's `inject:` names the faults of the suite's `faults:` list that it meets.
//!
//! # Output
//! ```text
//! FAIL   books: recovery  recovered in 1 of 2 runs · detection 3000 ms · recovery never · hang 3000 ms · run 2: did not recover
//!        recovery.passed  (the default)
//!          expected  >= 1
//!          actual    0
//! ```
//!
//! # Formula
//! Time is virtual, so nothing sleeps and every machine gets the same figures. Each synthesized
//! timeout takes one `max_detection_ms`; an injected delay takes its `delay_ms`; healthy calls take
//! no time. Per run:
//!
//! - the clock starts with the first call that times out; *detection* is the end of that call
//! - *recovery* is the next healthy call of a later turn: any call without a fault, of any tool and
//!   with any result. A healthy call in the same turn as the timeout was made before the agent saw
//!   it, so it is not a recovery; where a trace does not number its turns, the order of the calls
//!   decides. A call that a `slow` fault delays within the budget is healthy, at the end of its
//!   delay. With `accept: answer`, a closing answer after the timeout counts too; the default is
//!   `accept: call`, because giving up is not recovering
//! - a call that hangs in the server itself, such as `mcptest mock --fault hang`, counts like an
//!   injected timeout, with the time that it really took: the call's `timeout`. So set that to
//!   `max_detection_ms` or less
//! - where a fault fired but nothing timed out (a `slow` one within the budget), the clock starts
//!   with the first delayed call, there is no detection, and the late answer itself is the recovery
//!
//! The figures of a run follow from these marks:
//!
//! - `time_to_detection_ms`, `time_to_recovery_ms`: from the start to the mark, or nothing
//! - `user_visible_hang_ms`: from the start to the earlier of the two marks; without any mark,
//!   `max_detection_ms`
//! - `recovered`: there is a recovery mark
//! - `clean_timeout`: there is a detection mark, at most `max_detection_ms` after the start
//! - `passed`: recovered, and not later than `max_recovery_ms` where that is set, and with a clean
//!   timeout where `require_clean_timeout` is set. Equal to a budget is within it
//!
//! Over several runs each flag holds only if it holds in every run; times are the worst run's, and
//! `null` if any run has none. Recovery takes at least one timeout, so a `max_recovery_ms` below
//! `max_detection_ms` can only fail. That the run passes is always asserted, also next to a written
//! `expect:`.
//!
//! A fault that never fired is `no_evidence`: the agent never met it. If it fired in some runs
//! only, the figures are about those; when they are good the verdict is still `no_evidence`, and
//! the message lists the runs that never met it.
//!
//! # When not to use it
//! For errors that a tool reports: those are `orchestration.error_recovery`. And with
//! `require_clean_timeout` on a `slow` fault whose delay is within the budget: nothing times out
//! there, so a clean timeout is impossible.
//!
//! # In Rust
//! ```
//! use mcptest_gates::recovery::{RecoveryLimits, RecoveryMarks, score_recovery};
//!
//! let limits = RecoveryLimits { max_detection_ms: 3000, max_recovery_ms: Some(5000), require_clean_timeout: true };
//! let clean = RecoveryMarks { started_ms: 0, detected_ms: Some(3000), recovered_ms: Some(3400) };
//! assert!(score_recovery(&limits, &clean).passed);
//! // Detection after 9 seconds is not a clean timeout, and the user saw all nine of them.
//! let late = RecoveryMarks { started_ms: 0, detected_ms: Some(9000), recovered_ms: Some(9400) };
//! let late = score_recovery(&limits, &late);
//! assert!(late.recovered && !late.clean_timeout && !late.passed);
//! assert_eq!(late.user_visible_hang_ms, 9000);
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::first_runs::FirstRuns;
use crate::forecast::{Bounds, Forecast};
use crate::run_rows::RunRows;
use crate::{Accumulator, Context, Gate, Run, Score, TargetInfo, Unit};
use mcptest_json::text::one_line;
use mcptest_trace::detail::{Detail, DetailBuilder};
use mcptest_trace::expect::{Expectation, WrittenExpectation};
use mcptest_trace::matcher::Matcher;
use mcptest_trace::trace::{ToolResultView, TraceView};

/// Judges how an agent recovers from the faults that its test injects.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// The time that one call may hang before it must be noticed, in milliseconds. Each synthesized
    /// timeout takes this long.
    pub max_detection_ms: u64,
    /// The time from the start of the hung call to the recovery, in milliseconds.
    /// Without it there is no limit.
    #[serde(default)]
    pub max_recovery_ms: Option<u64>,
    /// If true, passing requires a timeout within `max_detection_ms`.
    #[serde(default)]
    pub require_clean_timeout: bool,
    /// The events that count as a recovery.
    #[serde(default)]
    pub accept: Accept,
    /// More assertions, on `recovery.*`. That the run passes is always asserted.
    #[serde(default)]
    pub expect: Vec<WrittenExpectation>,
}

/// The events that count as a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// Only a healthy call after the timeout.
    #[default]
    Call,
    /// A healthy call, or a closing answer after the timeout.
    Answer,
}

/// When things happened in one run, in milliseconds of any one clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryMarks {
    /// The faulted call began.
    pub started_ms: u64,
    /// The agent noticed.
    pub detected_ms: Option<u64>,
    /// The agent continued.
    pub recovered_ms: Option<u64>,
}

/// The limits of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryLimits {
    /// The timeout budget of one call.
    pub max_detection_ms: u64,
    /// The budget of the whole recovery.
    pub max_recovery_ms: Option<u64>,
    /// True if passing requires a clean timeout.
    pub require_clean_timeout: bool,
}

/// The report of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// The agent continued.
    pub recovered: bool,
    /// The agent noticed within the budget of one call.
    pub clean_timeout: bool,
    /// The run recovered within its limits.
    pub passed: bool,
    /// From the start to noticing.
    pub time_to_detection_ms: Option<u64>,
    /// The time from the start to continuing.
    pub time_to_recovery_ms: Option<u64>,
    /// The time that the user saw the agent hang.
    pub user_visible_hang_ms: u64,
}

/// Turns the marks of one run into a report. A mark before the start counts as the start.
#[must_use]
pub fn score_recovery(limits: &RecoveryLimits, marks: &RecoveryMarks) -> RecoveryReport {
    let since_start = |mark: Option<u64>| mark.map(|mark| mark.saturating_sub(marks.started_ms));
    let time_to_detection_ms = since_start(marks.detected_ms);
    let time_to_recovery_ms = since_start(marks.recovered_ms);
    let user_visible_hang_ms = [time_to_detection_ms, time_to_recovery_ms]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(limits.max_detection_ms);
    let clean_timeout = time_to_detection_ms.is_some_and(|time| time <= limits.max_detection_ms);
    let in_time = time_to_recovery_ms
        .is_some_and(|time| limits.max_recovery_ms.is_none_or(|most| time <= most));
    RecoveryReport {
        recovered: time_to_recovery_ms.is_some(),
        clean_timeout,
        passed: in_time && (clean_timeout || !limits.require_clean_timeout),
        time_to_detection_ms,
        time_to_recovery_ms,
        user_visible_hang_ms,
    }
}

/// The effect of a fault on a call, from the recorded result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// No fault; a call without a result is one too.
    Healthy,
    /// A timeout that was synthesized.
    Timeout,
    /// A timeout in the server itself, after this time.
    Hung(u64),
    /// Answered, but this late.
    Late(u64),
    /// Faulty in some other way: neither a recovery nor time that passes.
    Faulty,
}

fn effect(result: Option<&ToolResultView<'_>>, max_detection_ms: u64) -> Effect {
    let Some(result) = result else {
        return Effect::Healthy;
    };
    let text = |key: &str| result.extra(key).and_then(Value::as_str);
    let failed = result.is_error == Some(true);
    let timeout = failed && text("error_kind") == Some("timeout");
    if text("fault").is_none() {
        // A call that hung in the server itself took as long as it did. A timeout of unknown
        // duration is not part of the experiment, and it is not a recovery either.
        let took = result.extra.get("timeout_ms").and_then(Value::as_u64);
        return match (timeout, took) {
            (true, Some(took)) => Effect::Hung(took),
            (true, None) => Effect::Faulty,
            (false, _) => Effect::Healthy,
        };
    }
    let delay = result
        .extra
        .get("delay_ms")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    if timeout || delay > max_detection_ms {
        Effect::Timeout
    } else if failed {
        Effect::Faulty
    } else {
        Effect::Late(delay)
    }
}

/// The faults in the trace of one run.
struct Reading {
    /// Nothing if no fault fired.
    marks: Option<RecoveryMarks>,
    /// Every call that a fault applied to, for the report.
    faulted: Vec<FaultedCall>,
}

/// A call that a fault affected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct FaultedCall {
    /// The call's number, from 1.
    call: usize,
    tool: String,
    fault: String,
    timeout: bool,
    at_ms: u64,
    took_ms: u64,
}

fn read(trace: &TraceView<'_>, max_detection_ms: u64, accept: Accept) -> Reading {
    let mut clock = 0_u64;
    let mut faulted = Vec::new();
    // The start of the first delayed call and its end.
    let mut first_late: Option<(u64, u64)> = None;
    let mut hung: Option<RecoveryMarks> = None;
    // The turn of the first timeout, if it is known.
    let mut hung_turn: Option<u64> = None;
    let mut last_timeout = 0;
    for (index, (call, result)) in trace
        .tool_calls
        .iter()
        .zip(trace.results_by_call())
        .enumerate()
    {
        let before = clock;
        let effect = effect(result, max_detection_ms);
        match effect {
            Effect::Timeout => clock = clock.saturating_add(max_detection_ms),
            Effect::Late(took) | Effect::Hung(took) => clock = clock.saturating_add(took),
            Effect::Healthy | Effect::Faulty => {}
        }
        match effect {
            Effect::Timeout | Effect::Hung(_) => {
                last_timeout = index;
                if hung.is_none() {
                    hung_turn = call.turn;
                }
                hung.get_or_insert(RecoveryMarks {
                    started_ms: before,
                    detected_ms: Some(clock),
                    recovered_ms: None,
                });
            }
            Effect::Healthy | Effect::Late(_) => {
                if let Some(marks) = &mut hung {
                    // The calls of one turn are made together, before any of their results.
                    let same_turn = hung_turn
                        .zip(call.turn)
                        .is_some_and(|(hung, own)| own <= hung);
                    if !same_turn {
                        marks.recovered_ms.get_or_insert(clock);
                    }
                } else if matches!(effect, Effect::Late(_)) {
                    first_late.get_or_insert((before, clock));
                }
            }
            Effect::Faulty => {}
        }
        let injected = result.and_then(|result| result.extra("fault")?.as_str());
        let own = matches!(effect, Effect::Hung(_)).then_some("timeout of the server");
        if let Some(fault) = injected.or(own) {
            faulted.push(FaultedCall {
                call: index + 1,
                tool: call.full_id(),
                fault: fault.to_owned(),
                timeout: matches!(effect, Effect::Timeout | Effect::Hung(_)),
                at_ms: before,
                took_ms: clock - before,
            });
        }
    }
    if accept == Accept::Answer
        && let Some(marks) = &mut hung
        && answered_after(trace, last_timeout)
    {
        marks.recovered_ms.get_or_insert(clock);
    }
    let late = first_late.map(|(started_ms, answered)| RecoveryMarks {
        started_ms,
        detected_ms: None,
        recovered_ms: Some(answered),
    });
    Reading {
        marks: hung.or(late),
        faulted,
    }
}

/// Returns true if the run closed with an answer after this call. The text next to a call comes
/// before its result, so without a recorded `final_response` there must be a later turn.
fn answered_after(trace: &TraceView<'_>, call: usize) -> bool {
    if let Some(text) = &trace.final_response {
        return !text.trim().is_empty();
    }
    let turns = trace.conversation.turns.as_deref().unwrap_or_default();
    let spoken = turns.last().is_some_and(|turn| {
        turn.role.as_deref() == Some("assistant") && !turn.text().trim().is_empty()
    });
    let assistant_turns = turns
        .iter()
        .filter(|turn| turn.role.as_deref() == Some("assistant"))
        .count() as u64;
    let after = match trace.tool_calls.get(call).and_then(|call| call.turn) {
        Some(turn) => assistant_turns > turn,
        None => turns
            .iter()
            .any(|turn| turn.role.as_deref() == Some("tool")),
    };
    spoken && after
}

impl Recovery {
    fn limits(&self) -> RecoveryLimits {
        RecoveryLimits {
            max_detection_ms: self.max_detection_ms,
            max_recovery_ms: self.max_recovery_ms,
            require_clean_timeout: self.require_clean_timeout,
        }
    }

    /// The reasons why a run did not pass.
    fn shortcomings(&self, report: &RecoveryReport) -> Vec<String> {
        let mut found = Vec::new();
        match (report.time_to_recovery_ms, self.max_recovery_ms) {
            (None, _) => found.push("did not recover".to_owned()),
            (Some(time), Some(most)) if time > most => {
                found.push(format!("recovered after {time} ms, later than {most} ms"));
            }
            _ => {}
        }
        if self.require_clean_timeout && !report.clean_timeout {
            found.push(match report.time_to_detection_ms {
                Some(time) => format!(
                    "noticed after {time} ms, later than {} ms",
                    self.max_detection_ms
                ),
                None => "no call timed out".to_owned(),
            });
        }
        found
    }
}

/// The observed runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecoveryAccumulator {
    /// The worst of everything, in the runs that met the fault.
    worst: Option<RecoveryReport>,
    /// Runs in which no fault fired.
    unmet: FirstRuns,
    /// Runs that met the fault.
    met: u64,
    /// Of these, the runs that recovered.
    recovered: u64,
    /// The reasons why runs did not pass.
    shortcomings: FirstRuns<String>,
    rows: RunRows,
}

impl RecoveryReport {
    /// The worst of two runs: a flag holds if both do, a time is unknown if one is.
    fn worst(self, other: Self) -> Self {
        let later = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        Self {
            recovered: self.recovered && other.recovered,
            clean_timeout: self.clean_timeout && other.clean_timeout,
            passed: self.passed && other.passed,
            time_to_detection_ms: later(self.time_to_detection_ms, other.time_to_detection_ms),
            time_to_recovery_ms: later(self.time_to_recovery_ms, other.time_to_recovery_ms),
            user_visible_hang_ms: self.user_visible_hang_ms.max(other.user_visible_hang_ms),
        }
    }
}

impl Accumulator for RecoveryAccumulator {
    fn merge(&mut self, other: Self) {
        self.worst = match (self.worst, other.worst) {
            (Some(one), Some(other)) => Some(one.worst(other)),
            (one, other) => one.or(other),
        };
        self.unmet.merge(other.unmet);
        self.met += other.met;
        self.recovered += other.recovered;
        self.shortcomings.merge(other.shortcomings);
        self.rows.merge(other.rows);
    }

    fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.unmet.renumber(number);
        self.shortcomings.renumber(number);
        self.rows.renumber(number);
    }

    fn leave_out_rows(&mut self) {
        self.rows.leave_out();
    }
}

/// A row of the report's detail.
#[derive(Serialize)]
struct RecoveryRow<'a> {
    fired: bool,
    #[serde(rename = "strikes")]
    faulted: &'a [FaultedCall],
    #[serde(flatten)]
    report: Option<&'a RecoveryReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortcomings: Option<Vec<String>>,
}

impl Gate for Recovery {
    const BLOCK: &'static str = "recovery";
    const SUMMARY: &'static str =
        "Detection of an injected dead tool and recovery from it, in virtual time.";
    const TARGETS: &'static [TargetInfo] = &[
        TargetInfo::new(
            "recovery.recovered",
            Unit::Flag,
            "1 if the agent continued after the fault, in every run.",
        ),
        TargetInfo::new(
            "recovery.clean_timeout",
            Unit::Flag,
            "1 if the fault was noticed within the detection budget, in every run.",
        ),
        TargetInfo::new(
            "recovery.passed",
            Unit::Flag,
            "1 if every run recovered within its budgets.",
        ),
        TargetInfo::new(
            "recovery.time_to_detection_ms",
            Unit::Milliseconds,
            "From the hung call to noticing it; the worst run's.",
        ),
        TargetInfo::new(
            "recovery.time_to_recovery_ms",
            Unit::Milliseconds,
            "From the hung call to continuing; the worst run's.",
        ),
        TargetInfo::new(
            "recovery.user_visible_hang_ms",
            Unit::Milliseconds,
            "The time that the user saw the agent hang; the worst run's.",
        ),
    ];
    const DEFAULTS_ALWAYS: bool = true;

    fn defaults(&self) -> Vec<Expectation> {
        vec![Expectation::default_of(
            "recovery.passed",
            Matcher::at_least(1),
        )]
    }

    fn expect(&self) -> &[WrittenExpectation] {
        &self.expect
    }

    type Accumulator = RecoveryAccumulator;

    fn observe(&self, accumulator: &mut RecoveryAccumulator, _: &Context<'_>, run: &Run<'_>) {
        let reading = read(run.trace, self.max_detection_ms, self.accept);
        let report = reading
            .marks
            .map(|marks| score_recovery(&self.limits(), &marks));
        let shortcomings = report.map(|report| self.shortcomings(&report));
        match report {
            Some(report) => {
                let worst = accumulator.worst.map(|worst| worst.worst(report));
                accumulator.worst = worst.or(Some(report));
                accumulator.met += 1;
                accumulator.recovered += u64::from(report.recovered);
            }
            None => accumulator.unmet.add(run.index, || ()),
        }
        if let Some(short) = shortcomings.as_ref().filter(|short| !short.is_empty()) {
            accumulator.shortcomings.add(run.index, || short.join("; "));
        }
        let row = RecoveryRow {
            fired: report.is_some(),
            faulted: &reading.faulted,
            report: report.as_ref(),
            shortcomings,
        };
        accumulator.rows.push(run.index, &row);
    }

    fn finish(&self, accumulator: RecoveryAccumulator, _: &Context<'_>) -> Score {
        let RecoveryAccumulator {
            worst,
            unmet,
            met,
            recovered,
            shortcomings,
            rows,
        } = accumulator;
        let mut detail = DetailBuilder::default();
        detail.entry("runs_that_met_the_fault", &met);
        let without_fault: Vec<u64> = unmet.iter().map(|(run, ())| run).collect();
        detail.entry("runs_without_fault", &without_fault);
        let short = shortcomings.iter();
        let mut short: Vec<String> = short
            .map(|(run, why)| format!("run {run}: {why}"))
            .collect();
        detail.entry("shortcomings", &short);
        rows.write("per_run", "index", &mut detail);
        let detail = Detail::from(detail);
        let Some(worst) = worst else {
            return never_fired(detail);
        };
        let detection = worst.time_to_detection_ms;
        let recovery = worst.time_to_recovery_ms;
        let mut score = Score {
            values: vec![
                ("recovery.recovered", u8::from(worst.recovered).into()),
                (
                    "recovery.clean_timeout",
                    u8::from(worst.clean_timeout).into(),
                ),
                ("recovery.passed", u8::from(worst.passed).into()),
                ("recovery.time_to_detection_ms", detection.into()),
                ("recovery.time_to_recovery_ms", recovery.into()),
                (
                    "recovery.user_visible_hang_ms",
                    worst.user_visible_hang_ms.into(),
                ),
            ],
            detail,
            summary: summary(&worst, recovered, met, met + unmet.count()),
            ..Score::default()
        };
        if detection.is_none() {
            let why = "no call timed out in some run".to_owned();
            score.absent.push(("recovery.time_to_detection_ms", why));
        }
        if recovery.is_none() {
            let why = "the agent did not recover in some run".to_owned();
            score.absent.push(("recovery.time_to_recovery_ms", why));
        }
        if shortcomings.more() > 0 {
            short.push(format!("and {} more", shortcomings.more()));
        }
        if !short.is_empty() {
            score
                .summary
                .push_str(&format!(" · {}", one_line(&short.join(" · "))));
        }
        if unmet.count() > 0 {
            score.no_evidence = Some(format!(
                "no injected fault fired in run {}",
                unmet.indexes()
            ));
        }
        score
    }

    /// A later run may never meet its fault, so a pass is never certain. A flag that one run failed
    /// stays 0.
    fn forecast(&self, accumulator: &RecoveryAccumulator, _: u64) -> Option<Forecast> {
        let Some(worst) = &accumulator.worst else {
            return Some(Forecast::default());
        };
        let flag = |flag: bool| Bounds::between(0, flag.into());
        let time = |time: Option<u64>| {
            time.map_or(Bounds::Absent, |time| Bounds::at_least(time).or_absent())
        };
        Some(Forecast {
            bounds: vec![
                ("recovery.recovered", flag(worst.recovered)),
                ("recovery.clean_timeout", flag(worst.clean_timeout)),
                ("recovery.passed", flag(worst.passed)),
                (
                    "recovery.time_to_detection_ms",
                    time(worst.time_to_detection_ms),
                ),
                (
                    "recovery.time_to_recovery_ms",
                    time(worst.time_to_recovery_ms),
                ),
                (
                    "recovery.user_visible_hang_ms",
                    Bounds::at_least(worst.user_visible_hang_ms),
                ),
            ],
            may_lack_evidence: true,
        })
    }
}

fn summary(worst: &RecoveryReport, recovered: u64, met: u64, runs: u64) -> String {
    let time =
        |time: Option<u64>| time.map_or_else(|| "never".to_owned(), |time| format!("{time} ms"));
    let met = if met == runs {
        format!("{runs} runs")
    } else {
        format!("{met} runs that met the fault (of {runs})")
    };
    format!(
        "recovered in {recovered} of {met} · detection {} · recovery {} · hang {}",
        time(worst.time_to_detection_ms),
        time(worst.time_to_recovery_ms),
        time(Some(worst.user_visible_hang_ms))
    )
}

/// No figure is good or bad when the agent never met the fault.
fn never_fired(detail: Detail) -> Score {
    let why = "no injected fault fired in any run: the agent never met it";
    let names = || Recovery::TARGETS.iter().map(|target| target.name);
    Score {
        values: names().map(|name| (name, Value::Null)).collect(),
        absent: names().map(|name| (name, why.to_owned())).collect(),
        undetermined: names().collect(),
        detail,
        summary: why.to_owned(),
        no_evidence: Some(why.to_owned()),
        ..Score::default()
    }
}

#[cfg(test)]
mod tests;
