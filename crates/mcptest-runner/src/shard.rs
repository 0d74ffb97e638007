//! Which case goes to which shard.
//!
//! The longest case first, each to the shard with the least work so far (LPT): no shard gets more
//! than 4/3 of what the best assignment would give it. Ties are broken by what things are called,
//! never by their order, so that moving a test in its file moves nothing else, and all machines
//! that see the same suites, reports and cassettes cut them alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use mcptest_report::model::{CaseId, Kind};
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;

use crate::cassettes::{cassette_folder, cassette_place};
use crate::plan::Case;

/// `2/5`: the second of five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardOf {
    /// From 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// More shards than this are a slip of the hand.
const MOST_SHARDS: u32 = 10_000;

impl FromStr for ShardOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST_SHARDS => {
                Ok(Self { number, of })
            }
            _ => Err(format!(
                "expected NUMBER/OF with a number from 1 to at most {MOST_SHARDS}, for example 2/5"
            )),
        }
    }
}

/// A case and how long it is thought to take; the unit does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// Which case.
    pub id: CaseId,
    /// At least 1.
    pub weight: u64,
}

/// A case that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which case.
    pub id: CaseId,
    /// What is tested.
    pub kind: Kind,
    /// How many runs it has.
    pub runs: u32,
}

impl Candidate {
    /// A case of a suite.
    #[must_use]
    pub fn of(suite: &Suite, case: &Case) -> Self {
        Self {
            id: case.id(suite),
            kind: match &suite.tests[case.test] {
                Test::Agent(_) => Kind::Agent,
                Test::Tool(_) => Kind::Tool,
                Test::ToolQuality(_) => Kind::ToolQuality,
            },
            runs: case.runs,
        }
    }
}

/// How long a direct call is thought to take where only agents were timed, in milliseconds.
const USUAL_CALL_MS: u64 = 10;

/// How long cases took: milliseconds, and in how many runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(BTreeMap<CaseId, (u64, u64)>);

impl Times {
    /// The times of a report: each case with its milliseconds and its number of runs.
    #[must_use]
    pub fn of_cases(times: impl IntoIterator<Item = (CaseId, u64, u64)>) -> Self {
        let times = times.into_iter();
        Self(times.map(|(id, sum, runs)| (id, (sum, runs))).collect())
    }

    /// Adds what a case's cassette tells, if the time is not known yet. `folder` is where the
    /// cassettes are, before whatever the suite says.
    pub fn look_at_cassette(&mut self, suite: &Suite, case: &Case, folder: Option<&Path>) {
        let (Test::Agent(test), Some(model)) = (&suite.tests[case.test], case.model.as_deref())
        else {
            return;
        };
        let id = case.id(suite);
        if self.0.contains_key(&id) {
            return;
        }
        let place = cassette_place(&cassette_folder(suite, folder), test, model);
        let Some(durations) = mcptest_cassette::recorded_durations(&place) else {
            return;
        };
        // A test that stops when it is decided will stop where it did.
        let runs = if test.stops_when_decided {
            durations.len() as u64
        } else {
            case.runs.into()
        };
        if let Some(time) = scaled(&durations, runs) {
            self.0.insert(id, (time, runs));
        }
    }

    /// The mean time of a run, over the cases that are asked for.
    fn usual(&self, mut of: impl FnMut(&CaseId) -> bool) -> Option<u64> {
        let known = self.0.iter().filter(|(id, _)| of(id));
        let (time, runs) = known.fold((0_u128, 0_u128), |(time, runs), (_, known)| {
            (time + u128::from(known.0), runs + u128::from(known.1))
        });
        let mean = time.checked_div(runs)?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }
}

/// What so many runs take, if those that were recorded took so long.
fn scaled(durations: &[u64], runs: u64) -> Option<u64> {
    let sum: u128 = durations.iter().map(|time| u128::from(*time)).sum();
    let time = (sum * u128::from(runs)).checked_div(durations.len() as u128)?;
    Some(u64::try_from(time).unwrap_or(u64::MAX))
}

