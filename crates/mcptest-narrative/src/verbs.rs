//! General English verbs of doing, their classes and inflections, and the nouns made from them.
//!
//! A class shows which tools can do what a verb states: "removed" is true after `delete_file`, and
//! "created" is not after `update_issue`. The classes know no trade: what the tools of a suite are
//! about comes from the trace.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The forms of a verb that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// "create": an infinitive, an imperative, or a noun such as "update".
    Base,
    /// "creating".
    Gerund,
    /// "created": the past or the participle.
    Past,
    /// "wrote": the past only.
    PastOnly,
    /// "written": the participle only.
    Participle,
    /// "set": any of base, past and participle.
    Any,
}

/// A set of classes of actions, one bit each.
pub(crate) type Classes = u8;

pub(crate) const MAKE: Classes = 1;
pub(crate) const CHANGE: Classes = 2;
pub(crate) const DELETE: Classes = 4;
/// An end of something that may remain on record: cancel, close, revoke.
pub(crate) const END: Classes = 8;
/// Something goes to someone: a message, money, goods.
pub(crate) const SEND: Classes = 16;
const START: Classes = 32;

/// The use of a verb in a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It names the action.
    Plain,
    /// The noun names the action: "processed the refund".
    Light,
    /// A claim with the agent as its actor only: "the parcel was shipped" is news.
    Own,
    /// A claim in a clause of its own only: saying so can be the whole action.
    Telling,
}

/// A verb and the classes it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verb {
    pub lemma: &'static str,
    /// The classes of a tool that is named so.
    pub is: Classes,
    /// The classes of the tools that make a claim with it true.
    pub accepts: Classes,
    pub usage: Use,
}

/// Verbs by class: those of a tool, those that a claim accepts, and the use.
#[rustfmt::skip]
const TABLE: &[(Classes, Classes, Use, &[&str])] = &[
    (MAKE, MAKE, Use::Plain, &[
        "create", "generate", "draft", "compose", "produce", "register", "book", "reserve", "schedule", "install",
        "clone", "duplicate", "fork", "provision", "enroll", "enrol", "subscribe", "download",
        "recreate", "rebook", "rebuild", "bookmark", "mint", "render", "initialize", "initialise",
    ]),
    (MAKE | SEND | START, SEND | START, Use::Plain, &["publish"]),
    (MAKE, MAKE | START, Use::Own, &["build", "order", "buy", "purchase", "open", "develop", "design", "record", "file", "release", "implement", "checkout"]),
    (MAKE | SEND, MAKE | SEND, Use::Plain, &["post", "upload", "submit", "import", "export", "push", "enter"]),
    (MAKE | CHANGE, MAKE | CHANGE, Use::Plain, &[
        "write", "save", "put", "insert", "append", "merge", "convert", "attach", "apply", "store", "log", "copy",
        "commit", "combine", "rewrite", "populate", "link", "tag", "label", "pin", "assign", "upsert",
        "configure", "back",
    ]),
    (MAKE | CHANGE, MAKE | CHANGE | SEND, Use::Plain, &["add"]),
    (CHANGE, CHANGE, Use::Plain, &[
        "update", "modify", "change", "edit", "patch", "adjust", "rename", "exchange", "swap", "switch", "amend",
        "reassign", "relocate", "upgrade", "downgrade", "format", "reformat", "refactor", "reconfigure", "reset",
        "extend", "reschedule", "resize", "rotate", "restore", "revert", "reactivate", "unlock", "lock", "toggle",
        "migrate", "promote", "demote", "optimize", "optimise", "reorganize", "reorganise", "renew", "redeem", "transform",
        "compress", "encrypt", "reorder", "refresh", "reroute", "redirect", "rebase", "alter", "overwrite",
        "replace", "move", "reverse", "roll", "turn",
    ]),
    (CHANGE, CHANGE | MAKE, Use::Plain, &["set", "activate", "enable", "mark", "fix", "correct"]),
    (CHANGE, CHANGE, Use::Own, &["raise", "lower", "increase", "decrease", "reduce", "transition", "split", "sync", "pause", "resume", "postpone", "reopen", "block"]),
    (CHANGE, CHANGE | END, Use::Plain, &["approve", "authorize", "authorise", "grant"]),
    (CHANGE, CHANGE | END, Use::Own, &["accept"]),
    (DELETE, DELETE, Use::Plain, &[
        "delete", "destroy", "drop", "purge", "erase", "wipe", "uninstall", "clear", "trash", "discard", "prune",
        "unlink", "deregister", "unregister", "rm",
    ]),
    (DELETE, DELETE | CHANGE | END, Use::Plain, &["remove", "unassign", "detach", "disconnect", "untag", "unpin", "strip", "clean"]),
    (END | CHANGE, END | CHANGE, Use::Own, &["waive"]),
    (END, END | DELETE, Use::Plain, &[
        "cancel", "revoke", "terminate", "void", "abort", "unsubscribe", "withdraw", "retract", "rescind", "dismiss",
        "invalidate", "deactivate", "disable", "suspend",
    ]),
    (END, END | DELETE | CHANGE, Use::Plain, &["archive"]),
    (END, END, Use::Plain, &["close"]),
    (END | CHANGE, END | CHANGE, Use::Own, &["resolve"]),
    (END, END | CHANGE, Use::Own, &["reject", "decline", "deny"]),
    (SEND, SEND, Use::Plain, &[
        "send", "forward", "share", "reply", "dispatch", "resend", "mail", "email", "e-mail", "broadcast", "transmit",
        "transfer", "escalate", "wire", "deposit", "donate",
    ]),
    (SEND, SEND | CHANGE, Use::Plain, &["refund", "reimburse", "credit", "compensate", "debit", "charge", "pay", "bill", "invoice"]),
    (SEND | CHANGE, SEND, Use::Plain, &["invite"]),
    (SEND, SEND, Use::Own, &["ship", "deliver", "return", "message", "text"]),
    (SEND | MAKE, SEND | MAKE, Use::Plain, &["issue", "award"]),
    (SEND, SEND, Use::Telling, &["notify", "alert", "inform"]),
    (START, START | MAKE | CHANGE, Use::Plain, &["deploy", "launch", "restart", "reboot", "trigger", "redeploy"]),
    (START, START | MAKE, Use::Own, &["start", "stop", "kill", "execute"]),
    (0, 0, Use::Light, &[
        "process", "finalize", "finalise", "perform", "request", "initiate", "place", "arrange", "handle",
        "carry", "make", "confirm", "secure",
    ]),
    (END | CHANGE, 0, Use::Light, &["complete", "finish"]),
];

