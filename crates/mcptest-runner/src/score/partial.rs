//! Partial results: the accumulators of a part of the traces, which any number of machines write
//! and one merges.
//!
//! The runs of a test and a model are in the order of their recorded numbers; runs without a
//! number, or with the same one, are in the order of the parts (`--part`), of the names of their
//! files, and of their positions. Each run carries these facts, so the order of the whole does not
//! depend on how the traces were split, nor on the order of the merge.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use mcptest_events::RunTotals;
use mcptest_events::log::redact_json;
use mcptest_gate_api::AccumulatorError;
use mcptest_gate_api::digest::Digest;
use mcptest_redact::redact::Redactor;
use mcptest_suite::{ResolvedSuite, Suite};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::numbering::{RunKey, part_and_place};
use super::sinks::ScoreSinks;
use super::stream::{self, Group, Groups, Merger, Scorer};
use super::{ScoreError, ScoreSettings, Scored, TraceInput};
use crate::plan::Filter;
use crate::trace_file::{BrokenLine, BrokenLines, natural_order};
use crate::verdicts::{CaseTally, TallyFacts};

/// The mark of the format.
pub const PARTIAL_FORMAT: &str = "mcptest-partial";
/// The version of the format. It grows with every change to an accumulator.
const VERSION: u32 = 2;

/// The place of a partial result among all of them: `3/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PartOf {
    /// From 1.
    pub number: u32,
    /// The number of parts.
    pub of: u32,
}

/// A partial result.
#[derive(Debug, Serialize, Deserialize)]
pub struct Partial {
    format: String,
    version: u32,
    /// The version of the program.
    mcptest: String,
    /// The fingerprint of the suite and the settings.
    fingerprint: Digest,
    settings: PartialSettings,
    suite: ResolvedSuite,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<PartOf>,
    /// The names of the files.
    sources: Vec<String>,
    broken: BrokenLines,
    groups: Vec<PartialGroup>,
}

/// The settings that decide about the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PartialSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    test: Option<String>,
    filter: Vec<String>,
    tags: Vec<String>,
    no_judges: bool,
}

/// The runs of a test and a model.
#[derive(Debug, Serialize, Deserialize)]
struct PartialGroup {
    /// The position of the test among the agent tests of the suite.
    test: usize,
    model: Option<String>,
    /// The accumulator of each gate. Its runs have the positions in `runs` as indexes.
    gates: Vec<Box<RawValue>>,
    tally: TallyFacts,
    totals: RunTotals,
    runs: Vec<RunPlace>,
}

/// The facts that decide about the place of a run: its recorded number, its file (as a position in
/// `sources`) and its position in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunPlace(pub Option<u64>, pub u32, pub u64);

/// An error from reading or merging partial results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartialError {
    /// The text is not a partial result.
    #[error("{name}: not a partial result of `mcptest score --partial`: {message}")]
    NotAPartial {
        /// The file.
        name: String,
        /// The problem.
        message: String,
    },
    /// The partial result is of another version.
    #[error(
        "{name}: written by mcptest {found} (format {format}), and this is mcptest {} \
         (format {VERSION}); score all parts with the same version",
        env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// The file.
        name: String,
        /// The version of the program.
        found: String,
        /// The version of the format.
        format: u32,
    },
    /// Two partial results of different suites or settings.
    #[error(
        "`{first}` and `{second}` do not belong together: they have different {}; \
         score all parts with the same suite, `--test`, `--filter`, `--tag` and `--no-judges`",
        if *settings { "settings" } else { "suites" }
    )]
    OtherSuite {
        /// The first file.
        first: String,
        /// The second file.
        second: String,
        /// True if only the settings differ.
        settings: bool,
    },
    /// Parts that are missing, given twice, or of different counts.
    #[error("{0}")]
    Parts(String),
    /// Two runs whose order is not known.
    #[error(
        "`{first}` and `{second}` both have trace {position} of `{source_name}` ({test}): the same \
         traces were scored twice, or the order of the runs is not known. Give each part its place \
         with `--part I/N`, or number the runs with `run`"
    )]
    SameRun {
        /// The first file.
        first: String,
        /// The second file.
        second: String,
        /// The name of the trace file.
        source_name: String,
        /// From 1.
        position: u64,
        /// The test.
        test: String,
    },
    /// The accumulator of a gate is damaged.
    #[error("{name}: {error}")]
    Damaged {
        /// The file.
        name: String,
        /// The cause.
        error: AccumulatorError,
    },
    /// The suite in the partial result cannot be loaded.
    #[error("{name}: the suite in it cannot be loaded: {message}")]
    Suite {
        /// The file.
        name: String,
        /// The problems.
        message: String,
    },
    /// There is nothing to merge.
    #[error("no partial results to merge")]
    Nothing,
    /// The suite has nothing to score.
    #[error(transparent)]
    Score(#[from] ScoreError),
}

