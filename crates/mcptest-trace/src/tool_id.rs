//! Matching of tool names in a suite with recorded calls.

use std::collections::BTreeSet;

/// The names of the suite's servers: they decide whether `a.b` is a tool of server `a` or a tool
/// whose name has a dot.
#[derive(Debug, Clone, Default)]
pub struct KnownServers(BTreeSet<String>);

impl<S: Into<String>> FromIterator<S> for KnownServers {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

/// The prefix that some agents put before the names of all tools from servers.
pub(crate) const MCP_PREFIX: &str = "mcp__";

impl KnownServers {
    /// Returns true if `written` starts with one of the servers' names and a dot.
    #[must_use]
    pub fn qualifies(&self, written: &str) -> bool {
        if self.0.is_empty() || !written.as_bytes().contains(&b'.') {
            return false;
        }
        written
            .match_indices('.')
            .any(|(at, _)| self.0.contains(&written[..at]))
    }

    /// Splits the wire name `server__tool`, which agents see when several servers are offered, if
    /// the server is known. Other agents write it as `mcp__server__tool`.
    #[must_use]
    pub fn split_wire_name<'a>(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let split = |name: &'a str| {
            name.match_indices("__")
                .map(|(at, _)| (&name[..at], &name[at + 2..]))
                .find(|(server, tool)| !tool.is_empty() && self.0.contains(*server))
        };
        split(name).or_else(|| split(name.strip_prefix(MCP_PREFIX)?))
    }
}

/// `server.tool`, or the bare name where the server is not known.
#[must_use]
pub fn full_id(server: Option<&str>, name: &str) -> String {
    match server {
        Some(server) => format!("{server}.{name}"),
        None => name.to_owned(),
    }
}

/// Returns true if `written` means a call of tool `name` on `server`.
///
/// The full id always matches. Otherwise a name without a known server's prefix is a bare tool name
/// and matches that tool on any server; so a tool whose own name has a dot works, and two servers'
/// tools of one name stay apart.
#[must_use]
#[inline]
pub fn matches(written: &str, server: Option<&str>, name: &str, servers: &KnownServers) -> bool {
    let is_full_id = match server {
        // Most names differ in length, which is found out first.
        Some(server) if written.len() != server.len() + 1 + name.len() => false,
        Some(server) => written
            .strip_prefix(server)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| rest == name),
        None => written == name,
    };
    is_full_id || (written == name && !servers.qualifies(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_stay_apart_and_bare_ones_match_anywhere() {
        let servers: KnownServers = ["brave", "google"].into_iter().collect();
        assert!(matches("brave.search", Some("brave"), "search", &servers));
        assert!(!matches("brave.search", Some("google"), "search", &servers));
        assert!(matches("search", Some("google"), "search", &servers));
        assert!(matches("search", None, "search", &servers));
        assert!(!matches("brave.search", None, "search", &servers));
    }

    #[test]
    fn a_dot_belongs_to_the_tool_unless_a_server_has_that_name() {
        let servers: KnownServers = ["s"].into_iter().collect();
        assert!(matches("http.get", Some("s"), "http.get", &servers));
        assert!(matches("s.http.get", Some("s"), "http.get", &servers));
        let servers: KnownServers = ["s", "http"].into_iter().collect();
        assert!(!matches("http.get", Some("s"), "http.get", &servers));
        assert!(matches("http.get", Some("http"), "get", &servers));
        // The full id matches even where the suite does not know the server.
        assert!(matches("x.get", Some("x"), "get", &servers));
    }

    #[test]
    fn wire_names_split_at_a_known_server_only() {
        let servers: KnownServers = ["my__srv", "a"].into_iter().collect();
        assert_eq!(servers.split_wire_name("a__b__c"), Some(("a", "b__c")));
        assert_eq!(
            servers.split_wire_name("my__srv__t"),
            Some(("my__srv", "t"))
        );
        assert_eq!(servers.split_wire_name("x__t"), None);
        assert_eq!(servers.split_wire_name("a__"), None);
        assert_eq!(servers.split_wire_name("mcp__a__b"), Some(("a", "b")));
        assert_eq!(servers.split_wire_name("mcp__x__b"), None);
        let servers: KnownServers = ["mcp"].into_iter().collect();
        assert_eq!(servers.split_wire_name("mcp__a__b"), Some(("mcp", "a__b")));
    }
}
