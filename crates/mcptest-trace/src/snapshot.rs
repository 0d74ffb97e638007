//! Snapshots: an answer that was checked once and stored, and later answers compared with it.
//!
//! A snapshot has a normal form: keys sorted, whole numbers without a fraction, what changes from
//! call to call replaced by a mark. Two answers that mean the same have the same bytes, so a
//! snapshot in version control changes only when the answer does.

use serde_json::{Map, Value, json};

use crate::expect::Assertion;
use crate::matcher::differences;
use crate::target::Target;
use mcptest_json::{canonical, equal};

/// The placeholder of a value that changes from call to call.
pub const IGNORED: &str = "[ignored]";

/// Keys of a result that are not the server's answer: those that are added for assertions, and the
/// protocol's own.
const NOT_THE_ANSWER: [&str; 8] = [
    "is_error",
    "text",
    "uri",
    "pages",
    "_meta",
    "resultType",
    "ttlMs",
    "cacheScope",
];

/// The part of an answer that a snapshot stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The part that is kept; without one, the whole answer.
    pub target: Option<Target>,
    /// Values that change from call to call: only their presence is stored.
    pub ignore: Vec<Target>,
}

impl Snapshot {
    /// The stored form of an answer: `seen` holds `result` and `error`, as assertions see them.
    /// `None` if the target is absent.
    ///
    /// The whole answer is the result as sent, without its `_meta` and `resultType`; for a call
    /// that the server refused, `error`.
    #[must_use]
    pub fn of(&self, seen: &Value) -> Option<Value> {
        let mut seen = seen.clone();
        for target in &self.ignore {
            target.replace(&mut seen, &IGNORED.into());
        }
        let kept = match &self.target {
            Some(target) => target.select(&seen)?,
            None => whole(seen),
        };
        Some(sorted(kept))
    }

    /// Compares an answer with the stored one. `file` is the name of the snapshot.
    #[must_use]
    pub fn check(&self, kept: Option<&Value>, stored: &Stored, file: &str) -> Assertion {
        let (reason, diff) = match (stored, kept) {
            (_, None) => (
                Some(format!("there is no `{}` in the answer", self.shown())),
                Vec::new(),
            ),
            (Stored::Missing, _) => (
                Some("there is no snapshot yet; check the answer, then write it with --update-snapshots".to_owned()),
                Vec::new(),
            ),
            (Stored::Broken(why), _) => (
                Some(format!(
                    "the snapshot cannot be read: {why}; rewrite it with --update-snapshots"
                )),
                Vec::new(),
            ),
            (Stored::Value(stored), Some(kept)) if equal(stored, kept) => (None, Vec::new()),
            (Stored::Value(stored), Some(kept)) => (
                Some("the answer is not the snapshot's; if it should be, write it with --update-snapshots".to_owned()),
                differences(stored, kept, false),
            ),
        };
        // One that holds is in its file.
        let actual = kept
            .filter(|_| reason.is_some())
            .cloned()
            .unwrap_or_default();
        Assertion {
            diff,
            ..Assertion::new(self.shown(), json!({"snapshot": file}), actual, reason)
        }
    }

    fn shown(&self) -> &str {
        self.target.as_ref().map_or("result", Target::as_str)
    }
}

/// The content of a snapshot's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Stored {
    /// The file does not exist.
    Missing,
    /// The file is not valid JSON.
    Broken(String),
    /// A kept answer.
    Value(Value),
}

impl Stored {
    /// Reads a snapshot.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Broken(error.to_string()),
        }
    }
}

/// The text of a snapshot's file.
#[must_use]
pub fn render(kept: &Value) -> String {
    // Indented, one key per line: it is read in reviews. A value always serialises.
    let mut text = serde_json::to_string_pretty(kept).unwrap_or_default();
    text.push('\n');
    text
}

/// The name of a test as the name of a file: letters, digits, `_`, `.` and `-`; everything else
/// becomes one `-`.
#[must_use]
pub fn file_stem(name: &str) -> String {
    const MAX_LENGTH: usize = 100;
    let mut stem = String::new();
    for character in name.chars().take(MAX_LENGTH) {
        if character.is_alphanumeric() || matches!(character, '_' | '.') {
            stem.extend(character.to_lowercase());
        } else if !stem.ends_with('-') {
            stem.push('-');
        }
    }
    // Never hidden, never a step to another folder.
    let stem = stem.trim_matches(['-', '.']);
    if stem.is_empty() { "test" } else { stem }.to_owned()
}

fn whole(mut seen: Value) -> Value {
    match seen.get_mut("result").map(Value::take) {
        Some(Value::Object(mut result)) => {
            result.retain(|key, _| !NOT_THE_ANSWER.contains(&key.as_str()));
            Value::Object(result)
        }
        _ => json!({"error": seen.get_mut("error").map(Value::take)}),
    }
}

