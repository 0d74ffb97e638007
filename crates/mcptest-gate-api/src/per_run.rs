//! Facts about runs in little memory: values that runs share are kept once.

use std::hash::Hash;

use indexmap::IndexSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

/// A table with a row for each run, in the order of the runs' indexes.
///
/// A row has a part that other runs are likely to share, such as the list of called tools, which is
/// stored once for all of them, and a small part of its own, such as a count of tokens.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(
    serialize = "Shared: Serialize + Hash + Eq, Own: Serialize",
    deserialize = "Shared: DeserializeOwned + Hash + Eq, Own: DeserializeOwned"
))]
pub struct PerRun<Shared, Own = ()> {
    shared: IndexSet<Shared>,
    rows: Vec<(u64, u32, Own)>,
}

/// The row of one run.
#[derive(Debug)]
pub struct Row<'a, Shared, Own> {
    /// The run's index.
    pub index: u64,
    /// The number of the shared part, the same for all runs that share it.
    pub group: usize,
    /// The part that other runs may share.
    pub shared: &'a Shared,
    /// The part of this run.
    pub own: &'a Own,
}

impl<Shared, Own> Default for PerRun<Shared, Own> {
    fn default() -> Self {
        Self {
            shared: IndexSet::default(),
            rows: Vec::new(),
        }
    }
}

impl<Shared: Hash + Eq, Own> PerRun<Shared, Own> {
    /// Adds the row of a run.
    pub fn insert(&mut self, index: u64, shared: Shared, own: Own) {
        let group = self.group(shared);
        let at = match self.rows.last() {
            Some((last, ..)) if *last > index => {
                self.rows.partition_point(|(other, ..)| *other <= index)
            }
            _ => self.rows.len(),
        };
        self.rows.insert(at, (index, group, own));
    }

    /// Adds the rows of another table. Rows of the same index keep their order.
    pub fn merge(&mut self, other: Self) {
        let groups: Vec<u32> = other
            .shared
            .into_iter()
            .map(|shared| self.group(shared))
            .collect();
        let in_order = match (self.rows.last(), other.rows.first()) {
            (Some((last, ..)), Some((first, ..))) => last <= first,
            _ => true,
        };
        self.rows.extend(
            other
                .rows
                .into_iter()
                .filter_map(|(index, group, own)| Some((index, *groups.get(group as usize)?, own))),
        );
        if !in_order {
            self.rows.sort_by_key(|(index, ..)| *index);
        }
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        for (index, ..) in &mut self.rows {
            *index = number(*index);
        }
        if !self.rows.is_sorted_by_key(|(index, ..)| *index) {
            self.rows.sort_by_key(|(index, ..)| *index);
        }
    }

    fn group(&mut self, shared: Shared) -> u32 {
        let (group, _) = self.shared.insert_full(shared);
        // A table of four billion distinct values does not fit into memory.
        u32::try_from(group).unwrap_or(u32::MAX)
    }

    /// The number of runs.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if no run was added.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The highest index of a run.
    pub fn last_index(&self) -> Option<u64> {
        self.rows.last().map(|(index, ..)| *index)
    }

    /// The row at a position in the order of the runs.
    pub fn get(&self, at: usize) -> Option<Row<'_, Shared, Own>> {
        let (index, group, own) = self.rows.get(at)?;
        let group = *group as usize;
        Some(Row {
            index: *index,
            group,
            shared: self.shared.get_index(group)?,
            own,
        })
    }

    /// The same table with other shared parts.
    pub fn map_shared(self, map: impl FnMut(Shared) -> Shared) -> Self {
        let mut table = Self::default();
        let groups: Vec<u32> = self
            .shared
            .into_iter()
            .map(map)
            .map(|shared| table.group(shared))
            .collect();
        let rows = self
            .rows
            .into_iter()
            .filter_map(|(index, group, own)| Some((index, *groups.get(group as usize)?, own)));
        table.rows = rows.collect();
        table
    }

    /// The rows in the order of the runs.
    pub fn iter(&self) -> impl Iterator<Item = Row<'_, Shared, Own>> {
        (0..self.rows.len()).filter_map(|at| self.get(at))
    }

    /// The distinct shared parts, each with its number, in the order of the runs that have them
    /// first.
    pub fn groups(&self) -> impl Iterator<Item = (usize, &Shared)> {
        let mut seen = vec![false; self.shared.len()];
        self.iter()
            .filter(move |row| !std::mem::replace(&mut seen[row.group], true))
            .map(|row| (row.group, row.shared))
    }
}

/// Serialises the items of an iterator, made again each time, as a list.
pub struct List<F>(pub F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(u64, &str)]) -> PerRun<String, usize> {
        let mut table = PerRun::default();
        for (index, name) in rows {
            table.insert(*index, (*name).to_owned(), name.len());
        }
        table
    }

    fn rows(table: &PerRun<String, usize>) -> Vec<(u64, &str, usize)> {
        table
            .iter()
            .map(|row| (row.index, row.shared.as_str(), *row.own))
            .collect()
    }

    #[test]
    fn rows_are_in_the_order_of_indexes_however_they_came() {
        let mut merged = table(&[(9, "c"), (2, "bb")]);
        merged.merge(table(&[(4, "c"), (1, "bb"), (10, "d")]));
        assert_eq!(
            rows(&merged),
            [
                (1, "bb", 2),
                (2, "bb", 2),
                (4, "c", 1),
                (9, "c", 1),
                (10, "d", 1)
            ]
        );
        assert_eq!(merged.shared.len(), 3);
        let groups: Vec<&str> = merged.groups().map(|(_, name)| name.as_str()).collect();
        assert_eq!(groups, ["bb", "c", "d"]);
        let text = serde_json::to_string(&merged).unwrap();
        let read: PerRun<String, usize> = serde_json::from_str(&text).unwrap();
        assert_eq!(rows(&read), rows(&merged));
    }

    #[test]
    fn a_row_without_its_shared_part_is_skipped() {
        let broken = r#"{"shared": ["a"], "rows": [[1, 0, 5], [2, 7, 5]]}"#;
        let mut read: PerRun<String, usize> = serde_json::from_str(broken).unwrap();
        assert_eq!(rows(&read), [(1, "a", 5)]);
        read.merge(serde_json::from_str(broken).unwrap());
        assert_eq!(read.groups().count(), 1);
    }
}
