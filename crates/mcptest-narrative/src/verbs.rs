//! General English verbs of doing, their classes and inflections, and the nouns made from them.
//!
//! A class shows which tools can do what a verb states: "removed" is true after `delete_file`, and
//! "created" is not after `update_issue`. The classes know no trade: what the tools of a suite are
//! about comes from the trace.

use std::cell::RefCell;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::inflection::{irregular, irregular_base, pasts, stems, third};
use crate::inner_verbs::{is_inner, is_inner_past};

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
pub(crate) type Classes = u32;

/// Something comes into being.
pub(crate) const MAKE: Classes = 1;
/// Any change of something: the words of tools that can do it all.
pub(crate) const CHANGE: Classes = 1 << 1;
pub(crate) const DELETE: Classes = 1 << 2;
/// An end of something that may remain on record: cancel, close, revoke.
pub(crate) const END: Classes = 1 << 3;
/// Words go to someone.
pub(crate) const SEND: Classes = 1 << 4;
/// Something runs, or stops running.
pub(crate) const START: Classes = 1 << 5;
/// Something is put to other things.
pub(crate) const ADD: Classes = 1 << 6;
/// Content is written down.
pub(crate) const WRITE: Classes = 1 << 7;
/// A time, a place or goods are reserved or bought.
pub(crate) const BOOK: Classes = 1 << 8;
pub(crate) const COPY: Classes = 1 << 9;
/// Content crosses a border: upload, export, install.
pub(crate) const LOAD: Classes = 1 << 10;
/// Words go to many.
pub(crate) const POST: Classes = 1 << 11;
/// Money moves.
pub(crate) const PAY: Classes = 1 << 12;
/// A place, a name or an order changes.
pub(crate) const MOVE: Classes = 1 << 13;
/// On and off.
pub(crate) const SWITCH: Classes = 1 << 14;
/// Something gets a mark, an owner or a relation.
pub(crate) const ASSIGN: Classes = 1 << 15;
const GRANT: Classes = 1 << 16;
/// Back to an earlier state.
const RESTORE: Classes = 1 << 17;
/// Content takes another form: convert, merge, compress.
pub(crate) const CONVERT: Classes = 1 << 18;
/// Someone becomes a member of something.
pub(crate) const JOIN: Classes = 1 << 19;

/// Classes in which something comes into being, and in which it is brought to someone.
pub(crate) const MAKING: Classes = MAKE | ADD | WRITE | BOOK | COPY | LOAD | POST | JOIN;
pub(crate) const SENDING: Classes = SEND | POST | PAY;
pub(crate) const ENDING: Classes = DELETE | END;