impl Partial {
    /// Reads a partial result. `name` is for messages.
    ///
    /// # Errors
    /// Not a partial result, or one of another version.
    pub fn read(name: &str, text: &[u8]) -> Result<Self, PartialError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
            #[serde(default)]
            mcptest: String,
        }
        let not_a_partial = |message: String| PartialError::NotAPartial {
            name: name.to_owned(),
            message,
        };
        let read = |error: serde_json::Error| not_a_partial(error.to_string());
        let head: Head = serde_json::from_slice(text).map_err(read)?;
        if head.format != PARTIAL_FORMAT {
            return Err(not_a_partial(format!("its format is {:?}", head.format)));
        }
        if (head.version, head.mcptest.as_str()) != (VERSION, env!("CARGO_PKG_VERSION")) {
            return Err(PartialError::OtherVersion {
                name: name.to_owned(),
                found: head.mcptest,
                format: head.version,
            });
        }
        let partial: Self = serde_json::from_slice(text).map_err(read)?;
        let sources = partial.sources.len();
        let runs = partial.groups.iter().flat_map(|group| &group.runs);
        if runs.into_iter().any(|run| run.1 as usize >= sources) {
            return Err(not_a_partial("a run has no file".to_owned()));
        }
        Ok(partial)
    }

    /// Returns true if a text looks like a partial result.
    #[must_use]
    pub fn is_partial(text: &[u8]) -> bool {
        let head = &text[..text.len().min(200)];
        memchr::memmem::find(head, PARTIAL_FORMAT.as_bytes()).is_some()
    }

    /// The suite that the traces were scored with.
    #[must_use]
    pub fn suite(&self) -> &ResolvedSuite {
        &self.suite
    }

    /// The lines that were skipped.
    #[must_use]
    pub fn broken_lines(&self) -> &BrokenLines {
        &self.broken
    }

    /// The JSON text, without secrets.
    #[must_use]
    pub fn to_json(&self, redactor: &Redactor) -> Vec<u8> {
        // Strings, numbers, lists and maps with string keys: always serialises.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        if let Some(redacted) = redact_json(&text, redactor) {
            text = redacted;
        }
        text.push('\n');
        text.into_bytes()
    }

    fn settings(&self) -> ScoreSettings {
        ScoreSettings {
            test: self.settings.test.clone(),
            filter: Filter {
                names: self.settings.filter.clone(),
                tags: self.settings.tags.clone(),
            },
            no_judges: self.settings.no_judges,
            summary: true,
            ..ScoreSettings::default()
        }
    }
}

/// The facts of a partial result besides its runs.
struct PartialFacts {
    pub suite: ResolvedSuite,
    pub part: Option<PartOf>,
    pub sources: Vec<String>,
    pub broken: BrokenLines,
}

