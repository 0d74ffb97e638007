//! The `SEC` rules: poisoned texts in catalogs.
//!
//! A rule reads one string at a time: a name, title, description, an argument's name or
//! description, a value of a schema, instructions of a server, prompts and resources. Each is
//! brought into one normal form first, and read sentence by sentence. Two rules also compare all
//! catalogs with each other.

pub(crate) mod invisible;
mod names;
pub(crate) mod normal;
pub(crate) mod scripts;
mod texts;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

pub(crate) use normal::Sentence;
pub(crate) use texts::{Role, Text};

use super::{Check, Entry, Finding, Hit, RULES, Rule, Severity, find, label};

/// Everything that one server lists.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listing<'a> {
    /// The server, where there are several.
    pub server: Option<&'a str>,
    /// The tools.
    pub tools: &'a [Value],
    /// The instructions of the server.
    pub instructions: Option<&'a Value>,
    /// The prompts.
    pub prompts: &'a [Value],
    /// The resources and the templates of resources.
    pub resources: &'a [Value],
}

impl<'a> Listing<'a> {
    /// Every entry, with its kind and its position among its kind.
    pub fn entries(&self) -> impl Iterator<Item = (Entry, usize, &'a Value)> + use<'a> {
        let tools = self.tools.iter().enumerate();
        let prompts = self.prompts.iter().enumerate();
        let resources = self.resources.iter().enumerate();
        tools
            .map(|(index, entry)| (Entry::Tool, index, entry))
            .chain(
                self.instructions
                    .filter(|entry| !entry.is_null())
                    .map(|entry| (Entry::Instructions, 0, entry)),
            )
            .chain(prompts.map(|(index, entry)| (Entry::Prompt, index, entry)))
            .chain(resources.map(|(index, entry)| (Entry::Resource, index, entry)))
    }
}

/// The names and values of the server itself.
#[derive(Debug, Default)]
pub(crate) struct Context<'a> {
    /// Names of tools, prompts and titles, letters and digits only.
    names: Vec<String>,
    /// First words of names of tools, and how many tools have them.
    families: BTreeMap<String, usize>,
    /// Names of arguments, and values of schemas.
    words: BTreeSet<String>,
    /// The current entry.
    entry: Option<&'a Value>,
    /// All tools.
    tools: &'a [Value],
}

/// First words of names that tools of any server have.
const VERBS: [&str; 34] = [
    "get", "list", "create", "update", "delete", "send", "read", "write", "search", "fetch", "set",
    "add", "remove", "run", "execute", "find", "query", "call", "check", "open", "close", "start",
    "stop", "make", "show", "upload", "download", "post", "put", "edit", "move", "copy", "browser",
    "git",
];

/// The shortest part of an own name that counts as a mention of it.
const MIN_PART: usize = 5;

impl<'a> Context<'a> {
    fn new(listing: &Listing<'a>, texts: &[(Entry, usize, &Value, Vec<Text<'_>>)]) -> Self {
        let mut context = Self {
            tools: listing.tools,
            ..Self::default()
        };
        for entry in listing.tools.iter().chain(listing.prompts) {
            for pointer in ["/name", "/title", "/annotations/title"] {
                let name = entry.pointer(pointer).and_then(Value::as_str);
                context
                    .names
                    .extend(name.map(letters).filter(|name| !name.is_empty()));
            }
        }
        for tool in listing.tools {
            let name = tool.get("name").and_then(Value::as_str);
            if let Some((family, _)) = name.and_then(|name| name.split_once('_')) {
                *context.families.entry(letters(family)).or_default() += 1;
            }
        }
        for text in texts.iter().flat_map(|(.., texts)| texts) {
            let is_word = text.role == Role::Property
                || (text.role == Role::Value && text.raw.len() <= 64 && !text.raw.contains(' '));
            if is_word {
                context.words.insert(letters(text.raw));
            }
        }
        context
    }

    /// Returns true for names of this server's tools, arguments and values, and parts of them.
    pub(crate) fn owns(&self, name: &str) -> bool {
        let name = letters(name);
        self.words.contains(&name)
            || self.names.iter().any(|own| {
                *own == name
                    || (name.len() >= MIN_PART && own.contains(&name))
                    || (own.len() >= MIN_PART && name.contains(own.as_str()))
            })
    }

    /// Returns true for a name that begins as two tools of this server do: `ha_get_guide` beside
    /// `ha_get_state` and `ha_call_service`.
    pub(crate) fn has_family(&self, name: &str) -> bool {
        let Some((family, _)) = name.split_once('_') else {
            return false;
        };
        let family = letters(family);
        if VERBS.contains(&family.as_str()) {
            return false;
        }
        self.families.get(&family).is_some_and(|count| *count >= 2)
    }

    /// Returns true if the name of any tool contains a string, which is lowercase.
    pub(crate) fn is_named(&self, word: &str) -> bool {
        self.tools.iter().any(|tool| {
            let name = tool.get("name").and_then(Value::as_str);
            name.is_some_and(|name| name.to_lowercase().contains(word))
        })
    }

    /// Returns true if the name or description of any tool contains a string, which is lowercase.
    pub(crate) fn is_about(&self, word: &str) -> bool {
        self.tools.iter().any(|tool| {
            ["name", "title", "description"].into_iter().any(|key| {
                let text = tool.get(key).and_then(Value::as_str);
                text.is_some_and(|text| text.to_lowercase().contains(word))
            })
        })
    }

    /// Returns true if the name, title or description of the entry has a word.
    pub(crate) fn mentions(&self, word: &str) -> bool {
        ["/name", "/title", "/description"]
            .into_iter()
            .any(|pointer| {
                let text = self
                    .entry
                    .and_then(|entry| entry.pointer(pointer)?.as_str());
                text.is_some_and(|text| {
                    normal::words_of_name(text)
                        .split(' ')
                        .any(|one| one == word)
                })
            })
    }
}

