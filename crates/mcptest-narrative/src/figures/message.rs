//! Figures of a message that the run contradicts, whatever the form of their sentence.
//!
//! A value that no argument, no result and no message of the user has, and that does not follow
//! from such values, is wrong if the run has another one in its place: under the same key, beside
//! the same word, or with a digit changed.

mod names;
mod other_figures;

use std::cell::{Cell, OnceCell};

use crate::dates::same_day;
use crate::derive::Asked;
use crate::figures::near_miss::{is_near_date, is_near_miss};
use crate::figures::pool::{Figure, Figures};
use crate::figures::sentence_words::{
    COMPARISONS, TOTALS, UNITS, attribute_words, content_words, is_calculation, is_plain,
    is_supposed, is_vague,
};
use crate::provenance::RunValues;
use crate::sentence_figures::WrongFigure;
use crate::sentences::Sentence;
use crate::stated_values::all_stated;
use crate::tokens::{Kind, Token, number, tokenize};
use crate::values::{Stated, ValueKind};
use crate::verbs::fold;
use crate::words::{is_noun, is_pastlike, is_preposition};
use mcptest_trace::trace::TraceView;

/// The number of figures of one message that are compared.
const MAX_COMPARED: usize = 400;
/// An attribute with more values than this is one of many things.
const MAX_VALUES: usize = 6;

/// Returns true if a number can count things.
fn is_count(own: f64) -> bool {
    own.fract() == 0.0 && (2.0..=31.0).contains(&own)
}

fn is_year(number: &str) -> bool {
    number.len() == 4 && (number.starts_with("19") || number.starts_with("20"))
}

/// The figures of a run beside those of its message.
pub(crate) struct MessageFigures<'a> {
    trace: &'a TraceView<'a>,
    values: &'a RunValues<'a>,
    figures: OnceCell<Figures>,
    /// The numbers of the message that the run has.
    stated: Vec<f64>,
    /// Small whole numbers that the message or the user states.
    counts: Vec<f64>,
    /// True if every call has a recorded result.
    complete: bool,
    /// By call, true if it does more than look.
    acts: Vec<bool>,
    /// True if one of them does.
    acting: bool,
    room: Cell<usize>,
}

impl<'a> MessageFigures<'a> {
    pub(crate) fn new(
        trace: &'a TraceView<'a>,
        values: &'a RunValues<'a>,
        sentences: &[Sentence],
        complete: bool,
        acts: Vec<bool>,
    ) -> Self {
        let mut figures = Self {
            trace,
            values,
            figures: OnceCell::new(),
            stated: Vec::new(),
            counts: Vec::new(),
            complete,
            acting: acts.contains(&true),
            acts,
            room: Cell::new(MAX_COMPARED),
        };
        for sentence in sentences {
            for value in all_stated(&sentence.tokens) {
                let Ok(own) = value.normal.parse::<f64>() else {
                    continue;
                };
                if value.kind != ValueKind::Number || figures.stated.len() >= 40 {
                    continue;
                }
                if is_count(own) {
                    figures.counts.push(own);
                }
                if values.has_number_text(&value.normal) && !is_plain(&value) {
                    figures.stated.push(own);
                }
            }
        }
        let turns = trace.conversation.turns.as_deref().unwrap_or_default();
        for turn in turns {
            if turn.role.as_deref() != Some("assistant") {
                let said = all_stated(&tokenize(&turn.text()));
                let said = said.iter().filter(|value| value.kind == ValueKind::Number);
                let said = said.filter_map(|value| value.normal.parse().ok());
                figures
                    .counts
                    .extend(said.filter(|own| is_count(*own)).take(20));
            }
        }
        figures.counts.sort_by(f64::total_cmp);
        figures.counts.dedup();
        figures
    }

    fn figures(&self) -> &Figures {
        self.figures.get_or_init(|| Figures::new(self.trace))
    }

    /// The values of a sentence that are wrong.
    pub(crate) fn wrong(&self, sentence: &Sentence) -> Vec<WrongFigure> {
        if !self.complete {
            return Vec::new();
        }
        let supposed = sentence.question || is_supposed(sentence);
        let mut found = Vec::new();
        for value in all_stated(&sentence.tokens) {
            if self.room.get() == 0 {
                break;
            }
            self.room.set(self.room.get() - 1);
            let wrong = match value.kind {
                ValueKind::Number => self.wrong_number(sentence, &value, supposed),
                ValueKind::Date | ValueKind::Time => self.wrong_time(sentence, &value, supposed),
                // "Do you also need BIO-211?"
                ValueKind::Identifier | ValueKind::Email | ValueKind::Path => (!sentence.question)
                    .then(|| self.wrong_name(&value, supposed))
                    .flatten(),
                ValueKind::Quote => self
                    .wrong_quote(&value)
                    .or_else(|| self.wrong_in_quote(&value)),
                ValueKind::Count | ValueKind::Word => None,
            };
            found.extend(wrong);
        }
        found
    }

