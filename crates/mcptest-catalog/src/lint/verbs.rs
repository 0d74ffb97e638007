//! Common verbs, and words that are used as one.
//!
//! Many words are verbs in one sentence and nouns in the next: "List files" has a verb, "A list of
//! files" has none. Such words count only where a verb can be.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Verbs that are hardly ever nouns: they count wherever they are.
const CLEAR: &str = "accept acknowledge acquire activate add adjust aggregate allow amend analyse analyze annotate anonymize append apply \
    approve ask assess assign attach audit authenticate authorize browse build buy calculate cancel choose classify clean \
    clear collect combine compare compile compose compress compute concatenate configure confirm connect construct consult \
    consume contain convert correlate crawl create crop deactivate decline decode decompress decrease decrypt deduplicate \
    define delegate delete deliver demonstrate deny deploy derive describe destroy detach detect determine diagnose disable \
    discard disconnect discover dismiss dispatch distribute divide download duplicate eliminate embed emit emulate enable \
    encode encrypt enhance enqueue enrich ensure enter enumerate erase establish evaluate evict examine exclude execute \
    expand explain explore expose extend extract facilitate fetch fill finalize find finish flatten flush follow forget \
    gather generate get give hide identify improve include increase increment infer initialize initiate inject insert \
    inspect install instantiate integrate interact interpret intersect invalidate investigate invite invoke isolate iterate \
    keep let lint listen locate maintain manage migrate minify modify multiply mute navigate normalize notify observe obtain \
    omit optimize orchestrate organize override paginate paraphrase parse perform populate predict prepare prioritize \
    produce promote propose protect provide provision prune publish purge put rank reactivate rebase rebuild receive \
    recommend reconcile recover redirect reduce refactor refine refresh regenerate register reindex reject reload remember \
    remind remove rename render reopen repair replace reply reproduce resample resend reserve resize resolve respond restart \
    restore resume retrieve return reuse reveal reverse revert revoke rewrite rollback rotate sanitize scrape see send \
    serialize serve shorten shrink shuffle simplify simulate skip solve spawn speak specify squash submit subscribe \
    substitute subtract suggest summarise summarize suspend swipe synchronise synchronize tell terminate think throttle \
    toggle tokenize transcribe transform translate traverse truncate unarchive unassign unblock undo unify uninstall unload \
    unlock unmount unmute unpack unpin unregister unsubscribe unzip update upsert use validate verify visualise visualize \
    wait wake wipe write";

/// Verbs that are also common nouns or adjectives: they count only in the position of a verb.
const ALSO_NOUNS: &str = "access answer archive backup batch blame block book bump cache call capture change chat check click clone close cluster \
    command comment commit complete control copy count cut debug diff display document draft drag draw drop dump echo edit \
    end estimate exit export fail file filter fix flag force fork format forward go grant grep group guide handle hash help \
    highlight hover import index issue join kill label launch list load lock log look lookup make map mark match measure \
    merge mirror mock monitor mount move name offer open order outline pack paste patch pause pick pin ping pivot place plan \
    play plot poll post press preview print probe process profile prompt pull push query queue quote read record release \
    repeat report request reset retry review roll route run sample save scale scan schedule score scroll search select \
    separate set share shift show sign silence sleep snapshot sort split stage start stash stop store stream strip study \
    support surface swap switch sync tag tail take tap test touch trace track train transfer trigger trim tune turn type \
    upgrade upload view visit vote walk watch wrap yield zip zoom";

static CLEAR_VERBS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| CLEAR.split_whitespace().collect());
static NOUN_VERBS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| ALSO_NOUNS.split_whitespace().collect());

/// Words after which a verb follows.
const BEFORE_VERB: [&str; 22] = [
    "to", "can", "cannot", "will", "would", "should", "must", "may", "might", "not", "don't",
    "never", "always", "you", "it", "this", "that", "which", "tool", "server", "please", "then",
];
/// Words after which a form of a verb in -ing is an action.
const BEFORE_GERUND: [&str; 10] = [
    "for", "by", "of", "when", "while", "without", "allows", "supports", "enables", "before",
];
/// Words after which a participle is a verb.
const BEFORE_PARTICIPLE: [&str; 9] = [
    "is", "are", "was", "were", "be", "been", "being", "has", "have",
];
/// Words that begin a noun: after the first word of a sentence they show that it is a verb.
const DETERMINERS: [&str; 16] = [
    "a", "an", "the", "all", "any", "your", "one", "each", "every", "multiple", "several", "some",
    "this", "these", "new", "current",
];
/// Words that begin a sentence before a determiner and are not verbs.
const OPENERS: [&str; 42] = [
    "in", "on", "at", "for", "with", "of", "from", "by", "to", "as", "is", "are", "and", "or",
    "but", "both", "all", "only", "not", "per", "via", "into", "over", "given", "like", "if",
    "when", "what", "which", "who", "how", "why", "where", "that", "this", "than", "then", "about",
    "between", "within", "during", "after",
];
/// A word that follows a noun, never the verb before it: "list of files".
const AFTER_NOUN: [&str; 5] = ["of", "from", "per", "is", "are"];
/// Words after which the noun before them is over: "Settings for users".
const AFTER_PLURAL: [&str; 19] = [
    "of", "from", "per", "is", "are", "for", "in", "on", "at", "about", "and", "or", "with", "by",
    "to", "as", "that", "which", "between",
];

/// Returns true if a word is the base form of a known verb.
pub(super) fn is_verb(word: &str) -> bool {
    CLEAR_VERBS.contains(word) || NOUN_VERBS.contains(word)
}

