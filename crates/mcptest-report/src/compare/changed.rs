//! The tests that differ, as the reporters for machines list them.

use std::collections::BTreeMap;

use super::pretty::{figure, flip_word, name, nature, verdicts, word};
use super::{CaseChange, Change, Comparison};
use crate::report::Report;
use crate::reporter::entries::{Entry, entries, fingerprint, name as reporter_name};

/// The number of facts about a test.
const MAX_FACTS: usize = 3;

/// A test that differs.
pub(super) struct Changed<'a> {
    pub(super) case: &'a CaseChange,
    /// The test in the current report, if it has it.
    entry: Option<Entry<'a>>,
}

/// The meaning of a change for tools that know passed and failed tests only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Something passed before and fails now.
    Failed,
    /// Something passed before and can no longer be judged.
    NotJudged,
    /// Everything else: better, other figures, added, removed.
    Passed,
}

/// The tests that differ, in the order of the comparison.
pub(super) fn changed<'a>(comparison: &'a Comparison, current: &'a Report) -> Vec<Changed<'a>> {
    let tests: BTreeMap<_, _> = entries(current).map(|entry| (entry.id, entry)).collect();
    let cases = comparison.cases.iter();
    cases
        .map(|case| Changed {
            case,
            entry: tests.get(&&case.id).copied(),
        })
        .collect()
}

impl Changed<'_> {
    /// `regressed`, `lost` and so on.
    pub(super) fn word(&self) -> &'static str {
        word(self.case.change)
    }

    pub(super) fn name(&self) -> String {
        name(&self.case.id)
    }

    /// The name of its suite.
    pub(super) fn suite(&self) -> String {
        reporter_name(&self.case.id.suite)
    }

    /// The number that identifies the test in every report.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(&self.case.id, self.entry.map_or(0, |entry| entry.repeated))
    }

    /// The meaning of the change for tools that know passed and failed tests only.
    pub(super) fn outcome(&self) -> Outcome {
        match self.case.change {
            Change::Regressed => Outcome::Failed,
            Change::Lost => Outcome::NotJudged,
            _ => Outcome::Passed,
        }
    }

    pub(super) fn file(&self) -> Option<String> {
        self.entry.as_ref()?.file()
    }

    /// The line of the test in the suite file.
    pub(super) fn line(&self) -> Option<u32> {
        self.entry.as_ref()?.line()
    }

    /// The command that runs the test again.
    pub(super) fn command(&self) -> Option<String> {
        self.entry.as_ref()?.command()
    }

    /// The difference in a line: verdicts, rates with their intervals, bounds that changed sides.
    pub(super) fn facts(&self) -> String {
        let case = self.case;
        let rates = case
            .figures
            .iter()
            .chain(case.gates.iter().flat_map(|gate| &gate.values));
        let rates = rates.filter(|delta| delta.statistics.is_some()).map(figure);
        let bounds = case.gates.iter().flat_map(|gate| &gate.bounds);
        let bounds = bounds.map(|bound| {
            let flip = flip_word(bound.flip);
            format!("{} {} {flip}", bound.target, bound.matcher)
        });
        let mut line = verdicts(&case.verdict);
        if let Some(kind) = case.nature {
            line.push_str(&format!(" ({})", nature(kind)));
        }
        for fact in rates.chain(bounds).take(MAX_FACTS) {
            line.push_str("; ");
            line.push_str(&fact);
        }
        line
    }
}
