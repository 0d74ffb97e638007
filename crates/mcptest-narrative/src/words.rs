//! The closed classes of English words that decide whether a verb is a claim.

use crate::tokens::Token;
use crate::verbs::verb_of;

#[rustfmt::skip]
pub(super) const MODALS: &[&str] = &[
    "can", "could", "will", "would", "shall", "should", "may", "might", "must", "'d", "ought", "cannot", "need",
    "needs", "gonna",
];

#[rustfmt::skip]
pub(super) const BE: &[&str] = &[
    "been", "was", "were", "is", "are", "am", "be", "being", "got", "get", "gets", "getting", "gotten",
];

#[rustfmt::skip]
pub(super) const HAVE: &[&str] = &["have", "has", "had"];

#[rustfmt::skip]
const ADVERBS: &[&str] = &[
    "also", "just", "now", "then", "already", "first", "even", "still", "both", "all", "again", "too", "thus",
    "indeed", "hereby", "here", "second", "third", "last", "next", "finally", "lastly", "additionally", "therefore",
    "each", "once", "since", "ahead", "soon",
];

/// Openers after which a clause states what might be, or what was the case anyway.
#[rustfmt::skip]
pub(super) const SUBORDINATORS: &[&str] = &[
    "if", "unless", "whether", "until", "till", "before", "once", "when", "whenever", "after", "because", "since",
    "as", "where",
];

/// Openers that make even the agent's own past tense no claim.
#[rustfmt::skip]
pub(super) const CONDITIONALS: &[&str] = &["if", "unless", "whether", "until", "till", "before", "wish", "had"];

/// Words of a clause that passes on what someone else says or what was found.
#[rustfmt::skip]
pub(super) const REPORTING: &[&str] = &[
    "mentioned", "said", "say", "says", "told", "see", "saw", "seems", "seem", "appears", "appear", "looks", "shows",
    "show", "showed", "indicates", "indicate", "indicated", "found", "noticed", "states", "stated", "according",
    "understand", "believe", "think", "assume", "suppose", "hope", "ensure", "verify", "verified", "suggests",
    "reports", "reported", "learned", "discovered", "claims",
];

/// Words of a clause that only supposes, regrets, or speaks of traces of an action.
#[rustfmt::skip]
pub(super) const HEDGES: &[&str] = &[
    "maybe", "perhaps", "apparently", "possibly", "presumably", "probably", "likely", "sorry", "unfortunately",
    "regret", "hear", "possible",
];

#[rustfmt::skip]
pub(super) const PREPOSITIONS: &[&str] = &[
    "to", "in", "for", "with", "at", "on", "from", "as", "under", "by", "of", "into", "via", "through", "about",
    "over", "per", "using", "without", "within", "between", "among", "against", "during", "after", "before",
    "because", "so", "which", "that", "who", "where", "when", "while", "if", "since", "than", "like", "onto",
    "upon", "until", "including", "regarding", "based", "covering", "but", "near", "beside", "behind", "above", "below",
    "across", "along", "around", "outside", "inside", "toward", "towards", "beyond", "despite", "except", "throughout",
    "alongside", "containing", "concerning",
];

#[rustfmt::skip]
pub(super) const PRONOUNS: &[&str] = &[
    "it", "they", "them", "this", "that", "these", "those", "everything", "you", "both", "all", "each", "one", "ones",
    "something", "anything",
];