/// The use of a verb in a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It names the action.
    Plain,
    /// The noun names the action: "processed the refund".
    Light,
    /// A claim with the agent as its actor only: "the parcel was shipped" is news.
    Own,
    /// A claim only in a separate clause: saying so can be the whole action.
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
    (MAKE, MAKE | ADD | WRITE | BOOK | COPY | CONVERT | POST | JOIN, Use::Plain, &[
        "create", "generate", "produce", "provision", "recreate", "rebuild", "mint", "render", "initialize",
        "initialise",
    ]),
    (MAKE, MAKE | START | WRITE | ADD | BOOK, Use::Own, &["build", "open", "develop", "design", "file", "implement", "craft"]),
    (WRITE, WRITE | MAKE | ADD | SEND, Use::Plain, &["draft", "compose"]),
    (WRITE, WRITE | MAKE | ADD | CHANGE | SEND | POST, Use::Plain, &["write"]),
    (WRITE, WRITE | MAKE | LOAD | ADD, Use::Plain, &["store", "log", "enter", "bookmark"]),
    (WRITE, WRITE | MAKE | LOAD | COPY | POST | ADD, Use::Plain, &["save"]),
    (WRITE, WRITE | MAKE | ADD | CHANGE, Use::Own, &["record"]),
    (ADD, ADD | MAKE | CHANGE | ASSIGN | WRITE | BOOK | LOAD | POST | JOIN | PAY | SEND | GRANT, Use::Plain, &["add"]),
    (ADD, ADD | MAKE | CHANGE | ASSIGN | WRITE | LOAD | BOOK, Use::Plain, &["put"]),
    (ADD, ADD | MAKE | CHANGE | ASSIGN | WRITE | LOAD, Use::Plain, &["insert", "append", "attach", "populate", "upsert"]),
    (ADD | CHANGE | START, ADD | MAKE | CHANGE | ASSIGN | WRITE | LOAD, Use::Plain, &["apply"]),
    (BOOK, BOOK | MAKE | ADD, Use::Plain, &["book", "reserve", "rebook", "hold"]),
    (BOOK, BOOK | MAKE | ADD | CHANGE, Use::Plain, &["schedule"]),
    (BOOK, BOOK | MAKE | PAY, Use::Own, &["order", "buy", "purchase", "checkout"]),
    (JOIN, JOIN | MAKE | ADD | BOOK, Use::Plain, &["register", "enroll", "enrol", "subscribe", "join"]),
    (COPY, COPY | MAKE | WRITE | ADD, Use::Plain, &["clone", "duplicate", "fork", "copy", "back"]),
    (LOAD, LOAD | COPY | WRITE, Use::Plain, &["download", "install"]),
    (LOAD, LOAD | COPY | WRITE | MAKE, Use::Plain, &["export"]),
    (LOAD, LOAD | COPY | WRITE | MAKE | ADD, Use::Plain, &["import", "upload"]),
    (POST | SEND, POST | SEND | MAKE | ADD | WRITE, Use::Plain, &["post"]),
    (MAKE | SEND | POST, MAKE | POST | SEND | ADD | WRITE | LOAD, Use::Plain, &["submit"]),
    (POST | SEND, POST | SEND | LOAD, Use::Plain, &["push", "broadcast", "announce"]),
    (POST | SEND | GRANT, POST | SEND | GRANT, Use::Plain, &["share"]),
    (POST | MAKE | SEND | START, POST | SEND | START | MAKE, Use::Plain, &["publish"]),
    (POST | START, POST | START | MAKE, Use::Own, &["release"]),
    (CONVERT | MAKE | CHANGE, CONVERT | CHANGE | WRITE, Use::Plain, &["merge"]),
    (CONVERT | MAKE | CHANGE, CONVERT | MAKE | CHANGE | WRITE, Use::Plain, &["convert", "combine", "transform"]),
    (WRITE, WRITE | MAKE | CHANGE | POST, Use::Plain, &["commit"]),
    (ASSIGN, ASSIGN | CHANGE, Use::Plain, &["link", "tag", "label", "pin", "assign"]),
    (ASSIGN, ASSIGN | CHANGE, Use::Plain, &["mark", "flag", "reassign"]),
    (CHANGE, CHANGE | MOVE | SWITCH | ASSIGN | WRITE | ADD | RESTORE | CONVERT | GRANT, Use::Plain, &[
        "update", "modify", "change", "edit", "patch", "adjust", "amend", "alter", "overwrite", "refresh",
    ]),
    (CHANGE, CHANGE | WRITE, Use::Plain, &["replace", "rewrite"]),
    (CHANGE, CHANGE | MAKE | SWITCH | ASSIGN | ADD | WRITE | BOOK, Use::Plain, &["set", "configure"]),
    (CHANGE, CHANGE | WRITE, Use::Plain, &["fix", "correct"]),
    (CHANGE, CHANGE | CONVERT, Use::Plain, &[
        "exchange", "swap", "upgrade", "downgrade", "reconfigure", "extend", "resize", "renew", "redeem",
        "tune",
    ]),
    (CHANGE, CHANGE | WRITE, Use::Plain, &["format", "reformat", "refactor", "optimize", "optimise"]),
    (CHANGE, CHANGE | START, Use::Plain, &["scale", "rotate", "reset"]),
    (MOVE, CHANGE | MOVE, Use::Plain, &[
        "rename", "relocate", "reschedule", "migrate", "promote", "demote", "reorganize", "reorganise", "reorder",
        "reroute", "redirect", "rebase", "move",
    ]),
    (CHANGE | CONVERT, CHANGE | CONVERT | COPY | MAKE | WRITE, Use::Plain, &["compress", "encrypt", "decrypt", "split"]),
    (RESTORE, CHANGE | RESTORE, Use::Plain, &["restore", "revert", "reverse", "roll", "undo"]),
    (SWITCH, SWITCH | CHANGE, Use::Plain, &[
        "reactivate", "unlock", "lock", "toggle", "switch", "turn", "mute", "unmute", "silence", "freeze",
        "unfreeze", "dim",
    ]),
    (SWITCH, SWITCH | CHANGE, Use::Plain, &["activate", "enable"]),
    (CHANGE, CHANGE, Use::Own, &["raise", "lower", "increase", "decrease", "reduce", "transition", "sync", "postpone", "block", "shift"]),
    (SWITCH, SWITCH | CHANGE | START, Use::Own, &["pause", "resume", "reopen", "unblock"]),
    (GRANT, GRANT | CHANGE | END, Use::Plain, &["approve", "authorize", "authorise"]),
    (GRANT, GRANT | CHANGE | ADD | ASSIGN | JOIN, Use::Plain, &["grant"]),
    (GRANT, GRANT | CHANGE | END, Use::Own, &["accept"]),
    (DELETE, DELETE, Use::Plain, &[
        "delete", "destroy", "drop", "purge", "erase", "wipe", "uninstall", "clear", "trash", "discard", "prune",
        "unlink", "deregister", "unregister", "rm",
    ]),
    (DELETE, DELETE | CHANGE | END, Use::Plain, &["remove", "unassign", "detach", "disconnect", "untag", "unpin", "strip", "clean"]),
    (END | CHANGE, END | CHANGE, Use::Own, &["waive"]),
    (END, END | DELETE, Use::Plain, &[
        "cancel", "revoke", "terminate", "void", "abort", "unsubscribe", "retract", "rescind", "dismiss",
        "invalidate",
    ]),
    (END | PAY, END | DELETE | PAY, Use::Plain, &["withdraw"]),
    (END | SWITCH, END | DELETE | SWITCH | CHANGE, Use::Plain, &["deactivate", "disable", "suspend"]),
    (END, END | DELETE | CHANGE | MOVE, Use::Plain, &["archive"]),
    (END, END, Use::Plain, &["close"]),
    (END | CHANGE, END | CHANGE, Use::Own, &["resolve"]),
    (END, END | CHANGE | GRANT, Use::Own, &["reject", "decline", "deny"]),
    (SEND, SEND | POST | PAY, Use::Plain, &["send"]),
    (SEND, SEND | POST, Use::Plain, &[
        "forward", "reply", "dispatch", "resend", "mail", "email", "e-mail", "transmit", "page",
    ]),
    (SEND | ASSIGN, SEND | POST | CHANGE | ASSIGN, Use::Plain, &["escalate"]),
    (SEND | PAY | MOVE, PAY | MOVE | ASSIGN, Use::Plain, &["transfer"]),
    (PAY | SEND, PAY | SEND, Use::Plain, &["wire", "deposit", "donate"]),
    (PAY, PAY | CHANGE | ADD, Use::Plain, &["credit"]),
    (PAY, PAY | CHANGE, Use::Plain, &["refund", "reimburse", "compensate", "debit", "charge", "pay", "bill", "invoice"]),
    (SEND | CHANGE, ADD | MAKE | BOOK | CHANGE, Use::Plain, &["invite"]),
    (SEND, SEND | POST, Use::Own, &["ship", "deliver", "return", "message", "text"]),
    (PAY, PAY | CHANGE, Use::Own, &["sell"]),
    (SEND | MAKE | PAY, SEND | MAKE | PAY, Use::Plain, &["issue", "award"]),
    (SEND, SEND | POST, Use::Telling, &["notify", "alert", "inform", "contact", "remind"]),
    (START, START | MAKE | CHANGE, Use::Plain, &["deploy", "launch", "trigger", "redeploy"]),
    (START, START, Use::Plain, &["restart", "reboot", "rerun"]),
    (START | SWITCH, START | SWITCH | CHANGE, Use::Own, &["start"]),
    (START | SWITCH, START | SWITCH | END, Use::Own, &["stop", "kill", "play"]),
    (SEND | MAKE, SEND | MAKE | POST | ADD | ASSIGN | BOOK, Use::Plain, &["request"]),
    (MAKE | BOOK | ADD, 0, Use::Light, &["place", "make", "arrange"]),
    (0, 0, Use::Light, &[
        "process", "finalize", "finalise", "perform", "initiate", "handle", "carry", "execute", "confirm", "secure",
        "take",
    ]),
    (END | CHANGE, 0, Use::Light, &["complete", "finish"]),
];

