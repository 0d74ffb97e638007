//! Merging reports: the shards of a run give the report of the whole run.

use std::collections::BTreeMap;

use mcptest_events::{CaseId, Replayed};
use mcptest_json::text::one_line;

use crate::broken_lines::BrokenLines;
use crate::model::Shard;
use crate::report::{Report, TestReport, Timing};

/// Reports that cannot be merged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Reports of shards and of whole runs.
    #[error("`{shard}` is a shard and `{whole}` is not; merge shards with shards")]
    Mixed {
        /// A file with a shard.
        shard: String,
        /// A file without.
        whole: String,
    },
    /// Shards of different runs.
    #[error(
        "`{first}` is shard {first_is} and `{second}` is shard {second_is}: \
         they are not from one run"
    )]
    OtherRun {
        /// The first file.
        first: String,
        /// Its shard.
        first_is: String,
        /// The second file.
        second: String,
        /// Its shard.
        second_is: String,
    },
    /// The same shard twice.
    #[error("`{first}` and `{second}` are both shard {number}")]
    SameShard {
        /// The first file.
        first: String,
        /// The second file.
        second: String,
        /// The shard.
        number: u32,
    },
    /// Some shards are missing.
    #[error(
        "shard {} of {of} is missing; without it the result would be incomplete",
        list(missing)
    )]
    Missing {
        /// The missing shards.
        missing: Vec<u32>,
        /// The number of shards.
        of: u32,
    },
    /// Shards that do not cover every test exactly once.
    #[error(
        "position {position} of {total} is in {}; \
         run all shards with the same suites, filters, models and `--timings`",
        if *times == 0 { "no shard".to_owned() } else { format!("{times} shards") }
    )]
    NoPartition {
        /// The position, from 0.
        position: u64,
        /// The number of positions.
        total: u64,
        /// The number of shards with this position.
        times: usize,
    },
    /// A file whose positions do not match its tests.
    #[error("`{file}`: its `shard` does not match its tests")]
    Misfit {
        /// The file.
        file: String,
    },
    /// A test in two files.
    #[error("`{first}` and `{second}` both have the test `{}`", one_line(&id.to_string()))]
    SameTest {
        /// The first file.
        first: String,
        /// The second file.
        second: String,
        /// The test.
        id: CaseId,
    },
}

fn describe(shard: &Shard) -> String {
    format!("{}/{} of {} tests", shard.number, shard.of, shard.total)
}