/// Weighs cases by their times. One without a time takes as long per run as those of its kind do on
/// average; without any time, the number of runs counts.
#[must_use]
pub fn weigh(cases: &[Candidate], times: &Times) -> Vec<Weighed> {
    let kinds: BTreeMap<&CaseId, Kind> = cases.iter().map(|case| (&case.id, case.kind)).collect();
    let all = times.usual(|_| true);
    let usual = |kind: Kind| {
        let alike = times.usual(|id| kinds.get(id) == Some(&kind));
        let other = if kind == Kind::Agent {
            all
        } else {
            all.map(|all| all.min(USUAL_CALL_MS))
        };
        alike.or(other).unwrap_or(1)
    };
    let usual = [Kind::Agent, Kind::Tool, Kind::ToolQuality].map(|kind| (kind, usual(kind)));
    let guess = |case: &Candidate| {
        let found = usual.iter().find(|(kind, _)| *kind == case.kind);
        found
            .map_or(1, |(_, time)| *time)
            .saturating_mul(case.runs.into())
    };
    cases
        .iter()
        .map(|case| Weighed {
            id: case.id.clone(),
            weight: times
                .0
                .get(&case.id)
                .map_or_else(|| guess(case), |(time, _)| *time)
                .max(1),
        })
        .collect()
}

/// The number of each case's shard, from 1.
#[must_use]
pub fn assign(cases: &[Weighed], of: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&cases[*a], &cases[*b]);
        b.weight.cmp(&a.weight).then_with(|| a.id.cmp(&b.id))
    });
    // Work and number of cases of each shard, which also break ties.
    let mut load = vec![(0_u128, 0_usize); of.max(1) as usize];
    let mut assigned = vec![1; cases.len()];
    for case in order {
        let lightest = (0..load.len())
            .min_by_key(|shard| load[*shard])
            .unwrap_or(0);
        load[lightest].0 += u128::from(cases[case].weight);
        load[lightest].1 += 1;
        // As many as `of`, which is a u32.
        assigned[case] = u32::try_from(lightest).unwrap_or(0) + 1;
    }
    assigned
}

#[cfg(test)]
mod tests {
    use mcptest_report::model::{Report, RunReport, RunTiming, TestReport, Timing};
    use mcptest_trace::verdict::Verdict;
    use proptest::prelude::*;

    use super::*;

    fn id(name: &str) -> CaseId {
        CaseId {
            suite: "s".to_owned(),
            name: name.to_owned(),
            model: None,
        }
    }

    fn weighed(weights: &[u64]) -> Vec<Weighed> {
        weights
            .iter()
            .enumerate()
            .map(|(at, weight)| Weighed {
                id: id(&format!("{at:03}")),
                weight: *weight,
            })
            .collect()
    }

    fn loads(cases: &[Weighed], of: u32) -> Vec<u64> {
        let mut loads = vec![0; of as usize];
        for (case, shard) in cases.iter().zip(assign(cases, of)) {
            loads[shard as usize - 1] += case.weight;
        }
        loads
    }

