//! Runs of some kind, in little memory.

use mcptest_trace::detail::DetailBuilder;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::packed_runs::PackedRuns;

/// The indexes of runs, in order. A run takes a few bits to a few bytes.
#[derive(Debug, Clone, Default)]
pub struct RunList(PackedRuns);

impl RunList {
    /// Adds a run.
    pub fn push(&mut self, index: u64) {
        self.0.push(index, &[]);
    }

    /// Adds other runs.
    pub fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.0.renumber(number);
    }

    /// Returns true if there is no run.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The indexes, in order.
    #[must_use]
    pub fn indexes(&self) -> Vec<u64> {
        let mut indexes = Vec::new();
        self.0.for_each(&mut |index, _| indexes.push(index));
        indexes
    }

    /// Writes the indexes as a list into a detail.
    pub fn write(&self, key: &str, detail: &mut DetailBuilder) {
        detail.list(key, |each| {
            self.0
                .for_each(&mut |index, _| each(index.to_string().as_bytes()));
        });
    }
}

/// In JSON, a list of indexes.
impl Serialize for RunList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.indexes())
    }
}

impl<'de> Deserialize<'de> for RunList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut list = Self::default();
        for index in Vec::<u64>::deserialize(deserializer)? {
            list.push(index);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::detail::Detail;

    use super::*;

    #[test]
    fn runs_are_in_order_however_they_came() {
        let mut list = RunList::default();
        assert!(list.is_empty());
        list.push(50);
        let mut other = RunList::default();
        other.push(40);
        other.push(20);
        list.merge(other);
        list.renumber(&|index| index / 10);
        assert_eq!(list.indexes(), [2, 4, 5]);
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(json, "[2,4,5]");
        let read: RunList = serde_json::from_str(&json).unwrap();
        let mut detail = DetailBuilder::default();
        read.write("runs", &mut detail);
        assert_eq!(Detail::from(detail).text(), r#"{"runs":[2,4,5]}"#);
        assert!(!read.is_empty());
    }
}
