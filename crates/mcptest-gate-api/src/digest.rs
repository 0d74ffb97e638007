//! Fingerprints that represent strings and values in accumulators.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twox_hash::XxHash3_128;

/// A 128-bit hash. Among a billion different values, the chance that any two have the same one is
/// below 10^-20.
///
/// It is stable across machines and versions, so accumulators of different processes merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest([u64; 2]);

impl Digest {
    /// The fingerprint of a string.
    pub fn of_text(text: &str) -> Self {
        let hash = XxHash3_128::oneshot(text.as_bytes());
        Self([(hash >> 64) as u64, hash as u64])
    }

    /// The fingerprint of values, equal for equal values: the order of keys does not matter, and
    /// `1` differs from `1.0`.
    pub fn of_values<'a>(values: impl Iterator<Item = &'a serde_json::Map<String, Value>>) -> Self {
        let mut text = String::new();
        for map in values {
            write_map(map, &mut text);
        }
        Self::of_text(&text)
    }
}

fn write_map(map: &serde_json::Map<String, Value>, out: &mut String) {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (key, value) in entries {
        out.push_str(&Value::from(key.as_str()).to_string());
        write_value(value, out);
    }
    out.push('}');
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => write_map(map, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_value(item, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Digest {
        let maps: Vec<serde_json::Map<String, Value>> = serde_json::from_str(text).unwrap();
        Digest::of_values(maps.iter())
    }

    #[test]
    fn equal_values_have_equal_fingerprints() {
        let one = of(r#"[{"a": [1, {"x": null, "y": "é"}], "b": "2"}]"#);
        assert_eq!(
            one,
            of(r#"[{"b": "2", "a": [1, {"y": "\u00e9", "x": null}]}]"#)
        );
        for other in [
            r#"[{"a": [1.0, {"x": null, "y": "é"}], "b": "2"}]"#,
            r#"[{"a": [1, {"x": null, "y": "é"}], "b": 2}]"#,
            r#"[{"a": [1, {"x": null, "y": "é"}]}, {"b": "2"}]"#,
            r#"[{"a": [[1], {"x": null, "y": "é"}], "b": "2"}]"#,
        ] {
            assert_ne!(one, of(other), "{other}");
        }
        // The algorithm must never change: saved accumulators depend on it.
        let known = serde_json::to_string(&Digest::of_text("search")).unwrap();
        assert_eq!(known, "[15201225982313594980,2839547687124163057]");
    }
}