    fn is_unknown_number(&self, value: &Stated, sentence: &Sentence, named: bool) -> bool {
        let total = sentence.tokens.iter().any(|token| token.is_any(TOTALS));
        let compared = sentence
            .tokens
            .iter()
            .any(|token| token.is_any(COMPARISONS));
        // "Price per person: €37" is no calculation.
        let combined = (value.money && !named)
            || total
            || compared
            || value.counted.is_some() && !value.normal.contains('.');
        let converted = value.money
            || value.percent
            || value.text.contains(char::is_alphabetic)
            || sentence.tokens[value.at + 1..]
                .iter()
                .take(2)
                .any(|token| token.is_any(UNITS));
        let own = value.normal.parse::<f64>().unwrap_or_default();
        let counts: Vec<f64> = self
            .counts
            .iter()
            .copied()
            .filter(|count| *count != own)
            .collect();
        let asked = Asked {
            combined,
            converted,
            stated: &value.normal,
            percent: value.percent,
            message: &self.stated,
            counts: &counts,
            total,
        };
        !self.values.has_number_text(&value.normal) && !self.values.terms().give(&asked)
    }

    fn wrong_number(
        &self,
        sentence: &Sentence,
        value: &Stated,
        supposed: bool,
    ) -> Option<WrongFigure> {
        let known = self.values.has_number_text(&value.normal);
        if let Some(figure) = self
            .other_year(sentence, value)
            .filter(|_| !known && !supposed)
        {
            return Some(wrong_figure(value, figure));
        }
        let small = value.normal.len() <= 2 && !value.money && !value.percent;
        if value.rounded || is_plain(value) || known && !(small && value.counted.is_some()) {
            return None;
        }
        let figures = self.figures();
        let names = self.words(figures, attribute_words(sentence, value));
        let mut words = self.words(figures, content_words(&sentence.tokens));
        // "was viewed 410 times", of `views`
        let past = value.at.checked_sub(1).map(|place| &sentence.tokens[place]);
        words.extend(
            past.filter(|past| is_pastlike(past) && value.counted.as_deref() == Some("time"))
                .and_then(|past| figures.word(&fold(&past.low))),
        );
        let words = words;
        let cents = value
            .text
            .split_once('.')
            .is_some_and(|(_, cents)| cents.len() == 2);
        let written = if cents { &value.text } else { &value.normal };
        let digits = written.chars().filter(char::is_ascii_digit).count();
        let fits = |figure: &&Figure| {
            figure.kind == ValueKind::Number
                && (figure.percent == value.percent || figure.whole && !figure.percent)
        };
        let counts = |figure: &&Figure| fits(figure) || figure.kind == ValueKind::Count;
        let own = value.normal.parse::<f64>().unwrap_or_default().abs();
        let is_comparable = |figure: &&Figure| {
            let other = figure.normal.parse::<f64>().unwrap_or_default().abs();
            value.money || (own <= other * 10.0 && other <= own * 10.0)
        };
        let supposed = supposed || is_calculation(&sentence.tokens);
        // "1200" says no more than "12".
        let zeros = match cents || value.normal.contains('.') {
            true => 0,
            false => value.normal.len() - value.normal.trim_end_matches('0').len(),
        };
        let precise = digits.saturating_sub(zeros) + usize::from(value.money && zeros == 0);
        let total = sentence.tokens.iter().any(|token| token.is_any(TOTALS))
            || is_calculation(&sentence.tokens);
        // "RTX 4090"
        let model = value.at.checked_sub(1).is_some_and(|place| {
            let before = &sentence.tokens[place];
            before.is_word()
                && before.text.len() >= 2
                && before.text.chars().all(|c| c.is_ascii_uppercase())
                && !before.is_any(&[
                    "id", "no", "po", "pr", "iban", "zip", "usd", "eur", "gbp", "ny", "ca", "tx",
                    "dc",
                ])
        });
        if model {
            return None;
        }
        // Of few numbers of this length, one that differs in a digit is no accident.
        let few = {
            let alike = figures.all.iter().filter(fits);
            let alike = alike.filter(|figure| figure.normal.len() == value.normal.len());
            alike.take(1_000).count() * 40 * 20 < 9 * 10_usize.pow(digits.clamp(1, 12) as u32 - 1)
        };
        let rare = {
            let alike = figures.all.iter().filter(fits);
            let alike = alike.filter(|figure| figure.normal.len() == value.normal.len());
            alike.take(20).count() < 20
        };
        let near = figures.all.iter().filter(fits).find(|figure| {
            precise >= 3
                && (!total || value.normal.contains('.') || figure.whole && figure.is_named(&names))
                && is_near_miss(&value.normal, &figure.normal)
                && (few || figure.shared(&words) >= if precise >= 4 || rare { 1 } else { 2 })
        });
        // A long number names something.
        let long = digits >= 6 && !value.normal.contains('.');
        // "21 Elm Street", where the run has "12 Elm Street"
        let (ahead, behind) = self.neighbours(figures, &sentence.tokens, value);
        let near = near.or_else(|| {
            figures
                .all
                .iter()
                .filter(fits)
                .find(|figure| figure.is_between(behind, ahead))
        });
        let near = near.or_else(|| {
            figures
                .all
                .iter()
                .filter(fits)
                .find(|figure| long && figure.normal.len() == value.normal.len())
        });
        let named = || {
            let own: Vec<&Figure> = figures
                .all
                .iter()
                .filter(fits)
                .filter(is_comparable)
                .filter(|figure| figure.is_named(&names) && (figure.whole || !small))
                .collect();
            let mut normals: Vec<&str> = own.iter().map(|figure| figure.normal.as_str()).collect();
            normals.sort_unstable();
            normals.dedup();
            let best = own.into_iter().max_by_key(|figure| figure.shared(&words));
            let id = figures.word("id").is_some_and(|id| names.contains(&id));
            best.filter(|_| !small || id || normals.len() <= MAX_VALUES)
        };
        let named = named();
        let labelled = sentence.tokens[..value.at]
            .iter()
            .any(|token| token.is_mark() && token.is_any(&[":", "|"]))
            || sentence.tokens[value.at + 1..]
                .iter()
                .take(2)
                .any(|token| token.is_any(&["per", "each"]));
        // Under the very name of a recorded figure, a slip is no calculation.
        let sums = |figure: &&Figure| !total || figure.whole;
        let near = near.filter(|_| !known);
        let sums = |figure: &&Figure| {
            sums(figure) && (!total || self.is_unknown_number(value, sentence, false))
        };
        if let Some(figure) = near.filter(|figure| figure.is_named(&names)).filter(sums) {
            return Some(wrong_figure(value, figure));
        }
        // "for four hours", where a call was given `2h`; "all seven lights", where there are 9
        let restricted = sentence.tokens[value.at..]
            .iter()
            .any(|token| token.is_any(&["of", "in", "with", "from", "other", "more"]));
        // "after 47 seconds", where a key of a duration has 74
        let time = value.counted.as_deref().is_some_and(|noun| {
            matches!(
                noun,
                "second" | "minut" | "hour" | "day" | "week" | "month" | "ms"
            )
        });
        let lasting: Vec<u32> = [
            "duration", "length", "elapsed", "took", "runtime", "day", "hour", "minut", "second",
        ]
        .iter()
        .filter_map(|word| figures.word(&fold(word)))
        .collect();
        let slipped = figures.all.iter().filter(fits).find(|figure| {
            time && !known
                && figure.whole
                && figure.is_named(&lasting)
                && value.normal.len() == 2
                && is_near_miss(&value.normal, &figure.normal)
        });
        let usual = sentence
            .tokens
            .iter()
            .any(|token| token.is_any(&["next", "within", "will", "usually", "up"]));
        if let Some(figure) = slipped.filter(|_| !supposed && !usual) {
            return Some(wrong_figure(value, figure));
        }
        let direct = figures.all.iter().filter(counts).find(|figure| {
            let unit = figure.unit.is_some()
                && value.counted.as_deref() == figure.unit
                && figure.call.is_some_and(|call| self.acts[call]);
            let counted = || {
                let noun = value.counted.as_ref().and_then(|noun| figures.word(noun));
                let all = value.at > 0 && sentence.tokens[value.at - 1].is("all");
                noun.is_some_and(|noun| figure.is_only(noun))
                    && !is_vague(value.counted.as_deref().unwrap_or_default())
                    && (all
                        || !restricted
                            && figure.call.is_some_and(|call| self.acts[call])
                            && self.is_unknown_number(value, sentence, false))
            };
            small && figure.whole && figure.normal != value.normal && (unit || counted())
        });
        let others_agree = || {
            figures
                .all
                .iter()
                .filter(fits)
                .any(|figure| figure.normal == value.normal && figure.shared(&words) > 0)
        };
        if let Some(figure) = direct.filter(|_| !supposed && !others_agree()) {
            return Some(wrong_figure(value, figure));
        }
        if known {
            return None;
        }
        if let Some(figure) = self
            .other_attribute(figures, sentence, value)
            .filter(|figure| fits(figure) && !supposed)
        {
            return Some(wrong_figure(value, figure));
        }
        if let Some(figure) = self
            .more_than_all(figures, sentence, value)
            .filter(|_| !supposed && small)
        {
            return Some(wrong_figure(value, figure));
        }
        // An exact amount that is nowhere, where amounts are.
        let amount = || {
            let exact = value.money && (precise >= 4 || value.normal.contains('.'));
            let own = figures.all.iter().filter(fits);
            let own = own.filter(|figure| figure.is_amount && exact);
            own.max_by_key(|figure| figure.shared(&words))
        };
        let other = || {
            let own = figures.all.iter().filter(fits).filter(is_comparable);
            own.filter(|figure| {
                // "170, -10 and 57", where the others are of one list
                self.is_enumerated(&sentence.tokens, value)
                    // "Disk usage fell to 70%"
                    || value.percent && figure.percent && figure.shared(&words) >= 2
                    // "That leaves 335 users"
                    || precise >= 3
                        && self.acting
                        && value.counted.as_ref().is_some_and(|noun| {
                            figures.word(noun).is_some() && !is_vague(noun)
                        })
                        && figure.shared(&words) >= 1
                    // "Post 16"
                    || digits >= 2
                        && self.is_numbered(&sentence.tokens, value)
                        && figure.whole
                        && figure.shared(&names) >= 1
            })
            .max_by_key(|figure| figure.shared(&words))
        };
        let other = || other().or_else(|| self.other_setting(figures, sentence, value, &words));
        let wrong = near
            .or_else(|| named.filter(|_| !supposed))
            .or_else(|| amount().filter(|_| !supposed))
            .or_else(|| other().filter(|_| !supposed))?;
        self.is_unknown_number(value, sentence, named.is_some() && labelled)
            .then(|| wrong_figure(value, wrong))
    }

