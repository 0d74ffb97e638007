//! Whether descriptions carry the choice of a tool: a benchmark without a model.
//!
//! A spec ([`BenchSpec`]) has a catalog, requests ("intents") with the tools that would be right, and edits of descriptions. The
//! [word-overlap selector](crate::lexical) picks a tool for every request: that is the baseline. Then each edit is applied alone, and the
//! picks are made again. What the edit costs is the drop in accuracy. A description whose loss changes no pick carries nothing.
//!
//! The selector is a stand-in, chosen because it is reproducible: it reacts to the words that a retriever or a model's router reacts to as
//! well, but it is no particular model.
//!
//! | figure | meaning |
//! |---|---|
//! | accuracy | correct picks ÷ intents; no pick is a miss. With one pick per intent this is the selection F1 too |
//! | interval | Wilson's, z = 1.96 |
//! | drop | baseline accuracy − accuracy after the edit; below 0 if the edit helped |
//! | tokens removed | whitespace-separated words of names and descriptions, before − after |
//! | TDQS | the mean and the worst of the tools' [quality scores](crate::quality) |
//! | smells introduced | named smells of the [lint](crate::lint) that there are more of after the edit |
//! | confusion | how often which tool was picked where which was intended, with the words that decided |
//!
//! # Intended tool
//! An intent may accept several tools. Intended is the picked one if it is among them, else the one of them that the selector would have picked
//! had it only seen those, else the first.

mod mutation;
mod quality;
mod spec;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use mutation::{GENERIC, Mutation, MutationKind};
pub use quality::{CatalogQuality, NotMeasured, Quality, Tdqs, ToolQuality, smells_introduced};
pub use spec::{BenchSpec, InlineCatalog, IntentSpec, KindSpec, MutationSpec, Problem, spec_schema};

use crate::catalog::Tool;
use crate::lexical::{Rank, content_words, rank, tool_words};
use crate::percent::Rate;
use crate::ratio::quotient;
use crate::statistics::{Interval, Z_95, wilson};

/// What came of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// How many tools the catalog has.
    pub tools: u64,
    /// How many requests were tried.
    pub intents: u64,
    /// With the catalog as it is.
    pub baseline: Score,
    /// What was picked for every request.
    pub picks: Vec<Picked>,
    /// Which tools were intended and which picked.
    pub confusion: Vec<Confusion>,
    /// What every edit cost, in the order of the spec.
    pub mutations: Vec<MutationReport>,
    /// The largest drop; nothing without edits.
    pub max_drop: Option<f64>,
}

/// How well tools were picked from one form of the catalog, and what that form costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Correct picks.
    pub correct: u64,
    /// Correct picks ÷ intents.
    pub accuracy: f64,
    /// The 95 % Wilson interval of the accuracy.
    pub wilson: Bounds,
    /// Words of names and descriptions, split at blanks.
    pub whitespace_tokens: u64,
    /// What the descriptions are worth; nothing where that is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
}

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The pick for one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Picked {
    /// The request.
    pub query: String,
    /// What would be right.
    pub gold: Vec<String>,
    /// The tool that was picked; nothing if no tool shares a word with the request.
    pub picked: Option<String>,
    /// Whether that is right.
    pub correct: bool,
    /// The words that the picked tool shares with the request.
    pub shared: BTreeSet<String>,
}

/// How often one tool was picked where another was intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// The intended tool.
    pub intended: String,
    /// The picked tool; nothing for no pick.
    pub picked: Option<String>,
    /// Whether the pick is right.
    pub correct: bool,
    /// How often.
    pub count: u64,
    /// The words of those requests that the picked tool has.
    pub picked_words: BTreeSet<String>,
    /// The words of those requests that the intended tool has.
    pub intended_words: BTreeSet<String>,
    /// The requests.
    pub queries: Vec<String>,
}

/// What one edit cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MutationReport {
    /// The edit.
    pub mutation: Mutation,
    /// Whether it changed anything: a word that is not there cannot be dropped.
    pub changed: bool,
    /// With the edited catalog.
    pub score: Score,
    /// Baseline accuracy − accuracy after the edit.
    pub drop: f64,
    /// Words that the edit removed; below 0 if it added some.
    pub tokens_removed: i64,
    /// Smells that there are more of; nothing where they are not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smells_introduced: Option<BTreeMap<String, u64>>,
    /// The requests whose pick changed.
    pub moved: Vec<Moved>,
}

/// A request whose pick changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The request.
    pub query: String,
    /// The pick before.
    pub from: Option<String>,
    /// The pick after.
    pub to: Option<String>,
    /// Whether the pick before was right.
    pub was_correct: bool,
    /// Whether the pick after is right.
    pub is_correct: bool,
}

