//! The action that a claim is about, where its noun names it.

use super::{Found, How};
use crate::verbs::{CHANGE, ENDING, MAKING, OPEN, SENDING, Use, nominal_of, singular, verb};
use crate::words::{DISCOURSE, TEXTS};

/// The claim with the action that it is about: the noun's where the verb says only that something
/// was done. `None` if a verb of that kind has no such noun, or if it is news in this form.
pub(super) fn named_action(mut found: Found, listed: bool, checked: bool) -> Option<Found> {
    let claim = &mut found.claim;
    let known = verb(claim.verb)?;
    let named = claim
        .nouns
        .iter()
        .enumerate()
        .rev()
        .find_map(|(place, noun)| Some((place, nominal_of(noun)?)));
    // "I broadened the search"
    let is_talk = |noun: &String| {
        let noun = singular(noun);
        DISCOURSE.contains(&noun.as_str()) || TEXTS.contains(&noun.as_str())
    };
    if known.lemma == OPEN && claim.nouns.last().is_some_and(is_talk) {
        claim.talk = true;
    }
    match (known.usage, named) {
        (Use::Light, _)
            if claim.verb == "place"
                && (!matches!(claim.how, How::Passive | How::State) || claim.own_thing)
                && claim
                    .nouns
                    .last()
                    .is_some_and(|noun| singular(noun) == "order") =>
        {
            claim.verb = "order";
        }
        // "A table is confirmed": a claim only where nothing is known of a table.
        (Use::Light, None)
            if matches!(claim.how, How::State | How::Passive)
                && matches!(claim.verb, "confirm" | "arrange" | "secure") =>
        {
            claim.open = Some((
                format!("{}ed", claim.verb.trim_end_matches('e')),
                claim.verb.to_owned(),
            ));
            claim.verb = OPEN;
            claim.weak = true;
        }
        // "Customs clearance has been completed": a claim only where nothing is known of it.
        (Use::Light, None)
            if claim.how == How::Passive
                && !claim.past
                && claim.nouns.len() > 1
                && matches!(claim.verb, "complete" | "finish" | "finalize" | "finalise") =>
        {
            claim.open = Some(("completed".to_owned(), claim.verb.to_owned()));
            claim.verb = OPEN;
            claim.weak = true;
        }
        (Use::Light, None) => return None,
        (Use::Light, Some((place, lemma))) => {
            claim.verb = lemma;
            claim.nouns.remove(place);
            claim
                .nouns
                .retain(|noun| !matches!(noun.as_str(), "request" | "requests" | "process"));
        }
        (Use::Telling, _)
            if !(matches!(claim.how, How::Active | How::Passive) || listed && checked) =>
        {
            return None;
        }
        // "I've removed it from the list", "I've updated your choice": the talk itself.
        _ if (known.is & (CHANGE | ENDING) != 0 || matches!(known.lemma, "add" | "put"))
            && known.is & SENDING == 0
            && !(claim.how == How::Passive && claim.own_thing)
            && !claim.nouns.is_empty()
            && !claim.others
            && claim
                .nouns
                .iter()
                .all(|noun| DISCOURSE.contains(&singular(noun).as_str())) =>
        {
            claim.talk = true;
        }
        // "I fixed this by updating the file": the other verb is the action.
        _ if claim.nouns.is_empty() && matches!(claim.verb, "fix" | "correct") => return None,
        (Use::Own, _) if !listed && !matches!(claim.how, How::Active | How::Elided) => {
            claim.weak = !(claim.fresh || claim.own_thing || claim.past);
            claim.news = true;
        }
        // "The concert has been postponed" can be news.
        (Use::Own, named) if claim.how == How::Passive => {
            claim.news = true;
            claim.alternative = named.map(|(_, lemma)| lemma);
        }
        (_, Some((_, lemma)))
            if lemma != "back"
                && known.lemma != OPEN
                && known.accepts & (MAKING | SENDING) != 0 =>
        {
            claim.alternative = Some(lemma);
        }
        _ => {}
    }
    Some(found)
}