    fn wrong_time(
        &self,
        sentence: &Sentence,
        value: &Stated,
        supposed: bool,
    ) -> Option<WrongFigure> {
        let lasts = sentence.tokens.iter().enumerate().any(|(place, token)| {
            let counted = place > 0 && sentence.tokens[place - 1].kind == Kind::Number;
            token.is_any(&["duration", "long", "length", "between", "gap", "format"])
                || token.is_any(&["hour", "hours", "minutes"])
                    && sentence
                        .tokens
                        .get(place + 1)
                        .is_some_and(|next| next.is_any(&["after", "later", "to"]))
                || counted && token.is_any(&["hour", "hours", "minutes"])
        });
        // "Saturday, May 18th", where someone said Saturday
        let weekday = value.kind == ValueKind::Date
            && sentence.tokens.iter().any(|token| {
                token.low.len() > 5
                    && token.low.ends_with("day")
                    && self.values.has_words(&token.low)
            });
        if weekday || value.kind == ValueKind::Time && lasts || !self.values.is_unknown_time(value)
        {
            return None;
        }
        let figures = self.figures();
        let words = self.words(figures, content_words(&sentence.tokens));
        let same_kind = figures
            .all
            .iter()
            .filter(|figure| figure.kind == value.kind);
        if value.kind == ValueKind::Time && self.ends_range(&sentence.tokens, value) {
            return None;
        }
        // Of one or two dates, another one of the same month is no accident.
        let few = {
            let mut all: Vec<&str> = same_kind
                .clone()
                .map(|figure| figure.normal.as_str())
                .collect();
            all.sort_unstable();
            all.dedup();
            all.len() <= 2 && self.acting
        };
        let best = same_kind
            .filter(|figure| {
                // "You can cancel for free until …", where a key has it
                let told =
                    || figure.named(&words) >= 1 && figure.call.is_some_and(|call| self.acts[call]);
                ((sentence.item || few) && !supposed || figure.shared(&words) >= 1)
                    && (!supposed || told())
                    && (value.kind == ValueKind::Time
                        || figure.shared(&words) >= 2
                        || is_near_date(&value.normal, &figure.normal))
            })
            .max_by_key(|figure| figure.shared(&words))?;
        let known = figures.all.iter().any(|figure| {
            figure.kind == value.kind
                && (figure.normal == value.normal
                    || value.kind == ValueKind::Date && same_day(&figure.normal, &value.normal))
        });
        (!known).then(|| wrong_figure(value, best))
    }

