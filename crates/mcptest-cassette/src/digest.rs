//! Digests of strings.

/// Returns the 128-bit FNV-1a hash of a string, in hexadecimal. It detects changes; it does not
/// protect against forged cassettes.
#[must_use]
pub fn digest(text: &str) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes_match() {
        assert_eq!(digest(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(digest("a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
