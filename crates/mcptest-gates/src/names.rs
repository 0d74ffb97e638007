//! Lists of tool names in little memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A longer name is not kept in the table.
const MAX_LENGTH: usize = 256;

/// The names that the process has seen first, each with its number. A name is never removed, so the
/// table takes at most 16 MiB: 65,536 names of [`MAX_LENGTH`].
static TABLE: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

thread_local! {
    /// A copy of the table, so that threads do not wait for each other.
    static KNOWN: RefCell<Known> = RefCell::default();
}

#[derive(Default)]
struct Known {
    names: Vec<&'static str>,
    numbers: HashMap<&'static str, u16>,
}

impl Known {
    /// Copies what other threads have added.
    fn update(&mut self, table: &[&'static str]) {
        for name in table.iter().skip(self.names.len()) {
            // The table has at most 65,536 names.
            let number = u16::try_from(self.names.len()).unwrap_or(u16::MAX);
            self.names.push(name);
            self.numbers.insert(name, number);
        }
    }

    /// The number of a name, which is added if there is room.
    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if name.len() > MAX_LENGTH || self.names.len() > usize::from(u16::MAX) {
            return None;
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        self.update(&table);
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(table.len()).ok()?;
        table.push(Box::leak(name.into()));
        self.update(&table);
        Some(number)
    }

    fn name(&mut self, number: u16) -> &'static str {
        let place = usize::from(number);
        if place >= self.names.len() {
            self.update(&TABLE.read().unwrap_or_else(PoisonError::into_inner));
        }
        self.names.get(place).copied().unwrap_or_default()
    }
}

/// A list of names. Names that are common take two bytes each.
///
/// In JSON it is a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Names {
    /// Numbers in the table.
    Known(Box<[u16]>),
    /// A list with a name that is not in the table. It never will be, so equal lists have the same
    /// form.
    Other(Box<[Box<str>]>),
}

impl Names {
    /// The names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|at| self.get(at).unwrap_or_default())
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Known(numbers) => numbers.len(),
            Self::Other(names) => names.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, at: usize) -> Option<&str> {
        match self {
            Self::Known(numbers) => {
                let number = *numbers.get(at)?;
                Some(KNOWN.with_borrow_mut(|known| known.name(number)))
            }
            Self::Other(names) => names.get(at).map(AsRef::as_ref),
        }
    }

    /// The names with commas between them.
    pub fn join(&self, separator: &str) -> String {
        self.iter().collect::<Vec<_>>().join(separator)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut names = names.into_iter();
        let mut numbers: Vec<u16> = Vec::new();
        let other = KNOWN.with_borrow_mut(|known| {
            names
                .by_ref()
                .find(|name| match known.number(name.as_ref()) {
                    Some(number) => {
                        numbers.push(number);
                        false
                    }
                    None => true,
                })
        });
        let numbers = Self::Known(numbers.into());
        let Some(other) = other else {
            return numbers;
        };
        let mut all: Vec<Box<str>> = numbers.iter().map(Into::into).collect();
        all.push(other.as_ref().into());
        all.extend(names.map(|name| name.as_ref().into()));
        Self::Other(all.into())
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.iter().collect())
    }
}

/// Places in a list, in little memory: mostly one byte each. In JSON it is a list of numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Places(Box<[u8]>);

impl Places {
    /// The places, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let mut bytes = self.0.iter();
        std::iter::from_fn(move || {
            let (mut place, mut shift) = (0_usize, 0);
            loop {
                let byte = *bytes.next()?;
                place |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    return Some(place);
                }
            }
        })
    }
}

impl FromIterator<usize> for Places {
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        let mut bytes = Vec::new();
        for mut place in places {
            // Seven bits at a time, the lowest first.
            while place >= 0x80 {
                bytes.push((place & 0x7f) as u8 | 0x80);
                place >>= 7;
            }
            bytes.push(place as u8);
        }
        Self(bytes.into())
    }
}

impl Serialize for Places {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<usize>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_reads_as_it_was_written() {
        let long = "x".repeat(MAX_LENGTH + 1);
        for list in [vec![], vec!["a", "b", "a"], vec!["a", &long, "b"]] {
            let names: Names = list.iter().collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), list);
            let json = serde_json::to_string(&names).unwrap();
            assert_eq!(json, serde_json::to_string(&list).unwrap());
            assert_eq!(serde_json::from_str::<Names>(&json).unwrap(), names);
            assert_eq!(
                matches!(names, Names::Known(_)),
                !list.contains(&long.as_str())
            );
        }
    }

    #[test]
    fn threads_agree_about_names() {
        let here: Names = ["shared one", "shared two"].iter().collect();
        let there = std::thread::spawn(|| ["shared one", "shared two"].iter().collect());
        let there: Names = there.join().unwrap();
        assert_eq!(here, there);
        assert_eq!(there.join(", "), "shared one, shared two");
    }

    #[test]
    fn places_read_as_they_were_written() {
        let list = vec![0, 1, 127, 128, 300, 1 << 20, usize::MAX];
        let places: Places = list.iter().copied().collect();
        assert_eq!(places.iter().collect::<Vec<_>>(), list);
        let json = serde_json::to_string(&places).unwrap();
        assert_eq!(serde_json::from_str::<Places>(&json).unwrap(), places);
    }
}
