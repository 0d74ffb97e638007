//! The fixed list of mutating verbs, their inflections, and how words fold so that they can be compared.

/// The forms of a verb that are told apart.
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

/// One verb with its forms.
struct Verb {
    lemma: &'static str,
    forms: &'static [(&'static str, Form)],
}

/// The mutating verbs. Nothing else in a text is ever taken for a claimed action.
const VERBS: [Verb; 22] = [
    regular(
        "create",
        &[
            ("creates", Form::Base),
            ("creating", Form::Gerund),
            ("created", Form::Past),
        ],
    ),
    regular(
        "update",
        &[
            ("updates", Form::Base),
            ("updating", Form::Gerund),
            ("updated", Form::Past),
        ],
    ),
    regular(
        "delete",
        &[
            ("deletes", Form::Base),
            ("deleting", Form::Gerund),
            ("deleted", Form::Past),
        ],
    ),
    regular(
        "remove",
        &[
            ("removes", Form::Base),
            ("removing", Form::Gerund),
            ("removed", Form::Past),
        ],
    ),
    regular(
        "send",
        &[("sends", Form::Base), ("sending", Form::Gerund), ("sent", Form::Past)],
    ),
    regular(
        "write",
        &[
            ("writes", Form::Base),
            ("writing", Form::Gerund),
            ("wrote", Form::PastOnly),
            ("written", Form::Participle),
        ],
    ),
    regular(
        "post",
        &[("posts", Form::Base), ("posting", Form::Gerund), ("posted", Form::Past)],
    ),
    regular(
        "insert",
        &[
            ("inserts", Form::Base),
            ("inserting", Form::Gerund),
            ("inserted", Form::Past),
        ],
    ),
    Verb {
        lemma: "set",
        forms: &[("set", Form::Any), ("sets", Form::Base), ("setting", Form::Gerund)],
    },
    Verb {
        lemma: "put",
        forms: &[("put", Form::Any), ("puts", Form::Base), ("putting", Form::Gerund)],
    },
    regular(
        "patch",
        &[
            ("patches", Form::Base),
            ("patching", Form::Gerund),
            ("patched", Form::Past),
        ],
    ),
    regular(
        "publish",
        &[
            ("publishes", Form::Base),
            ("publishing", Form::Gerund),
            ("published", Form::Past),
        ],
    ),
    regular(
        "destroy",
        &[
            ("destroys", Form::Base),
            ("destroying", Form::Gerund),
            ("destroyed", Form::Past),
        ],
    ),
    regular(
        "drop",
        &[
            ("drops", Form::Base),
            ("dropping", Form::Gerund),
            ("dropped", Form::Past),
        ],
    ),
    regular(
        "add",
        &[("adds", Form::Base), ("adding", Form::Gerund), ("added", Form::Past)],
    ),
    regular(
        "edit",
        &[("edits", Form::Base), ("editing", Form::Gerund), ("edited", Form::Past)],
    ),
    regular(
        "upload",
        &[
            ("uploads", Form::Base),
            ("uploading", Form::Gerund),
            ("uploaded", Form::Past),
        ],
    ),
    regular(
        "merge",
        &[
            ("merges", Form::Base),
            ("merging", Form::Gerund),
            ("merged", Form::Past),
        ],
    ),
    regular(
        "close",
        &[
            ("closes", Form::Base),
            ("closing", Form::Gerund),
            ("closed", Form::Past),
        ],
    ),
    regular(
        "cancel",
        &[
            ("cancels", Form::Base),
            ("canceling", Form::Gerund),
            ("cancelling", Form::Gerund),
            ("canceled", Form::Past),
            ("cancelled", Form::Past),
        ],
    ),
    regular(
        "approve",
        &[
            ("approves", Form::Base),
            ("approving", Form::Gerund),
            ("approved", Form::Past),
        ],
    ),
    regular(
        "revoke",
        &[
            ("revokes", Form::Base),
            ("revoking", Form::Gerund),
            ("revoked", Form::Past),
        ],
    ),
];

