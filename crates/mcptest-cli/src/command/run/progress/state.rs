//! The state of a run that is not finished: a fold over its events.

use std::collections::BTreeMap;
use std::time::Duration;

use mcptest_events::{CaseJudged, Event, RunFinished, RunSpend};
use mcptest_json::text::one_line;
use mcptest_numbers::usd::Usd;
use mcptest_trace::verdict::Verdict;
use unicode_width::UnicodeWidthChar as _;

/// The number of running cases that have a line.
const MAX_RUNNING: usize = 8;
/// The elapsed time after which the remaining time is estimated.
const MIN_ESTIMATED: Duration = Duration::from_secs(2);
/// The number of failed assertions that a line names.
const MAX_TARGETS: usize = 3;

/// The facts about a run so far.
#[derive(Debug, Default)]
pub struct RunState {
    /// The label and the number of runs of each case.
    cases: Vec<(String, u32)>,
    /// Planned runs, without those that are no longer needed.
    total: u64,
    done: u64,
    /// Finished runs that count against their case.
    failed: u64,
    running: BTreeMap<(usize, u32), Running>,
    spend: RunSpend,
}

/// A run that has started. Times are since the start of the invocation.
#[derive(Debug)]
struct Running {
    since: Duration,
    turn: u32,
    call: Option<String>,
}

/// A failure: its verdict, the row's name, and what failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub verdict: Verdict,
    pub name: String,
    pub what: String,
}

impl RunState {
    /// Adds an event that happened at a time, and returns the failures that it reports.
    pub fn add(&mut self, event: &Event, at: Duration) -> Vec<Failure> {
        match event {
            Event::Planned { cases, .. } => {
                self.total += cases.iter().map(|case| u64::from(case.runs)).sum::<u64>();
                let known = cases.iter().map(|case| (case.label.clone(), case.runs));
                self.cases = known.collect();
            }
            Event::RunStarted { case, run } => {
                let running = Running {
                    since: at,
                    turn: 0,
                    call: None,
                };
                self.running.insert((*case, *run), running);
            }
            Event::ModelAnswered {
                case,
                run,
                judge: None,
                reader: false,
                ..
            } => {
                if let Some(running) = self.running.get_mut(&(*case, *run)) {
                    running.turn += 1;
                }
            }
            Event::ToolCalled {
                case, run, tool, ..
            } => {
                if let Some(running) = self.running.get_mut(&(*case, *run)) {
                    running.call = Some(one_line(tool));
                }
            }
            Event::RunFinished(finished) => return self.finished(finished),
            Event::RunsSaved { runs, .. } => {
                self.total = self.total.saturating_sub(u64::from(*runs));
            }
            Event::CaseJudged(judged) => return self.judged(judged),
            _ => {}
        }
        Vec::new()
    }

    fn finished(&mut self, finished: &RunFinished) -> Vec<Failure> {
        self.running.remove(&(finished.case, finished.run));
        self.done += 1;
        if let Some(spend) = finished.spend {
            self.spend = self.spend.plus(spend);
        }
        // A run that its case tolerates is not a failure.
        if finished.facts.counted == Verdict::Pass {
            return Vec::new();
        }
        self.failed += 1;
        let record = finished.record.as_ref();
        let error = record.and_then(|record| record.error.as_ref());
        // Names only: values may hold secrets, which are removed where text is logged.
        let what = match error {
            Some(error) => error.kind.as_str().to_owned(),
            None => {
                let assertions = record.map_or(&[][..], |record| &record.assertions);
                let failed = assertions.iter().filter(|assertion| assertion.failed());
                let targets = failed.map(|it| it.target.as_str()).take(MAX_TARGETS);
                targets.collect::<Vec<_>>().join(", ")
            }
        };
        vec![Failure {
            verdict: finished.facts.verdict,
            name: self.name(finished.case, finished.run),
            what: one_line(&what),
        }]
    }

