//! A benchmark of tool descriptions without a model: do they determine the choice of a tool?
//!
//! A spec ([`BenchSpec`]) has a catalog, requests ("intents") with the tools that would be right,
//! and edits of descriptions. The [word-overlap selector](crate::lexical) picks a tool for every
//! request: that is the baseline. Then each edit is applied alone, and the picks are repeated. The
//! cost of an edit is the drop in accuracy. A description whose loss changes no pick is useless.
//!
//! The selector is a substitute, chosen because it is reproducible: it reacts to the words that a
//! retriever or a model's router reacts to as well, but it does not simulate a particular model.
//!
//! | figure | meaning |
//! |---|---|
//! | accuracy | correct picks ÷ intents; no pick is a miss. With one pick per intent this is the selection F1 too |
//! | interval | Wilson's, z = 1.96 |
//! | drop | baseline accuracy − accuracy after the edit; below 0 if the edit helped |
//! | tokens removed | whitespace-separated words of names and descriptions, before − after |
//! | TDQS | the mean and the worst of the tools' [quality scores](crate::quality) |
//! | smells introduced | named smells of the [lint](crate::lint) that there are more of after the edit |
//! | confusion | intended versus picked tool with counts, and the words that decided |
//!
//! # Intended tool
//! An intent may accept several tools. Intended is the picked one if it is among them, else the one
//! of them that the selector would have picked had it only seen those, else the first.

mod mutation;
mod quality;
mod report;
mod spec;

use std::collections::{BTreeMap, BTreeSet};

pub use mutation::{GENERIC, Mutation, MutationKind};
pub use quality::{CatalogQuality, NotMeasured, Quality, Tdqs, ToolQuality, smells_introduced};
pub use report::{BenchReport, Bounds, Confusion, Moved, MutationReport, Picked, Score};
pub use spec::{
    BenchSpec, InlineCatalog, IntentSpec, KindSpec, MutationSpec, Problem, spec_schema,
};

use crate::lexical::{Rank, content_words, rank, tool_words};
use mcptest_numbers::ratio::quotient;
use mcptest_numbers::statistics::{Interval, Z_95, wilson};
use mcptest_trace::catalog::Tool;

/// Every mutation of every tool that is not in `listed` already.
#[must_use]
pub fn all_mutations(tools: &[Tool], listed: &[Mutation]) -> Vec<Mutation> {
    let mut all: Vec<Mutation> = Vec::new();
    let mut names = BTreeSet::new();
    for tool in tools {
        // Tools with the same name are edited together.
        if names.insert(tool.name()) {
            all.extend(
                Mutation::all_of(tool)
                    .into_iter()
                    .filter(|mutation| !listed.contains(mutation)),
            );
        }
    }
    all
}

/// Picks for all intents, with the catalog as it is and after each mutation alone.
#[must_use]
pub fn run(
    tools: &[Tool],
    intents: &[IntentSpec],
    mutations: &[Mutation],
    quality: &dyn CatalogQuality,
) -> BenchReport {
    let bench = Bench::new(tools, intents, quality);
    let baseline_picks = bench.picks(&BTreeMap::new());
    let baseline = bench.score(&baseline_picks, &BTreeMap::new(), quality);
    let mutations: Vec<MutationReport> = mutations
        .iter()
        .map(|mutation| bench.mutate(mutation, &baseline, &baseline_picks, quality))
        .collect();
    let drops = mutations.iter().map(|mutation| mutation.drop);
    BenchReport {
        tools: tools.len() as u64,
        intents: intents.len() as u64,
        picks: bench.picked(&baseline_picks),
        confusion: bench.confusion(&baseline_picks),
        max_drop: drops.reduce(f64::max),
        baseline,
        mutations,
    }
}

/// Data that is computed once for all mutations.
struct Bench<'a> {
    tools: &'a [Tool],
    intents: &'a [IntentSpec],
    words: Vec<BTreeSet<String>>,
    wanted: Vec<BTreeSet<String>>,
    /// By intent, then by tool.
    ranks: Vec<Vec<Option<Rank>>>,
    quality: Vec<Option<ToolQuality>>,
    whitespace_tokens: u64,
}