/// Scores a part of the traces.
pub(super) fn score_partial(
    suite: &Suite,
    inputs: Vec<TraceInput<'_>>,
    settings: &ScoreSettings,
    resolved: ResolvedSuite,
    part: Option<PartOf>,
) -> Result<Partial, ScoreError> {
    let settings = ScoreSettings {
        summary: true,
        all_records: false,
        ..settings.clone()
    };
    let (servers, redactor) = (suite.known_servers(), Redactor::default());
    let scorer = Scorer::new(suite, &settings, &servers, &redactor)?;
    let mut nothing = |_: &[u8]| Ok(0);
    let mut merger = Merger::new(ScoreSinks::new(&mut nothing), true);
    stream::read(inputs, &settings, &scorer, &mut merger)?;
    merger.check(&scorer)?;
    let facts = PartialFacts {
        suite: resolved,
        part,
        sources: std::mem::take(&mut merger.sources),
        broken: std::mem::take(&mut merger.broken),
    };
    let parts = std::mem::take(&mut merger.parts);
    let place = |key: u64| {
        let (part, place) = part_and_place(key);
        let at = parts.partition_point(|(number, ..)| *number <= part);
        let (_, source, before) = parts[at.saturating_sub(1)];
        (source, before + place)
    };
    Ok(partial(facts, &settings, merger.groups(), place))
}

/// Makes a partial result of groups.
fn partial(
    facts: PartialFacts,
    settings: &ScoreSettings,
    groups: Groups<'_>,
    place: impl Fn(u64) -> (u32, u64),
) -> Partial {
    let settings = PartialSettings {
        test: settings.test.clone(),
        filter: settings.filter.names.clone(),
        tags: settings.filter.tags.clone(),
        no_judges: settings.no_judges,
    };
    let same = serde_json::to_string(&(&facts.suite, &settings)).unwrap_or_default();
    Partial {
        format: PARTIAL_FORMAT.to_owned(),
        version: VERSION,
        mcptest: env!("CARGO_PKG_VERSION").to_owned(),
        fingerprint: Digest::of_text(&same),
        settings,
        suite: facts.suite,
        part: facts.part,
        sources: facts.sources,
        broken: facts.broken,
        groups: groups
            .into_list()
            .map(|group| partial_group(group, &place))
            .collect(),
    }
}

fn partial_group(mut group: Group<'_>, place: impl Fn(u64) -> (u32, u64)) -> PartialGroup {
    // In the final order, as far as it is known: runs with the same number stay in their order.
    let mut keys = group.table.keys();
    keys.sort_by_key(|run| (run.run.unwrap_or(u64::MAX), run.key));
    let mut positions: Vec<(u64, u64)> = (0..).zip(&keys).map(|(at, run)| (run.key, at)).collect();
    positions.sort_unstable();
    group.tally.renumber(&|key| {
        let found = positions.binary_search_by_key(&key, |(key, _)| *key);
        found.map_or(key, |at| positions[at].1)
    });
    let raw = |json: String| RawValue::from_string(json).unwrap_or_default();
    PartialGroup {
        test: group.test,
        model: group.model.as_deref().map(Into::into),
        gates: group.tally.gates_json().map(raw).collect(),
        tally: group.tally.facts(),
        totals: group.totals,
        runs: keys
            .iter()
            .map(|run| {
                let (source, position) = place(run.key);
                RunPlace(run.run, source, position)
            })
            .collect(),
    }
}

/// Merges partial results, each with the name of its file. `load` loads their suite.
///
/// # Errors
/// Partial results that do not belong together, are incomplete or damaged.
pub fn merge_partials<E: Display>(
    partials: Vec<(String, Partial)>,
    load: impl FnOnce(&ResolvedSuite) -> Result<Suite, E>,
) -> Result<Scored, PartialError> {
    check(&partials)?;
    let (name, first) = partials.first().ok_or(PartialError::Nothing)?;
    let suite = load(&first.suite).map_err(|error| PartialError::Suite {
        name: name.clone(),
        message: error.to_string(),
    })?;
    let settings = first.settings();
    let redactor = Redactor::default();
    let servers = suite.known_servers();
    let scorer = Scorer::new(&suite, &settings, &servers, &redactor)?;
    let mut broken: Vec<(usize, &BrokenLine)> = Vec::new();
    let mut count = 0;
    for (at, (_, partial)) in partials.iter().enumerate() {
        count += partial.broken.count;
        broken.extend(partial.broken.first.iter().map(|line| (at, line)));
    }
    broken.sort_by(|(one, line), (other, with)| {
        let parts = partials[*one].1.part.cmp(&partials[*other].1.part);
        let names = natural_order(Path::new(&line.file), Path::new(&with.file));
        parts.then(names).then(line.line.cmp(&with.line))
    });
    let broken = BrokenLines::new(count, broken.into_iter().map(|(_, line)| line.clone()));
    let groups = merged_groups(&scorer, partials)?;
    let cases = scorer.cases(&suite, groups)?;
    Ok(Scored { cases, broken })
}

