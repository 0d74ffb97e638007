//! Paths in URIs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters of a path that a URI must escape.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'_')
    .remove(b'-')
    .remove(b'~');

/// Escapes a path with `/` as separator for use in a URI.
pub(crate) fn escaped_path(path: &str) -> String {
    utf8_percent_encode(path, ESCAPED).to_string()
}
