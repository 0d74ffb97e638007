//! Distinct lists in little memory.

use std::hash::{BuildHasher as _, Hash, RandomState};

use hashbrown::HashTable;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Lists without duplicates, each with a number. The items of all lists are in one vector.
///
/// In JSON it is a list of lists.
#[derive(Debug, Clone)]
pub(super) struct Lists<T> {
    items: Vec<T>,
    /// The end of each list among the items.
    ends: Vec<usize>,
    /// The numbers of the lists.
    table: HashTable<u32>,
    hasher: RandomState,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<T> Lists<T> {
    /// The number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The list with this number; empty if there is none.
    pub fn get(&self, number: u32) -> &[T] {
        list(&self.items, &self.ends, number)
    }

    /// The lists, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..).map(|number| self.get(number)).take(self.len())
    }
}

impl<T: Copy + Hash + Eq> Lists<T> {
    /// The number of a list, which is added if it is new.
    pub fn number(&mut self, list_items: impl IntoIterator<Item = T>) -> u32 {
        let Self {
            items,
            ends,
            table,
            hasher,
        } = self;
        let start = ends.last().copied().unwrap_or(0);
        // Appended first, and taken back if the list is known.
        items.extend(list_items);
        let hash = hasher.hash_one(&items[start..]);
        let is_it = |number: &u32| list(items, ends, *number) == &items[start..];
        if let Some(known) = table.find(hash, is_it) {
            let known = *known;
            items.truncate(start);
            return known;
        }
        // Four billion lists do not fit into memory.
        let number = u32::try_from(ends.len()).unwrap_or(u32::MAX);
        ends.push(items.len());
        let hash_of = |number: &u32| hasher.hash_one(list(items, ends, *number));
        table.insert_unique(hash, number, hash_of);
        number
    }
}

fn list<'a, T>(items: &'a [T], ends: &[usize], number: u32) -> &'a [T] {
    let number = number as usize;
    let Some(end) = ends.get(number) else {
        return &[];
    };
    let before = number.checked_sub(1).and_then(|before| ends.get(before));
    items.get(before.copied().unwrap_or(0)..*end).unwrap_or(&[])
}

impl<T: Serialize> Serialize for Lists<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: DeserializeOwned + Copy + Hash + Eq> Deserialize<'de> for Lists<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut lists = Self::default();
        for list in Vec::<Vec<T>>::deserialize(deserializer)? {
            lists.number(list);
        }
        Ok(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_have_one_number() {
        let mut lists = Lists::default();
        let numbers = [vec![1, 2], vec![], vec![1], vec![1, 2], vec![2, 1], vec![]];
        let numbers = numbers.map(|list| lists.number(list));
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!(
            lists.iter().collect::<Vec<_>>(),
            [&[1, 2][..], &[], &[1], &[2, 1]]
        );
        assert!(lists.get(9).is_empty());
        let json = serde_json::to_string(&lists).unwrap();
        assert_eq!(json, "[[1,2],[],[1],[2,1]]");
        let read: Lists<u32> = serde_json::from_str(&json).unwrap();
        assert!(read.iter().eq(lists.iter()));
    }
}
