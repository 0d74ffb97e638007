//! The assignment of cases to shards.
//!
//! The longest case is assigned first, each to the shard with the least work so far (LPT): no shard
//! gets more than 4/3 of its load in the best assignment. Ties are broken by names, never by order,
//! so that moving a test in its file moves nothing else, and all machines with the same suites,
//! reports and cassettes compute the same shards.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use mcptest_events::{CaseId, Kind};
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;

use crate::cassettes::{cassette_folder, cassette_place};
use crate::plan::Case;

/// The number of a shard and the number of shards, such as `2/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardOf {
    /// The number of the shard, from 1.
    pub number: u32,
    /// The number of shards.
    pub of: u32,
}

/// The largest number of shards; more are a typing error.
const MAX_SHARDS: u32 = 10_000;

impl FromStr for ShardOf {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MAX_SHARDS => {
                Ok(Self { number, of })
            }
            _ => Err(ShardError),
        }
    }
}

/// A string that is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected NUMBER/OF with a number from 1 to at most {MAX_SHARDS}, for example 2/5")]
pub struct ShardError;

/// A case and its expected duration, in any unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// The case.
    pub id: CaseId,
    /// The expected duration, at least 1.
    pub weight: u64,
}

/// A case that may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The case.
    pub id: CaseId,
    /// The kind of test.
    pub kind: Kind,
    /// The number of runs.
    pub runs: u32,
}

impl Candidate {
    /// A case of a suite.
    #[must_use]
    pub fn of(suite: &Suite, case: &Case) -> Self {
        Self {
            id: case.id(suite),
            kind: case.kind(suite),
            runs: case.runs,
        }
    }
}

/// The expected duration of a direct call where only agents were timed, in milliseconds.
const DEFAULT_CALL_MS: u64 = 10;

/// The durations of cases: milliseconds, and the number of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(BTreeMap<CaseId, (u64, u64)>);

impl Times {
    /// The times of a report: each case with its milliseconds and its number of runs.
    #[must_use]
    pub fn of_cases(times: impl IntoIterator<Item = (CaseId, u64, u64)>) -> Self {
        let times = times.into_iter();
        Self(times.map(|(id, sum, runs)| (id, (sum, runs))).collect())
    }

    /// Adds the time in a case's cassette, if the time is not known yet. `folder` is the folder of
    /// the cassettes; it overrides the suite.
    pub fn add_cassette(&mut self, suite: &Suite, case: &Case, folder: Option<&Path>) {
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
        // A test that stops when it is decided will stop where it stopped.
        let runs = if test.stops_when_decided {
            durations.len() as u64
        } else {
            case.runs.into()
        };
        if let Some(time) = scaled(&durations, runs) {
            self.0.insert(id, (time, runs));
        }
    }

    /// The mean time of a run, over the selected cases.
    fn mean(&self, mut of: impl FnMut(&CaseId) -> bool) -> Option<u64> {
        let known = self.0.iter().filter(|(id, _)| of(id));
        let (time, runs) = known.fold((0_u128, 0_u128), |(time, runs), (_, known)| {
            (time + u128::from(known.0), runs + u128::from(known.1))
        });
        let mean = time.checked_div(runs)?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }
}

/// The time of a number of runs, scaled from recorded runs.
fn scaled(durations: &[u64], runs: u64) -> Option<u64> {
    let sum: u128 = durations.iter().map(|time| u128::from(*time)).sum();
    let time = (sum * u128::from(runs)).checked_div(durations.len() as u128)?;
    Some(u64::try_from(time).unwrap_or(u64::MAX))
}

/// Weighs cases by their times. A case without a time has the mean time per run of its kind;
/// without any time, the number of runs counts.
#[must_use]
pub fn weigh(cases: &[Candidate], times: &Times) -> Vec<Weighed> {
    let kinds: BTreeMap<&CaseId, Kind> = cases.iter().map(|case| (&case.id, case.kind)).collect();
    let all = times.mean(|_| true);
    let mean = |kind: Kind| {
        let same_kind = times.mean(|id| kinds.get(id) == Some(&kind));
        let other = if kind == Kind::Agent {
            all
        } else {
            all.map(|all| all.min(DEFAULT_CALL_MS))
        };
        same_kind.or(other).unwrap_or(1)
    };
    let means = Kind::ALL.map(|kind| (kind, mean(kind)));
    let estimate = |case: &Candidate| {
        let found = means.iter().find(|(kind, _)| *kind == case.kind);
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
                .map_or_else(|| estimate(case), |(time, _)| *time)
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
        // There are `of` shards, and `of` is a u32.
        assigned[case] = u32::try_from(lightest).unwrap_or(0) + 1;
    }
    assigned
}

#[cfg(test)]
mod tests {
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
        let cases = [
            case("a", Kind::Agent, 2),
            case("b", Kind::Agent, 3),
            case("c", Kind::Tool, 1),
        ];
        let times = Times::default();
        assert_eq!(weights(&cases, &times), [2, 3, 1], "without times, by runs");
        let times = Times::of_cases([(id("a"), 80, 2)]);
        assert_eq!(
            weights(&cases, &times),
            [80, 120, 10],
            "a direct call is shorter than an agent"
        );
        let times = Times::of_cases([(id("a"), 0, 2)]);
        assert_eq!(
            weights(&cases, &times),
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
        // The kind of a test that is no longer in the suites is unknown.
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
            let (in_order, any_order) = (assign(&cases, of), assign(&shuffled, of));
            for (position, at) in order.iter().enumerate() {
                prop_assert_eq!(any_order[position], in_order[*at]);
            }
        }
    }
}