impl BenchReport {
    /// Whether the largest drop reaches a threshold, decided in whole numbers; nothing without edits.
    #[must_use]
    pub fn reaches(&self, least: Rate) -> Option<bool> {
        let lowest = self.mutations.iter().map(|one| one.score.correct).min()?;
        // A catalog that no edit hurts has a largest drop of 0 or less.
        let lost = self.baseline.correct.checked_sub(lowest);
        Some(lost.is_some_and(|lost| least.met_by(lost, self.intents)))
    }
}

/// Every mutation of every tool that is not in `listed` already.
#[must_use]
pub fn all_mutations(tools: &[Tool], listed: &[Mutation]) -> Vec<Mutation> {
    let mut all: Vec<Mutation> = Vec::new();
    let mut names = BTreeSet::new();
    for tool in tools {
        // Tools of one name are edited together.
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

/// What is computed once for all mutations.
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

/// Tools that are not as in the catalog, by their place.
type Edited = BTreeMap<usize, Tool>;

impl<'a> Bench<'a> {
    fn new(tools: &'a [Tool], intents: &'a [IntentSpec], quality: &dyn CatalogQuality) -> Self {
        let words: Vec<_> = tools.iter().map(words_of).collect();
        let wanted: Vec<_> = intents.iter().map(|intent| content_words(&intent.query)).collect();
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

    /// The place of the picked tool for every intent, as [`select`](crate::lexical::select) would pick.
    fn picks(&self, edited: &Edited) -> Vec<Option<usize>> {
        let words: BTreeMap<usize, BTreeSet<String>> =
            edited.iter().map(|(place, tool)| (*place, words_of(tool))).collect();
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

    fn score(&self, picks: &[Option<usize>], edited: &Edited, quality: &dyn CatalogQuality) -> Score {
        let correct = (picks.iter().enumerate())
            .filter(|(intent, pick)| self.is_correct(*intent, **pick))
            .count() as u64;
        let trials = self.intents.len() as u64;
        let Interval { lower, upper } = wilson(correct, trials, Z_95);
        let mut whitespace = self.whitespace_tokens;
        let mut assessed = Vec::new();
        for (place, tool) in edited {
            whitespace = whitespace + whitespace_tokens(tool) - whitespace_tokens(&self.tools[*place]);
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
            drop: if score.correct > baseline.correct { -lost } else { lost },
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
        self.words[place].intersection(&self.wanted[intent]).cloned().collect()
    }

    fn picked(&self, picks: &[Option<usize>]) -> Vec<Picked> {
        (self.intents.iter().zip(picks).enumerate())
            .map(|(index, (intent, pick))| Picked {
                query: intent.query.clone(),
                gold: intent.gold.clone(),
                picked: self.name(*pick),
                correct: self.is_correct(index, *pick),
                shared: pick.map(|place| self.shared(index, place)).unwrap_or_default(),
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
            let cell = cells.entry((row, column, name.clone())).or_insert_with(|| Confusion {
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
            let words = |place: Option<usize>| place.map(|place| self.shared(index, place)).unwrap_or_default();
            cell.picked_words.extend(words(*pick));
            cell.intended_words.extend(words(intended));
        }
        cells.into_values().collect()
    }

    /// The place of the tool that was meant; nothing if no gold tool is in the catalog.
    fn intended(&self, index: usize, pick: Option<usize>) -> Option<usize> {
        if self.is_correct(index, pick) {
            return pick;
        }
        let gold = &self.intents[index].gold;
        let places = || (0..self.tools.len()).filter(|place| gold.iter().any(|name| name == self.tools[*place].name()));
        best(places().map(|place| (place, self.ranks[index][place]))).or_else(|| {
            gold.iter()
                .find_map(|name| self.tools.iter().position(|tool| tool.name() == name))
        })
    }
}

/// The place of the highest rank, the first of equals.
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
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::lexical::select;

    fn bench(spec: Value, quality: &dyn CatalogQuality) -> BenchReport {
        let spec: BenchSpec = serde_json::from_value(spec).unwrap();
        let tools = spec.catalog.clone().unwrap().0;
        let mutations = spec.mutations(&tools).unwrap();
        run(&tools, &spec.intents, &mutations, quality)
    }

    /// The document's example, with a second tool to lose against.
    fn weather() -> Value {
        json!({
            "catalog": {"tools": [
                {"name": "lookup_a", "description": "Return the current weather forecast for a city, as JSON."},
                {"name": "lookup_b", "description": "Return the exchange rate of two currencies."},
            ]},
            "intents": [
                {"query": "what is the weather forecast in Paris", "gold": ["lookup_a"]},
                {"query": "exchange rate of euro and dollar", "gold": ["lookup_b"]},
            ],
            "mutations": [
                {"tool": "lookup_a", "kind": "blank"},
                {"tool": "lookup_a", "kind": "drop_keyword", "word": "Weather"},
                {"tool": "lookup_b", "kind": "truncate", "chars": 10},
                {"tool": "lookup_b", "kind": "drop_keyword", "word": "weather"},
                {"tool": "lookup_b", "kind": "genericize"},
            ],
        })
    }

    #[test]
    fn a_mutation_costs_what_it_takes_away() {
        let report = bench(weather(), &NotMeasured);
        assert_eq!((report.baseline.correct, report.baseline.accuracy), (2, 1.0));
        // Wilson for 2 of 2 with z = 1.96: n / (n + z²) = 2 / 5.8416.
        assert!((report.baseline.wilson.lower - 2.0 / 5.8416).abs() < 1e-12);
        assert_eq!(report.baseline.wilson.upper, 1.0);
        // Two names, ten words and seven.
        assert_eq!(report.baseline.whitespace_tokens, 2 + 10 + 7);
        let figures: Vec<_> = report
            .mutations
            .iter()
            .map(|one| (one.changed, one.score.correct, one.drop, one.tokens_removed))
            .collect();
        assert_eq!(
            figures,
            [
                (true, 1, 0.5, 10),
                // `forecast` is left, and nobody else has it.
                (true, 2, 0.0, 1),
                (true, 1, 0.5, 5),
                (false, 2, 0.0, 0),
                (true, 1, 0.5, 2),
            ]
        );
        assert_eq!(report.max_drop, Some(0.5));
        assert_eq!(
            report.mutations[0].moved,
            [Moved {
                query: "what is the weather forecast in Paris".into(),
                from: Some("lookup_a".into()),
                to: None,
                was_correct: true,
                is_correct: false,
            }]
        );
    }

    #[test]
    fn thresholds_are_compared_exactly() {
        let report = bench(weather(), &NotMeasured);
        let reaches = |rate| report.reaches(Rate::from_f64(rate).unwrap());
        assert_eq!(
            (reaches(0.5), reaches(0.51), reaches(0.0)),
            (Some(true), Some(false), Some(true))
        );
        let mut none = weather();
        none["mutations"] = json!([]);
        assert_eq!(bench(none, &NotMeasured).reaches(Rate::from_f64(0.0).unwrap()), None);
        // 7 of 10 lost meets 0.7, which doubles would deny.
        let intents: Vec<Value> = (0..10)
            .map(|n| json!({"query": if n < 7 { "alpha" } else { "beta" }, "gold": ["t"]}))
            .collect();
        let spec = json!({
            "catalog": [{"name": "t", "description": "alpha beta"}],
            "intents": intents,
            "mutations": [{"tool": "t", "kind": "drop_keyword", "word": "alpha"}],
        });
        let report = bench(spec, &NotMeasured);
        assert_eq!(report.max_drop, Some(0.7));
        assert_eq!(report.reaches(Rate::from_f64(0.7).unwrap()), Some(true));
    }

    #[test]
    fn an_edit_that_helps_has_a_drop_below_zero() {
        let spec = json!({
            "catalog": [{"name": "noise", "description": "mail weather"}, {"name": "mail", "description": "more words in here"}],
            "intents": [{"query": "mail", "gold": ["mail"]}],
            "mutations": [{"tool": "noise", "kind": "blank"}],
        });
        let report = bench(spec, &NotMeasured);
        assert_eq!((report.baseline.accuracy, report.max_drop), (0.0, Some(-1.0)));
        assert_eq!(report.reaches(Rate::from_f64(0.0).unwrap()), Some(false));
    }

    #[test]
    fn the_confusion_table_shows_who_took_what_by_which_words() {
        let spec = json!({
            "catalog": [
                {"name": "search_web", "description": "search pages"},
                {"name": "search_docs", "description": "search internal pages of the handbook"},
                {"name": "ping", "description": "ping"},
            ],
            "intents": [
                {"query": "search for pages", "gold": ["search_docs", "ping"]},
                {"query": "handbook", "gold": ["search_docs"]},
                {"query": "something else", "gold": ["ping"]},
                {"query": "search the handbook", "gold": ["gone"]},
            ],
        });
        let report = bench(spec, &NotMeasured);
        let words = |words: &BTreeSet<String>| words.iter().cloned().collect::<Vec<_>>().join(" ");
        let rows: Vec<_> = report
            .confusion
            .iter()
            .map(|row| {
                format!(
                    "{} -> {:?} {} {} [{}] [{}]",
                    row.intended,
                    row.picked.as_deref(),
                    row.correct,
                    row.count,
                    words(&row.picked_words),
                    words(&row.intended_words)
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                r#"search_docs -> Some("search_web") false 1 [pages search] [pages search]"#,
                r#"search_docs -> Some("search_docs") true 1 [handbook] [handbook]"#,
                r"ping -> None false 1 [] []",
                r#"gone -> Some("search_docs") false 1 [handbook search] []"#,
            ]
        );
        assert_eq!(report.max_drop, None);
    }

    #[test]
    fn the_measure_is_that_of_the_lint() {
        let report = bench(weather(), &Tdqs);
        let whole: Vec<Value> = weather()["catalog"]["tools"].as_array().unwrap().clone();
        let expected = crate::quality::assess(&whole);
        let quality = report.baseline.quality.unwrap();
        assert_eq!(Some(quality.tdqs_min), expected.min_score);
        assert!((quality.tdqs_mean - expected.mean_score.unwrap()).abs() < 1e-12);
        assert_eq!(quality.smells.values().sum::<u64>(), expected.smell_total);
        // Without a description the tool is underspecified.
        let introduced = report.mutations[0].smells_introduced.as_ref().unwrap();
        assert_eq!(introduced.get("underspecified"), Some(&1));
        assert!(report.mutations[0].score.quality.as_ref().unwrap().tdqs_min < quality.tdqs_min);
        assert!(report.mutations[3].smells_introduced.as_ref().unwrap().is_empty());
    }

    #[test]
    fn a_measure_fills_in_quality() {
        /// Half a point per word, and short is a smell.
        struct Words;
        impl CatalogQuality for Words {
            fn assess(&self, tool: &Tool) -> Option<ToolQuality> {
                let words = tool.description().map_or(0, |text| text.split_whitespace().count());
                let smells = (words < 2)
                    .then(|| ("underspecified".to_owned(), 1))
                    .into_iter()
                    .collect();
                Some(ToolQuality {
                    score: words as f64 / 2.0,
                    smells,
                })
            }
        }
        let spec = json!({
            "catalog": [{"name": "a", "description": "one two"}, {"name": "b", "description": "three"}],
            "intents": [{"query": "one", "gold": ["a"]}],
            "mutations": [{"tool": "a", "kind": "blank"}, {"tool": "b", "kind": "blank"}],
        });
        let report = bench(spec.clone(), &Words);
        let quality = report.baseline.quality.unwrap();
        assert_eq!((quality.tdqs_mean, quality.tdqs_min), (0.75, 0.5));
        assert_eq!(quality.smells, [("underspecified".to_owned(), 1)].into());
        let introduced: Vec<_> = report
            .mutations
            .iter()
            .map(|one| one.smells_introduced.clone().unwrap())
            .collect();
        assert_eq!(introduced, [[("underspecified".to_owned(), 1)].into(), BTreeMap::new()]);
        assert_eq!(report.mutations[0].score.quality.as_ref().unwrap().tdqs_min, 0.0);
        assert_eq!(bench(spec, &NotMeasured).baseline.quality, None);
    }

    proptest! {
        #[test]
        fn picks_are_those_of_the_selector(
            tools in prop::collection::vec(("[a-d]{1,2}", "[a-d ]{0,10}"), 0..5),
            queries in prop::collection::vec("[a-d ]{1,6}", 1..4),
        ) {
            let tools: Vec<Tool> = tools
                .iter()
                .map(|(name, description)| Tool::from_listing(None, &json!({"name": name, "description": description})).unwrap())
                .collect();
            let intents: Vec<IntentSpec> = queries
                .iter()
                .map(|query| IntentSpec { query: query.clone(), gold: vec!["a".into(), "b".into()] })
                .collect();
            let mutations = all_mutations(&tools, &[]);
            let report = run(&tools, &intents, &mutations, &NotMeasured);
            let correct = |tools: &[Tool]| intents.iter().filter(|intent| {
                select(&intent.query, tools.iter().map(|tool| (tool.name(), tool.description().unwrap_or(""))))
                    .is_some_and(|pick| intent.gold.iter().any(|gold| gold == tools[pick.index].name()))
            }).count() as u64;
            prop_assert_eq!(report.baseline.correct, correct(&tools));
            prop_assert_eq!(report.confusion.iter().map(|cell| cell.count).sum::<u64>(), intents.len() as u64);
            for one in &report.mutations {
                let edited: Vec<Tool> = tools
                    .iter()
                    .map(|tool| if tool.name() == one.mutation.tool { one.mutation.apply(tool) } else { tool.clone() })
                    .collect();
                prop_assert_eq!(one.score.correct, correct(&edited));
                prop_assert_eq!(one.score.whitespace_tokens, edited.iter().map(whitespace_tokens).sum::<u64>());
                prop_assert_eq!(one.changed, edited != tools);
            }
        }
    }
}