const fn regular(lemma: &'static str, forms: &'static [(&'static str, Form)]) -> Verb {
    Verb { lemma, forms }
}

/// The mutating verb that a lower-case word is a form of.
pub(crate) fn verb_of(word: &str) -> Option<(&'static str, Form)> {
    VERBS.iter().find_map(|verb| {
        verb.forms
            .iter()
            .find(|(form, _)| *form == word)
            .map(|(_, form)| (verb.lemma, *form))
            .or_else(|| (verb.lemma == word).then_some((verb.lemma, Form::Base)))
    })
}

/// Other words in a tool's name that can do what the verb says. They are wide enough that a truthful agent is not called a liar for
/// saying "removed" after `delete_file`, and narrow enough that "created" after `update_issue`, or "updated" after `create_issue`, is.
pub(crate) fn related(lemma: &str) -> &'static [&'static str] {
    match lemma {
        "create" => &[
            "add", "insert", "write", "post", "put", "make", "new", "generate", "save", "open",
        ],
        "add" => &[
            "create", "insert", "append", "put", "post", "write", "update", "edit", "patch", "set", "attach", "assign",
            "modify", "upload", "push", "change",
        ],
        "insert" => &["add", "create", "append", "write", "put", "update", "edit", "patch"],
        "update" => &[
            "edit", "patch", "set", "put", "write", "modify", "change", "replace", "save", "upsert",
        ],
        "edit" => &["update", "patch", "set", "write", "modify", "change", "replace"],
        "patch" => &["update", "edit", "modify"],
        "set" => &[
            "update",
            "put",
            "write",
            "edit",
            "patch",
            "change",
            "modify",
            "configure",
            "assign",
            "create",
            "add",
            "schedule",
        ],
        "put" => &[
            "set", "update", "write", "add", "insert", "upload", "move", "place", "create", "save",
        ],
        "write" => &["create", "put", "save", "edit", "update", "append", "add", "insert"],
        "delete" => &["remove", "destroy", "drop", "clear", "purge", "erase", "trash"],
        "remove" => &[
            "delete",
            "destroy",
            "drop",
            "clear",
            "purge",
            "erase",
            "trash",
            "update",
            "edit",
            "patch",
            "set",
            "modify",
            "unassign",
            "detach",
            "uninstall",
        ],
        "destroy" => &["delete", "remove", "drop", "purge", "erase", "terminate"],
        "drop" => &["delete", "remove", "destroy"],
        "send" => &[
            "post", "publish", "notify", "forward", "reply", "share", "submit", "email", "message",
        ],
        "post" => &[
            "send", "publish", "create", "add", "write", "submit", "share", "tweet", "reply",
        ],
        "publish" => &["post", "release", "deploy", "push"],
        "upload" => &[
            "put", "push", "import", "add", "write", "save", "store", "attach", "copy",
        ],
        "merge" => &["combine", "squash", "join"],
        "close" => &["resolve", "complete", "finish"],
        "cancel" => &["void", "abort", "terminate", "stop", "delete", "remove"],
        "approve" => &["accept", "confirm", "authorize", "grant"],
        "revoke" => &["delete", "remove", "disable", "invalidate", "expire"],
        _ => &[],
    }
}

/// Words in a tool's name that change a thing in any way: such a call can close, approve or cancel, if its arguments say so.
pub(crate) const CHANGING: [&str; 12] = [
    "update",
    "edit",
    "patch",
    "set",
    "put",
    "modify",
    "change",
    "transition",
    "submit",
    "write",
    "create",
    "add",
];

/// Words in a tool's name that run whatever they are given.
pub(crate) const EXECUTING: [&str; 11] = [
    "exec", "execute", "shell", "bash", "terminal", "command", "script", "python", "process", "code", "sql",
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

/// One spelling for all forms of a word: verbs of the list to their base, plurals to the singular, common endings cut. What
/// comes out is for comparing only.
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
    let keep = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
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
        if let Some(start) = word.strip_suffix(ending) {
            if start.chars().count() >= 3 && start.chars().any(|c| "aeiouy".contains(c)) {
                let mut letters = start.chars().rev();
                if let (Some(last), Some(before)) = (letters.next(), letters.next()) {
                    if last == before && !"lsz".contains(last) {
                        return start[..start.len() - last.len_utf8()].to_owned();
                    }
                }
                return start.strip_suffix('e').unwrap_or(start).to_owned();
            }
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