/// A word of a string.
struct Word {
    text: String,
    /// True for the first word of a sentence, a line or a clause after a colon or dash.
    first: bool,
}

/// Returns true if a string has a word that is used as a verb. One in another alphabet counts as
/// one that has: its verbs are not known.
pub(super) fn has_verb(text: &str) -> bool {
    let letters = text.chars().filter(|one| one.is_alphabetic());
    let (ascii, other) = letters.fold((0_usize, 0_usize), |(ascii, other), one| {
        if one.is_ascii() {
            (ascii + 1, other)
        } else {
            (ascii, other + 1)
        }
    });
    if other > ascii {
        return true;
    }
    let words = words(text);
    (0..words.len()).any(|at| is_used_as_verb(&words, at))
}

fn is_used_as_verb(words: &[Word], at: usize) -> bool {
    let word = &words[at];
    let before = at.checked_sub(1).map_or("", |at| words[at].text.as_str());
    let after = words
        .get(at + 1)
        .filter(|next| !next.first)
        .map_or("", |next| next.text.as_str());
    let follows = |list: &[&str]| !word.first && list.contains(&before);
    let text = word.text.as_str();
    if CLEAR_VERBS.contains(text) || third_person(text, &CLEAR_VERBS) {
        return true;
    }
    if NOUN_VERBS.contains(text) || third_person(text, &NOUN_VERBS) {
        let begins = word.first && !AFTER_NOUN.contains(&after) && !after.is_empty();
        // "Get or list", "create, edit": the word before is a verb itself.
        let joins = ["and", "or"].contains(&before) && at >= 2 && is_used_as_verb(words, at - 2);
        let object = DETERMINERS.contains(&after) && !DETERMINERS.contains(&before);
        return begins || joins || object || follows(&BEFORE_VERB);
    }
    if let Some(stem) = text.strip_suffix("ing")
        && is_stem(stem)
    {
        return word.first || follows(&BEFORE_GERUND);
    }
    let participle = text
        .strip_suffix("ed")
        .or_else(|| text.strip_suffix('d'))
        .is_some_and(is_stem);
    if participle {
        return text == "used" || follows(&BEFORE_PARTICIPLE);
    }
    word.first && is_unknown_verb(text, after)
}

/// Returns true if the first word of a sentence is a verb by its position: "Lint a file", "Lints
/// files". A missed noun is better than a false finding.
fn is_unknown_verb(text: &str, after: &str) -> bool {
    let imperative = DETERMINERS.contains(&after)
        && !OPENERS.contains(&text)
        && !DETERMINERS.contains(&text)
        && !text.ends_with("ly");
    let third_person = text.len() > 4
        && text.ends_with('s')
        && !["ss", "us", "is"]
            .iter()
            .any(|ending| text.ends_with(ending))
        && !after.is_empty()
        && !AFTER_PLURAL.contains(&after);
    imperative || third_person
}

/// Returns true for `lists`, `searches` and `queries`.
fn third_person(word: &str, verbs: &BTreeSet<&str>) -> bool {
    let Some(stem) = word.strip_suffix('s') else {
        return false;
    };
    let with_y = stem.strip_suffix("ie").map(|stem| format!("{stem}y"));
    verbs.contains(stem)
        || stem
            .strip_suffix('e')
            .is_some_and(|stem| verbs.contains(stem))
        || with_y.is_some_and(|verb| verbs.contains(verb.as_str()))
}

/// Returns true if a known verb has this stem before -ing or -ed: `mak`, `stopp`, `queri`.
fn is_stem(stem: &str) -> bool {
    let mut back = stem.chars().rev();
    let doubled = match (back.next(), back.next()) {
        (Some(last), Some(before)) if last == before => {
            Some(stem[..stem.len() - last.len_utf8()].to_owned())
        }
        _ => None,
    };
    let with_y = stem.strip_suffix('i').map(|stem| format!("{stem}y"));
    [
        Some(stem.to_owned()),
        Some(format!("{stem}e")),
        doubled,
        with_y,
    ]
    .into_iter()
    .flatten()
    .any(|verb| is_verb(&verb))
}

fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut first = true;
    let mut word = String::new();
    for character in text.chars().chain([' ']) {
        if character.is_alphabetic() || (character == '\'' && !word.is_empty()) {
            word.extend(character.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(Word {
                text: std::mem::take(&mut word),
                first,
            });
            first = false;
        }
        // A clause begins after these, and with it a new chance for a verb.
        first |= ".!?:;\n|*•—–".contains(character);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_found_where_they_are_verbs() {
        for text in [
            "Shows the tree",
            "Queries a table",
            "Used for things",
            "Making maps",
            "LIST it",
            "List files",
            "Search for projects",
            "Tool for creating charts",
            "The page is opened in a new tab",
            "A helper that lets you post a message",
            "Read or set the clock",
            "Lints a file of rules",
            "Takes a screenshot. Use it last.",
            "Notion | Retrieve a page",
            "Logs a message",
            "Clicks on the provided element",
            "Lints files",
            "Rebase commits onto another branch",
            "获取城市的天气",
        ] {
            assert!(has_verb(text), "{text}");
        }
    }

    #[test]
    fn nouns_are_not_verbs() {
        for text in [
            "Current temperature of a city",
            "A list of files",
            "List of files",
            "The name and type of the user",
            "Logs from a pod",
            "Settings for the account",
            "An opened page",
            "In the report",
            "Order",
            "The issue's label",
            "Weather forecast for any city",
        ] {
            assert!(!has_verb(text), "{text}");
        }
    }
}