fn list(numbers: &[u32]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

/// A test, or one that was not run.
enum Entry {
    Test(Box<TestReport>),
    NotRun(CaseId),
}

/// Merges reports, each with the name of its file. The tests of shards return to their positions,
/// whatever the order of the shards; whole reports are concatenated. Verdict, exit code and floors
/// are computed again.
///
/// # Errors
/// Reports that do not belong together, or shards that are incomplete.
pub fn merge(parts: Vec<(String, Report)>) -> Result<Report, MergeError> {
    let shards: Vec<(&str, Option<&Shard>)> = parts
        .iter()
        .map(|(file, report)| (file.as_str(), report.shard.as_ref()))
        .collect();
    for (file, report) in &parts {
        let fits = |shard: &Shard| {
            shard.tests.len() == report.tests.len()
                && shard.not_run.len() == report.not_run.len()
                && (1..=shard.of).contains(&shard.number)
        };
        if !report.shard.as_ref().is_none_or(fits) {
            return Err(MergeError::Misfit { file: file.clone() });
        }
    }
    let sharded = check_shards(&shards)?;
    if !sharded {
        reject_same_tests(&parts)?;
    }
    let interrupted = parts.iter().any(|(_, report)| report.interrupted);
    let timed = parts.iter().all(|(_, report)| report.is_timed());
    let duration_ms = parts
        .iter()
        .filter_map(|(_, report)| report.timing.as_ref())
        .map(|timing| timing.duration_ms)
        .sum();
    let replayed = Replayed::total(parts.iter().filter_map(|(_, report)| report.replayed));
    let broken = parts.iter().filter_map(|(_, it)| it.broken_lines.clone());
    let broken = BrokenLines::total(broken);
    let mut entries: Vec<(u64, Entry)> = Vec::new();
    for (_, report) in parts {
        take_apart(report, &mut entries);
    }
    // Stable: entries without a position keep their order.
    entries.sort_by_key(|(position, _)| *position);
    let (mut tests, mut not_run) = (Vec::new(), Vec::new());
    for (_, entry) in entries {
        match entry {
            Entry::Test(test) => tests.push(*test),
            Entry::NotRun(id) => not_run.push(id),
        }
    }
    let mut merged = Report::conclude(tests, interrupted).with_broken_lines(broken);
    merged.not_run = not_run;
    merged.replayed = replayed;
    merged.timing = timed.then(|| Timing::new(duration_ms));
    Ok(merged)
}

fn take_apart(report: Report, entries: &mut Vec<(u64, Entry)>) {
    let (tests_at, not_run_at) = report
        .shard
        .map_or_else(Default::default, |shard| (shard.tests, shard.not_run));
    let mut tests_at = tests_at.into_iter();
    for test in report.tests {
        let position = tests_at.next().unwrap_or(0);
        entries.push((position, Entry::Test(Box::new(test))));
    }
    let mut not_run_at = not_run_at.into_iter();
    for id in report.not_run {
        entries.push((not_run_at.next().unwrap_or(0), Entry::NotRun(id)));
    }
}

/// Returns true for shards, which must be all those of one run, each once.
fn check_shards(parts: &[(&str, Option<&Shard>)]) -> Result<bool, MergeError> {
    let shards: Vec<(&str, &Shard)> = parts
        .iter()
        .filter_map(|(file, shard)| Some((*file, (*shard)?)))
        .collect();
    let Some((first_file, first)) = shards.first() else {
        return Ok(false);
    };
    if let Some((whole, _)) = parts.iter().find(|(_, shard)| shard.is_none()) {
        return Err(MergeError::Mixed {
            shard: (*first_file).to_owned(),
            whole: (*whole).to_owned(),
        });
    }
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    for (file, shard) in &shards {
        if (shard.of, shard.total) != (first.of, first.total) {
            return Err(MergeError::OtherRun {
                first: (*first_file).to_owned(),
                second: (*file).to_owned(),
                first_is: describe(first),
                second_is: describe(shard),
            });
        }
        if let Some(other) = seen.insert(shard.number, file) {
            return Err(MergeError::SameShard {
                first: other.to_owned(),
                second: (*file).to_owned(),
                number: shard.number,
            });
        }
    }
    let missing: Vec<u32> = (1..=first.of)
        .filter(|number| !seen.contains_key(number))
        .collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing {
            missing,
            of: first.of,
        });
    }
    check_positions(&shards, first.total)?;
    Ok(true)
}

fn check_positions(shards: &[(&str, &Shard)], total: u64) -> Result<(), MergeError> {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for (file, shard) in shards {
        for position in shard.tests.iter().chain(&shard.not_run) {
            if *position >= total {
                return Err(MergeError::Misfit {
                    file: (*file).to_owned(),
                });
            }
            *times.entry(*position).or_default() += 1;
        }
    }
    // Ends at the first gap, so a huge total in a file costs nothing.
    for position in 0..total {
        let times = times.get(&position).copied().unwrap_or(0);
        if times != 1 {
            return Err(MergeError::NoPartition {
                position,
                total,
                times,
            });
        }
    }
    Ok(())
}

