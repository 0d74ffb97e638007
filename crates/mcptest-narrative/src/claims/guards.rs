//! The reasons why a verb is not a claim: its tense, its clause, and the words after it.

use super::{Claim, Reader};
use crate::tokens::{Kind, Token};
use crate::words::{
    BE, CODE, CONDITIONALS, HAVE, HEDGES, MODALS, NEGATIONS, REPORTING, SPOKEN, SUBORDINATORS,
    TEXTS, is_adverb, is_article, is_auxiliary, is_conjunction, is_determiner, is_first_person,
    is_noun, is_pastlike, is_preposition, month,
};

/// The words right before a verb that make up its tense.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The position where it starts; the verb itself if there is none.
    pub(super) start: usize,
    pub(super) have: bool,
    pub(super) having: bool,
    pub(super) been: bool,
    /// "was", "were", "got".
    pub(super) was: bool,
    /// "is", "are".
    pub(super) is: bool,
    /// "be", "being".
    pub(super) unfinished: bool,
    /// A modal, an infinitive or a negation.
    pub(super) unreal: bool,
    pub(super) already: bool,
    pub(super) now: bool,
}

impl Group {
    pub(super) fn passive(&self) -> bool {
        self.been || self.was || self.is || self.unfinished
    }
}

impl Reader<'_> {
    pub(super) fn group(&self, verb: usize) -> Group {
        let mut group = Group {
            start: verb,
            ..Group::default()
        };
        while let Some(token) = self.before(group.start) {
            let is_s = token.is("'s")
                && (group.been
                    || self.before(group.start - 1).is_some_and(|before| {
                        before.is_any(&["it", "that", "this", "everything", "there", "he", "she"])
                    }));
            if is_adverb(token) && !token.is_any(&["next", "last"]) {
                group.already |= token.is_any(&[
                    "already",
                    "still",
                    "previously",
                    "originally",
                    "initially",
                    "recently",
                ]);
                group.now |= token.is_any(&["now", "successfully"]);
                group.unreal |=
                    token.is_any(&["nearly", "hardly", "barely", "supposedly", "allegedly"]);
            } else if token.is_any(HAVE) {
                group.have = true;
            } else if token.is("having") {
                group.have = true;
                group.having = true;
            } else if token.is("been") || token.is("gotten") {
                group.been = true;
            } else if token.is_any(&["was", "were", "got"]) {
                group.was = true;
            } else if token.is_any(&["is", "are", "am"]) || is_s {
                if group.been {
                    group.have = true;
                } else {
                    group.is = true;
                }
            } else if token.is_any(BE) {
                group.unfinished = true;
            } else if self.is_month(group.start - 1) {
                // "on 20 May was cancelled"
                break;
            } else if token.is("to") && (group.was || group.is || group.have) {
                break;
            } else if token.is_any(MODALS) || token.is_any(&["not", "never", "to", "almost"]) {
                group.unreal = true;
            } else if token.is_any(&["did", "do", "does"]) && !(group.was || group.is) {
                // "did not"; "did create" is checked elsewhere.
            } else {
                break;
            }
            group.start -= 1;
        }
        group
    }

    /// Returns true if a word is a month: "May" beside a number.
    pub(super) fn is_month(&self, place: usize) -> bool {
        let number = |token: Option<&Token>| token.is_some_and(|token| token.kind == Kind::Number);
        self.get(place).is_some_and(|token| {
            token.is_capitalized() && month(&token.low).is_some() && !token.is("march")
                || token.text == "March"
        }) && (number(self.get(place + 1)) || number(self.before(place)))
    }

    /// A request or a wish for the reader: "Please confirm that …", "Let me know …"; but not
    /// "Please note that …".
    pub(super) fn asks(&self) -> bool {
        let mut words = self.tokens.iter().filter(|token| {
            !token.is_mark() && !is_adverb(token) && !token.is_any(&["me", "us", "you"])
        });
        let (Some(first), second) = (words.next(), words.next()) else {
            return false;
        };
        if first.is_any(&["please", "let"]) {
            let informs = second.is_some_and(|token| {
                token.is_any(&["note", "be", "confirm", "summarize", "recap"])
            });
            return !informs
                || first.is("please") && second.is_some_and(|token| token.is("confirm"));
        }
        first.is_any(&[
            "would", "could", "should", "imagine", "suppose", "make", "ensure", "verify", "check",
            "tell", "remember", "confirm", "wait",
        ])
    }

    /// "I've written the summary below:" is true because the message itself is the summary.
    pub(super) fn is_spoken(&self, verb: &str, claim: &Claim) -> bool {
        let made_by_saying = !matches!(verb, "add" | "put" | "set" | "update")
            && !self.tokens.iter().any(|token| token.kind == Kind::Path)
            && claim
                .nouns
                .iter()
                .all(|noun| TEXTS.contains(&noun.as_str()));
        let spoken = |noun: &String| {
            SPOKEN.contains(&noun.as_str()) || self.has_code && CODE.contains(&noun.as_str())
        };
        [
            "create",
            "write",
            "add",
            "put",
            "set",
            "update",
            "generate",
            "draft",
            "compose",
            "build",
            "produce",
            "design",
            "make",
            "implement",
            "develop",
            "attach",
        ]
        .contains(&verb)
            && claim.nouns.iter().any(spoken)
            && (made_by_saying
                || self.sentence.label
                || self.has_code
                || self
                    .tokens
                    .iter()
                    .any(|token| token.is_any(&["below", "above", "here", "following"])))
    }

    /// Returns true if a clause without a subject can start here: after a colon, a dash, a bracket,
    /// or "Done," and the like.
    pub(super) fn opens(&self, at: usize) -> bool {
        let Some(before) = self.before(at) else {
            return true;
        };
        if before.is_mark() && before.is_any(&[":", "—", "–", "-", "(", ">", "|", "="]) {
            return true;
        }
        before.is(",")
            && self.tokens[..at - 1].iter().all(|token| {
                is_adverb(token)
                    || token.is_mark()
                    || token.is_any(&[
                        "done", "yes", "ok", "okay", "sure", "great", "perfect", "good", "news",
                        "set",
                    ])
            })
    }

    /// Returns true if "by …" after the verb names someone else.
    pub(super) fn by_another(&self, at: usize) -> bool {
        let near = at + 1..self.tokens.len().min(at + 14);
        let Some(by) = near.into_iter().find(|place| self.tokens[*place].is("by")) else {
            return false;
        };
        // "cancelled for reasons covered by your insurance"
        if (at + 1..by).any(|place| {
            let described = self.before(place).is_some_and(|before| before.is("as"));
            self.tokens[place].is_mark() || is_pastlike(&self.tokens[place]) && !described
        }) {
            return false;
        }
        // "by letter" is a means.
        self.get(by + 1).is_some_and(|agent| {
            let means =
                agent.is_any(MEANS) || agent.low.ends_with("ing") || month(&agent.low).is_some();
            let someone = is_determiner(agent)
                || agent.is_word()
                || matches!(agent.kind, Kind::Email | Kind::Identifier);
            !means && someone
        })
    }

    /// Returns true if what follows dates the action: then it is history, not the work of this run.
    pub(super) fn is_history(&self, at: usize) -> bool {
        let rest = &self.tokens[at + 1..self.tokens.len().min(at + 14)];
        rest.iter().enumerate().any(|(place, token)| {
            let next = rest.get(place + 1);
            let numbered = rest
                .get(place + 2)
                .is_some_and(|after| after.kind == Kind::Number);
            let year = token.kind == Kind::Number && is_dateish(token);
            let titled = place
                .checked_sub(1)
                .is_some_and(|before| rest[before].is_word() && rest[before].is_capitalized());
            year && titled
                || token.is("ago") && !is_recent(&rest[..place])
                || token.is_any(&[
                    "yesterday",
                    "originally",
                    "previously",
                    "earlier",
                    "times",
                ])
                || token.is_any(&["in", "over"])
                    && next.is_some_and(|next| next.is_any(&["recent", "past"]))
                || token.is("compared")
                // "were uploaded before the return was filed"
                || token.is("before")
                    && rest[place..].iter().any(|later| later.is_any(&["was", "were", "had"]))
                || token.is("over")
                    && next.is_some_and(|next| next.is_any(&["time", "the", "years"]))
                || token.is("when") && next.is_some_and(|next| next.is("you"))
                || token.is("last")
                    && next.is_some_and(|next| {
                        next.is_any(&["week", "month", "year", "night", "time", "quarter"])
                    })
                || token.is_any(&["on", "since"]) && place <= 1 && next.is_some_and(is_dateish)
                || token.is("in")
                    && next.is_some_and(|next| {
                        is_dateish(next)
                            || next.kind == Kind::Identifier
                            || next.is_any(&["commit", "release"])
                            || next.is_word() && next.is_capitalized() && numbered
                    })
        }) || (1..at).any(|place| {
            self.tokens[place - 1].is("in")
                && is_dateish(&self.tokens[place])
                && month(&self.tokens[place].low).is_none()
        })
    }

    /// Returns true if it describes a state of the world: closed since Monday, published in a
    /// journal.
    pub(super) fn is_standing(&self, at: usize, verb: &str) -> bool {
        let next = self.get(at + 1);
        let place = |words: &[&str]| next.is_some_and(|token| token.is_any(words));
        // A cause that is not the agent: "cancelled due to weather".
        let caused = (at + 1..self.tokens.len().min(at + 6)).any(|place| {
            let token = &self.tokens[place];
            token.is_any(&["because", "amid", "since"])
                || token.is("due") && self.get(place + 1).is_some_and(|next| next.is("to"))
        });
        caused
            || place(&["since"])
            || verb == "close" && place(&["for", "to", "until", "on", "at"])
            || (verb == "publish" || verb == "write")
                && next.is_some_and(|token| token.is("in"))
                && self.get(at + 2).is_some_and(Token::is_capitalized)
    }

    pub(super) fn is_conditional(&self, subject: usize) -> bool {
        let from = (0..subject)
            .rev()
            .find(|place| self.tokens[*place].is_any(&[",", ":", "but", "so"]))
            .map_or(0, |place| place + 1);
        let clause = &self.tokens[from..subject];
        // "once I've updated it, you will …"
        let later = clause
            .last()
            .is_some_and(|token| token.is_any(&["once", "after", "when"]))
            && self.tokens.iter().any(|token| token.is_any(MODALS));
        // "it looks like I made a payment", "since we split it"
        let seems = clause
            .iter()
            .any(|token| token.is_any(&["seems", "appears", "looks"]))
            || self.get(subject).is_some_and(|token| token.is("we"))
                && clause.last().is_some_and(|token| token.is("since"));
        later || seems || clause.iter().any(|token| token.is_any(CONDITIONALS))
    }

    /// Returns true if an auxiliary follows before the clause ends.
    pub(super) fn is_finite_until_break(&self, from: usize) -> bool {
        (from..self.tokens.len())
            .take_while(|place| {
                let token = &self.tokens[*place];
                !token.is_mark()
                    && !token.is_any(&[
                        "and", "but", "so", "which", "that", "because", "since", "if", "when",
                        "where",
                    ])
                    && !is_first_person(token)
            })
            .any(|place| {
                // "at 7 am"
                let hour = self.tokens[place].is("am")
                    && self
                        .before(place)
                        .is_some_and(|before| before.kind == Kind::Number);
                is_auxiliary(&self.tokens[place]) && !hour
            })
    }

    /// Returns true if the clause of a passive reports, supposes, regrets or conditions its
    /// content, or denies it from without.
    pub(super) fn is_hearsay(&self, start: usize, end: usize) -> bool {
        let reports = |place: usize| {
            let named = self.before(place).is_some_and(|before| {
                is_determiner(before) && !before.is_any(&["this", "that", "all"])
                    || before.kind == Kind::Number
            }) || self.tokens[place].low.ends_with('s')
                // "The reports were converted"
                && self
                    .get(place + 1)
                    .is_some_and(|next| next.is_any(&["were", "have", "are"]));
            // "as you can see"
            let shown = self.tokens[place].is("see")
                && self.before(place).is_some_and(|before| before.is("can"));
            self.tokens[place].is_any(REPORTING) && !named && !shown
        };
        let hedges = |place: usize| self.tokens[place].is_any(HEDGES);
        // "the date the account was created"
        let relative = (start + 1..end).any(|place| {
            let noun = &self.tokens[place - 1];
            is_article(&self.tokens[place])
                && is_noun(noun)
                && !is_preposition(noun)
                && !is_conjunction(noun)
        });
        let opener = self.before(start);
        // "no sign that the file was deleted"
        let denied = opener.is_some_and(|token| token.is("that"))
            && self.tokens[..start]
                .iter()
                .any(|token| token.is_any(NEGATIONS));
        let conditional = opener.is_some_and(|token| token.is_any(SUBORDINATORS))
            || self.tokens[start..end]
                .iter()
                .any(|token| token.is_any(SUBORDINATORS));
        // "…, it seems"
        let doubted = (end..self.tokens.len().saturating_sub(1)).any(|place| {
            self.tokens[place].is(",")
                && (self.tokens[place + 1..].iter().take(3).any(|token| {
                    token.is_any(HEDGES) || token.is_any(&["seems", "appears", "think"])
                })
                    // "…, says the changelog", "…, according to the log"
                    || self.tokens[place + 1].is_any(&["says", "said", "according", "reports"]))
        });
        relative
            || doubted
            || denied
            || conditional
            || self.in_scope(end, reports)
            || self.in_scope(end, hedges)
    }

    /// Returns true if a word qualifies the clause up to `end`: in the clause itself, or in an
    /// opening such as "Apparently,". Words before a "but" do not qualify what follows it.
    fn in_scope(&self, end: usize, is_there: impl Fn(usize) -> bool) -> bool {
        let turn =
            |place: &usize| self.tokens[*place].is_any(&["but", "so", "however", ":", "—", "–"]);
        let from = (0..end).rev().find(turn).map_or(0, |place| place + 1);
        let comma = |place: &usize| self.tokens[*place].is(",");
        let opening = (from..end).find(comma).unwrap_or(end);
        let clause = (from..end).rev().find(comma).unwrap_or(from);
        (from..opening).chain(clause..end).any(is_there)
    }
}

