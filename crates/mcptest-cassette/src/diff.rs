//! Comparing two cassettes.

use serde::Serialize;

use crate::compare::{CassetteChange, catalog_changes, changes};
use crate::format::{Cassette, RecordedRun};
use crate::show::events;

/// Runs with more events than this are reported as different, without the events.
const MAX_EVENTS: usize = 2_000;

/// The differences between two cassettes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CassetteDiff {
    /// Changes of subject and tools.
    pub changes: Vec<CassetteChange>,
    /// Runs that differ, by number.
    pub runs: Vec<RunDiff>,
    /// Runs that only the first has.
    pub only_first: Vec<u32>,
    /// Runs that only the second has.
    pub only_second: Vec<u32>,
}

/// A run that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunDiff {
    /// The run's number.
    pub run: u32,
    /// All events of both runs, in order.
    pub events: Vec<DiffEvent>,
}

/// An event of one cassette or of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffEvent {
    /// The cassettes in which it occurs.
    pub side: Side,
    /// The event, in one line.
    #[serde(rename = "words")]
    pub text: String,
}

/// The cassettes in which an event occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Both.
    Both,
    /// The first only.
    First,
    /// The second only.
    Second,
}

impl CassetteDiff {
    /// Returns true if there is no difference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.runs.is_empty()
            && self.only_first.is_empty()
            && self.only_second.is_empty()
    }

    /// Returns the differences as readable text.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_empty() {
            return "no difference\n".to_owned();
        }
        let mut lines: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        for run in &self.runs {
            lines.push(format!("run {}", run.run));
            for event in &run.events {
                let mark = match event.side {
                    Side::Both => ' ',
                    Side::First => '-',
                    Side::Second => '+',
                };
                lines.push(format!("{mark} {}", event.text));
            }
        }
        for (runs, which) in [(&self.only_first, "first"), (&self.only_second, "second")] {
            if !runs.is_empty() {
                let numbers: Vec<String> = runs.iter().map(u32::to_string).collect();
                lines.push(format!("only in the {which}: run {}", numbers.join(", ")));
            }
        }
        format!("{}\n", lines.join("\n"))
    }
}

/// Compares two cassettes. Volatile values are compared by their placeholders; durations are
/// ignored.
#[must_use]
pub fn diff(first: &Cassette, second: &Cassette) -> CassetteDiff {
    let missing_in = |other: &Cassette, of: &Cassette| -> Vec<u32> {
        let numbers = of.runs.iter().map(|run| run.run);
        numbers
            .filter(|number| other.run(*number).is_none())
            .collect()
    };
    let mut found = changes(first, &second.subject, 0);
    found.extend(catalog_changes(&first.catalogs, &second.catalogs));
    CassetteDiff {
        changes: found,
        runs: first
            .runs
            .iter()
            .filter_map(|run| run_diff(run, second.run(run.run)?))
            .collect(),
        only_first: missing_in(second, first),
        only_second: missing_in(first, second),
    }
}

fn run_diff(first: &RecordedRun, second: &RecordedRun) -> Option<RunDiff> {
    if first == second {
        return None;
    }
    let (a, b) = (events(first), events(second));
    let events = if a.len().max(b.len()) > MAX_EVENTS {
        vec![DiffEvent {
            side: Side::Both,
            text: format!("{} events in the first, {} in the second", a.len(), b.len()),
        }]
    } else if a == b {
        vec![DiffEvent {
            side: Side::Both,
            text: "the same events, but different in detail".to_owned(),
        }]
    } else {
        aligned(&a, &b)
    };
    Some(RunDiff {
        run: first.run,
        events,
    })
}

/// Aligns two event lists by a longest common subsequence.
fn aligned(a: &[String], b: &[String]) -> Vec<DiffEvent> {
    let mut longest = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] = if a[i] == b[j] {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut events = Vec::new();
    let mut push = |side, text: &String| {
        events.push(DiffEvent {
            side,
            text: text.clone(),
        });
    };
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            push(Side::Both, &a[i]);
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            push(Side::First, &a[i]);
            i += 1;
        } else {
            push(Side::Second, &b[j]);
            j += 1;
        }
    }
    events
}
