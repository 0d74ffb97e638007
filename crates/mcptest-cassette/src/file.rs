//! Cassette files: names, reading and writing.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};

use mcptest_numbers::random::seed_of;
use serde::Deserialize;

use crate::format::{Cassette, FormatMarker, FormatVersion, RecordedCatalog};

/// The largest cassette that is read. The JSON reader limits the depth to 128 levels.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The longest readable part of a file name, in characters.
const MAX_NAME_CHARACTERS: usize = 80;

/// The suffix of unfinished recordings.
const PARTIAL: &str = ".partial.json";

/// A cassette that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file does not exist.
    #[error("{path}: there is no such cassette")]
    Missing {
        /// The file.
        path: String,
    },
    /// The file cannot be read.
    #[error("{path}: {message}")]
    Unreadable {
        /// The file.
        path: String,
        /// The reason.
        message: String,
    },
    /// The file is not a valid cassette.
    #[error("{path}:{line}:{column}: not a cassette: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The reason.
        message: String,
    },
}

/// Reads a cassette.
///
/// # Errors
/// The file is missing, unreadable, too large, or not a valid cassette.
pub fn load(path: &Path) -> Result<Cassette, LoadError> {
    load_stamped(path).map(|(cassette, _)| cassette)
}

/// The content of a cassette file, as far as this process needs it to recognize the same content
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// The size of the file.
    pub bytes: u64,
    hash: u64,
}

/// Reads a cassette, and stamps what was read.
///
/// # Errors
/// The same as [`load`].
pub fn load_stamped(path: &Path) -> Result<(Cassette, FileStamp), LoadError> {
    let bytes = read(path)?;
    let cassette = parse(&path.display().to_string(), &bytes)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    let stamp = FileStamp {
        bytes: bytes.len() as u64,
        hash: hasher.finish(),
    };
    Ok((cassette, stamp))
}

/// Returns the durations of the recorded runs in milliseconds, or `None` if there is no complete
/// cassette. [`load`] gives the reason.
#[must_use]
pub fn recorded_durations(path: &Path) -> Option<Vec<u64>> {
    /// The needed part of the file; the rest is skipped.
    #[derive(Deserialize)]
    struct Times {
        #[expect(dead_code, reason = "read to reject other files")]
        format: FormatMarker,
        #[expect(dead_code, reason = "read to reject other versions")]
        version: FormatVersion,
        planned: u32,
        volatile: Vec<Time>,
    }
    #[derive(Deserialize)]
    struct Time {
        duration_ms: u64,
    }
    let times: Times = serde_json::from_slice(&read(path).ok()?).ok()?;
    let whole = times.volatile.len() == usize::try_from(times.planned).ok()?;
    whole.then(|| times.volatile.iter().map(|time| time.duration_ms).collect())
}

/// Returns the tools that the servers listed in a recording, or `None` if there is no cassette.
#[must_use]
pub fn recorded_catalogs(path: &Path) -> Option<Vec<RecordedCatalog>> {
    /// The needed part of the file; the rest is skipped.
    #[derive(Deserialize)]
    struct Catalogs {
        #[expect(dead_code, reason = "read to reject other files")]
        format: FormatMarker,
        #[expect(dead_code, reason = "read to reject other versions")]
        version: FormatVersion,
        catalogs: Vec<RecordedCatalog>,
    }
    let recorded: Catalogs = serde_json::from_slice(&read(path).ok()?).ok()?;
    Some(recorded.catalogs)
}

/// Reads a file of at most [`MAX_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = path.display().to_string();
    let fail = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => LoadError::Missing { path: name.clone() },
        _ => LoadError::Unreadable {
            path: name.clone(),
            message: error.to_string(),
        },
    };
    let found = fs::metadata(path).map_err(fail)?;
    let refused = |message: String| LoadError::Unreadable {
        path: name.clone(),
        message,
    };
    if !found.is_file() {
        return Err(refused("not a file".to_owned()));
    }
    if found.len() > MAX_BYTES {
        return Err(refused(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    fs::read(path).map_err(fail)
}

/// Reads the bytes of a cassette; `name` is for messages.
///
/// # Errors
/// The first invalid position.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Cassette, LoadError> {
    let malformed = |line, column, message: String| LoadError::Malformed {
        path: name.to_owned(),
        line,
        column,
        message,
    };
    let cassette: Cassette = serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        // serde appends the position to the message; here it has separate fields.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        let message =
            mcptest_json::text::shorten(&mcptest_json::text::one_line(&message[..end]), 300);
        malformed(error.line(), error.column(), message)
    })?;
    // A hand-edited or hostile file may violate what every recording guarantees.
    let numbers: Vec<u32> = cassette.runs.iter().map(|run| run.run).collect();
    if !numbers.is_sorted_by(|a, b| a < b) || numbers.first() == Some(&0) {
        let message = "the runs must be numbered from 1, each once, in order".to_owned();
        return Err(malformed(1, 1, message));
    }
    for run in &cassette.runs {
        let results = run
            .models
            .values()
            .flatten()
            .flat_map(|exchange| &exchange.request.results);
        for result in results {
            if let crate::format::FedResult::Call(index) = result
                && *index >= run.calls.len()
            {
                let message = format!(
                    "run {} refers to call {index}, which does not exist",
                    run.run
                );
                return Err(malformed(1, 1, message));
            }
        }
    }
    Ok(cassette)
}

