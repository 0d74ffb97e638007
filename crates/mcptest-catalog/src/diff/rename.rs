//! Detection of renamed tools.
//!
//! A removed and an added tool are one if their names have the same words (`getWeather`,
//! `get_weather`), or if they take the same arguments and their names or descriptions share at
//! least half of their words. The most similar tools are paired first.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::schema;
use crate::lexical::{content_words, words};
use mcptest_trace::catalog::Tool;

/// Half of the words, in thousandths.
const ALIKE: u64 = 500;

/// Pairs of indexes in `removed` and `added`.
pub(super) fn find(removed: &[&Tool], added: &[&Tool]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (from, old) in removed.iter().enumerate() {
        for (to, new) in added.iter().enumerate() {
            if let Some(score) = likeness(old, new) {
                // Equal scores are ordered by the names, whichever of them is the old one.
                let mut names = [old.name(), new.name()];
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

/// The similarity of two tools; `None` if they are too different to be the same.
fn likeness(old: &Tool, new: &Tool) -> Option<u64> {
    let of_names = shared(&set(words(old.name())), &set(words(new.name())));
    let text = |tool: &Tool| content_words(tool.description().unwrap_or(""));
    let of_texts = shared(&text(old), &text(new));
    if of_names < ALIKE && of_texts < ALIKE {
        return None;
    }
    // Comparing schemas is expensive: only where the words allow it.
    (of_names == 1000 || same_arguments(old, new)).then_some(of_names + of_texts)
}

fn set(words: Vec<String>) -> BTreeSet<String> {
    words.into_iter().collect()
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