/// The verbs of the document, which also decide which tools count as writes.
#[rustfmt::skip]
pub(crate) const LISTED: [&str; 22] = [
    "create", "update", "delete", "remove", "send", "write", "post", "insert", "set", "put", "patch", "publish",
    "destroy", "drop", "add", "edit", "upload", "merge", "close", "cancel", "approve", "revoke",
];

/// Verbs that are actions only with one of these words after them.
#[rustfmt::skip]
const PARTICLES: &[(&str, &[&str])] = &[
    ("roll", &["back", "out"]), ("turn", &["on", "off", "up", "down"]), ("back", &["up"]),
];

/// Returns true if a verb is an action with the word after it.
pub(crate) fn takes(lemma: &str, next: Option<&str>) -> bool {
    PARTICLES
        .iter()
        .find(|(verb, _)| *verb == lemma)
        .is_none_or(|(_, particles)| next.is_some_and(|next| particles.contains(&next)))
}

/// Verbs that double their last letter.
#[rustfmt::skip]
const DOUBLED: &[&str] = &[
    "drop", "cancel", "ship", "tag", "log", "pin", "commit", "submit", "swap", "stop", "transfer", "split", "strip",
    "unpin", "untag", "enrol", "put", "set", "reset", "rm",
];

/// Past tense and participle of irregular verbs; one word where they are the same.
#[rustfmt::skip]
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("write", "wrote", "written"), ("rewrite", "rewrote", "rewritten"), ("send", "sent", "sent"),
    ("resend", "resent", "resent"), ("build", "built", "built"), ("rebuild", "rebuilt", "rebuilt"),
    ("buy", "bought", "bought"), ("make", "made", "made"), ("pay", "paid", "paid"),
    ("withdraw", "withdrew", "withdrawn"), ("overwrite", "overwrote", "overwritten"),
];