/// The normal form.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, sorted(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        // The canonical text is the same for 1 and 1.0.
        number @ Value::Number(_) => serde_json::from_str(&canonical(&number)).unwrap_or(number),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen() -> Value {
        json!({
            "result": {
                "structuredContent": {"when": "12:01", "b": 1.0, "a": [{"id": 7, "n": 1}, {"id": 8, "n": 2}]},
                "content": [{"type": "text", "text": "hello"}],
                "_meta": {"version": "1.2.3"},
                "resultType": "complete",
                "is_error": false,
                "text": "hello"
            },
            "error": null
        })
    }

    fn snapshot(target: Option<&str>, ignore: &[&str]) -> Snapshot {
        Snapshot {
            target: target.map(|path| Target::parse(path).unwrap()),
            ignore: ignore
                .iter()
                .map(|path| Target::parse(path).unwrap())
                .collect(),
        }
    }

    #[test]
    fn the_whole_answer_is_what_the_server_sent_in_normal_form() {
        let kept = snapshot(
            None,
            &[
                "result.structuredContent.when",
                "result.structuredContent.a[*].id",
            ],
        )
        .of(&seen());
        assert_eq!(
            render(&kept.unwrap()),
            r#"{
  "content": [
    {
      "text": "hello",
      "type": "text"
    }
  ],
  "structuredContent": {
    "a": [
      {
        "id": "[ignored]",
        "n": 1
      },
      {
        "id": "[ignored]",
        "n": 2
      }
    ],
    "b": 1,
    "when": "[ignored]"
  }
}
"#
        );
        let refused = json!({"result": null, "error": {"code": -32602, "message": "no"}});
        assert_eq!(
            snapshot(None, &[]).of(&refused),
            Some(json!({"error": {"code": -32602, "message": "no"}}))
        );
    }

    #[test]
    fn a_part_can_be_kept_alone() {
        let kept = snapshot(Some("result.structuredContent.a[*].n"), &[]).of(&seen());
        assert_eq!(kept, Some(json!([1, 2])));
        assert_eq!(snapshot(Some("result.nothing"), &[]).of(&seen()), None);
    }

    #[test]
    fn a_mismatch_has_its_place_and_a_missing_snapshot_a_remedy() {
        let snapshot = snapshot(Some("result.text"), &[]);
        let kept = snapshot.of(&seen());
        let check = |stored: &Stored| snapshot.check(kept.as_ref(), stored, "snapshots/s/t.json");
        let same = check(&Stored::parse("\"hello\""));
        assert!(same.passed);
        assert_eq!(same.matcher, json!({"snapshot": "snapshots/s/t.json"}));
        let other = check(&Stored::Value(json!("good bye")));
        assert!(!other.passed);
        assert_eq!((other.diff.len(), other.diff[0].pointer.as_str()), (1, ""));
        for stored in [Stored::Missing, Stored::parse("{")] {
            let assertion = check(&stored);
            assert!(!assertion.passed);
            assert_eq!(assertion.actual, json!("hello"));
            assert!(assertion.reason.unwrap().contains("--update-snapshots"));
        }
        let absent = snapshot.check(None, &Stored::Missing, "f");
        assert_eq!(
            absent.reason.as_deref(),
            Some("there is no `result.text` in the answer")
        );
    }

    #[test]
    fn names_become_file_names() {
        assert_eq!(
            file_stem("Weather of a city, in °C"),
            "weather-of-a-city-in-c"
        );
        assert_eq!(file_stem("../../etc/passwd"), "etc-passwd");
        assert_eq!(file_stem("Größe_1.5"), "größe_1.5");
        assert_eq!(file_stem("///"), "test");
        assert_eq!(file_stem(&"x".repeat(500)).len(), 100);
    }

    proptest! {
        #[test]
        fn a_kept_answer_passes_against_its_own_file(number in -9.0_f64..9.0, text in "\\PC{0,12}", key in "\\PC{0,6}") {
            let mut map = Map::new();
            map.insert(key, json!([number, text, {"z": 1, "a": null}]));
            let seen = json!({"result": {"structuredContent": map}, "error": null});
            let kept = snapshot(None, &[]).of(&seen);
            let text = render(kept.as_ref().unwrap());
            prop_assert!(snapshot(None, &[]).check(kept.as_ref(), &Stored::parse(&text), "f").passed);
            // Written again it has the same bytes.
            let again = sorted(serde_json::from_str(&text).unwrap());
            prop_assert_eq!(render(&again), text);
        }

        #[test]
        fn a_file_name_stays_in_its_folder(name in "\\PC{0,30}|[./\\\\ ]{0,10}") {
            let stem = file_stem(&name);
            prop_assert!(!stem.is_empty() && !stem.starts_with('.') && !stem.contains(['/', '\\', '\0']));
            prop_assert_eq!(file_stem(&stem), stem);
        }
    }
}
