//! The words of a sentence that name a figure in it, and those that show how it was found.

use crate::sentences::Sentence;
use crate::tokens::Token;
use crate::values::Stated;
use crate::verbs::fold;
use crate::words::{is_auxiliary, is_noun, is_preposition};

/// Words of a sentence about a sum.
#[rustfmt::skip]
pub(super) const TOTALS: &[&str] = &[
    "total", "totals", "totaling", "totalling", "sum", "spent", "spending", "altogether", "overall", "combined",
    "together", "expense", "expenses", "spend",
];

/// Words of a sentence about a difference or a share.
#[rustfmt::skip]
pub(super) const COMPARISONS: &[&str] = &[
    "difference", "more", "less", "fewer", "remaining", "remain", "remains", "left", "average", "off", "discount",
    "save", "saving", "saves", "savings", "cheaper", "higher", "lower", "increase", "increased", "decrease", "decreased", "reduced", "growth",
    "change", "improvement", "share", "each", "half", "twice", "double", "above", "below", "leaves", "rest", "balance", "than",
    "raise", "drop", "dropped", "grew", "gain", "loss", "later", "earlier", "longer", "shorter", "apart",
];

/// Units in which a recorded figure may be stated.
#[rustfmt::skip]
pub(super) const UNITS: &[&str] = &[
    "second", "seconds", "sec", "s", "ms", "milliseconds", "minute", "minutes", "min", "mins", "hour", "hours", "h", "hrs",
    "day", "days", "week", "weeks", "month", "months", "year", "years", "km", "kilometers", "kilometres", "m", "meters",
    "metres", "cm", "mm", "mile", "miles", "mi", "ft", "feet", "foot", "inch", "inches", "in", "yards", "kg", "g",
    "grams", "lb", "lbs", "pounds", "oz", "ounces", "l", "liter", "liters", "litres", "ml", "gallons", "kb", "mb", "gb",
    "tb", "kib", "mib", "gib", "bytes", "k", "thousand", "million", "billion", "trillion", "m", "bn", "cents", "°c",
    "°f", "c", "f", "celsius", "fahrenheit", "degrees", "percent", "%", "kwh", "w", "kw", "km/h", "mph", "euros", "dollars",
];

/// Returns true if a number says nothing that could be wrong: 0, 1, a year.
pub(super) fn is_plain(value: &Stated) -> bool {
    let year = value.normal.len() == 4
        && (value.normal.starts_with("19") || value.normal.starts_with("20"))
        && !value.money
        && !value.text.contains(',');
    year || matches!(value.normal.as_str(), "0" | "1")
}

/// The words that name a value: the noun that it counts, the noun before it, and its label.
pub(super) fn attribute_words(sentence: &Sentence, value: &Stated) -> Vec<String> {
    let tokens = &sentence.tokens;
    let mut words: Vec<String> = value.counted.iter().chain(&value.role).cloned().collect();
    // "16 in stock", "1,140 in total"
    let after = &tokens[value.at + 1..];
    if let [link, noun, ..] = after
        && link.is_any(&["in", "on", "of"])
        && noun.is_word()
    {
        words.push(fold(&noun.low));
    }
    // "24 % battery"
    if value.percent
        && let [sign, noun, ..] = after
        && sign.is_any(&["%", "percent"])
        && is_noun(noun)
        && !is_preposition(noun)
        && !is_auxiliary(noun)
    {
        words.push(fold(&noun.low));
    }
    if value.percent {
        words.extend(
            ["percent", "discount", "rate"]
                .iter()
                .map(|word| fold(word)),
        );
    }
    // "The TTL of www is 600 seconds"
    let linked = value
        .at
        .checked_sub(1)
        .filter(|place| tokens[*place].is_any(&["is", "was"]));
    if let Some(of) = linked.and_then(|end| tokens[..end].iter().position(|token| token.is("of")))
        && let Some(noun) = of.checked_sub(1).map(|place| &tokens[place])
        && of <= 3
        && noun.is_word()
    {
        words.push(fold(&noun.low));
    }
    // "the id 28"
    let before = value.at.checked_sub(1).map(|place| &tokens[place]);
    if before.is_some_and(|before| before.is("id")) {
        words.push("id".to_owned());
    }
    // "Rating: 4.2", "| Rating | 4.2 |", "Price range: 100 - 180"
    let colon = tokens[..value.at]
        .iter()
        .rposition(|token| token.is_mark() && token.is_any(&[":", "|", "="]));
    if let Some(colon) = colon.filter(|colon| value.at - colon <= 6) {
        let label = tokens[..colon]
            .iter()
            .rev()
            .take_while(|token| !token.is_mark())
            .take(4)
            .filter(|token| is_noun(token) && !is_preposition(token) && !is_auxiliary(token))
            .map(|token| fold(&token.low));
        words.extend(label);
    }
    words.retain(|word| !is_vague(word));
    words
}

pub(super) fn content_words(tokens: &[Token]) -> Vec<String> {
    let mut words: Vec<String> = tokens
        .iter()
        .filter(|token| {
            token.is_word() && is_noun(token) && !is_preposition(token) && !is_auxiliary(token)
                || token.is_name()
        })
        .flat_map(|token| {
            mcptest_catalog::lexical::words(&token.low)
                .iter()
                .map(|word| fold(word))
                .collect::<Vec<_>>()
        })
        .filter(|word| word.len() > 1 && !is_vague(word))
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

pub(super) fn is_vague(word: &str) -> bool {
    matches!(
        word,
        "day"
            | "hour"
            | "minut"
            | "week"
            | "month"
            | "year"
            | "time"
            | "busines"
            | "business"
            | "it"
            | "them"
            | "you"
            | "i"
            | "we"
            | "new"
            | "now"
            | "also"
            | "successfully"
            | "number"
    )
}

/// Returns true if a sentence calculates: "2 x $110 = $220".
pub(super) fn is_calculation(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| {
        token.is_any(&[
            "=", "+", "x", "≈", "plus", "minus", "times", "average", "mean",
        ])
    }) || tokens.iter().any(|token| token.text.contains('='))
}

/// Returns true if a sentence states a rule, a wish or a condition.
pub(super) fn is_supposed(sentence: &Sentence) -> bool {
    // "It should arrive on May 3"
    let expected = sentence.tokens.windows(2).any(|pair| {
        pair[0].is("should")
            && pair[1].is_any(&[
                "arrive", "be", "reach", "appear", "receive", "get", "land", "show",
            ])
    });
    sentence
        .tokens
        .iter()
        .filter(|token| token.text != "May")
        .any(|token| {
            !(expected && token.is("should"))
                && token.is_any(&[
                    "if",
                    "unless",
                    "would",
                    "'d",
                    "could",
                    "should",
                    "may",
                    "might",
                    "can",
                    "cannot",
                    "must",
                    "please",
                    "whether",
                    "usually",
                    "typically",
                    "normally",
                    "generally",
                    "every",
                    "according",
                    "policy",
                ])
        })
}