/// Verbs whose base is also their past and participle.
const UNCHANGED: &[&str] = &["set", "put", "reset", "split"];

/// Nouns made from verbs that no ending explains, and bare verbs that are nouns of an action.
#[rustfmt::skip]
const NOUNS: &[(&str, &str)] = &[
    ("submission", "submit"), ("transmission", "transmit"), ("revocation", "revoke"), ("subscription", "subscribe"),
    ("conversion", "convert"), ("extension", "extend"), ("destruction", "destroy"), ("closure", "close"),
    ("reimbursement", "reimburse"), ("compensation", "compensate"), ("withdrawal", "withdraw"), ("rejection", "reject"),
    ("cancellation", "cancel"), ("cancelation", "cancel"), ("registration", "register"), ("modification", "modify"),
    ("notification", "notify"), ("renewal", "renew"), ("reversal", "reverse"), ("resolution", "resolve"),
    ("invitation", "invite"), ("replacement", "replace"), ("payment", "pay"), ("transaction", "pay"), ("update", "update"), ("change", "change"),
    ("edit", "edit"), ("upload", "upload"), ("merge", "merge"), ("return", "return"), ("refund", "refund"),
    ("exchange", "exchange"), ("transfer", "transfer"), ("purchase", "purchase"), ("charge", "charge"),
    ("upgrade", "upgrade"), ("downgrade", "downgrade"), ("swap", "swap"), ("switch", "switch"), ("move", "move"),
    ("export", "export"), ("import", "import"), ("restore", "restore"), ("reset", "reset"),
    ("deposit", "deposit"), ("download", "download"), ("restart", "restart"), ("rollback", "revert"),
    ("correction", "correct"), ("fix", "fix"), ("replacement", "replace"), ("reservation", "reserve"),
    ("migration", "migrate"), ("deploy", "deploy"), ("install", "install"), ("adjustment", "adjust"),
    ("publication", "publish"), ("checkout", "checkout"), ("creation", "create"), ("deletion", "delete"), ("removal", "remove"), ("booking", "book"),
];

struct Lexicon {
    verbs: HashMap<&'static str, Verb>,
    /// Every inflected form.
    forms: HashMap<String, (&'static str, Form)>,
    /// Every noun of an action.
    nouns: HashMap<String, &'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon {
        verbs: HashMap::new(),
        forms: HashMap::new(),
        nouns: HashMap::new(),
    };
    for (is, accepts, usage, lemmas) in TABLE {
        for lemma in *lemmas {
            let verb = Verb {
                lemma,
                is: *is,
                accepts: *accepts,
                usage: *usage,
            };
            lexicon.verbs.insert(lemma, verb);
            lexicon.inflect(lemma);
            if *usage != Use::Light {
                lexicon.nominalize(lemma);
            }
        }
    }
    for (noun, lemma) in NOUNS {
        lexicon.nouns.insert((*noun).to_owned(), lemma);
    }
    lexicon
});

impl Lexicon {
    fn inflect(&mut self, lemma: &'static str) {
        let stems = stems(lemma);
        let mut add = |form: String, kind: Form| {
            self.forms.entry(form).or_insert((lemma, kind));
        };
        if UNCHANGED.contains(&lemma) {
            add(lemma.to_owned(), Form::Any);
        } else {
            add(lemma.to_owned(), Form::Base);
        }
        add(third(lemma), Form::Base);
        for stem in &stems {
            add(format!("{stem}ing"), Form::Gerund);
        }
        if let Some((_, past, participle)) = IRREGULAR.iter().find(|(verb, ..)| *verb == lemma) {
            if past == participle {
                add((*past).to_owned(), Form::Past);
            } else {
                add((*past).to_owned(), Form::PastOnly);
                add((*participle).to_owned(), Form::Participle);
            }
        } else if !UNCHANGED.contains(&lemma) {
            for stem in &stems {
                let past = match stem.strip_suffix('y') {
                    Some(start) if !start.ends_with(['a', 'e', 'o', 'u']) => format!("{start}ied"),
                    _ => format!("{stem}ed"),
                };
                add(past, Form::Past);
            }
        }
    }

