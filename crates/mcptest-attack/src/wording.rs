//! The bundled wordings: nine families of four.

use std::sync::LazyLock;

use serde::Deserialize;

/// A bundled wording. A changed text gets a new name, so that a name always means the same text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wording {
    /// The family: `plain`, `override`, `from_user`, …
    pub family: String,
    /// The name for `payload:`.
    pub name: String,
    /// The version of the text.
    pub version: u32,
    /// The text, with `{do}` for the demand and `{name}` for the user.
    pub text: String,
}

/// All wordings, in the order of their families.
pub static WORDINGS: LazyLock<Vec<Wording>> = LazyLock::new(|| {
    // The file is part of the program, and a test reads it.
    serde_json::from_str(include_str!("wordings.json")).unwrap_or_default()
});

/// The wording with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Wording> {
    WORDINGS.iter().find(|wording| wording.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn there_are_nine_families_of_four() {
        let mut families: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = BTreeSet::new();
        for wording in WORDINGS.iter() {
            *families.entry(&wording.family).or_default() += 1;
            assert!(
                names.insert(&wording.name),
                "{} is there twice",
                wording.name
            );
            assert_eq!(wording.text.matches("{do}").count(), 1, "{}", wording.name);
            assert_eq!(wording.version, 1);
        }
        assert_eq!(families.len(), 9);
        assert!(families.values().all(|count| *count == 4));
    }
}
