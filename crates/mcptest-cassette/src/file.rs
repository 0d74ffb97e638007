//! Cassettes on disk: where they are, how they are read and written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcptest_numbers::random::seed_of;
use serde::Deserialize;

use crate::format::{Cassette, Marker, Version};

/// A cassette larger than this is not read. Depth is bounded by the JSON reader (128 levels).
pub const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The longest readable part of a file name.
const LONGEST_NAME: usize = 80;

/// Ends the names of recordings that are not finished.
const PARTIAL: &str = ".partial.json";

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is none.
    #[error("{path}: there is no such cassette")]
    Missing {
        /// Where it was looked for.
        path: String,
    },
    /// It cannot be read.
    #[error("{path}: {message}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// It is no cassette.
    #[error("{path}:{line}:{column}: not a cassette: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
}

/// Reads a cassette.
///
/// # Errors
/// That it is not there, cannot be read, is too large, or is no cassette, with the place.
pub fn load(path: &Path) -> Result<Cassette, LoadError> {
    parse(&path.display().to_string(), &read(path)?)
}

/// How long the recorded runs took, in milliseconds. Nothing if there is no whole cassette: whoever
/// wants to know why loads it.
#[must_use]
pub fn durations(path: &Path) -> Option<Vec<u64>> {
    /// Only what is needed: the rest of the file is skipped.
    #[derive(Deserialize)]
    struct Times {
        #[expect(dead_code, reason = "read to refuse other files")]
        format: Marker,
        #[expect(dead_code, reason = "read to refuse other versions")]
        version: Version,
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

/// The bytes of a file, if they are not too many.
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
    if found.len() > MOST_BYTES {
        return Err(refused(format!("larger than {} MiB", MOST_BYTES >> 20)));
    }
    fs::read(path).map_err(fail)
}

/// Reads the bytes of a cassette; `name` is for messages.
///
/// # Errors
/// The place that is no cassette.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Cassette, LoadError> {
    let malformed = |line, column, message: String| LoadError::Malformed {
        path: name.to_owned(),
        line,
        column,
        message,
    };
    let cassette: Cassette = serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        // The position is told apart; serde appends it to the text too.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        let message =
            mcptest_json::text::shorten(&mcptest_json::text::one_line(&message[..end]), 300);
        malformed(error.line(), error.column(), message)
    })?;
    // What a hand-edited or hostile file could say that no recording would.
    let numbers: Vec<u32> = cassette.runs.iter().map(|run| run.run).collect();
    if !numbers.is_sorted_by(|a, b| a < b) || numbers.first() == Some(&0) {
        let message = "the runs must be numbered from 1, each once, in order".to_owned();
        return Err(malformed(1, 1, message));
    }
    for run in &cassette.runs {
        let fed = run
            .models
            .values()
            .flatten()
            .flat_map(|exchange| &exchange.request.results);
        for result in fed {
            if let crate::format::Fed::Call(index) = result
                && *index >= run.calls.len()
            {
                let message = format!(
                    "run {} refers to its call {index}, which is not there",
                    run.run
                );
                return Err(malformed(1, 1, message));
            }
        }
    }
    Ok(cassette)
}

/// Writes a cassette so that whoever looks at any moment, and whatever happens to us or the
/// machine, finds the old file or the new one.
///
/// # Errors
/// What went wrong. The old file is then still there.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    mcptest_files::write(path, text)
}

/// Removes the temporary files that a killed recording left beside a cassette.
pub(crate) fn sweep(path: &Path) {
    mcptest_files::remove_leftovers(path);
    mcptest_files::remove_leftovers(&partial_place(path));
}

/// The file of a test: in the suite's folder, called like the test, and like the model too where
/// there are several.
#[must_use]
pub fn place(folder: &Path, test: &str, model: Option<&str>) -> PathBuf {
    let model = model
        .map(|model| format!(".{}", safe(model)))
        .unwrap_or_default();
    folder.join(format!("{}{model}.json", safe(test)))
}

/// Where a recording is kept until it is finished.
#[must_use]
pub fn partial_place(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{}{PARTIAL}", name.trim_end_matches(".json")))
}

/// Whether a file's name is that of a recording that was not finished.
#[must_use]
pub fn is_partial(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with(PARTIAL))
}

/// A name that every file system takes. Where it is not the name itself, a digest keeps different
/// names apart, also on file systems that do not tell small letters from large ones.
#[must_use]
pub fn safe(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() || character == '_' {
            out.push(character);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    let mut out: String = out.trim_matches('-').chars().take(LONGEST_NAME).collect();
    // A name with a dash could be what another one is turned into.
    if out != name || out.contains('-') || out.is_empty() {
        if !out.is_empty() {
            out.push('-');
        }
        out.push_str(&format!("{:08x}", seed_of(name, 0) >> 32));
    }
    out
}

/// All cassettes below a folder, finished or not, sorted.
///
/// # Errors
/// A folder that cannot be read.
pub fn find(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        // Links are not followed: a folder could contain itself.
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
    fn names_are_safe_and_stay_apart() {
        assert_eq!(safe("weather_1"), "weather_1");
        assert_eq!(safe("finds the weather"), "finds-the-weather-fe80eb00");
        assert_ne!(
            safe("finds-the-weather-fe80eb00"),
            "finds-the-weather-fe80eb00"
        );
        for (a, b) in [
            ("Weather", "weather"),
            ("a/b", "a b"),
            ("", "-"),
            ("ä", "ö"),
            ("a", "a "),
        ] {
            assert_ne!(safe(a), safe(b));
            assert_ne!(safe(a).to_lowercase(), safe(b).to_lowercase());
        }
        let place = place(Path::new("c"), "weather", Some("openai/gpt"));
        assert!(
            place.to_str().unwrap().starts_with("c/weather.openai-gpt-"),
            "{}",
            place.display()
        );
        assert_eq!(
            partial_place(Path::new("c/x.json")),
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
        sweep(&path);
        let mut left: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".x.json.mine.tmp", ".xy.json.aB3d5F.tmp", "x.json"]);
        // A folder in the way is told, and nothing is left.
        fs::create_dir(folder.join("y.json")).unwrap();
        assert!(write(&folder.join("y.json"), "three").is_err());
        assert_eq!(fs::read_dir(folder).unwrap().count(), 4);
    }

    #[test]
    fn what_is_no_cassette_is_told_with_its_place() {
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
        fn garbage_is_refused_quietly(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse("x", &bytes).is_err());
        }

        #[test]
        fn names_have_nothing_special(name in ".{0,200}") {
            let safe = safe(&name);
            prop_assert!(!safe.is_empty() && safe.len() <= 100);
            prop_assert!(safe.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'));
        }
    }
}
