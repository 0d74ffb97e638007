//! The figure that the run has in place of a stated one, by the form of the sentence.

use super::{MessageFigures, is_year};
use crate::figures::pool::{Figure, Figures};
use crate::figures::sentence_words::{content_words, is_vague};
use crate::sentences::Sentence;
use crate::values::{Stated, ValueKind};
use crate::verbs::fold;

impl MessageFigures<'_> {
    /// The only figure of that name, where a sentence states another one and no call has changed
    /// anything since: "The total is $43.50".
    pub(super) fn other_attribute<'f>(
        &self,
        figures: &'f Figures,
        sentence: &Sentence,
        value: &Stated,
    ) -> Option<&'f Figure> {
        let tokens = &sentence.tokens;
        let [first, noun, is] = tokens.get(..value.at)? else {
            return None;
        };
        let plain = first.is_any(&["the", "your", "its"])
            && is.is_any(&["is", "was"])
            && tokens.len() <= value.at + 3;
        let noun = figures.word(&fold(&noun.low)).filter(|_| plain)?;
        let mut own = figures
            .all
            .iter()
            .filter(|figure| figure.kind == ValueKind::Number && figure.is_only(noun));
        let only = own.next()?;
        let later = self.acts.get(only.call? + 1..)?;
        (own.all(|other| other.normal == only.normal) && !later.contains(&true)).then_some(only)
    }

    /// The only figure of what a sentence is about, where the sentence states another one as its
    /// setting: "The thermostat is set to 25 °C".
    pub(super) fn other_setting<'f>(
        &self,
        figures: &'f Figures,
        sentence: &Sentence,
        value: &Stated,
        words: &[u32],
    ) -> Option<&'f Figure> {
        let tokens = &sentence.tokens;
        let set = value.at >= 2
            && tokens[value.at - 1].is_any(&["to", "at"])
            && tokens[value.at - 2].is_any(&["set", "is", "are", "now"]);
        if !set {
            return None;
        }
        let mut own = figures.all.iter().filter(|figure| {
            figure.kind == ValueKind::Number && figure.whole && figure.shared(words) > 0
        });
        let first = own.next()?;
        own.all(|other| other.normal == first.normal)
            .then_some(first)
    }

    /// The year of the record that a sentence names, where the sentence states another one:
    /// "\"Block Patterns\" was published in 2019".
    pub(super) fn other_year(&self, sentence: &Sentence, value: &Stated) -> Option<&Figure> {
        const YEARS: [&str; 5] = ["year", "published", "released", "founded", "built"];
        const EVENTS: [&str; 8] = [
            "published",
            "released",
            "founded",
            "built",
            "written",
            "recorded",
            "appeared",
            "established",
        ];
        let tokens = &sentence.tokens;
        let dated = value.at >= 2
            && is_year(&value.normal)
            && tokens[value.at - 1].is("in")
            && tokens[value.at - 2].is_any(&EVENTS);
        if !dated {
            return None;
        }
        let figures = self.figures();
        let keys: Vec<u32> = YEARS
            .iter()
            .filter_map(|word| figures.word(&fold(word)))
            .collect();
        let words = self.words(figures, content_words(tokens));
        let own = figures.all.iter().filter(|figure| {
            figure.whole
                && figure.kind == ValueKind::Number
                && is_year(&figure.normal)
                && figure.is_named(&keys)
        });
        let best = own.max_by_key(|figure| figure.shared(&words))?;
        (best.shared(&words) >= 2).then_some(best)
    }

    /// The list that a count exceeds, even with everything that the run may have added: "I found
    /// four papers", where the only list of papers has two.
    pub(super) fn more_than_all<'f>(
        &self,
        figures: &'f Figures,
        sentence: &Sentence,
        value: &Stated,
    ) -> Option<&'f Figure> {
        let counts = sentence.tokens[value.at.saturating_sub(2)..value.at]
            .iter()
            .any(|token| token.is_any(&["found", "have", "has", "are", "returned", "were"]));
        if !counts {
            return None;
        }
        let noun = value.counted.as_deref().filter(|noun| !is_vague(noun))?;
        let noun = figures.word(noun)?;
        let stated = value.normal.parse::<usize>().ok()?;
        let length = |figure: &Figure| figure.normal.parse::<usize>().unwrap_or_default();
        // Something else under that word can be what is counted.
        let other = figures
            .all
            .iter()
            .any(|figure| figure.kind == ValueKind::Number && figure.is_named(&[noun]));
        let lists: Vec<&Figure> = figures
            .all
            .iter()
            .filter(|figure| figure.kind == ValueKind::Count && figure.is_named(&[noun]))
            .collect();
        let only = lists.iter().all(|figure| figure.is_only(noun));
        let listed: usize = lists.iter().copied().map(length).sum();
        let added = self.acts.iter().filter(|acts| **acts).count();
        let first = lists.first().copied()?;
        (!other && only && length(first) > 0 && stated > listed + added).then_some(first)
    }
}