/// The lemma of every verb that is not in the table.
pub(crate) const OPEN: &str = "act";

/// The stem of a past tense or participle that is in no list: of an action that nothing more is
/// known about.
pub(crate) fn open_past(word: &str) -> Option<String> {
    if is_inner_past(word) {
        return None;
    }
    if let Some((base, ..)) = irregular_base(word) {
        return (base != word).then(|| cut_ending(base));
    }
    let past = word.len() > 4
        && word.ends_with("ed")
        && !word.ends_with("eed")
        && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
    past.then(|| cut_ending(word))
}

/// Returns true if a word can be the base of a verb of doing that is in no list.
pub(crate) fn is_open_base(word: &str) -> bool {
    word.len() > 3 && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'-') && !is_inner(word)
}

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
    ("invitation", "invite"), ("invite", "invite"), ("replacement", "replace"), ("payment", "pay"), ("transaction", "pay"), ("update", "update"), ("change", "change"),
    ("edit", "edit"), ("upload", "upload"), ("merge", "merge"), ("return", "return"), ("refund", "refund"),
    ("exchange", "exchange"), ("transfer", "transfer"), ("purchase", "purchase"), ("charge", "charge"),
    ("upgrade", "upgrade"), ("downgrade", "downgrade"), ("swap", "swap"), ("switch", "switch"), ("move", "move"),
    ("export", "export"), ("import", "import"), ("restore", "restore"), ("reset", "reset"),
    ("deposit", "deposit"), ("download", "download"), ("restart", "restart"), ("rollback", "revert"),
    ("correction", "correct"), ("fix", "fix"), ("replacement", "replace"), ("reservation", "reserve"),
    ("migration", "migrate"), ("deploy", "deploy"), ("install", "install"), ("adjustment", "adjust"),
    ("publication", "publish"), ("delivery", "deliver"), ("checkout", "checkout"), ("backup", "back"), ("snapshot", "back"), ("creation", "create"), ("deletion", "delete"), ("removal", "remove"), ("booking", "book"),
];