/// Letters and digits in lowercase.
fn letters(name: &str) -> String {
    name.chars()
        .filter(|one| one.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The sentences of a string in normal form.
pub(crate) fn sentences(text: &str) -> Vec<Sentence> {
    normal::sentences(text)
}

/// Returns true if a rule finds something in a sentence of a string.
#[cfg(test)]
pub(crate) fn found_in_sentence<T>(text: &str, find: impl Fn(&Sentence) -> Option<T>) -> bool {
    sentences(text)
        .iter()
        .any(|sentence| find(sentence).is_some())
}

/// A finding for the first sentence in which a phrase is found.
pub(super) fn phrase(
    text: &Text<'_>,
    what: &str,
    find: impl Fn(&Sentence) -> Option<Range<usize>>,
) -> Option<Hit> {
    text.sentences.iter().find_map(|sentence| {
        let place = find(sentence).filter(|place| !is_specimen(&sentence.lower, place))?;
        let shown = quote(&sentence.written, &place);
        Some(Hit::new(format!("{what}: {shown}"), ""))
    })
}

/// Returns true for a phrase in quotes that a tool looks for: `detects "ignore all rules"`.
fn is_specimen(text: &str, place: &Range<usize>) -> bool {
    static DETECTS: words::Words = words::Words::new(
        r"detect(?:s|ed|ing|ion)?|scan(?:s|ned|ning)?|block(?:s|ed|ing)?|flag(?:s|ged|ging)?|classif(?:y|ies|ied)|filter(?:s|ed)?|find(?:s|ing)?|recogni[sz]es?|reject(?:s|ed)?|jailbreaks?|injections?|attacks?|phrases?",
    );
    let quotes = ['"', '\'', '`'];
    let before = words::before(text, place.start, 80);
    let after = words::after(text, place.end, 40);
    let is_quoted = before.trim_end().ends_with(quotes) && after.contains(quotes);
    is_quoted && DETECTS.is_in(before)
}

/// The longest quote, in characters.
const MAX_QUOTE: usize = 100;

/// A passage in quotes, on one line, shortened.
pub(crate) fn quote(text: &str, place: &Range<usize>) -> String {
    let passage = text.get(place.clone()).unwrap_or(text);
    let passage = passage.split_whitespace().collect::<Vec<_>>().join(" ");
    let room = MAX_QUOTE.saturating_sub(passage.chars().count()) / 2;
    let before = words::before(text, place.start, room);
    let after = words::after(text, place.end, room);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let before = match before.split_once(' ') {
        Some((_, rest)) if before.len() < place.start => format!("…{} ", flat(rest)),
        _ if before.is_empty() => String::new(),
        _ => format!("{} ", flat(before)),
    };
    let after = match after.rsplit_once(' ') {
        Some((rest, _)) if place.end + after.len() < text.len() => format!(" {}…", flat(rest)),
        _ => flat(after),
    };
    let glue = if text
        .get(place.end..)
        .is_some_and(|rest| rest.starts_with(' '))
        && !after.starts_with(' ')
    {
        " "
    } else {
        ""
    };
    let shown: String = format!("{before}{passage}{glue}{after}")
        .chars()
        .take(2 * MAX_QUOTE)
        .collect();
    format!("\"{}\"", shown.trim())
}

/// Applies the rules to catalogs, each by itself and all together.
#[must_use]
pub fn lint(listings: &[Listing<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = others(listings);
    for (position, listing) in listings.iter().enumerate() {
        let texts: Vec<(Entry, usize, &Value, Vec<Text<'_>>)> = listing
            .entries()
            .map(|(kind, index, entry)| (kind, index, entry, texts::texts(entry)))
            .collect();
        let mut context = Context::new(listing, &texts);
        let foreign: BTreeSet<&str> = names
            .iter()
            .filter(|(_, places)| !places.contains(&position))
            .map(|(name, _)| *name)
            .collect();
        for (kind, index, entry, texts) in &texts {
            context.entry = Some(entry);
            let mut push = |rule: &Rule, hit: Hit| {
                findings.push(finding(listing, *kind, *index, entry, rule, hit));
            };
            for text in texts {
                for rule in RULES {
                    let Check::Text(check) = rule.check else {
                        continue;
                    };
                    if let Some(hit) = check(text, &context) {
                        push(rule, hit.at(text.path.clone()));
                    }
                }
                for name in names::foreign_names(text, &context, &foreign) {
                    let servers = names.get(name).and_then(|places| places.first());
                    let server = servers.and_then(|place| listings.get(*place)?.server);
                    let hit = names::foreign_hit(name, server.unwrap_or("another server"));
                    if let Some(rule) = find("SEC-007") {
                        push(rule, hit.at(text.path.clone()));
                    }
                }
            }
        }
    }
    findings.extend(similar(listings));
    findings
}

/// The distinctive names of tools, and the listings that have them.
fn others<'a>(listings: &[Listing<'a>]) -> BTreeMap<&'a str, Vec<usize>> {
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    if listings.len() < 2 {
        return names;
    }
    for (position, listing) in listings.iter().enumerate() {
        for tool in listing.tools {
            if let Some(name) = tool.get("name").and_then(Value::as_str)
                && names::is_distinctive(name)
            {
                names.entry(name).or_default().push(position);
            }
        }
    }
    names
}

/// Tools whose names differ only by look-alikes, on any server.
fn similar(listings: &[Listing<'_>]) -> Vec<Finding> {
    let mut seen: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    let mut findings = Vec::new();
    for (position, listing) in listings.iter().enumerate() {
        for (index, tool) in listing.tools.iter().enumerate() {
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                continue;
            };
            let known = seen.entry(scripts::skeleton(name)).or_default();
            if let Some((other, place)) = known.iter().find(|(other, _)| *other != name) {
                let server = listings
                    .get(*place)
                    .and_then(|listing| listing.server)
                    .filter(|_| *place != position);
                let hit = names::similar_hit(name, other, server).at("/name");
                findings.extend(
                    find("SEC-011")
                        .map(|rule| finding(listing, Entry::Tool, index, tool, rule, hit)),
                );
            }
            known.push((name, position));
        }
    }
    findings
}

/// Makes a finding of a hit.
pub(super) fn finding(
    listing: &Listing<'_>,
    entry: Entry,
    index: usize,
    value: &Value,
    rule: &Rule,
    hit: Hit,
) -> Finding {
    let mut finding = Finding::new(
        listing.server,
        index,
        name_of(entry, index, value),
        rule,
        hit,
    );
    finding.entry = entry;
    finding
}

/// The name of an entry in reports.
pub(crate) fn name_of(entry: Entry, index: usize, value: &Value) -> String {
    match entry {
        Entry::Tool => label(index, value),
        Entry::Instructions => "instructions".to_owned(),
        Entry::Prompt => format!("prompt {}", label(index, value)),
        Entry::Resource => {
            let uri = value.get("uri").or_else(|| value.get("uriTemplate"));
            let name = uri.and_then(Value::as_str).map(str::to_owned);
            format!("resource {}", name.unwrap_or_else(|| label(index, value)))
        }
    }
}

/// A finding of SEC-014.
pub(crate) fn changed(
    listing: &Listing<'_>,
    entry: Entry,
    index: usize,
    value: &Value,
    severity: Severity,
    message: String,
) -> Option<Finding> {
    let hit = Hit::new(message, "review the change; `--update-pin` accepts it").severity(severity);
    find("SEC-014").map(|rule| finding(listing, entry, index, value, rule, hit))
}
