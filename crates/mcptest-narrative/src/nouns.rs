//! Nouns that name the same kind of thing.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::verbs::fold;

/// Nouns that people exchange for one another when they speak of what a tool works on.
#[rustfmt::skip]
const SAME_THINGS: &[&[&str]] = &[
    &["event", "meeting", "appointment", "session"],
    &["event", "reminder", "task", "todo"],
    &["appointment", "visit", "slot"],
    &["issue", "ticket", "bug", "task", "todo", "case", "story", "incident"],
    &["message", "email", "dm", "notification", "reply", "response", "announcement", "note", "text", "sms"],
    &["comment", "note", "remark", "reply"],
    &["file", "document", "report", "page", "spreadsheet", "presentation", "content"],
    &["order", "purchase"],
    &["reservation", "booking", "flight", "trip", "seat", "ticket"],
    &["reservation", "booking", "train", "bus", "ferry", "trip", "seat", "ticket"],
    &["reservation", "booking", "hotel", "room", "stay"],
    &["reservation", "booking", "table"],
    &["track", "song", "title"],
    &["standing", "scheduled", "recurring"],
    &["website", "webpage", "site", "page"],
    &["bag", "baggage", "luggage", "suitcase"],
    &["payment", "transfer", "transaction", "money", "fund", "bill", "rent", "invoice", "amount"],
    &["account", "profile", "user", "information", "detail"],
    &["record", "entry", "item", "row", "data"],
    &["repository", "project"],
    &["member", "user", "person", "participant", "guest", "attendee", "contact"],
    &["change", "commit"],
    &["branch", "request"],
    &["playlist", "list"],
    &["permission", "access", "right", "role", "policy"],
    &["range", "column", "cell"],
    &["range", "row", "cell"],
    &["temperature", "thermostat", "heating", "heat"],
    &["light", "lamp"],
    &["shipment", "parcel", "package", "delivery"],
    &["product", "item", "article"],
    &["image", "picture", "photo", "drawing"],
    &["paragraph", "block", "text", "section", "content"],
];

static GROUPS: LazyLock<FxHashMap<String, u64>> = LazyLock::new(|| {
    let mut groups: FxHashMap<String, u64> = FxHashMap::default();
    for (index, nouns) in SAME_THINGS.iter().enumerate() {
        for noun in *nouns {
            *groups.entry(fold(noun)).or_default() |= 1 << index;
        }
    }
    groups
});

/// Returns true if two folded nouns can name the same thing.
pub(crate) fn is_same_thing(left: &str, right: &str) -> bool {
    let group = |noun: &str| GROUPS.get(noun).copied().unwrap_or_default();
    group(left) & group(right) != 0
}
