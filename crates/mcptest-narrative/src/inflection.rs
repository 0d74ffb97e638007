//! The forms of English verbs.

/// Past tense and participle of irregular verbs.
#[rustfmt::skip]
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("arise", "arose", "arisen"), ("awake", "awoke", "awoken"), ("be", "was", "been"), ("bear", "bore", "borne"),
    ("become", "became", "become"), ("begin", "began", "begun"), ("bend", "bent", "bent"), ("bet", "bet", "bet"),
    ("bid", "bid", "bid"), ("bind", "bound", "bound"), ("bite", "bit", "bitten"), ("blow", "blew", "blown"),
    ("break", "broke", "broken"), ("bring", "brought", "brought"), ("broadcast", "broadcast", "broadcast"),
    ("build", "built", "built"), ("burn", "burnt", "burnt"), ("buy", "bought", "bought"), ("cast", "cast", "cast"),
    ("catch", "caught", "caught"), ("choose", "chose", "chosen"), ("come", "came", "come"), ("cost", "cost", "cost"),
    ("cut", "cut", "cut"), ("deal", "dealt", "dealt"), ("dig", "dug", "dug"), ("do", "did", "done"),
    ("draw", "drew", "drawn"), ("drive", "drove", "driven"), ("eat", "ate", "eaten"), ("fall", "fell", "fallen"),
    ("feed", "fed", "fed"), ("feel", "felt", "felt"), ("fight", "fought", "fought"), ("find", "found", "found"),
    ("fly", "flew", "flown"), ("forbid", "forbade", "forbidden"), ("forget", "forgot", "forgotten"),
    ("freeze", "froze", "frozen"), ("get", "got", "gotten"), ("give", "gave", "given"), ("go", "went", "gone"),
    ("grind", "ground", "ground"), ("grow", "grew", "grown"), ("hang", "hung", "hung"), ("have", "had", "had"),
    ("hear", "heard", "heard"), ("hide", "hid", "hidden"), ("hit", "hit", "hit"), ("hold", "held", "held"),
    ("hurt", "hurt", "hurt"), ("keep", "kept", "kept"), ("know", "knew", "known"), ("lay", "laid", "laid"),
    ("lead", "led", "led"), ("learn", "learnt", "learnt"), ("leave", "left", "left"), ("lend", "lent", "lent"),
    ("let", "let", "let"), ("lie", "lay", "lain"), ("light", "lit", "lit"), ("lose", "lost", "lost"),
    ("make", "made", "made"), ("mean", "meant", "meant"), ("meet", "met", "met"), ("mistake", "mistook", "mistaken"),
    ("mislead", "misled", "misled"), ("misread", "misread", "misread"), ("misunderstand", "misunderstood", "misunderstood"),
    ("override", "overrode", "overridden"), ("overwrite", "overwrote", "overwritten"), ("pay", "paid", "paid"),
    ("prove", "proved", "proven"), ("put", "put", "put"), ("quit", "quit", "quit"), ("read", "read", "read"),
    ("rebuild", "rebuilt", "rebuilt"), ("redo", "redid", "redone"), ("repay", "repaid", "repaid"),
    ("rerun", "reran", "rerun"), ("resend", "resent", "resent"), ("reset", "reset", "reset"), ("rethink", "rethought", "rethought"),
    ("rewrite", "rewrote", "rewritten"), ("ride", "rode", "ridden"), ("ring", "rang", "rung"), ("rise", "rose", "risen"),
    ("run", "ran", "run"), ("say", "said", "said"), ("see", "saw", "seen"), ("seek", "sought", "sought"),
    ("sell", "sold", "sold"), ("send", "sent", "sent"), ("set", "set", "set"), ("shake", "shook", "shaken"),
    ("shed", "shed", "shed"), ("shine", "shone", "shone"), ("shoot", "shot", "shot"), ("show", "showed", "shown"),
    ("shrink", "shrank", "shrunk"), ("shut", "shut", "shut"), ("sink", "sank", "sunk"), ("sit", "sat", "sat"),
    ("sleep", "slept", "slept"), ("slide", "slid", "slid"), ("speak", "spoke", "spoken"), ("spend", "spent", "spent"),
    ("spin", "spun", "spun"), ("split", "split", "split"), ("spread", "spread", "spread"), ("spring", "sprang", "sprung"),
    ("stand", "stood", "stood"), ("steal", "stole", "stolen"), ("stick", "stuck", "stuck"), ("strike", "struck", "struck"),
    ("sweep", "swept", "swept"), ("swing", "swung", "swung"), ("take", "took", "taken"), ("teach", "taught", "taught"),
    ("tear", "tore", "torn"), ("tell", "told", "told"), ("think", "thought", "thought"), ("throw", "threw", "thrown"),
    ("undergo", "underwent", "undergone"), ("understand", "understood", "understood"), ("undo", "undid", "undone"),
    ("unfreeze", "unfroze", "unfrozen"), ("unbind", "unbound", "unbound"), ("wake", "woke", "woken"),
    ("wear", "wore", "worn"), ("weave", "wove", "woven"), ("win", "won", "won"), ("wind", "wound", "wound"),
    ("withdraw", "withdrew", "withdrawn"), ("withhold", "withheld", "withheld"), ("write", "wrote", "written"),
];