fn reject_same_tests(parts: &[(String, Report)]) -> Result<(), MergeError> {
    let mut seen: BTreeMap<CaseId, usize> = BTreeMap::new();
    for (at, (file, report)) in parts.iter().enumerate() {
        let ids = report
            .tests
            .iter()
            .map(|test| &test.id)
            .chain(&report.not_run);
        for id in ids {
            // Within one report, two suites may have the same name.
            let first = *seen.entry(id.clone()).or_insert(at);
            if first != at {
                return Err(MergeError::SameTest {
                    first: parts[first].0.clone(),
                    second: file.clone(),
                    id: id.clone(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples;

    fn sample(tests: usize) -> Report {
        Report::from(&samples::report(tests))
    }

    fn json(report: &Report) -> String {
        let mut out = Vec::new();
        crate::render("json", report, crate::Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn shards_of(
        whole: &Report,
        of: u32,
        shard_of: impl Fn(usize) -> u32,
    ) -> Vec<(String, Report)> {
        (1..=of)
            .map(|number| {
                let mine: Vec<usize> = (0..whole.tests.len())
                    .filter(|at| shard_of(*at) == number)
                    .collect();
                let tests = mine.iter().map(|at| whole.tests[*at].clone()).collect();
                let mut report = Report::conclude(tests, false);
                report.timing = Some(Timing::new(1));
                report.shard = Some(Shard {
                    number,
                    of,
                    total: whole.tests.len() as u64,
                    tests: mine.iter().map(|at| *at as u64).collect(),
                    not_run: Vec::new(),
                });
                // As a file: shards are merged from files.
                let report = crate::read(json(&report)).unwrap();
                (format!("{number}.json"), report)
            })
            .collect()
    }

    fn rejected(parts: Vec<(String, Report)>) -> String {
        merge(parts).unwrap_err().to_string()
    }

    #[test]
    fn reports_that_do_not_belong_together_are_rejected() {
        let whole = sample(4);
        let parts = || shards_of(&whole, 2, |at| at as u32 % 2 + 1);
        let (first, second) = (parts().remove(0), parts().remove(1));
        assert_eq!(
            rejected(vec![first.clone()]),
            "shard 2 of 2 is missing; without it the result would be incomplete"
        );
        assert_eq!(
            rejected(vec![
                first.clone(),
                second.clone(),
                ("again.json".to_owned(), first.1.clone())
            ]),
            "`1.json` and `again.json` are both shard 1"
        );
        assert_eq!(
            rejected(vec![
                first.clone(),
                ("whole.json".to_owned(), whole.clone())
            ]),
            "`1.json` is a shard and `whole.json` is not; merge shards with shards"
        );
        let third = shards_of(&whole, 3, |at| at as u32 % 3 + 1).remove(1);
        assert_eq!(
            rejected(vec![first.clone(), third]),
            "`1.json` is shard 1/2 of 4 tests and `2.json` is shard 2/3 of 4 tests: \
             they are not from one run"
        );
        // Other timings give other shards: one test is in both, another in none.
        let other = shards_of(&whole, 2, |at| if at == 3 { 2 } else { 1 }).remove(1);
        assert_eq!(
            rejected(vec![first.clone(), other]),
            "position 1 of 4 is in no shard; \
             run all shards with the same suites, filters, models and `--timings`"
        );
        let mut wrong = second;
        if let Some(shard) = &mut wrong.1.shard {
            shard.tests[0] = 99;
        }
        assert_eq!(
            rejected(vec![first, wrong]),
            "`2.json`: its `shard` does not match its tests"
        );
        assert_eq!(
            rejected(vec![
                ("a.json".to_owned(), whole.clone()),
                ("b.json".to_owned(), whole)
            ]),
            "`a.json` and `b.json` both have the test `sample: test 0 [model-a]`"
        );
    }

    #[test]
    fn reports_of_different_runs_are_concatenated() {
        let first = sample(2);
        let mut second = sample(3);
        second.interrupted = true;
        second.timing = None;
        for test in &mut second.tests {
            test.id.suite = "another".to_owned();
        }
        second.not_run = vec![CaseId {
            suite: "another".to_owned(),
            name: "never".to_owned(),
            model: None,
        }];
        let merged = merge(vec![
            ("1".to_owned(), first.clone()),
            ("2".to_owned(), second.clone()),
        ])
        .unwrap();
        let suites: Vec<&str> = merged
            .tests
            .iter()
            .map(|test| test.id.suite.as_str())
            .collect();
        assert_eq!(
            suites,
            ["sample", "sample", "another", "another", "another"]
        );
        assert!(merged.interrupted);
        assert_eq!(u8::from(merged.exit_code), 130);
        assert_eq!(merged.not_run, second.not_run);
        assert_eq!(merged.timing, None, "the times would be incomplete");
    }

    proptest! {
        #[test]
        fn merged_shards_equal_the_whole_in_any_order(
            count in 0..12_usize,
            of in 1..6_u32,
            assigned in proptest::collection::vec(0..1000_u32, 12),
            order in Just((0..6_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let whole = sample(count);
            let parts = shards_of(&whole, of, |at| assigned[at] % of + 1);
            let shuffled = order.into_iter().filter_map(|at| parts.get(at).cloned()).collect();
            let mut merged = merge(shuffled).unwrap();
            let duration_ms = merged.timing.as_ref().map(|timing| timing.duration_ms);
            prop_assert_eq!(duration_ms, Some(u64::from(of)));
            merged.timing = whole.timing.clone();
            prop_assert_eq!(json(&merged), json(&whole));
        }
    }
}
