//! Reading files, with messages for errors.

use std::io::{self, ErrorKind};
use std::path::Path;

/// Reads a file.
///
/// # Errors
/// A message with the reason.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| unreadable(path, &error))
}

/// The message for a file that cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::InvalidData => "not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    format!("cannot read `{}`: {why}", path.display())
}