/// The groups of a test and a model in all partial results: positions of the partial result and of
/// the group in it.
type SameGroup = Vec<(usize, usize)>;

fn merged_groups<'a>(
    scorer: &Scorer<'a>,
    partials: Vec<(String, Partial)>,
) -> Result<Groups<'a>, PartialError> {
    let mut by_case: BTreeMap<(usize, Option<String>), SameGroup> = BTreeMap::new();
    for (at, (name, partial)) in partials.iter().enumerate() {
        for (place, group) in partial.groups.iter().enumerate() {
            let gates = scorer
                .tests
                .all
                .get(group.test)
                .map(|test| test.gates.len());
            if gates != Some(group.gates.len()) {
                return Err(PartialError::NotAPartial {
                    name: name.clone(),
                    message: "its accumulators do not fit its suite".to_owned(),
                });
            }
            let key = (group.test, group.model.clone());
            by_case.entry(key).or_default().push((at, place));
        }
    }
    let mut groups = Groups::default();
    for ((test, model), same) in by_case {
        let mut merged: Option<Group<'a>> = None;
        let ranks = ranks(&partials, &same, &scorer.tests.all[test].name)?;
        for ((at, place), ranks) in same.into_iter().zip(ranks) {
            let (name, partial) = &partials[at];
            let saved = &partial.groups[place];
            let group = read_group(scorer, name, saved, &ranks)?;
            match &mut merged {
                Some(merged) => merged.merge(group),
                None => merged = Some(group),
            }
        }
        if let Some(mut merged) = merged {
            merged.model = model.as_deref().map(Into::into);
            groups.push(merged);
        }
    }
    Ok(groups)
}

/// The position of every run among all runs of its test and model, for each of its groups.
fn ranks(
    partials: &[(String, Partial)],
    same: &[(usize, usize)],
    test: &str,
) -> Result<Vec<Vec<u64>>, PartialError> {
    let run = |at: usize, place: usize, run: usize| partials[at].1.groups[place].runs[run];
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (group, (at, place)) in same.iter().enumerate() {
        let runs = partials[*at].1.groups[*place].runs.len();
        all.extend((0..runs).map(|run| (group, run)));
    }
    // Names are compared once for each pair of files, and not for each pair of runs.
    let sources = source_ranks(partials, same);
    let key = |(group, index): &(usize, usize)| {
        let (at, place) = same[*group];
        let RunPlace(number, source, position) = run(at, place, *index);
        let number = number.map_or((1, 0), |number| (0, number));
        (number, sources[*group][source as usize], position)
    };
    all.sort_by_cached_key(|it| key(it));
    for pair in all.windows(2) {
        let (one, other) = (&pair[0], &pair[1]);
        if one.0 != other.0 && key(one) == key(other) {
            let (at, place) = same[one.0];
            let RunPlace(_, source, position) = run(at, place, one.1);
            return Err(PartialError::SameRun {
                first: partials[at].0.clone(),
                second: partials[same[other.0].0].0.clone(),
                source_name: partials[at].1.sources[source as usize].clone(),
                position: position + 1,
                test: test.to_owned(),
            });
        }
    }
    let mut ranks: Vec<Vec<u64>> = same
        .iter()
        .map(|(at, place)| vec![0; partials[*at].1.groups[*place].runs.len()])
        .collect();
    for (rank, (group, index)) in (0..).zip(all) {
        ranks[group][index] = rank;
    }
    Ok(ranks)
}