    /// The gates of a case that did not pass. Its runs were reported when they finished.
    fn judged(&self, judged: &CaseJudged) -> Vec<Failure> {
        let label = || {
            let case = self.cases.get(judged.case);
            case.map_or_else(String::new, |(label, _)| one_line(label))
        };
        let gates = judged.gates.iter();
        gates
            .filter(|gate| gate.verdict != Verdict::Pass)
            .map(|gate| Failure {
                verdict: gate.verdict,
                name: format!("{}: {}", label(), gate.block),
                what: String::new(),
            })
            .collect()
    }

    /// The name of a run's row, such as `weather #3`.
    fn name(&self, case: usize, run: u32) -> String {
        match self.cases.get(case) {
            Some((label, runs)) if *runs > 1 => one_line(&format!("{label} #{run}")),
            Some((label, _)) => one_line(label),
            None => format!("#{run}"),
        }
    }

    /// `12 of 200 runs, 2 failed, 1 min 5 s, about 3 min left, $0.12`.
    pub fn summary(&self, now: Duration) -> String {
        let mut parts = vec![format!("{} of {} runs", self.done, self.total)];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        parts.push(words(now));
        parts.extend(
            self.left(now)
                .map(|left| format!("about {} left", words(left))),
        );
        parts.extend(self.spent());
        parts.join(", ")
    }

    /// The estimated remaining time, if the finished runs are enough for one.
    fn left(&self, now: Duration) -> Option<Duration> {
        let open = self.total.saturating_sub(self.done);
        if self.done == 0 || open == 0 || now < MIN_ESTIMATED {
            return None;
        }
        let millis = now.as_millis() * u128::from(open) / u128::from(self.done);
        Some(Duration::from_millis(
            u64::try_from(millis).unwrap_or(u64::MAX),
        ))
    }

    /// The dollars of finished runs, without what cassettes answered.
    fn spent(&self) -> Option<String> {
        let spend = &self.spend;
        let live = spend.usd.units().saturating_sub(spend.replayed_usd.units());
        // To a tenth of a cent, upwards: an exact amount has up to 18 decimals.
        let unit = Usd::from_f64(0.001)?.units().max(1);
        let shown = Usd::from_units(live.div_ceil(unit) * unit);
        let is_partial = spend.unpriced > 0 || spend.unreported > 0;
        match (live > 0, is_partial) {
            (true, true) => Some(format!("at least {shown}")),
            (true, false) => Some(shown.to_string()),
            (false, _) => None,
        }
    }

    /// The lines of the display: running cases, the longest first, then the summary.
    pub fn lines(&self, now: Duration, width: usize) -> Vec<String> {
        let mut running: Vec<_> = self.running.iter().collect();
        running.sort_by_key(|(place, it)| (it.since, **place));
        let hidden = running.len().saturating_sub(MAX_RUNNING);
        let mut lines: Vec<String> = Vec::new();
        for ((case, run), it) in running.iter().take(MAX_RUNNING) {
            let mut facts = Vec::new();
            if it.turn > 0 {
                facts.push(format!("turn {}", it.turn));
            }
            facts.extend(it.call.clone());
            facts.push(words(now.saturating_sub(it.since)));
            // The name gives way: the facts change.
            let facts = fitted(&facts.join(", "), width.saturating_sub(14));
            let room = width.saturating_sub(columns(&facts) + 6);
            let name = fitted(&self.name(*case, *run), room);
            lines.push(format!("  {name}  {facts}"));
        }
        if hidden > 0 {
            lines.push(format!("  and {hidden} more"));
        }
        lines.push(fitted(&self.summary(now), width.saturating_sub(1)));
        lines
    }
}

/// A duration in at most two units.
fn words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// The number of columns of a string.
pub fn columns(text: &str) -> usize {
    text.chars().map(|it| it.width().unwrap_or(0)).sum()
}

