//! Base64 as the protocol uses it: the standard alphabet with padding (RFC 4648, section 4).

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Unused bits of the last character are ignored: several encoders in the field set them.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Encodes bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Returns true if the string is valid Base64.
#[must_use]
pub fn is_base64(string: &str) -> bool {
    decode(string).is_some()
}

/// Decodes a string; `None` if it is not valid Base64.
#[must_use]
pub fn decode(string: &str) -> Option<Vec<u8>> {
    ENGINE.decode(string).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn test_vectors_of_the_standard() {
        // RFC 4648, section 10.
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn invalid_strings_are_rejected() {
        for good in ["", "QQ==", "QR==", "QUI=", "QUJD", "+/+/"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["Q", "QQ=", "Q===", "QQ ==", "Qä==", "QUJ-"] {
            assert!(!is_base64(bad), "{bad}");
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn decoding_reverses_encoding(bytes in prop::collection::vec(prop::num::u8::ANY, 0..40)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
