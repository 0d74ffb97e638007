//! Names of tools, compared over all catalogs.

use std::collections::BTreeSet;

use super::super::Hit;
use super::{Context, Role, Text};

/// The exact names of other servers' tools in a string.
pub(super) fn foreign_names<'a>(
    text: &Text<'_>,
    context: &Context<'_>,
    others: &BTreeSet<&'a str>,
) -> Vec<&'a str> {
    if matches!(text.role, Role::Name | Role::Property) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let words = text
        .normal
        .split(|one: char| !one.is_alphanumeric() && one != '_' && one != '-');
    for word in words {
        if let Some(name) = others.get(word)
            && !context.owns(name)
            && !found.contains(name)
        {
            found.push(*name);
        }
    }
    found
}

/// Returns true for names that are not words of a language: they have a separator or a hump.
pub(super) fn is_distinctive(name: &str) -> bool {
    let hump = name
        .chars()
        .zip(name.chars().skip(1))
        .any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    name.len() >= 6 && (name.contains('_') || name.matches('-').count() >= 2 || hump)
}

/// The finding about a name of another server.
pub(super) fn foreign_hit(name: &str, server: &str) -> Hit {
    Hit::new(
        format!("the text names `{name}`, a tool of the server {server}"),
        "describe this server's own tools only",
    )
}

/// The finding about a name that looks like another one.
pub(super) fn similar_hit(name: &str, other: &str, server: Option<&str>) -> Hit {
    let server = server.map_or_else(String::new, |server| format!(" of the server {server}"));
    Hit::new(
        format!("`{name}` differs from `{other}`{server} only by look-alike characters"),
        "rename one of them",
    )
}