/// Words after "by" that are not someone.
#[rustfmt::skip]
const MEANS: &[&str] = &[
    "me", "us", "myself", "default", "email", "e-mail", "mail", "phone", "one", "two", "an", "hand", "way", "means", "mistake", "message",
    "text", "sms", "slack", "direct", "letter", "number", "order", "paper", "post", "fax", "courier", "wire", "transfer", "card", "bank",
    "cheque", "check", "rail", "air", "sea", "name", "date", "size", "priority", "then", "now", "today", "tomorrow", "tonight", "noon",
    "accident", "half", "request", "chat", "voice", "video", "credit", "debit",
];

/// Returns true if what comes before "ago" is a short while.
fn is_recent(before: &[Token]) -> bool {
    before.last().is_some_and(|unit| {
        unit.is_any(&[
            "minute", "minutes", "moment", "moments", "second", "seconds",
        ])
    })
}

/// A word for a time to come.
pub(super) fn is_time(token: &Token) -> bool {
    token.kind == Kind::Number
        || token.is_any(&["today", "tomorrow", "tonight", "noon", "midnight", "next"])
        || token.low.ends_with("day")
        || is_dateish(token)
}

/// A year, a date, a month, or a version of something.
pub(super) fn is_dateish(token: &Token) -> bool {
    let year = token.kind == Kind::Number
        && token.text.len() == 4
        && token.text.starts_with(['1', '2'])
        && token.text.chars().all(|c| c.is_ascii_digit());
    let date = token.kind == Kind::Identifier
        && token.text.matches(['-', '/']).count() == 2
        && token.text.starts_with(|c: char| c.is_ascii_digit());
    let version = token.is("version")
        || token.kind == Kind::Identifier
            && token.low.starts_with('v')
            && token.low[1..].starts_with(|c: char| c.is_ascii_digit());
    year || date || version || token.is_word() && month(&token.low).is_some()
}
