//! Tool selection by shared words: deterministic, without a language model.
//!
//! A tool's content words are those of its name and description, split on spaces, punctuation, `_`,
//! `-`, `.` and changes of case, without stop words. The tool that shares most of them with the
//! request is picked; at equal overlap the one with fewer content words (it is more specific),
//! then the first in the catalog. Without any shared word, no tool is picked.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// Words that are too common to distinguish tools.
const STOP_WORDS: [&str; 62] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do",
    "does", "for", "from", "give", "has", "have", "how", "i", "if", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "our", "please", "should", "so", "some", "tell", "that",
    "the", "their", "them", "then", "there", "these", "this", "those", "to", "use", "using", "was",
    "we", "what", "when", "where", "which", "will", "with", "would", "you", "your",
];

/// The content words of a string, in lowercase.
#[must_use]
pub fn content_words(text: &str) -> BTreeSet<String> {
    words(text)
        .into_iter()
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .collect()
}

/// All words of a string in order, in lowercase.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    word_spans(text)
        .into_iter()
        .map(|span| text[span].chars().flat_map(char::to_lowercase).collect())
        .collect()
}

/// The byte ranges of the words of a string.
#[must_use]
pub fn word_spans(text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut start: Option<usize> = None;
    let mut previous: Option<char> = None;
    for (at, character) in text.char_indices() {
        let breaks_case = previous.is_some_and(|p| p.is_lowercase() || p.is_ascii_digit())
            && character.is_uppercase();
        if !character.is_alphanumeric() || breaks_case {
            spans.extend(start.take().map(|start| start..at));
        }
        if character.is_alphanumeric() && start.is_none() {
            start = Some(at);
        }
        previous = Some(character);
    }
    spans.extend(start.map(|start| start..text.len()));
    spans
}

/// The tool that matches a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// Position in the catalog.
    pub index: usize,
    /// The words that tool and request share.
    pub shared: BTreeSet<String>,
}

/// The rank of a tool for a request: more shared words first, then fewer other words.
pub type Rank = (usize, Reverse<usize>);

/// The content words by which a tool is found.
#[must_use]
pub fn tool_words(name: &str, description: &str) -> BTreeSet<String> {
    content_words(&format!("{name} {description}"))
}

/// The rank of a tool for a request, by their content words; `None` if they share none. The highest
/// rank is picked, and the first of equals.
#[must_use]
pub fn rank(own: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Option<Rank> {
    let shared = wanted.iter().filter(|word| own.contains(*word)).count();
    (shared > 0).then_some((shared, Reverse(own.len())))
}

/// Picks a tool. The catalog is given as (name, description).
///
/// ```
/// use mcptest_catalog::lexical::select;
/// let tools = [("get_weather", "Current weather of a city"), ("send_mail", "Send an e-mail")];
/// assert_eq!(select("What is the weather in Paris?", tools).unwrap().index, 0);
/// assert!(select("Sing!", tools).is_none());
/// ```
#[must_use]
pub fn select<'a>(
    request: &str,
    tools: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Option<Pick> {
    let wanted = content_words(request);
    let mut best: Option<(Rank, usize, BTreeSet<String>)> = None;
    for (index, (name, description)) in tools.into_iter().enumerate() {
        let own = tool_words(name, description);
        let Some(rank) = rank(&own, &wanted) else {
            continue;
        };
        if best.as_ref().is_none_or(|(highest, ..)| rank > *highest) {
            best = Some((rank, index, own));
        }
    }
    best.map(|(_, index, own)| Pick {
        index,
        shared: own.intersection(&wanted).cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stop_words_are_sorted_for_searching() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn words_split_on_case_and_punctuation() {
        assert_eq!(
            words("getWeather_forNYC-now.v2"),
            ["get", "weather", "for", "nyc", "now", "v2"]
        );
        assert_eq!(words("Größe? 12°"), ["größe", "12"]);
    }

    #[test]
    fn overlap_then_brevity_then_order() {
        let tools = [
            ("search", "search the whole web for pages"),
            ("search_docs", "search docs"),
            ("find_docs", "search docs"),
        ];
        // `search` and `docs` are shared by the last two; the first of them has fewer words.
        assert_eq!(select("search docs", tools).unwrap().index, 1);
        assert_eq!(
            select("search", [("y_search", ""), ("x_search", "")])
                .unwrap()
                .index,
            0
        );
        assert_eq!(
            select(
                "search",
                [("long_search", "with more words"), ("search", "")]
            )
            .unwrap()
            .index,
            1
        );
    }

    #[test]
    fn without_overlap_no_tool_is_picked() {
        assert_eq!(select("", [("a_tool", "x")]), None);
        assert_eq!(select("the of and", [("the", "of and")]), None);
        assert_eq!(select("weather", []), None);
    }

    proptest! {
        #[test]
        fn the_pick_shares_most(request in "[a-e ]{0,12}", names in prop::collection::vec("[a-e_]{1,6}", 0..6)) {
            let pick = select(&request, names.iter().map(|name| (name.as_str(), "")));
            let wanted = content_words(&request);
            let overlap = |name: &String| content_words(name).intersection(&wanted).count();
            let most = names.iter().map(overlap).max().unwrap_or(0);
            prop_assert_eq!(pick.map_or(0, |pick| overlap(&names[pick.index])), most);
        }
    }
}