/// Verbs that double their last letter, apart from those that end in a stressed short syllable.
#[rustfmt::skip]
const DOUBLED: &[&str] = &[
    "commit", "submit", "transfer", "refer", "prefer", "occur", "permit", "admit", "omit", "emit", "remit", "transmit", "equip", "enrol", "control",
    "patrol", "rebut", "defer", "infer", "confer", "incur", "recur", "deter", "format", "unpin", "untag", "unplug", "backlog", "debug", "handicap", "worship", "program",
];

/// The past tense and the participle of an irregular verb.
pub(crate) fn irregular(base: &str) -> Option<(&'static str, &'static str)> {
    IRREGULAR
        .iter()
        .find(|(own, ..)| *own == base)
        .map(|(_, past, participle)| (*past, *participle))
}

/// The base of an irregular form, and if it can be the past tense and the participle.
pub(crate) fn irregular_base(word: &str) -> Option<(&'static str, bool, bool)> {
    let find = |word: &str| {
        IRREGULAR
            .iter()
            .find(|(_, past, participle)| *past == word || *participle == word)
            .map(|(base, past, participle)| (*base, *past == word, *participle == word))
    };
    // "prepaid", "resold"
    let plain = || {
        ["pre", "re", "un", "over", "out", "fore"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix).filter(|rest| rest.len() > 2))
            .and_then(find)
    };
    find(word).or_else(plain)
}

/// The stems that "-ed" and "-ing" are added to.
pub(crate) fn stems(base: &str) -> Vec<String> {
    let bytes = base.as_bytes();
    let vowel = |c: u8| b"aeiou".contains(&c);
    let [.., before, middle, last] = bytes else {
        return vec![base.to_owned()];
    };
    let short = !vowel(*before) && vowel(*middle) && !vowel(*last) && !b"wxy".contains(last);
    let syllables = bytes
        .windows(2)
        .filter(|pair| vowel(pair[1]) && !vowel(pair[0]))
        .count()
        + usize::from(vowel(bytes[0]));
    let doubled = || format!("{base}{}", char::from(*last));
    if DOUBLED.contains(&base) || short && syllables <= 1 {
        return vec![doubled()];
    }
    // Both "labeled" and "labelled".
    if short && matches!(last, b'l' | b'p' | b't') {
        return vec![base.to_owned(), doubled()];
    }
    if let Some(start) = base.strip_suffix("ie") {
        return vec![format!("{start}y"), start.to_owned() + "i"];
    }
    let silent = base.len() > 2 && base.ends_with('e') && !base.ends_with("ee");
    vec![if silent {
        base[..base.len() - 1].to_owned()
    } else {
        base.to_owned()
    }]
}

/// The past tenses and participles of a verb.
pub(crate) fn pasts(base: &str) -> Vec<String> {
    if let Some((past, participle)) = irregular(base) {
        let mut forms = vec![past.to_owned(), participle.to_owned()];
        // "learnt" and "learned", "burnt" and "burned"
        if past.ends_with('t') && base.ends_with('n') {
            forms.push(format!("{base}ed"));
        }
        return forms;
    }
    stems(base).iter().map(|stem| with_ed(stem)).collect()
}

/// The gerunds of a verb.
pub(crate) fn gerunds(base: &str) -> Vec<String> {
    let mut stems = stems(base);
    if base.ends_with("ee") {
        stems = vec![base.to_owned()];
    }
    stems.iter().map(|stem| format!("{stem}ing")).collect()
}

/// The third person of a verb.
pub(crate) fn third(base: &str) -> String {
    if let Some(start) = base.strip_suffix('y')
        && !start.ends_with(['a', 'e', 'o', 'u'])
    {
        return format!("{start}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|ending| base.ends_with(ending));
    format!("{base}{}", if hisses { "es" } else { "s" })
}

fn with_ed(stem: &str) -> String {
    match stem.strip_suffix('y') {
        Some(start) if !start.ends_with(['a', 'e', 'o', 'u']) => format!("{start}ied"),
        _ if stem.ends_with("ee") => format!("{stem}d"),
        _ => format!("{stem}ed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_regular_and_irregular_verbs() {
        for (base, past) in [
            ("create", "created"),
            ("stop", "stopped"),
            ("label", "labelled"),
            ("label", "labeled"),
            ("modify", "modified"),
            ("deploy", "deployed"),
            ("agree", "agreed"),
            ("send", "sent"),
            ("write", "written"),
            ("visit", "visited"),
            ("commit", "committed"),
            ("fix", "fixed"),
            ("view", "viewed"),
            ("learn", "learned"),
        ] {
            assert!(pasts(base).contains(&past.to_owned()), "{base} {past}");
        }
        assert_eq!(gerunds("make"), ["making"]);
        assert_eq!(gerunds("tie")[0], "tying");
        assert_eq!(third("try"), "tries");
        assert_eq!(third("push"), "pushes");
        assert_eq!(irregular_base("written"), Some(("write", false, true)));
        assert_eq!(irregular_base("sent"), Some(("send", true, true)));
        assert_eq!(irregular_base("created"), None);
    }
}