/// Edited tools, by index.
type Edited = BTreeMap<usize, Tool>;

impl<'a> Bench<'a> {
    fn new(tools: &'a [Tool], intents: &'a [IntentSpec], quality: &dyn CatalogQuality) -> Self {
        let words: Vec<_> = tools.iter().map(words_of).collect();
        let wanted: Vec<_> = intents
            .iter()
            .map(|intent| content_words(&intent.query))
            .collect();
        let ranks = wanted
            .iter()
            .map(|wanted| words.iter().map(|own| rank(own, wanted)).collect())
            .collect();
        Self {
            tools,
            intents,
            words,
            wanted,
            ranks,
            quality: tools.iter().map(|tool| quality.assess(tool)).collect(),
            whitespace_tokens: tools.iter().map(whitespace_tokens).sum(),
        }
    }

    /// The index of the picked tool for every intent, as [`select`](crate::lexical::select) would
    /// pick.
    fn picks(&self, edited: &Edited) -> Vec<Option<usize>> {
        let words: BTreeMap<usize, BTreeSet<String>> = edited
            .iter()
            .map(|(place, tool)| (*place, words_of(tool)))
            .collect();
        (self.ranks.iter().zip(&self.wanted))
            .map(|(ranks, wanted)| {
                let now = |place: usize| match words.get(&place) {
                    Some(own) => rank(own, wanted),
                    None => ranks[place],
                };
                best((0..ranks.len()).map(|place| (place, now(place))))
            })
            .collect()
    }

    fn is_correct(&self, intent: usize, pick: Option<usize>) -> bool {
        pick.is_some_and(|place| {
            let name = self.tools[place].name();
            self.intents[intent].gold.iter().any(|gold| gold == name)
        })
    }

    fn score(
        &self,
        picks: &[Option<usize>],
        edited: &Edited,
        quality: &dyn CatalogQuality,
    ) -> Score {
        let correct = (picks.iter().enumerate())
            .filter(|(intent, pick)| self.is_correct(*intent, **pick))
            .count() as u64;
        let trials = self.intents.len() as u64;
        let Interval { lower, upper } = wilson(correct, trials, Z_95);
        let mut whitespace = self.whitespace_tokens;
        let mut assessed = Vec::new();
        for (place, tool) in edited {
            whitespace =
                whitespace + whitespace_tokens(tool) - whitespace_tokens(&self.tools[*place]);
            assessed.push((*place, quality.assess(tool)));
        }
        let mut all = self.quality.clone();
        for (place, one) in assessed {
            all[place] = one;
        }
        Score {
            correct,
            accuracy: quotient(&correct.into(), &trials.into()),
            wilson: Bounds { lower, upper },
            whitespace_tokens: whitespace,
            quality: Quality::of(&all),
        }
    }

    fn mutate(
        &self,
        mutation: &Mutation,
        baseline: &Score,
        before: &[Option<usize>],
        quality: &dyn CatalogQuality,
    ) -> MutationReport {
        let edited: Edited = (self.tools.iter().enumerate())
            .filter(|(_, tool)| tool.name() == mutation.tool)
            .map(|(place, tool)| (place, mutation.apply(tool)))
            .filter(|(place, tool)| *tool != self.tools[*place])
            .collect();
        let after = self.picks(&edited);
        let score = self.score(&after, &edited, quality);
        let lost = quotient(
            &baseline.correct.abs_diff(score.correct).into(),
            &(self.intents.len() as u64).into(),
        );
        let moved = (before.iter().zip(&after).enumerate())
            .filter(|(_, (from, to))| from != to)
            .map(|(intent, (from, to))| Moved {
                query: self.intents[intent].query.clone(),
                from: self.name(*from),
                to: self.name(*to),
                was_correct: self.is_correct(intent, *from),
                is_correct: self.is_correct(intent, *to),
            })
            .collect();
        MutationReport {
            mutation: mutation.clone(),
            changed: !edited.is_empty(),
            drop: if score.correct > baseline.correct {
                -lost
            } else {
                lost
            },
            tokens_removed: signed(baseline.whitespace_tokens) - signed(score.whitespace_tokens),
            smells_introduced: (baseline.quality.as_ref().zip(score.quality.as_ref()))
                .map(|(before, after)| smells_introduced(before, after)),
            score,
            moved,
        }
    }

