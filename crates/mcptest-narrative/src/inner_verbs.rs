//! Verbs of looking, thinking, talking and being: what an agent does without any effect.
//!
//! The list started from the verbs that WordNet 3.1 files under cognition, perception, emotion,
//! communication and states, without those of an effect here, such as "post".

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::inflection::{gerunds, pasts};

/// Base forms.
#[rustfmt::skip]
const BASES: &[&str] = &[
    // looking
    "access", "analyse", "analyze", "ascertain", "assess", "audit", "authenticate", "await", "browse", "calculate", "categorise",
    "categorize", "check", "classify", "click", "collect", "compare", "compile", "compute", "consult", "count",
    "cross-check", "cross-reference", "debug", "detect", "determine", "diagnose", "discover", "display", "double-check", "encounter", "estimate",
    "evaluate", "examine", "experience", "explore", "extract", "fetch", "filter", "find", "follow", "gather", "get", "glance",
    "group", "hear", "highlight", "identify", "illustrate", "inspect", "interpret", "investigate", "isolate", "learn", "list", "listen", "load", "locate",
    "look", "map", "match", "measure", "monitor", "narrow", "navigate", "notice", "observe", "obtain", "parse", "peek", "pick", "point", "pinpoint", "poll", "preview",
    "prioritise", "prioritize", "probe", "pull", "query", "rank", "rate", "read", "receive", "recheck", "recognise", "recognize", "research", "retrieve", "review",
    "scan", "scroll", "search", "see", "select", "sense", "shortlist", "show", "skim", "sort", "source", "spot", "study", "survey", "tail", "test", "trace",
    "track", "validate", "verify", "view", "visit", "walk", "watch", "witness", "zoom",
    // thinking
    "adhere", "aim", "anticipate", "appreciate", "approach", "assume", "avoid", "base", "believe", "care", "choose", "comprehend", "comply", "conclude",
    "confuse", "consider", "continue", "cover", "customise", "customize", "decide", "deduce", "deem", "define", "design", "desire", "develop", "differ", "disregard", "doubt", "enjoy", "ensure", "err", "exclude",
    "expect", "fail", "fear", "feel", "figure", "focus", "forget", "formulate", "guess", "hesitate", "hope", "ignore", "imagine", "infer", "intend", "interest", "judge",
    "know", "lack", "like", "limit", "love", "mean", "mind", "misinterpret", "misread", "miss", "mistake", "misunderstand", "need", "omit", "opt", "outweigh", "overlook", "personalise", "personalize", "plan",
    "ponder", "predict", "prefer", "presume", "project", "rationalise", "realise", "realize", "reason", "recall", "reckon", "recollect", "reconsider", "regard", "regret", "relate", "rely", "remember", "rethink", "skip", "solve", "speculate", "suppose", "surmise", "surprise", "suspect",
    "tailor", "think", "trust", "understand", "value", "want", "weigh", "wish", "wonder", "worry",
    // talking
    "acknowledge", "address", "admit", "advise", "agree", "allege", "answer", "apologise", "apologize", "appeal", "argue", "articulate", "ask", "assert", "assist", "assure", "brainstorm", "break", "caution",
    "chat", "cite", "claim", "clarify", "communicate", "complain", "concede", "confess", "congratulate", "convey", "contend", "declare", "demonstrate", "describe", "detail", "disagree", "discuss", "elaborate", "emphasise",
    "emphasize", "encourage", "enquire", "exemplify", "explain", "express", "greet", "guarantee", "guide", "help", "hint", "imply", "include", "incorporate", "indicate", "inquire", "insist", "introduce", "joke", "justify", "mention", "mislead", "name", "note",
    "object", "offer", "outline", "paraphrase", "phrase", "present", "promise", "propose", "provide", "question", "quote", "reaffirm", "recap", "recommend", "refer", "reference", "reiterate", "remark", "repeat", "rephrase", "report", "respond", "restate", "reveal",
    "say", "share-a-thought", "signal", "specify", "speak", "state", "stress", "structure", "suggest", "summarise", "summarize", "support", "talk", "teach", "tell", "thank", "title", "entitle", "translate", "underline", "urge", "utter", "warn", "welcome",
    "word", "call", "term", "dub", "spell", "itemise", "itemize", "enumerate", "narrate", "summate",
    // being, trying, using
    "accompany", "accomplish", "achieve", "accord", "act", "amount", "appear", "arise", "attempt", "be", "become", "begin", "behave", "belong", "bear", "cause", "cease", "come", "comprise", "concern", "conclude", "conform", "consist", "constitute", "contain", "contribute", "correspond", "cost", "crash", "crop",
    "date", "depend", "derive", "deserve", "do", "elapse", "embed", "end", "engage", "equal", "exceed", "exist", "experiment", "expire", "face", "fall", "fit", "fluctuate", "fulfil", "fulfill", "function", "give", "go", "grow", "handle", "happen", "have", "invoke", "involve", "keep", "last", "lead", "leave", "let", "lie",
    "live", "maintain", "make", "manage", "matter", "meet", "occur", "originate", "own", "perform", "persist", "possess", "precede", "prepare", "preserve", "press", "prevail", "proceed", "process", "prove", "qualify", "range", "reach", "refrain", "remain", "represent", "require", "reside", "resemble", "respect", "rest", "result", "retain", "retry", "rise",
    "run", "satisfy", "seem", "sit", "span", "spend", "stand", "start", "stay", "stem", "struggle", "succeed", "suffer", "suit", "survive", "take", "tap", "tend", "total", "try", "turn", "type", "use", "utilise", "utilize", "vary", "wait", "wear", "work", "wrap", "write-about", "leverage", "employ", "apply-logic", "concatenate", "curate", "organise", "organize", "assemble", "arrange", "convert", "request", "complete", "finish", "finalise", "finalize",
    "curb", "worsen", "appreciate", "complicate", "coincide", "overlap", "time", "tie", "age", "touch", "affect", "impact", "influence", "concatenate", "simplify", "size", "structure", "exercise", "interact", "connect", "sequence", "compose",
];

