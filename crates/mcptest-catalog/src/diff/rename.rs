//! Detection of renamed tools.
//!
//! A removed and an added tool are one if their names have the same words (`getWeather`,
//! `get_weather`), or if they take the same arguments and their names or descriptions share at
//! least half of their words. The most similar tools are paired first.

//!
//! Only pairs that share a rare word are compared, found in an index of words: two sets that share
//! half of their words share one of the rarest half of each. A word that very many tools have says
//! little, so each tool is compared with a bounded number of others.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::schema;
use crate::lexical::{content_words, words};
use mcptest_json::canonical;
use mcptest_trace::catalog::Tool;

/// Half of the words, in thousandths.
const ALIKE: u64 = 500;

/// The number of added tools that a removed one is compared with, for its name and its description
/// each.
const MAX_CANDIDATES: usize = 200;

/// Pairs of indexes in `removed` and `added`.
pub(super) fn find(removed: &[&Tool], added: &[&Tool]) -> Vec<(usize, usize)> {
    if removed.is_empty() || added.is_empty() {
        return Vec::new();
    }
    let mut schemas = Schemas::default();
    let old: Vec<Features> = removed.iter().map(|tool| schemas.features(tool)).collect();
    let new: Vec<Features> = added.iter().map(|tool| schemas.features(tool)).collect();
    let by_name = WordIndex::new(new.iter().map(|tool| &tool.name));
    let by_text = WordIndex::new(new.iter().map(|tool| &tool.text));
    let mut pairs = Vec::new();
    for (from, tool) in old.iter().enumerate() {
        let mut candidates = by_name.candidates(&tool.name);
        candidates.extend(by_text.candidates(&tool.text));
        for to in candidates {
            if let Some(score) = schemas.likeness(tool, &new[to]) {
                // Equal scores are ordered by the names, whichever of them is the old one.
                let mut names = [removed[from].name(), added[to].name()];
                names.sort_unstable();
                pairs.push((Reverse(score), names, from, to));
            }
        }
    }
    pairs.sort();
    let (mut taken_from, mut taken_to) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    for (_, _, from, to) in pairs {
        if !taken_from.contains(&from) && !taken_to.contains(&to) {
            taken_from.insert(from);
            taken_to.insert(to);
            found.push((from, to));
        }
    }
    found.sort_unstable();
    found
}

/// The parts of a tool that are compared.
struct Features<'a> {
    tool: &'a Tool,
    name: BTreeSet<String>,
    text: BTreeSet<String>,
    /// The number of its input schema among the different ones.
    schema: usize,
}

/// The different input schemas, and which of them take the same arguments.
#[derive(Default)]
struct Schemas {
    numbers: HashMap<String, usize>,
    same: HashMap<(usize, usize), bool>,
}

impl Schemas {
    fn features<'a>(&mut self, tool: &'a Tool) -> Features<'a> {
        let next = self.numbers.len();
        let text = canonical(super::input_schema(tool));
        Features {
            tool,
            name: words(tool.name()).into_iter().collect(),
            text: content_words(tool.description().unwrap_or("")),
            schema: *self.numbers.entry(text).or_insert(next),
        }
    }

    /// The similarity of two tools; `None` if they are too different to be the same.
    fn likeness(&mut self, old: &Features<'_>, new: &Features<'_>) -> Option<u64> {
        let of_names = shared(&old.name, &new.name);
        let of_texts = shared(&old.text, &new.text);
        if of_names < ALIKE && of_texts < ALIKE {
            return None;
        }
        // Comparing schemas is expensive: only where the words allow it, and each pair once.
        let same = of_names == 1000
            || old.schema == new.schema
            || *self
                .same
                .entry((old.schema, new.schema))
                .or_insert_with(|| same_arguments(old.tool, new.tool));
        same.then_some(of_names + of_texts)
    }
}

/// The sets of words of the added tools by their rarest words.
struct WordIndex<'a> {
    frequency: HashMap<&'a str, usize>,
    sets: HashMap<&'a str, Vec<usize>>,
}

impl<'a> WordIndex<'a> {
    fn new(sets: impl Iterator<Item = &'a BTreeSet<String>> + Clone) -> Self {
        let mut index = Self {
            frequency: HashMap::new(),
            sets: HashMap::new(),
        };
        for word in sets.clone().flatten() {
            *index.frequency.entry(word).or_default() += 1;
        }
        for (number, set) in sets.enumerate() {
            for word in index.rarest(set) {
                index.sets.entry(word).or_default().push(number);
            }
        }
        index
    }

    /// The words of a set of which two sets that share half of their words have one in common.
    fn rarest<'s>(&self, set: &'s BTreeSet<String>) -> Vec<&'s str> {
        let mut words: Vec<&str> = set.iter().map(String::as_str).collect();
        words.sort_by_key(|word| (self.frequency.get(word).copied().unwrap_or(0), *word));
        words.truncate(set.len() - set.len().div_ceil(2) + 1);
        words
    }

    /// The sets that may share half of their words with this one, those with the rarest first.
    fn candidates(&self, set: &BTreeSet<String>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for word in self.rarest(set) {
            for number in self.sets.get(word).into_iter().flatten() {
                if found.len() >= MAX_CANDIDATES {
                    return found;
                }
                found.insert(*number);
            }
        }
        found
    }
}

/// The shared part of two sets of words, in thousandths of all of them; 0 for no words.
fn shared(a: &BTreeSet<String>, b: &BTreeSet<String>) -> u64 {
    let both = a.intersection(b).count() as u64;
    let all = a.union(b).count() as u64;
    (both * 1000).checked_div(all).unwrap_or(0)
}

fn same_arguments(old: &Tool, new: &Tool) -> bool {
    let (old, new) = (super::input_schema(old), super::input_schema(new));
    schema::compare("", old, new)
        .iter()
        .all(|fact| fact.kind == super::Kind::Annotation)
}