/// Writes a cassette atomically: a reader sees the old file or the new one, even after a crash.
///
/// # Errors
/// The file cannot be written. The old file is then unchanged.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    mcptest_files::write(path, text)
}

/// Removes the temporary files that a killed recording left beside a cassette.
pub(crate) fn remove_leftovers(path: &Path) {
    mcptest_files::remove_leftovers(path);
    mcptest_files::remove_leftovers(&partial_path(path));
}

/// Returns the path of a test's cassette: in the suite's folder, named after the test, and after
/// the model if there are several.
#[must_use]
pub fn cassette_path(folder: &Path, test: &str, model: Option<&str>) -> PathBuf {
    let model = model
        .map(|model| format!(".{}", safe_name(model)))
        .unwrap_or_default();
    folder.join(format!("{}{model}.json", safe_name(test)))
}

/// Returns the path of a recording that is not finished.
#[must_use]
pub fn partial_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{}{PARTIAL}", name.trim_end_matches(".json")))
}

/// Returns true if a path is that of an unfinished recording.
#[must_use]
pub fn is_partial(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with(PARTIAL))
}

/// Returns a name that is valid on every file system. Unless it equals the original, it ends with a
/// digest, so that different names stay different, also on case-insensitive file systems.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() || character == '_' {
            out.push(character);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    let mut out: String = out
        .trim_matches('-')
        .chars()
        .take(MAX_NAME_CHARACTERS)
        .collect();
    // A name with a dash may equal the converted form of another one.
    if out != name || out.contains('-') || out.is_empty() {
        if !out.is_empty() {
            out.push('-');
        }
        out.push_str(&format!("{:08x}", seed_of(name, 0) >> 32));
    }
    out
}

/// Returns all cassettes below a folder, finished or not, sorted.
///
/// # Errors
/// A folder that cannot be read.
pub fn find(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        // Symbolic links are not followed: they may form a cycle.
        if kind.is_dir() {
            found.extend(find(&path)?);
        } else if kind.is_file()
            && path
                .extension()
                .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn safe_names_are_different_for_different_names() {
        assert_eq!(safe_name("weather_1"), "weather_1");
        assert_eq!(safe_name("finds the weather"), "finds-the-weather-fe80eb00");
        assert_ne!(
            safe_name("finds-the-weather-fe80eb00"),
            "finds-the-weather-fe80eb00"
        );
        for (a, b) in [
            ("Weather", "weather"),
            ("a/b", "a b"),
            ("", "-"),
            ("ä", "ö"),
            ("a", "a "),
        ] {
            assert_ne!(safe_name(a), safe_name(b));
            assert_ne!(safe_name(a).to_lowercase(), safe_name(b).to_lowercase());
        }
        let path = cassette_path(Path::new("c"), "weather", Some("openai/gpt"));
        assert!(
            path.to_str().unwrap().starts_with("c/weather.openai-gpt-"),
            "{}",
            path.display()
        );
        assert_eq!(
            partial_path(Path::new("c/x.json")),
            Path::new("c/x.partial.json")
        );
        assert!(is_partial(Path::new("c/x.partial.json")) && !is_partial(Path::new("c/x.json")));
    }

    #[test]
    fn a_write_replaces_the_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/x.json");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let folder = path.parent().unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
        fs::write(folder.join(".x.json.aB3d5F.tmp"), "").unwrap();
        fs::write(folder.join(".x.partial.json.000009.tmp"), "").unwrap();
        fs::write(folder.join(".xy.json.aB3d5F.tmp"), "").unwrap();
        fs::write(folder.join(".x.json.mine.tmp"), "").unwrap();
        remove_leftovers(&path);
        let mut left: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".x.json.mine.tmp", ".xy.json.aB3d5F.tmp", "x.json"]);
        // A folder at the path is an error, and no temporary file is left.
        fs::create_dir(folder.join("y.json")).unwrap();
        assert!(write(&folder.join("y.json"), "three").is_err());
        assert_eq!(fs::read_dir(folder).unwrap().count(), 4);
    }

    #[test]
    fn an_invalid_cassette_is_reported_with_its_position() {
        let error = |text: &str| parse("c.json", text.as_bytes()).unwrap_err().to_string();
        assert!(
            error("").starts_with("c.json:1:0: not a cassette: "),
            "{}",
            error("")
        );
        assert_eq!(
            error("{\n  \"format\": \"other\"\n}"),
            "c.json:3:1: not a cassette: expected `mcptest-cassette`"
        );
        let newer = error("{\"format\": \"mcptest-cassette\",\n\"version\": 7}");
        assert!(
            newer.contains("c.json:2:") && newer.contains("newer mcptest"),
            "{newer}"
        );
        let deep = format!("{{\"format\": {}", "[".repeat(1_000_000));
        assert!(error(&deep).contains("not a cassette"));
    }

    proptest! {
        #[test]
        fn garbage_is_rejected_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assert!(parse("x", &bytes).is_err());
        }

        #[test]
        fn safe_names_have_no_special_characters(name in ".{0,200}") {
            let safe = safe_name(&name);
            prop_assert!(!safe.is_empty() && safe.len() <= 100);
            let is_plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
            };
            prop_assert!(safe.bytes().all(is_plain));
        }
    }
}