/// Words that only look like past tenses.
#[rustfmt::skip]
const ADJECTIVES: &[&str] = &[
    "red", "bed", "need", "indeed", "interested", "related", "unlimited", "limited", "detailed", "advanced", "excited", "pleased", "delighted",
    "sacred", "naked", "rugged", "wicked", "aged", "hundred", "speed", "feed", "seed", "unexpected", "undecided", "unrelated", "unchanged",
    "unaffected", "untouched", "outdated", "so-called", "experienced", "dedicated", "sophisticated", "renowned", "talented", "skilled", "gifted",
    "celebrated", "crowded", "complicated", "distinguished", "established", "united", "learned", "beloved", "embed", "misled", "led", "well-known",
    "subdued", "supposed", "alleged", "concerned", "tired", "confused", "frustrated", "disappointed", "satisfied", "prepared", "involved", "inspired", "alpine-inspired",
];

static PASTS: LazyLock<FxHashSet<String>> = LazyLock::new(|| {
    let mut words: FxHashSet<String> = BASES.iter().flat_map(|base| pasts(base)).collect();
    words.extend(ADJECTIVES.iter().map(|word| (*word).to_owned()));
    words
});

static OTHERS: LazyLock<FxHashSet<String>> = LazyLock::new(|| {
    let gerunds = BASES.iter().flat_map(|base| gerunds(base));
    gerunds
        .chain(BASES.iter().map(|base| (*base).to_owned()))
        .collect()
});

/// Past tenses that are talk with the agent as their actor, and actions in a passive.
#[rustfmt::skip]
const TALK: &[&str] = &[
    "highlighted", "translated", "scanned", "tested", "filtered", "arranged", "processed", "completed", "finalised", "finalized",
    "requested", "prepared", "solved", "loaded", "connected", "handled", "assembled", "converted", "retried", "developed", "designed", "customized", "customised",
];

/// Past tenses of ordering things, which are talk unless a tool works on them.
#[rustfmt::skip]
const ORDERING: &[&str] = &[
    "sorted", "filtered", "grouped", "ranked", "organised", "organized", "categorised", "categorized", "highlighted", "translated",
    "arranged", "structured", "tested", "scanned", "customised", "customized",
];

/// Returns true if a word orders things.
pub(crate) fn is_ordering(word: &str) -> bool {
    ORDERING.contains(&word)
}

/// Returns true if a word is an action in a passive only.
pub(crate) fn is_talk(word: &str) -> bool {
    TALK.contains(&word)
}

/// Returns true if a lowercase word is the past tense or the participle of such a verb, or only
/// looks like one.
pub(crate) fn is_inner_past(word: &str) -> bool {
    PASTS.contains(word)
        || word.contains('-')
            && !word.starts_with("re-")
            && !word.starts_with("un-")
            && !word.starts_with("de-")
            && !word.starts_with("pre-")
}

/// Returns true if a lowercase word is the base or the gerund of such a verb.
pub(crate) fn is_inner(word: &str) -> bool {
    OTHERS.contains(word)
}
