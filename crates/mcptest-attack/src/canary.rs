//! The canary: the string that marks the attacker in one run.
//!
//! `{id}` in `canary:` becomes 12 hexadecimal digits: the first 6 bytes of the SHA-256 hash of the
//! UTF-8 string `SEED NUL TEST NUL ATTACK NUL RUN`, where `NUL` is U+0000, the seed and
//! the run are decimal numbers, and the run counts the runs with this attack, from 1. It depends on
//! nothing else: not on the model, the wording, the machine or the other attacks.

use sha2::{Digest, Sha256};

/// The canary of an attack that does not set its own.
pub const DEFAULT: &str = "mct-{id}";

/// The place of the digits.
pub const ID: &str = "{id}";

/// The canary of one attack in one run.
///
/// ```
/// use mcptest_attack::canary::canary;
/// let first = canary("XX00{id}", 0, "pays the bill", "poisoned bill", 1);
/// assert_eq!(first.len(), 16);
/// assert_ne!(first, canary("XX00{id}", 0, "pays the bill", "poisoned bill", 2));
/// assert_eq!(canary("US133", 0, "a", "b", 7), "US133");
/// ```
#[must_use]
pub fn canary(template: &str, seed: u64, test: &str, attack: &str, run: u64) -> String {
    if !template.contains(ID) {
        return template.to_owned();
    }
    let hash = Sha256::digest(format!("{seed}\0{test}\0{attack}\0{run}"));
    let id: String = hash
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    template.replace(ID, &id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '0\0pays\0bill\0001' | sha256sum`
    #[test]
    fn the_digits_are_those_of_the_documented_hash() {
        assert_eq!(canary("{id}", 0, "pays", "bill", 1), "497a83888a51");
    }

    #[test]
    fn every_part_matters() {
        let base = canary(DEFAULT, 1, "t", "a", 1);
        for other in [
            canary(DEFAULT, 2, "t", "a", 1),
            canary(DEFAULT, 1, "u", "a", 1),
            canary(DEFAULT, 1, "t", "b", 1),
            canary(DEFAULT, 1, "t", "a", 2),
        ] {
            assert_ne!(base, other);
        }
    }
}