/// Words that come before a noun and are none.
#[rustfmt::skip]
const NOT_NOUNS: &[&str] = &[
    "the", "a", "an", "my", "your", "our", "their", "his", "her", "its", "new", "old", "existing", "following",
    "requested", "additional", "extra", "corresponding", "relevant", "original", "latest", "first", "second", "third",
    "last", "next", "same", "other", "another", "more", "total", "short", "brief", "quick", "full", "complete",
    "comprehensive", "detailed", "final", "main", "initial", "current", "previous", "own", "necessary", "appropriate",
    "specific", "default", "different", "various", "several", "multiple", "many", "few", "some", "any", "single", "whole",
    "entire", "correct", "proper", "separate", "simple", "small", "large", "big", "good", "better", "high", "low",
    "important", "respective", "desired", "temporary", "every", "either", "one", "two", "three", "four", "five",
    "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "of", "me", "us", "him", "such", "what", "well",
    "there", "here", "up", "down", "off", "out", "back", "much", "most", "least", "concise", "certain", "half", "dozen", "hundred", "pair", "couple", "rest", "remaining", "which",
    "lot", "lots", "number", "bunch", "series", "further", "duplicate", "free", "wrong", "empty", "earlier", "later", "recent", "prior", "instead", "anyway", "otherwise", "however", "meanwhile", "afterwards",
    "today", "tomorrow", "yesterday", "tonight", "pm", "am", "only", "just", "even", "nearly", "almost", "exactly",
];

#[rustfmt::skip]
const DETERMINERS: &[&str] = &[
    "the", "a", "an", "my", "your", "our", "their", "his", "her", "its", "this", "that", "these", "those", "all",
    "both", "each", "every", "some", "any", "several", "multiple", "many", "another", "one", "two", "three", "four",
    "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "new",
];

#[rustfmt::skip]
pub(super) const NEGATIONS: &[&str] = &[
    "no", "none", "nothing", "neither", "nor", "not", "never", "nobody", "without",
];

/// Irregular past tenses that often occur beside the verbs of the list.
#[rustfmt::skip]
const IRREGULAR: &[&str] = &[
    "found", "made", "got", "went", "took", "gave", "saw", "ran", "did", "kept", "left", "let", "told", "said",
    "chose", "came", "began", "built", "brought", "put", "held", "met", "paid", "read",
];

/// Texts that an agent makes by saying them.
#[rustfmt::skip]
pub(super) const SPOKEN: &[&str] = &[
    "summary", "list", "table", "overview", "plan", "draft", "outline", "comparison", "breakdown", "itinerary",
    "poem", "story", "essay", "explanation", "recommendation", "recommendations", "example", "snippet", "schedule",
    "analysis", "response", "answer", "reply", "letter", "comment", "comments", "note", "notes",
    "quote", "quotes", "link", "links", "reference", "references", "source", "sources", "details", "results", "proposal", "template", "version", "text", "guide", "paragraph", "code",
    "email",
];

/// Texts that a message itself is, wherever it is not said that they were saved.
#[rustfmt::skip]
pub(super) const TEXTS: &[&str] = &[
    "summary", "overview", "outline", "comparison", "breakdown", "poem", "story", "essay", "explanation",
    "recommendation", "recommendations", "analysis", "snippet", "example",
];

/// Things that exist in the conversation only.
#[rustfmt::skip]
pub(super) const DISCOURSE: &[&str] = &[
    "plan", "summary", "selection", "choice", "option", "calculation", "response", "answer", "estimate", "understanding",
    "total", "mistake", "search", "query", "scope", "criterion", "criteria", "filter", "focus", "reasoning", "assumption",
    "logic", "attention", "comparison", "consideration", "approach", "recommendation", "wording",
];

/// Texts that an agent makes by writing a code block.
#[rustfmt::skip]
pub(super) const CODE: &[&str] = &[
    "script", "function", "component", "query", "diagram", "flowchart", "page", "class", "program", "configuration",
    "command", "formula", "drawing", "implementation", "solution", "chart", "file",
];

pub(super) fn is_adverb(token: &Token) -> bool {
    token.is_word()
        && (token.low.len() > 3 && token.low.ends_with("ly") && token.low != "reply"
            || token.is_any(ADVERBS))
}

pub(super) fn is_auxiliary(token: &Token) -> bool {
    token.is_any(MODALS)
        || token.is_any(BE)
        || token.is_any(HAVE)
        || token.is_any(&["did", "do", "does", "not"])
}

pub(super) fn is_first_person(token: &Token) -> bool {
    token.is_any(&["i", "we"])
}

pub(super) fn is_determiner(token: &Token) -> bool {
    token.is_any(DETERMINERS)
}

