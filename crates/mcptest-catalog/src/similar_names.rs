//! Tools that a model can confuse because of their names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// Tools with the same or nearly the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SimilarNames {
    /// The similarity of their names.
    pub kind: Similarity,
    /// The tools as (server, name), in their order.
    pub tools: Vec<(String, String)>,
}

/// The similarity of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Similarity {
    /// The same name twice on one server: the second tool cannot be called.
    DuplicateOnOneServer,
    /// The same name on several servers.
    DuplicateAcrossServers,
    /// The same words in another spelling, order or number, or with a version.
    NearDuplicate,
}

/// Finds groups of similar names among tools given as (server, name). Names that differ in a word,
/// such as `get_user` and `set_user`, are not similar.
#[must_use]
pub fn find(tools: &[(String, String)]) -> Vec<SimilarNames> {
    let mut by_name: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    let mut by_words: BTreeMap<Vec<String>, Vec<(String, String)>> = BTreeMap::new();
    for tool in tools.iter().filter(|(_, name)| !name.is_empty()) {
        by_name.entry(&tool.1).or_default().push(tool.clone());
        let words = words(&tool.1);
        if !words.is_empty() {
            by_words.entry(words).or_default().push(tool.clone());
        }
    }
    let mut found = Vec::new();
    for tools in by_name.into_values().filter(|tools| tools.len() > 1) {
        let servers: BTreeSet<&str> = tools.iter().map(|(server, _)| server.as_str()).collect();
        let kind = if servers.len() < tools.len() {
            Similarity::DuplicateOnOneServer
        } else {
            Similarity::DuplicateAcrossServers
        };
        found.push(SimilarNames { kind, tools });
    }
    for tools in by_words.into_values() {
        let names: BTreeSet<&str> = tools.iter().map(|(_, name)| name.as_str()).collect();
        if names.len() > 1 {
            found.push(SimilarNames {
                kind: Similarity::NearDuplicate,
                tools,
            });
        }
    }
    found.sort_by_key(|group| group.kind);
    found
}

/// The words of a name: split at separators and capitals, in lowercase, singular, sorted, without
/// versions.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in name.chars() {
        let is_capital = character.is_uppercase() && (before.is_lowercase() || before.is_numeric());
        if !character.is_alphanumeric() || is_capital {
            words.push(String::new());
        }
        if let (true, Some(word)) = (character.is_alphanumeric(), words.last_mut()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    let mut words: Vec<String> = words
        .into_iter()
        .map(|word| match word.strip_suffix('s') {
            Some(singular) if singular.chars().count() > 2 && !singular.ends_with('s') => {
                singular.to_owned()
            }
            _ => word,
        })
        .filter(|word| !word.is_empty() && !is_version(word))
        .collect();
    words.sort();
    words
}

fn is_version(word: &str) -> bool {
    word.strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(tools: &[(&str, &str)]) -> Vec<(Similarity, usize)> {
        let tools: Vec<_> = tools
            .iter()
            .map(|(server, name)| ((*server).to_owned(), (*name).to_owned()))
            .collect();
        find(&tools)
            .iter()
            .map(|group| (group.kind, group.tools.len()))
            .collect()
    }

    #[test]
    fn duplicates_and_near_duplicates_are_found() {
        use Similarity::{DuplicateAcrossServers, DuplicateOnOneServer, NearDuplicate};
        assert_eq!(
            groups(&[("a", "x"), ("a", "x")]),
            [(DuplicateOnOneServer, 2)]
        );
        assert_eq!(
            groups(&[("a", "x"), ("b", "x")]),
            [(DuplicateAcrossServers, 2)]
        );
        for name in ["getUser", "get-users", "user_get", "get_user_v2", "GetUser"] {
            assert_eq!(
                groups(&[("a", "get_user"), ("b", name)]),
                [(NearDuplicate, 2)],
                "{name}"
            );
        }
        assert_eq!(
            groups(&[
                ("a", "get_user"),
                ("a", "set_user"),
                ("b", "get_users_by_id")
            ]),
            []
        );
        assert_eq!(groups(&[("a", ""), ("b", ""), ("b", "_"), ("b", "-")]), []);
        assert_eq!(groups(&[("a", "access"), ("a", "acces")]), []);
    }
}
