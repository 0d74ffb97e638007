//! Strings that look like credentials and are none: canaries of attacks.
//!
//! A suite plants a canary where an agent may steal it, and the trace shows where it went. A masked
//! canary would lose evidence. A value that is known to be secret is masked nevertheless.

use serde_json::{Map, Value};

use super::formats;

/// The longest canary that is kept.
const MAX_LENGTH: usize = 512;

/// The canaries that a record lists, wherever it has `attacks`.
#[must_use]
pub fn canaries(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => {
            found.extend(of_object(map));
            map.values().for_each(|value| collect(value, found));
        }
        _ => {}
    }
}

/// The canaries of the attacks that an object lists.
pub(super) fn of_object(map: &Map<String, Value>) -> impl Iterator<Item = String> + '_ {
    let attacks = map.get("attacks").and_then(Value::as_array);
    attacks.into_iter().flatten().filter_map(|attack| {
        let canary = attack.get("canary")?.as_str()?;
        (!canary.is_empty() && canary.len() <= MAX_LENGTH).then(|| canary.to_owned())
    })
}

/// Masks everything that has the format of a credential, except for these strings; `None` if
/// nothing has.
pub(super) fn mask_formats(text: &str, kept: &[String]) -> Option<String> {
    let masked = formats::mask(text)?;
    if !kept.iter().any(|kept| text.contains(kept.as_str())) {
        return Some(masked);
    }
    let mut out = String::new();
    let mut rest = text;
    let mut is_masked = false;
    loop {
        let next = kept
            .iter()
            .filter_map(|kept| Some((rest.find(kept.as_str())?, kept.len())))
            // The longest of those that begin at the same place.
            .min_by_key(|(at, length)| (*at, usize::MAX - length));
        let (before, length) = next.unwrap_or((rest.len(), 0));
        match formats::mask(&rest[..before]) {
            Some(part) => {
                out.push_str(&part);
                is_masked = true;
            }
            None => out.push_str(&rest[..before]),
        }
        out.push_str(&rest[before..before + length]);
        rest = &rest[before + length..];
        if next.is_none() {
            return is_masked.then_some(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Redactor;
    use super::*;

    const CANARY: &str = "sk-ant-api03-AAAAbbbbCCCCdddd0123";

    #[test]
    fn a_canary_that_looks_like_a_key_is_kept() {
        let redactor = Redactor::default();
        assert_eq!(redactor.text(CANARY), "[redacted]");
        let keeping = redactor.keeping([CANARY.to_owned()]);
        let text = format!("api_key: {CANARY}, other sk-ant-api03-ZZZZbbbbCCCCdddd0123");
        assert_eq!(
            keeping.text(&text),
            format!("api_key: {CANARY}, other [redacted]")
        );
        assert!(keeping.is_clean(&format!("https://u:{CANARY}@x.invalid, Bearer {CANARY}")));
        assert!(keeping.is_clean_in(&json!({"a": [CANARY]})));
        // A known secret is one, whatever an attack calls it.
        let known = Redactor::new([CANARY.to_owned()]).keeping([CANARY.to_owned()]);
        assert_eq!(known.text(CANARY), "[redacted]");
    }

    #[test]
    fn records_keep_the_canaries_that_they_list() {
        let other = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
        let mut record = json!({"runs": [
            {"attacks": [{"name": "a", "canary": CANARY}], "args": {"k": CANARY, "o": other}},
            {"args": {"k": CANARY}},
        ]});
        assert_eq!(canaries(&record), [CANARY]);
        Redactor::default().value(&mut record);
        assert_eq!(
            record["runs"][0]["args"],
            json!({"k": CANARY, "o": "[redacted]"})
        );
        assert_eq!(record["runs"][1]["args"], json!({"k": "[redacted]"}));
    }
}