/// The position of every file among the files of all partial results, for each group.
fn source_ranks(partials: &[(String, Partial)], same: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut names: Vec<(Option<PartOf>, &str)> = Vec::new();
    for (at, _) in same {
        let partial = &partials[*at].1;
        names.extend(
            partial
                .sources
                .iter()
                .map(|name| (partial.part, name.as_str())),
        );
    }
    let order = |one: &(Option<PartOf>, &str), other: &(Option<PartOf>, &str)| -> Ordering {
        let names = natural_order(Path::new(one.1), Path::new(other.1));
        one.0.cmp(&other.0).then(names).then(one.1.cmp(other.1))
    };
    names.sort_by(order);
    names.dedup();
    same.iter()
        .map(|(at, _)| {
            let partial = &partials[*at].1;
            let rank = |name: &String| {
                let wanted = (partial.part, name.as_str());
                names.partition_point(|known| order(known, &wanted).is_lt())
            };
            partial.sources.iter().map(rank).collect()
        })
        .collect()
}

fn read_group<'a>(
    scorer: &Scorer<'a>,
    name: &str,
    saved: &PartialGroup,
    ranks: &[u64],
) -> Result<Group<'a>, PartialError> {
    let test = scorer.tests.all[saved.test];
    let damaged = |error| PartialError::Damaged {
        name: name.to_owned(),
        error,
    };
    let mut gates = Vec::new();
    for (gate, json) in test.gates.iter().zip(&saved.gates) {
        gates.push(gate.accumulator_from_json(json.get()).map_err(damaged)?);
    }
    let mut tally = CaseTally::resume(gates, saved.tally);
    let rank = |index: u64| {
        let at = usize::try_from(index).ok();
        at.and_then(|at| ranks.get(at)).copied().unwrap_or(u64::MAX)
    };
    tally.renumber(&rank);
    let mut group = Group::new(saved.test, None, tally);
    group.totals = saved.totals;
    for (run, rank) in saved.runs.iter().zip(ranks) {
        group.table.push_key(RunKey {
            key: *rank,
            run: run.0,
        });
    }
    Ok(group)
}

/// Checks that partial results belong together.
fn check(partials: &[(String, Partial)]) -> Result<(), PartialError> {
    let Some((first, one)) = partials.first() else {
        return Err(PartialError::Nothing);
    };
    for (second, other) in partials {
        if one.fingerprint != other.fingerprint {
            return Err(PartialError::OtherSuite {
                first: first.clone(),
                second: second.clone(),
                settings: one.suite == other.suite,
            });
        }
    }
    check_parts(partials).map_err(PartialError::Parts)
}

fn check_parts(partials: &[(String, Partial)]) -> Result<(), String> {
    let parts: Vec<(&str, PartOf)> = partials
        .iter()
        .filter_map(|(name, partial)| Some((name.as_str(), partial.part?)))
        .collect();
    let Some((first, part)) = parts.first() else {
        return Ok(());
    };
    if let Some((name, _)) = partials.iter().find(|(_, partial)| partial.part.is_none()) {
        return Err(format!(
            "`{first}` is part {} of {} and `{name}` has no `--part`; give it to all or to none",
            part.number, part.of
        ));
    }
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, other) in &parts {
        if other.of != part.of {
            return Err(format!(
                "`{first}` is part {} of {} and `{name}` is part {} of {}",
                part.number, part.of, other.number, other.of
            ));
        }
        if let Some(twin) = seen.insert(other.number, name) {
            return Err(format!(
                "`{twin}` and `{name}` are both part {}",
                other.number
            ));
        }
    }
    let missing: Vec<String> = (1..=part.of)
        .filter(|number| !seen.contains_key(number))
        .take(10)
        .map(|number| number.to_string())
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "part {} of {} is missing; without it the result would be incomplete",
            missing.join(", "),
            part.of
        ))
    }
}
