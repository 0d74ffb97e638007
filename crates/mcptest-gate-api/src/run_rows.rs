//! Rows of a report's detail, some for each run, in little memory.
//!
//! A row is written once, as the JSON text that the report shows, where its run is observed; only
//! the run's number is added at the end.

use mcptest_trace::detail::DetailBuilder;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::packed_runs::PackedRuns;

/// Rows of a report, in the order of the runs' indexes. Rows of one run keep their order.
#[derive(Debug, Clone, Default)]
pub struct RunRows {
    /// True if no rows are kept.
    left_out: bool,
    /// JSON text.
    rows: PackedRuns,
}

impl RunRows {
    /// Keeps no rows from now on.
    pub fn leave_out(&mut self) {
        *self = Self {
            left_out: true,
            ..Self::default()
        };
    }

    /// Returns true if rows are kept. If not, there is no need to build them.
    #[must_use]
    pub fn are_kept(&self) -> bool {
        !self.left_out
    }

    /// Adds a row of a run: a struct, without the run's index.
    pub fn push(&mut self, index: u64, row: &impl Serialize) {
        if self.left_out {
            return;
        }
        // Rows consist of strings, numbers and lists, which can always be written to memory.
        let json = serde_json::to_vec(row).unwrap_or_default();
        self.rows.push(index, &json);
    }

    /// Adds the rows of other runs. If they were left out, all are.
    pub fn merge(&mut self, other: Self) {
        if self.left_out || other.left_out {
            self.leave_out();
        } else {
            self.rows.merge(other.rows);
        }
    }

    /// Gives every run another index. The order of the runs must stay the same.
    pub fn renumber(&mut self, number: &dyn Fn(u64) -> u64) {
        self.rows.renumber(number);
    }

    /// Writes the rows as a list into a detail, each with its index as its first key. Nothing is
    /// written if rows are left out.
    pub fn write(&self, key: &str, index_key: &str, detail: &mut DetailBuilder) {
        if self.left_out {
            return;
        }
        detail.list(key, |each| {
            let mut text = Vec::new();
            self.rows.for_each(&mut |index, row| {
                text.clear();
                text.extend_from_slice(format!("{{\"{index_key}\":{index}").as_bytes());
                match row {
                    [b'{', rest @ ..] if rest != b"}" => {
                        text.push(b',');
                        text.extend_from_slice(rest);
                    }
                    _ => text.push(b'}'),
                }
                each(&text);
            });
        });
    }
}

/// In JSON, a list of pairs of an index and a row as text; `null` if rows are left out.
impl Serialize for RunRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.left_out {
            return serializer.serialize_none();
        }
        let mut rows = Vec::new();
        self.rows.for_each(&mut |index, text| {
            rows.push((index, String::from_utf8_lossy(text).into_owned()));
        });
        rows.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RunRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = Self::default();
        match Option::<Vec<(u64, String)>>::deserialize(deserializer)? {
            None => table.leave_out(),
            Some(rows) => {
                for (index, text) in rows {
                    if !text.starts_with('{') || text.contains('\n') {
                        return Err(D::Error::custom("a row is a JSON object in one line"));
                    }
                    table.rows.push(index, text.as_bytes());
                }
            }
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use mcptest_trace::detail::Detail;
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Name<'a> {
        name: &'a str,
    }

    fn text(rows: &RunRows) -> String {
        let mut detail = DetailBuilder::default();
        rows.write("rows", "index", &mut detail);
        Detail::from(detail).text().into_owned()
    }

    #[test]
    fn rows_get_their_index_and_their_order_at_the_end() {
        let mut later = RunRows::default();
        later.push(30, &Name { name: "c" });
        let mut rows = RunRows::default();
        rows.push(20, &Name { name: "b\n" });
        rows.push(20, &json!({}));
        rows.push(10, &Name { name: "a" });
        later.merge(rows);
        later.renumber(&|index| index / 10);
        assert_eq!(
            text(&later),
            r#"{"rows":[{"index":1,"name":"a"},{"index":2,"name":"b\n"},{"index":2},{"index":3,"name":"c"}]}"#
        );
        let saved = serde_json::to_string(&later).unwrap();
        assert_eq!(text(&serde_json::from_str(&saved).unwrap()), text(&later));
        later.leave_out();
        assert_eq!(text(&later), "{}");
        let saved = serde_json::to_string(&later).unwrap();
        let mut read: RunRows = serde_json::from_str(&saved).unwrap();
        read.push(1, &Name { name: "a" });
        assert_eq!(text(&read), "{}");
        for broken in [r#"[[1, "x"]]"#, r#"[[1, "{\n}"]]"#] {
            assert!(serde_json::from_str::<RunRows>(broken).is_err());
        }
    }
}