    fn name(&self, pick: Option<usize>) -> Option<String> {
        pick.map(|place| self.tools[place].name().to_owned())
    }

    fn shared(&self, intent: usize, place: usize) -> BTreeSet<String> {
        self.words[place]
            .intersection(&self.wanted[intent])
            .cloned()
            .collect()
    }

    fn picked(&self, picks: &[Option<usize>]) -> Vec<Picked> {
        (self.intents.iter().zip(picks).enumerate())
            .map(|(index, (intent, pick))| Picked {
                query: intent.query.clone(),
                gold: intent.gold.clone(),
                picked: self.name(*pick),
                correct: self.is_correct(index, *pick),
                shared: pick
                    .map(|place| self.shared(index, place))
                    .unwrap_or_default(),
            })
            .collect()
    }

    /// Rows by intended tool in the order of the catalog, then by picked tool; "no pick" is last.
    fn confusion(&self, picks: &[Option<usize>]) -> Vec<Confusion> {
        let mut cells: BTreeMap<(usize, usize, String), Confusion> = BTreeMap::new();
        for (index, (intent, pick)) in self.intents.iter().zip(picks).enumerate() {
            let intended = self.intended(index, *pick);
            let name = self.name(intended).or_else(|| intent.gold.first().cloned());
            let name = name.unwrap_or_default();
            let row = intended.unwrap_or(usize::MAX);
            let column = pick.unwrap_or(usize::MAX);
            let cell = cells
                .entry((row, column, name.clone()))
                .or_insert_with(|| Confusion {
                    intended: name,
                    picked: self.name(*pick),
                    correct: self.is_correct(index, *pick),
                    count: 0,
                    picked_words: BTreeSet::new(),
                    intended_words: BTreeSet::new(),
                    queries: Vec::new(),
                });
            cell.count += 1;
            cell.queries.push(intent.query.clone());
            let words = |place: Option<usize>| {
                place
                    .map(|place| self.shared(index, place))
                    .unwrap_or_default()
            };
            cell.picked_words.extend(words(*pick));
            cell.intended_words.extend(words(intended));
        }
        cells.into_values().collect()
    }

    /// The index of the intended tool; `None` if no gold tool is in the catalog.
    fn intended(&self, index: usize, pick: Option<usize>) -> Option<usize> {
        if self.is_correct(index, pick) {
            return pick;
        }
        let gold = &self.intents[index].gold;
        let places = || {
            (0..self.tools.len())
                .filter(|place| gold.iter().any(|name| name == self.tools[*place].name()))
        };
        best(places().map(|place| (place, self.ranks[index][place]))).or_else(|| {
            gold.iter()
                .find_map(|name| self.tools.iter().position(|tool| tool.name() == name))
        })
    }
}

/// The index of the highest rank, the first of equals.
fn best(ranks: impl Iterator<Item = (usize, Option<Rank>)>) -> Option<usize> {
    let mut best: Option<(Rank, usize)> = None;
    for (place, rank) in ranks {
        if let Some(rank) = rank
            && best.is_none_or(|(highest, _)| rank > highest)
        {
            best = Some((rank, place));
        }
    }
    best.map(|(_, place)| place)
}

fn words_of(tool: &Tool) -> BTreeSet<String> {
    tool_words(tool.name(), tool.description().unwrap_or(""))
}

fn whitespace_tokens(tool: &Tool) -> u64 {
    let count = |text: &str| text.split_whitespace().count() as u64;
    count(tool.name()) + tool.description().map_or(0, count)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
