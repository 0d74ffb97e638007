//! Facts about runs of which a report shows the first ones only.

use std::collections::BTreeMap;

use mcptest_trace::tool_id;
use serde::{Deserialize, Serialize};

/// The number of runs that a message lists.
pub const MAX_LISTED: usize = 1000;

/// The facts of the first runs of some kind, by index, and the number of all of them. A run may
/// have several.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FirstRuns<T = ()> {
    first: Vec<(u64, T)>,
    count: u64,
}

impl<T> Default for FirstRuns<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            count: 0,
        }
    }
}

impl<T> FirstRuns<T> {
    /// Adds a fact. It is built only if it is among the first ones.
    pub fn add(&mut self, index: u64, fact: impl FnOnce() -> T) {
        self.count += 1;
        if !self.lists(index) {
            return;
        }
        self.first.truncate(MAX_LISTED - 1);
        let at = self.first.partition_point(|(other, _)| *other <= index);
        self.first.insert(at, (index, fact()));
    }

    /// Returns true if a fact of this run is among the first ones.
    #[must_use]
    pub fn lists(&self, index: u64) -> bool {
        self.first.len() < MAX_LISTED || self.first.last().is_none_or(|(last, _)| index < *last)
    }

    /// Counts facts of a run that is not among the first ones.
    pub fn add_unlisted(&mut self, count: u64) {
        self.count += count;
    }

    /// Adds the facts of other runs.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        let in_order = match (self.first.last(), other.first.first()) {
            (Some((last, _)), Some((first, _))) => last <= first,
            _ => true,
        };
        if in_order {
            let room = MAX_LISTED.saturating_sub(self.first.len());
            self.first.extend(other.first.into_iter().take(room));
        } else {
            self.first.extend(other.first);
            self.first.sort_by_key(|(index, _)| *index);
            self.first.truncate(MAX_LISTED);
        }
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for (index, _) in &mut self.first {
            *index = number(*index);
        }
    }

    /// The number of all facts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of facts that are not listed.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.count - self.first.len() as u64
    }

    /// The first facts with the indexes of their runs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.first.iter().map(|(index, fact)| (*index, fact))
    }

    /// The facts in words, with commas between them and the number of those that are not listed.
    pub fn list(&self, words: impl Fn(u64, &T) -> String) -> String {
        let mut listed: Vec<String> = self.iter().map(|(run, fact)| words(run, fact)).collect();
        if self.more() > 0 {
            listed.push(format!("and {} more", self.more()));
        }
        listed.join(", ")
    }
}

impl FirstRuns {
    /// The indexes with commas between them, and the number of those that are not listed.
    #[must_use]
    pub fn indexes(&self) -> String {
        self.list(|index, ()| index.to_string())
    }
}