/// A determiner that can only begin a noun phrase.
pub(super) fn is_article(token: &Token) -> bool {
    token.is_any(&[
        "the", "a", "an", "my", "your", "our", "their", "his", "its", "this", "these",
    ])
}

/// Returns true if an object can begin here.
pub(super) fn opens_object(token: &Token) -> bool {
    is_determiner(token) || token.is_name() || token.is_any(&["it", "them", "everything"])
}

/// Forms of verbs that are no nouns.
#[rustfmt::skip]
const VERBS_ONLY: &[&str] = &[
    "went", "took", "gave", "came", "became", "began", "broke", "brought", "bought", "caught", "chose", "drew", "drove", "fell",
    "flew", "forgot", "froze", "got", "grew", "had", "heard", "held", "hid", "kept", "knew", "lent", "lost", "made", "meant",
    "met", "paid", "ran", "rode", "said", "sat", "sent", "slept", "sold", "spent", "stood", "stole", "struck", "taught", "told",
    "thought", "threw", "understood", "woke", "won", "wore", "wrote", "keep", "keeps", "become", "becomes", "remain", "remains",
    "include", "includes", "contain", "contains", "stay", "stays", "seem", "seems", "need", "needs", "give", "gives", "take", "takes", "say", "says",
];

/// Returns true if a word can only be a verb.
pub(super) fn is_verb_only(token: &Token) -> bool {
    token.is_any(VERBS_ONLY)
}

pub(super) fn is_noun(token: &Token) -> bool {
    token.is_word()
        && !token.is_any(NOT_NOUNS)
        && !token.is_any(VERBS_ONLY)
        && !token.is("'s")
        && token.low.chars().count() > 1
}

/// Returns true if a word describes the noun after it: "old", "new", "remaining".
pub(super) fn is_attribute(token: &Token) -> bool {
    token.is_word()
        && token.is_any(NOT_NOUNS)
        && !is_determiner(token)
        && !token.is_any(&[
            "of", "me", "us", "him", "there", "here", "up", "down", "off", "out", "back",
        ])
        || token.is("new")
}

pub(super) fn is_preposition(token: &Token) -> bool {
    token.is_any(PREPOSITIONS)
}

pub(super) fn is_conjunction(token: &Token) -> bool {
    token.is_any(&["and", "or", "&", "+", "plus", "then", "but"])
}

/// Returns true if the word looks like a past tense.
pub(super) fn is_pastlike(token: &Token) -> bool {
    token.is_word()
        && (token.low.len() > 3 && token.low.ends_with("ed") && !token.low.ends_with("eed")
            || token.is_any(IRREGULAR)
            || verb_of(&token.low).is_some_and(|(_, form)| {
                !matches!(form, crate::verbs::Form::Base | crate::verbs::Form::Gerund)
            }))
}

#[rustfmt::skip]
const MONTHS: &[&str] = &[
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov",
];

/// The month from 1 that a word names.
pub(super) fn month(word: &str) -> Option<u32> {
    if word == "dec" {
        return Some(12);
    }
    let at = MONTHS.iter().position(|month| *month == word)?;
    let month = match at {
        0..=11 => at + 1,
        12..=15 => at - 11,
        16..=18 => at - 10,
        19 | 20 => 9,
        21 => 10,
        _ => 11,
    };
    u32::try_from(month).ok()
}

#[cfg(test)]
mod tests {
    use super::month;

    #[test]
    fn months_by_both_names() {
        for (name, number) in [
            ("january", 1),
            ("may", 5),
            ("december", 12),
            ("jan", 1),
            ("feb", 2),
            ("mar", 3),
            ("apr", 4),
            ("jun", 6),
            ("jul", 7),
            ("aug", 8),
            ("sep", 9),
            ("sept", 9),
            ("oct", 10),
            ("nov", 11),
            ("dec", 12),
        ] {
            assert_eq!(month(name), Some(number), "{name}");
        }
        assert_eq!(month("sunday"), None);
    }
}