    #[test]
    fn shards_are_written_as_a_fraction() {
        assert_eq!("2/5".parse(), Ok(ShardOf { number: 2, of: 5 }));
        for wrong in [
            "0/5",
            "6/5",
            "1/0",
            "1",
            "",
            "a/b",
            "1/10001",
            "-1/2",
            "1/2/3",
            "1/99999999999",
        ] {
            assert!(wrong.parse::<ShardOf>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_longest_go_first() {
        assert_eq!(assign(&weighed(&[1, 7, 3, 4, 5]), 2), [2, 1, 1, 2, 2]);
        assert_eq!(assign(&weighed(&[1, 1, 1]), 1), [1, 1, 1]);
        assert_eq!(assign(&weighed(&[5]), 3), [1]);
        assert_eq!(assign(&[], 3), [0_u32; 0]);
        assert_eq!(
            assign(&weighed(&[u64::MAX, u64::MAX, u64::MAX]), 2),
            [1, 2, 1]
        );
    }

    #[test]
    fn times_are_recorded_ones_else_the_average() {
        let run = |index| RunReport {
            index,
            name: format!("a #{index}"),
            verdict: Verdict::Pass,
            trace: mcptest_trace::trace::Trace::default(),
            assertions: Vec::new(),
            error: None,
        };
        let test = TestReport {
            name: "a".to_owned(),
            kind: Kind::Agent,
            model: None,
            label: "a".to_owned(),
            suite: "s".to_owned(),
            verdict: Verdict::Pass,
            runs: vec![run(1), run(2)],
            gates: Vec::new(),
            no_evidence: None,
            saved_runs: None,
            spend: None,
        };
        let mut report = Report::conclude(vec![test], false);
        let cases = [
            case("a", Kind::Agent, 2),
            case("b", Kind::Agent, 3),
            case("c", Kind::Tool, 1),
        ];
        let weights = |report: &Report| {
            let times = mcptest_report::Report::from(report).case_times();
            weights(&cases, &Times::of_cases(times.unwrap_or_default()))
        };
        assert_eq!(weights(&report), [2, 3, 1], "without times, by runs");
        let time = |index, duration_ms| RunTiming {
            name: format!("a #{index}"),
            duration_ms,
        };
        report.timing = Some(Timing {
            duration_ms: 1,
            runs: vec![time(1, 30), time(2, 50)],
        });
        assert_eq!(
            weights(&report),
            [80, 120, 10],
            "a direct call is shorter than an agent"
        );
        report.timing = Some(Timing {
            duration_ms: 1,
            runs: vec![time(1, 0), time(2, 0)],
        });
        assert_eq!(
            weights(&report),
            [1, 3, 1],
            "no time at all is still a case to start"
        );
    }

    fn case(name: &str, kind: Kind, runs: u32) -> Candidate {
        Candidate {
            id: id(name),
            kind,
            runs,
        }
    }

    fn weights(cases: &[Candidate], times: &Times) -> Vec<u64> {
        weigh(cases, times)
            .into_iter()
            .map(|case| case.weight)
            .collect()
    }

    #[test]
    fn each_kind_has_its_own_average() {
        let times = Times([(id("agent"), (4000, 2)), (id("tool"), (7, 1))].into());
        let cases = [
            case("agent", Kind::Agent, 2),
            case("tool", Kind::Tool, 1),
            case("another agent", Kind::Agent, 3),
            case("another tool", Kind::Tool, 1),
            case("quality", Kind::ToolQuality, 1),
        ];
        assert_eq!(weights(&cases, &times), [4000, 7, 6000, 7, 10]);
        // Of a test that is not in the suites any more nobody knows the kind.
        assert_eq!(weights(&cases[2..], &times), [1335 * 3, 10, 10]);
    }

    #[test]
    fn other_numbers_of_runs_take_their_share() {
        assert_eq!(scaled(&[100, 200, 301], 3), Some(601));
        assert_eq!(scaled(&[100, 200, 301], 1), Some(200));
        assert_eq!(scaled(&[100], 5), Some(500));
        assert_eq!(scaled(&[], 5), None);
        assert_eq!(scaled(&[u64::MAX, u64::MAX], 100_000), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn each_case_is_in_one_shard_and_none_is_overloaded(
            weights in proptest::collection::vec(1..1000_u64, 0..40),
            of in 1..8_u32,
        ) {
            let cases = weighed(&weights);
            let assigned = assign(&cases, of);
            prop_assert_eq!(assigned.len(), cases.len());
            prop_assert!(assigned.iter().all(|shard| (1..=of).contains(shard)));
            // Graham's bound: the mean, and one case more.
            let total: u64 = weights.iter().sum();
            let longest = weights.iter().max().copied().unwrap_or(0);
            let most = loads(&cases, of).into_iter().max().unwrap_or(0);
            prop_assert!(most * u64::from(of) <= total + longest * u64::from(of - 1));
        }

        #[test]
        fn no_assignment_is_better_by_more_than_a_third(
            weights in proptest::collection::vec(1..20_u64, 0..7),
            of in 1..4_u32,
        ) {
            let most = loads(&weighed(&weights), of).into_iter().max().unwrap_or(0);
            let every = (0..of.pow(weights.len() as u32)).map(|mut code| {
                let mut loads = vec![0; of as usize];
                for weight in &weights {
                    loads[(code % of) as usize] += weight;
                    code /= of;
                }
                loads.into_iter().max().unwrap_or(0)
            });
            let best = every.min().unwrap_or(0);
            // 4/3 - 1/(3m), in whole numbers.
            prop_assert!(3 * u64::from(of) * most <= (4 * u64::from(of) - 1) * best, "{most} against {best}");
        }

        #[test]
        fn the_order_of_the_cases_does_not_matter(
            (weights, order) in proptest::collection::vec(1..5_u64, 1..20)
                .prop_flat_map(|weights| {
                    let order: Vec<usize> = (0..weights.len()).collect();
                    (Just(weights), Just(order).prop_shuffle())
                }),
            of in 1..6_u32,
        ) {
            let cases = weighed(&weights);
            let shuffled: Vec<Weighed> = order.iter().map(|at| cases[*at].clone()).collect();
            let (straight, crooked) = (assign(&cases, of), assign(&shuffled, of));
            for (position, at) in order.iter().enumerate() {
                prop_assert_eq!(crooked[position], straight[*at]);
            }
        }
    }
}
