//! The fixed list of mutating verbs, their inflections, and how words fold so that they can be
//! compared.

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

/// One verb with its forms besides the base.
struct Verb {
    lemma: &'static str,
    third: &'static str,
    gerunds: &'static [&'static str],
    /// Past and participle, where they are one word.
    past: &'static [&'static str],
}

/// The mutating verbs. Nothing else in a message is ever taken for a claimed action.
#[rustfmt::skip]
const VERBS: [Verb; 22] = [
    verb("create", "creates", &["creating"], &["created"]),
    verb("update", "updates", &["updating"], &["updated"]),
    verb("delete", "deletes", &["deleting"], &["deleted"]),
    verb("remove", "removes", &["removing"], &["removed"]),
    verb("send", "sends", &["sending"], &["sent"]),
    verb("write", "writes", &["writing"], &[]),
    verb("post", "posts", &["posting"], &["posted"]),
    verb("insert", "inserts", &["inserting"], &["inserted"]),
    verb("set", "sets", &["setting"], &[]),
    verb("put", "puts", &["putting"], &[]),
    verb("patch", "patches", &["patching"], &["patched"]),
    verb("publish", "publishes", &["publishing"], &["published"]),
    verb("destroy", "destroys", &["destroying"], &["destroyed"]),
    verb("drop", "drops", &["dropping"], &["dropped"]),
    verb("add", "adds", &["adding"], &["added"]),
    verb("edit", "edits", &["editing"], &["edited"]),
    verb("upload", "uploads", &["uploading"], &["uploaded"]),
    verb("merge", "merges", &["merging"], &["merged"]),
    verb("close", "closes", &["closing"], &["closed"]),
    verb("cancel", "cancels", &["canceling", "cancelling"], &["canceled", "cancelled"]),
    verb("approve", "approves", &["approving"], &["approved"]),
    verb("revoke", "revokes", &["revoking"], &["revoked"]),
];

const fn verb(
    lemma: &'static str,
    third: &'static str,
    gerunds: &'static [&'static str],
    past: &'static [&'static str],
) -> Verb {
    Verb {
        lemma,
        third,
        gerunds,
        past,
    }
}

/// The mutating verb that a lower-case word is a form of.
pub(crate) fn verb_of(word: &str) -> Option<(&'static str, Form)> {
    match word {
        "set" => return Some(("set", Form::Any)),
        "put" => return Some(("put", Form::Any)),
        "wrote" => return Some(("write", Form::PastOnly)),
        "written" => return Some(("write", Form::Participle)),
        _ => {}
    }
    VERBS.iter().find_map(|verb| {
        let form = if verb.lemma == word || verb.third == word {
            Form::Base
        } else if verb.gerunds.contains(&word) {
            Form::Gerund
        } else if verb.past.contains(&word) {
            Form::Past
        } else {
            return None;
        };
        Some((verb.lemma, form))
    })
}

/// Other words in a tool's name that can do what the verb says. They are wide enough that a
/// truthful agent is not called a liar for saying "removed" after `delete_file`, and narrow enough
/// that "created" after `update_issue`, or "updated" after `create_issue`, is.
#[rustfmt::skip]
pub(crate) fn related(lemma: &str) -> &'static [&'static str] {
    match lemma {
        "create" => &[
            "add", "insert", "write", "post", "put", "make", "new", "generate", "save", "open", "schedule", "book",
            "register", "submit", "start", "init", "duplicate",
        ],
        "add" => &[
            "create", "insert", "append", "put", "post", "write", "update", "edit", "patch", "set", "attach", "assign",
            "modify", "upload", "push", "change", "invite", "link", "enable", "register", "book", "replace",
        ],
        "insert" => &["add", "create", "append", "write", "put", "update", "edit", "patch", "replace"],
        "update" => &[
            "edit", "patch", "set", "put", "write", "modify", "change", "replace", "save", "upsert", "append", "rename",
            "move", "reschedule", "upgrade", "configure", "apply", "assign", "mark", "adjust", "transition",
        ],
        "edit" => &["update", "patch", "set", "write", "modify", "change", "replace"],
        "patch" => &["update", "edit", "modify", "replace"],
        "set" => &[
            "update", "put", "write", "edit", "patch", "change", "modify", "configure", "assign", "create", "add",
            "schedule", "enable", "disable", "mark",
        ],
        "put" => &["set", "update", "write", "add", "insert", "upload", "move", "place", "create", "save"],
        "write" => &["create", "put", "save", "edit", "update", "append", "add", "insert", "generate", "replace"],
        "delete" => &["remove", "destroy", "drop", "clear", "purge", "erase", "trash", "rm", "unlink"],
        "remove" => &[
            "delete", "destroy", "drop", "clear", "purge", "erase", "trash", "rm", "update", "edit", "patch", "set",
            "modify", "change", "replace", "unassign", "detach", "uninstall", "unlink", "disable", "kick",
        ],
        "destroy" => &["delete", "remove", "drop", "purge", "erase", "terminate"],
        "drop" => &["delete", "remove", "destroy"],
        "send" => &[
            "post", "publish", "notify", "forward", "reply", "share", "submit", "email", "message", "transfer", "deliver",
            "invite", "dispatch", "text",
        ],
        "post" => &["send", "publish", "create", "add", "write", "submit", "share", "tweet", "reply", "comment"],
        "publish" => &["post", "release", "deploy", "push"],
        "upload" => &["put", "push", "import", "add", "write", "save", "store", "attach", "copy"],
        "merge" => &["combine", "squash", "join"],
        "close" => &["resolve", "complete", "finish", "dismiss"],
        "cancel" => &["void", "abort", "terminate", "stop", "delete", "remove", "unsubscribe", "decline"],
        "approve" => &["accept", "confirm", "authorize", "grant"],
        "revoke" => &["delete", "remove", "disable", "invalidate", "expire"],
        _ => &[],
    }
}

/// Words in a tool's name that run whatever they are given.
pub(crate) const EXECUTING: [&str; 11] = [
    "exec", "execute", "shell", "bash", "terminal", "command", "script", "python", "process",
    "code", "sql",
];

/// Short forms and variants that are the same thing.
const SAME: [(&str, &str); 16] = [
    ("repo", "repository"),
    ("doc", "document"),
    ("config", "configuration"),
    ("msg", "message"),
    ("dir", "directory"),
    ("folder", "directory"),
    ("mail", "email"),
    ("e-mail", "email"),
    ("baggage", "bag"),
    ("luggage", "bag"),
    ("db", "database"),
    ("info", "information"),
    ("img", "image"),
    ("photo", "image"),
    ("org", "organization"),
    ("people", "person"),
];

/// One spelling for all forms of a word: verbs of the list to their base, plurals to the singular,
/// common endings cut. What comes out is for comparing only.
pub(crate) fn fold(word: &str) -> String {
    let lower = word.to_lowercase();
    if let Some((lemma, _)) = verb_of(&lower) {
        return lemma.to_owned();
    }
    let single = singular(&lower);
    let single = SAME
        .iter()
        .find(|(short, _)| *short == single)
        .map_or(single, |(_, full)| (*full).to_owned());
    if let Some((lemma, _)) = verb_of(&single) {
        return lemma.to_owned();
    }
    cut_ending(&single)
}

fn singular(word: &str) -> String {
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
        for word in ["creation", "sender", "settle", "posture", "closet", "", "é"] {
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
        assert!(!related("create").contains(&"update"));
        assert!(!related("update").contains(&"create"));
        assert!(!related("delete").contains(&"update"));
        assert!(!related("delete").contains(&"cancel"));
    }
}
