//! Which case goes to which shard.
//!
//! The longest case first, each to the shard with the least work so far (LPT): no shard gets more than 4/3 of what the best
//! assignment would give it. Ties are broken by what things are called, never by their order, so that moving a test in its file moves nothing
//! else, and all machines that see the same suites and times cut them alike.

use std::collections::BTreeMap;
use std::str::FromStr;

use mcptest_report::Report;
use mcptest_report::model::CaseId;

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
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST_SHARDS => Ok(Self { number, of }),
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

/// Weighs cases by their number of runs, or by recorded times. A case without times takes as long per run as the others did on average.
#[must_use]
pub fn weigh(cases: &[(CaseId, u32)], recorded: Option<&Report>) -> Vec<Weighed> {
    let times = recorded.map(durations).unwrap_or_default();
    let sum: u128 = times.values().map(|(time, _)| u128::from(*time)).sum();
    let runs: u128 = times.values().map(|(_, runs)| u128::from(*runs)).sum();
    let usual = u64::try_from(sum.checked_div(runs).unwrap_or(1))
        .unwrap_or(u64::MAX)
        .max(1);
    cases
        .iter()
        .map(|(id, runs)| {
            let guess = || usual.saturating_mul(u64::from(*runs));
            let weight = times.get(id).map_or_else(guess, |(time, _)| *time);
            Weighed {
                id: id.clone(),
                weight: weight.max(1),
            }
        })
        .collect()
}

/// The time and the number of runs of each case.
fn durations(report: &Report) -> BTreeMap<CaseId, (u64, u64)> {
    let times = report.timing_by_test().unwrap_or_default();
    let mut durations = BTreeMap::new();
    for (test, times) in report.tests.iter().zip(times) {
        let sum = times
            .iter()
            .fold(0_u64, |sum, time| sum.saturating_add(time.duration_ms));
        durations.insert(test.id(), (sum, times.len() as u64));
    }
    durations
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
        let lightest = (0..load.len()).min_by_key(|shard| load[*shard]).unwrap_or(0);
        load[lightest].0 += u128::from(cases[case].weight);
        load[lightest].1 += 1;
        // As many as `of`, which is a u32.
        assigned[case] = u32::try_from(lightest).unwrap_or(0) + 1;
    }
    assigned
}

#[cfg(test)]
mod tests {
    use mcptest_core::verdict::Verdict;
    use mcptest_report::model::{Kind, RunReport, RunTiming, TestReport, Timing};
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
        assert_eq!(assign(&weighed(&[u64::MAX, u64::MAX, u64::MAX]), 2), [1, 2, 1]);
    }

    #[test]
    fn times_are_recorded_ones_else_the_average() {
        let run = |index| RunReport {
            index,
            name: format!("a #{index}"),
            verdict: Verdict::Pass,
            trace: mcptest_core::trace::Trace::default(),
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
        let cases = [(id("a"), 2), (id("b"), 3)];
        let weights = |report: &Report| -> Vec<u64> {
            let weighed = weigh(&cases, Some(report)).into_iter();
            weighed.map(|case| case.weight).collect()
        };
        assert_eq!(weights(&report), [2, 3], "without times, by runs");
        let time = |index, duration_ms| RunTiming {
            name: format!("a #{index}"),
            duration_ms,
        };
        report.timing = Some(Timing {
            duration_ms: 1,
            runs: vec![time(1, 30), time(2, 50)],
        });
        assert_eq!(weights(&report), [80, 120]);
        report.timing = Some(Timing {
            duration_ms: 1,
            runs: vec![time(1, 0), time(2, 0)],
        });
        assert_eq!(weights(&report), [1, 3], "no time at all is still a case to start");
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