    /// The two words after a number and the two before it, where they name something.
    fn neighbours(
        &self,
        figures: &Figures,
        tokens: &[Token],
        value: &Stated,
    ) -> (Option<[u32; 2]>, Option<[u32; 2]>) {
        let pair = |left: Option<&Token>, right: Option<&Token>| {
            let (left, right) = (left?, right?);
            let proper = |token: &Token| token.is_word() && token.is_capitalized();
            if !proper(left) || !proper(right) {
                return None;
            }
            Some([
                figures.word(&fold(&left.low))?,
                figures.word(&fold(&right.low))?,
            ])
        };
        let ahead = pair(tokens.get(value.at + 1), tokens.get(value.at + 2));
        let behind = value
            .at
            .checked_sub(2)
            .and_then(|place| pair(tokens.get(place), tokens.get(place + 1)));
        (ahead, behind)
    }

    /// Returns true if a number is one of an enumeration whose other numbers the run has.
    fn is_enumerated(&self, tokens: &[Token], value: &Stated) -> bool {
        let is_link = |token: &Token| token.is_any(&[",", "and", "&"]);
        let number_at = |place: usize| {
            let token = tokens.get(place)?;
            (token.kind == Kind::Number)
                .then(|| number(&token.text))
                .flatten()
        };
        let mut others = Vec::new();
        let mut place = value.at;
        while place >= 2 && is_link(&tokens[place - 1]) {
            place -= if is_link(&tokens[place - 2]) && place >= 3 {
                3
            } else {
                2
            };
            match number_at(place) {
                Some(own) => others.push(own),
                None => break,
            }
        }
        place = value.at;
        while tokens.get(place + 1).is_some_and(is_link) {
            place += if tokens.get(place + 2).is_some_and(is_link) {
                3
            } else {
                2
            };
            match number_at(place) {
                Some(own) => others.push(own),
                None => break,
            }
        }
        others.len() >= 2 && others.iter().all(|own| self.values.has_number_text(own))
    }