    fn nominalize(&mut self, lemma: &'static str) {
        for stem in stems(lemma) {
            for ending in ["ation", "ion", "ment", "al", "ing"] {
                // "building", "meeting" and the like are things.
                let thing = ending == "ing" && !["book", "renam", "reschedul"].contains(&&*stem);
                if !thing {
                    self.nouns.entry(format!("{stem}{ending}")).or_insert(lemma);
                }
            }
        }
        if let Some(start) = lemma.strip_suffix('y') {
            self.nouns.entry(format!("{start}ication")).or_insert(lemma);
        }
    }
}

/// The stems that "-ed" and "-ing" are added to.
fn stems(lemma: &str) -> Vec<String> {
    let mut stems = Vec::new();
    if DOUBLED.contains(&lemma)
        && let Some(last) = lemma.chars().last()
    {
        stems.push(format!("{lemma}{last}"));
        if lemma != "cancel" {
            return stems;
        }
    }
    stems.push(lemma.strip_suffix('e').unwrap_or(lemma).to_owned());
    stems
}

fn third(lemma: &str) -> String {
    if let Some(start) = lemma.strip_suffix('y')
        && !start.ends_with(['a', 'e', 'o', 'u'])
    {
        return format!("{start}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|ending| lemma.ends_with(ending));
    format!("{lemma}{}", if hisses { "es" } else { "s" })
}

/// The verb that a lowercase word is a form of.
pub(crate) fn verb_of(word: &str) -> Option<(&'static str, Form)> {
    LEXICON.forms.get(word).copied()
}

/// The classes of a verb, by its base form.
pub(crate) fn verb(lemma: &str) -> Option<Verb> {
    LEXICON.verbs.get(lemma).copied()
}

/// The verb that a lowercase noun is made from: "cancel" of "cancellation".
pub(crate) fn nominal_of(word: &str) -> Option<&'static str> {
    let singular = singular(word);
    LEXICON.nouns.get(&singular).copied()
}

/// The verb of a word in a tool's name: `merge`, `merger`, `deletion`.
pub(crate) fn tool_verb(word: &str) -> Option<Verb> {
    let agent = || {
        let start = word
            .strip_suffix("er")
            .or_else(|| word.strip_suffix("or"))?;
        [start.to_owned(), format!("{start}e")]
            .iter()
            .find_map(|lemma| verb(lemma))
    };
    let lemma = verb_of(word)
        .map(|(lemma, _)| lemma)
        .or_else(|| nominal_of(word));
    lemma.and_then(verb).or_else(agent)
}

/// Words in a tool's name that run whatever they are given.
pub(crate) const EXECUTING: [&str; 11] = [
    "exec", "execute", "shell", "bash", "terminal", "command", "script", "python", "process",
    "code", "sql",
];

/// Short forms and variants that are the same thing.
const SAME: [(&str, &str); 14] = [
    ("repo", "repository"),
    ("doc", "document"),
    ("config", "configuration"),
    ("msg", "message"),
    ("dir", "directory"),
    ("folder", "directory"),
    ("mail", "email"),
    ("e-mail", "email"),
    ("db", "database"),
    ("info", "information"),
    ("img", "image"),
    ("photo", "image"),
    ("org", "organization"),
    ("people", "person"),
];

/// One spelling for all forms of a word: verbs to their base, plurals to the singular, common
/// endings cut. What comes out is for comparing only.
pub(crate) fn fold(word: &str) -> String {
    let lower = word.to_lowercase();
    let same = |word: &str| SAME.iter().find(|(short, _)| *short == word);
    if let Some((_, full)) = same(&lower) {
        return cut_ending(full);
    }
    if let Some((lemma, _)) = verb_of(&lower) {
        return lemma.to_owned();
    }
    let single = singular(&lower);
    if let Some((_, full)) = same(&single) {
        return cut_ending(full);
    }
    if let Some((lemma, _)) = verb_of(&single) {
        return lemma.to_owned();
    }
    cut_ending(&single)
}

pub(crate) fn singular(word: &str) -> String {
    let keep = ["ss", "us", "is"]
        .iter()
        .any(|ending| word.ends_with(ending));
    if word.chars().count() <= 3 || keep {
        return word.to_owned();
    }
    if let Some(start) = word.strip_suffix("ies") {
        return format!("{start}y");
    }
    for ending in ["sses", "xes", "zes", "ches", "shes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    word.strip_suffix('s').unwrap_or(word).to_owned()
}

fn cut_ending(word: &str) -> String {
    for ending in ["ing", "ed"] {
        if let Some(start) = word.strip_suffix(ending)
            && start.chars().count() >= 3
            && start.chars().any(|c| "aeiouy".contains(c))
        {
            let mut letters = start.chars().rev();
            if let (Some(last), Some(before)) = (letters.next(), letters.next())
                && last == before
                && !"lsz".contains(last)
            {
                return start[..start.len() - last.len_utf8()].to_owned();
            }
            return start.strip_suffix('e').unwrap_or(start).to_owned();
        }
    }
    // "baggage" is bags, "package" is a pack.
    if let Some(start) = word.strip_suffix("age")
        && start.chars().count() >= 4
    {
        let mut letters = start.chars().rev();
        if let (Some(last), Some(before)) = (letters.next(), letters.next())
            && last == before
        {
            return start[..start.len() - last.len_utf8()].to_owned();
        }
    }
    if word.chars().count() > 3 {
        word.strip_suffix('e').unwrap_or(word).to_owned()
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_inflection_is_known() {
        for (word, lemma) in [
            ("create", "create"),
            ("created", "create"),
            ("creating", "create"),
            ("sent", "send"),
            ("wrote", "write"),
            ("written", "write"),
            ("set", "set"),
            ("setting", "set"),
            ("put", "put"),
            ("cancelled", "cancel"),
            ("canceled", "cancel"),
            ("cancelling", "cancel"),
            ("dropped", "drop"),
            ("publishes", "publish"),
            ("merged", "merge"),
            ("approved", "approve"),
            ("revoking", "revoke"),
            ("destroyed", "destroy"),
        ] {
            assert_eq!(verb_of(word).map(|(lemma, _)| lemma), Some(lemma), "{word}");
        }
        for word in [
            "creation", "settler", "settle", "posture", "closet", "", "é",
        ] {
            assert!(verb_of(word).is_none(), "{word}");
        }
    }

    #[test]
    fn words_fold_together() {
        for (left, right) in [
            ("issue", "issues"),
            ("Issue", "ISSUES"),
            ("entry", "entries"),
            ("box", "boxes"),
            ("branch", "branches"),
            ("bags", "baggages"),
            ("repo", "repositories"),
            ("searched", "search"),
            ("booking", "book"),
            ("planned", "plan"),
            ("file", "files"),
            ("updates", "update"),
            ("posted", "post"),
            ("E-mail", "emails"),
        ] {
            assert_eq!(fold(left), fold(right), "{left} {right}");
        }
        for (left, right) in [
            ("issue", "tissue"),
            ("car", "card"),
            ("user", "use"),
            ("status", "state"),
        ] {
            assert_ne!(fold(left), fold(right), "{left} {right}");
        }
    }

    #[test]
    fn related_verbs_never_cross_making_and_changing() {
        let answers =
            |claim: &str, tool: &str| verb(claim).unwrap().accepts & verb(tool).unwrap().is != 0;
        assert!(!answers("create", "update"));
        assert!(!answers("update", "create"));
        assert!(!answers("delete", "update"));
        assert!(!answers("delete", "cancel"));
        assert!(answers("remove", "delete"));
        assert!(answers("cancel", "delete"));
        assert!(answers("add", "update"));
    }

    #[test]
    fn nouns_name_actions() {
        for (noun, lemma) in [
            ("cancellation", "cancel"),
            ("deletion", "delete"),
            ("modifications", "modify"),
            ("removal", "remove"),
            ("refund", "refund"),
            ("payment", "pay"),
            ("installation", "install"),
            ("deployment", "deploy"),
            ("booking", "book"),
        ] {
            assert_eq!(nominal_of(noun), Some(lemma), "{noun}");
        }
        for noun in [
            "order", "issue", "file", "building", "meeting", "", "section",
        ] {
            assert_eq!(nominal_of(noun), None, "{noun}");
        }
        assert_eq!(tool_verb("merger").unwrap().lemma, "merge");
        assert_eq!(tool_verb("converter").unwrap().lemma, "convert");
        assert!(tool_verb("user").is_none());
    }
}