/// The fact of the earlier run.
#[must_use]
pub fn earliest<T>(one: Option<(u64, T)>, other: Option<(u64, T)>) -> Option<(u64, T)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.0 < one.0 { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Names, each once, in the order in which runs have them first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Places", into = "Places")]
pub struct FirstSeen {
    places: Places,
    /// Tools by the position at which a run had them last.
    recent: Vec<Option<RecentTool>>,
}

/// The place at which each name was seen first.
type Places = BTreeMap<Box<str>, (u64, u32)>;

/// More positions than this are not remembered.
const MAX_RECENT: usize = 64;

/// A tool that a run had.
#[derive(Debug, Clone)]
struct RecentTool {
    server: Option<Box<str>>,
    name: Box<str>,
    index: u64,
}

impl From<Places> for FirstSeen {
    fn from(places: Places) -> Self {
        Self {
            places,
            recent: Vec::new(),
        }
    }
}

impl From<FirstSeen> for Places {
    fn from(seen: FirstSeen) -> Self {
        seen.places
    }
}

impl FirstSeen {
    /// Adds the id of a tool that a run has at a position. Most runs have the tools of the run
    /// before them, for which nothing is built.
    pub fn add_tool(&mut self, index: u64, position: usize, server: Option<&str>, name: &str) {
        let is_it = |tool: &RecentTool| {
            tool.index <= index && *tool.name == *name && tool.server.as_deref() == server
        };
        let recent = self.recent.get(position).and_then(Option::as_ref);
        if recent.is_some_and(is_it) {
            return;
        }
        self.add(index, position, &tool_id::full_id(server, name));
        if position < MAX_RECENT {
            if self.recent.len() <= position {
                self.recent.resize(position + 1, None);
            }
            self.recent[position] = Some(RecentTool {
                server: server.map(Into::into),
                name: name.into(),
                index,
            });
        }
    }

    /// Adds a name that a run has at a position.
    pub fn add(&mut self, index: u64, position: usize, name: &str) {
        let place = (index, u32::try_from(position).unwrap_or(u32::MAX));
        match self.places.get_mut(name) {
            Some(first) => *first = place.min(*first),
            None => drop(self.places.insert(name.into(), place)),
        }
    }

    /// Adds the names of other runs.
    pub fn merge(&mut self, other: Self) {
        for (name, place) in other.places {
            let first = self.places.entry(name).or_insert(place);
            *first = place.min(*first);
        }
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.recent.clear();
        for (index, _) in self.places.values_mut() {
            *index = number(*index);
        }
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.places.iter().collect();
        names.sort_by_key(|(_, place)| **place);
        names.into_iter().map(|(name, _)| name.as_ref()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_first_runs() {
        let mut names = FirstSeen::default();
        names.add(30, 1, "c");
        names.add(30, 0, "b");
        let mut other = FirstSeen::default();
        other.add(20, 0, "c");
        other.add(40, 0, "a");
        names.merge(other);
        names.renumber(&|index| index / 10);
        assert_eq!(names.names(), ["c", "b", "a"]);
        let json = serde_json::to_string(&names).unwrap();
        assert_eq!(json, r#"{"a":[4,0],"b":[3,0],"c":[2,0]}"#);
        let read: FirstSeen = serde_json::from_str(&json).unwrap();
        assert_eq!(read.names(), ["c", "b", "a"]);
    }

    #[test]
    fn tools_are_added_as_their_ids() {
        let (mut tools, mut names) = (FirstSeen::default(), FirstSeen::default());
        let runs = [
            (5, "s", 0),
            (5, "t", 1),
            (6, "s", 0),
            (4, "s", 0),
            (3, "t", 2),
            (7, "t", 1),
        ];
        for (index, server, position) in runs {
            tools.add_tool(index, position, Some(server), "get");
            names.add(index, position, &format!("{server}.get"));
        }
        tools.add_tool(1, 100, None, "put");
        names.add(1, 100, "put");
        let json = |seen: &FirstSeen| serde_json::to_string(seen).unwrap();
        assert_eq!(json(&tools), json(&names));
        assert_eq!(tools.names(), ["put", "t.get", "s.get"]);
        tools.renumber(&|index| index - 1);
        tools.add_tool(0, 0, Some("s"), "get");
        assert_eq!(tools.names(), ["s.get", "put", "t.get"]);
    }

    #[test]
    fn the_rest_is_counted() {
        let mut runs = FirstRuns::default();
        assert_eq!(runs.indexes(), "");
        (1..=MAX_LISTED as u64).for_each(|run| runs.add(run, || ()));
        assert!(runs.indexes().ends_with("999, 1000"));
        runs.add(0, || ());
        runs.add(2000, || ());
        assert!(runs.indexes().starts_with("0, 1, "));
        assert!(runs.indexes().ends_with("998, 999, and 2 more"));
    }

    proptest! {
        #[test]
        fn the_first_ones_are_kept_however_they_come(
            runs in prop::collection::vec(0..5000_u64, 0..2500),
            split in 0..2500_usize,
        ) {
            let mut sorted = runs.clone();
            sorted.sort_unstable();
            let all = sorted.len() as u64;
            sorted.truncate(MAX_LISTED);
            let (one, two) = runs.split_at(split.min(runs.len()));
            let table = |runs: &[u64]| {
                let mut table = FirstRuns::default();
                runs.iter().for_each(|run| table.add(*run, || ()));
                table
            };
            let mut merged = table(two);
            merged.merge(table(one));
            prop_assert_eq!(merged.count(), all);
            prop_assert_eq!(merged.iter().map(|(run, ())| run).collect::<Vec<_>>(), sorted);
        }
    }
}