    /// Returns true if a number names a thing: "Post 16".
    fn is_numbered(&self, tokens: &[Token], value: &Stated) -> bool {
        let before = value.at.checked_sub(1).map(|place| &tokens[place]);
        value.counted.is_none()
            && !value.money
            && value.normal.chars().all(|c| c.is_ascii_digit())
            && before.is_some_and(|before| is_noun(before) && !is_preposition(before))
    }

    /// Returns true if a time ends a range that starts at a known one, after a usual duration.
    fn ends_range(&self, tokens: &[Token], value: &Stated) -> bool {
        let minutes = |time: &str| -> Option<i32> {
            let (hours, minutes) = time.split_once(':')?;
            Some(hours.parse::<i32>().ok()? * 60 + minutes.parse::<i32>().ok()?)
        };
        let before = all_stated(&tokens[..value.at]);
        before.last().is_some_and(|start| {
            start.kind == ValueKind::Time
                && !self.values.is_unknown_time(start)
                && minutes(&start.normal)
                    .zip(minutes(&value.normal))
                    .is_some_and(|(start, end)| {
                        matches!((end - start).rem_euclid(720), 15 | 30 | 45 | 60 | 90 | 120)
                    })
        })
    }

    fn words(&self, figures: &Figures, folded: Vec<String>) -> Vec<u32> {
        folded
            .iter()
            .filter_map(|word| figures.word(word))
            .collect()
    }
}

fn wrong_figure(value: &Stated, figure: &Figure) -> WrongFigure {
    WrongFigure {
        call: figure.call.unwrap_or_default(),
        kind: value.kind,
        stated: value.text.clone(),
        recorded: vec![figure.normal.clone()],
    }
}