struct Lexicon {
    verbs: FxHashMap<&'static str, Verb>,
    /// Every inflected form.
    forms: FxHashMap<String, (&'static str, Form)>,
    /// Every noun of an action.
    nouns: FxHashMap<String, &'static str>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon {
        verbs: FxHashMap::default(),
        forms: FxHashMap::default(),
        nouns: FxHashMap::default(),
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
    lexicon.verbs.insert(
        OPEN,
        Verb {
            lemma: OPEN,
            is: 0,
            accepts: Classes::MAX,
            usage: Use::Plain,
        },
    );
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
        if UNCHANGED.contains(&lemma) {
            return;
        }
        match irregular(lemma) {
            Some((past, participle)) if past == participle => add(past.to_owned(), Form::Past),
            Some((past, participle)) => {
                add(past.to_owned(), Form::PastOnly);
                add(participle.to_owned(), Form::Participle);
            }
            None => {
                for past in pasts(lemma) {
                    add(past, Form::Past);
                }
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
const SAME: [(&str, &str); 15] = [
    ("str", "string"),
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
    thread_local! {
        static FOLDED: RefCell<FxHashMap<Box<str>, Box<str>>> = RefCell::default();
    }
    FOLDED.with_borrow_mut(|folded| {
        if let Some(known) = folded.get(word) {
            return known.to_string();
        }
        let new = fold_uncached(word);
        if folded.len() < MAX_FOLDED && word.len() <= 40 {
            folded.insert(word.into(), new.as_str().into());
        }
        new
    })
}

/// The number of words whose common form is kept, per thread.
const MAX_FOLDED: usize = 20_000;

/// A word in the spelling of the United States: "instalment", "colour", "organise".
fn american(word: &str) -> Option<String> {
    if word.len() < 6 || !word.is_ascii() {
        return None;
    }
    let stem = word.strip_suffix('s').unwrap_or(word);
    let plural = &word[stem.len()..];
    if let Some(start) = stem.strip_suffix("our").filter(|start| start.len() > 2) {
        return Some(format!("{start}or{plural}"));
    }
    if let Some(start) = stem.strip_suffix("isation") {
        return Some(format!("{start}ization{plural}"));
    }
    stem.strip_suffix("lment")
        .filter(|start| !start.ends_with('l'))
        .map(|start| format!("{start}llment{plural}"))
}

fn fold_uncached(word: &str) -> String {
    let lower = word.to_lowercase();
    let lower = american(&lower).unwrap_or(lower);
    let same = |word: &str| SAME.iter().find(|(short, _)| *short == word);
    if let Some((_, full)) = same(&lower) {
        return cut_ending(full);
    }
    if let Some((lemma, _)) = verb_of(&lower) {
        return lemma.to_owned();
    }
    // "hidden" is of "hide".
    if let Some((base, ..)) = irregular_base(&lower).filter(|_| lower.len() > 4) {
        return cut_ending(base);
    }
    let single = singular(&lower);
    if let Some((_, full)) = same(&single) {
        return cut_ending(full);
    }
    if let Some((lemma, _)) = verb_of(&single) {
        return lemma.to_owned();
    }
    // "attachment" is of "attach".
    let made = ["ment", "tion", "sion", "ture"]
        .iter()
        .any(|end| single.ends_with(end));
    if let Some(lemma) = nominal_of(&single).filter(|_| made) {
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