/// The beginning of a string that fits into some columns; one that was cut ends with `…`.
pub fn fitted(text: &str, max: usize) -> String {
    if columns(text) <= max {
        return text.to_owned();
    }
    let mut left = max.saturating_sub(1);
    let mut short = String::new();
    for it in text.chars() {
        let width = it.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        short.push(it);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use mcptest_events::{CaseId, Kind, PlannedCase, RunFacts};
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn planned(labels: &[(&str, u32)]) -> Event {
        let case = |(label, runs): &(&str, u32)| PlannedCase {
            id: CaseId {
                suite: "s".to_owned(),
                name: (*label).to_owned(),
                model: None,
            },
            kind: Kind::Agent,
            label: (*label).to_owned(),
            runs: *runs,
            position: 0,
            tags: Vec::new(),
            file: None,
            line: None,
        };
        Event::Planned {
            cases: labels.iter().map(case).collect(),
            shard: None,
        }
    }

    fn finished(case: usize, run: u32, verdict: Verdict) -> Event {
        let usd = Usd::from_f64(0.0104).unwrap();
        Event::RunFinished(RunFinished {
            case,
            run,
            calls: 0,
            errors: 0,
            tokens: None,
            duration_ms: 1,
            facts: RunFacts {
                verdict,
                counted: verdict,
                fails_case: false,
                expectations_held: None,
                error: None,
            },
            spend: Some(RunSpend {
                requests: 1,
                usd,
                ..RunSpend::default()
            }),
            record: None,
        })
    }

    fn answered(case: usize, run: u32) -> Event {
        Event::ModelAnswered {
            case,
            run,
            model: "m".to_owned(),
            judge: None,
            reader: false,
            usage: None,
        }
    }

    fn called(case: usize, run: u32, tool: &str) -> Event {
        Event::ToolCalled {
            case,
            run,
            tool: tool.to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn a_line_per_running_case_and_a_summary() {
        let mut state = RunState::default();
        state.add(
            &planned(&[("weather", 2), ("stock \u{1b}[31m", 1)]),
            Duration::ZERO,
        );
        for (case, run) in [(0, 1), (0, 2), (1, 1)] {
            state.add(&Event::RunStarted { case, run }, SECOND);
        }
        state.add(&answered(0, 2), SECOND);
        state.add(&called(0, 2, "s.get_weather"), SECOND);
        let failures = state.add(&finished(0, 1, Verdict::Fail), 4 * SECOND);
        assert_eq!(failures[0].name, "weather #1");
        assert_eq!(
            state.lines(5 * SECOND, 80),
            [
                "  weather #2  turn 1, s.get_weather, 4 s",
                "  stock \\u{1b}[31m  4 s",
                "1 of 3 runs, 1 failed, 5 s, about 10 s left, $0.011",
            ]
        );
        assert!(
            state
                .add(&finished(0, 2, Verdict::Pass), 6 * SECOND)
                .is_empty()
        );
        state.add(&Event::RunsSaved { case: 1, runs: 1 }, 6 * SECOND);
        assert_eq!(
            state.summary(6 * SECOND),
            "2 of 2 runs, 1 failed, 6 s, $0.021"
        );
    }

    #[test]
    fn many_running_cases_are_counted() {
        let mut state = RunState::default();
        state.add(&planned(&[("a", 100)]), Duration::ZERO);
        for run in 1..=20 {
            state.add(&Event::RunStarted { case: 0, run }, Duration::ZERO);
        }
        let lines = state.lines(SECOND, 80);
        assert_eq!(lines.len(), MAX_RUNNING + 2);
        assert_eq!(lines[MAX_RUNNING], "  and 12 more");
    }

    #[test]
    fn durations_have_two_units() {
        let shown = [59, 61, 3700].map(|seconds| words(Duration::from_secs(seconds)));
        assert_eq!(shown, ["59 s", "1 min 1 s", "1 h 1 min"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_display(
            label in "\\PC{0,120}", tool in "\\PC{0,120}", width in 60_usize..=200
        ) {
            let mut state = RunState::default();
            state.add(&planned(&[(&label, 3)]), Duration::ZERO);
            state.add(&Event::RunStarted { case: 0, run: 1 }, Duration::ZERO);
            state.add(&answered(0, 1), Duration::ZERO);
            state.add(&called(0, 1, &tool), Duration::ZERO);
            for line in state.lines(Duration::from_secs(100_000), width) {
                prop_assert!(columns(&line) < width, "{line}");
            }
        }
    }
}
