//! The files that `--trace` arguments name: files, folders, patterns and standard input.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use glob::MatchOptions;

use super::TraceFileError;

/// The endings of the files that are read of a folder, each also with one of [`COMPRESSED`].
pub const TRACE_ENDINGS: [&str; 4] = ["json", "jsonl", "ndjson", "eval"];
/// The endings of compressed files.
pub const COMPRESSED: [&str; 2] = ["gz", "zst"];
/// Folders nested deeper than this are an error: links may form a circle.
const MAX_DEPTH: usize = 64;

/// Lists the files that arguments name, in order.
///
/// `-` is standard input. A folder stands for the trace files in it and in the folders below it
/// (see [`TRACE_ENDINGS`]), without hidden ones. A name with `*`, `?` or `[` that is not a file is
/// a pattern; `**` stands for any number of folders. The files of a folder or a pattern are in the
/// order of their names, in which numbers count by value (`run-2` comes before `run-10`). A file
/// that several arguments name is read once.
///
/// # Errors
/// A name that does not exist, a folder without trace files, a pattern without a match.
pub fn trace_files(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, TraceFileError> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for argument in arguments {
        for file in named_by(argument)? {
            let real = fs::canonicalize(&file).unwrap_or_else(|_| file.clone());
            if seen.insert(real) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

fn named_by(argument: &Path) -> Result<Vec<PathBuf>, TraceFileError> {
    if argument == Path::new("-") {
        return Ok(vec![argument.to_owned()]);
    }
    let unreadable = |error| TraceFileError::unreadable(argument, error);
    match fs::metadata(argument) {
        Ok(meta) if meta.is_dir() => {
            let mut files = Vec::new();
            collect(argument, 0, &mut files)?;
            if files.is_empty() {
                let name = argument.display().to_string();
                return Err(TraceFileError::EmptyFolder { name });
            }
            files.sort_by(|one, other| natural_order(one, other));
            Ok(files)
        }
        Ok(_) => Ok(vec![argument.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match pattern_of(argument) {
            Some(pattern) => matches_of(&pattern),
            None => Err(unreadable(error)),
        },
        Err(error) => Err(unreadable(error)),
    }
}

/// The argument as a pattern, if it has a character that is special in one.
fn pattern_of(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    text.contains(['*', '?', '[']).then(|| text.to_owned())
}

fn matches_of(pattern: &str) -> Result<Vec<PathBuf>, TraceFileError> {
    let options = MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..MatchOptions::new()
    };
    let paths = glob::glob_with(pattern, options).map_err(|error| TraceFileError::BadPattern {
        pattern: pattern.to_owned(),
        message: error.msg.to_owned(),
    })?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            let path = error.path().to_owned();
            TraceFileError::unreadable(&path, error.into())
        })?;
        if path.is_dir() {
            // As the shell does: `traces/*` names the folders in it too.
            collect(&path, 0, &mut files)?;
        } else {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(TraceFileError::NoMatch {
            pattern: pattern.to_owned(),
        });
    }
    files.sort_by(|one, other| natural_order(one, other));
    files.dedup();
    Ok(files)
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), TraceFileError> {
    let unreadable = |error| TraceFileError::unreadable(folder, error);
    if depth > MAX_DEPTH {
        return Err(unreadable(io::Error::other(
            "folders are nested too deeply",
        )));
    }
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (name, path) = (entry.file_name(), entry.path());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            collect(&path, depth + 1, files)?;
        } else if is_trace_file(&path) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns true if a file of this name is read as part of a folder.
fn is_trace_file(path: &Path) -> bool {
    let known = |path: &Path, endings: &[&str]| {
        let ending = path.extension().and_then(OsStr::to_str);
        ending.is_some_and(|it| endings.iter().any(|known| it.eq_ignore_ascii_case(known)))
    };
    if known(path, &COMPRESSED) {
        return path
            .file_stem()
            .is_some_and(|stem| known(Path::new(stem), &TRACE_ENDINGS));
    }
    known(path, &TRACE_ENDINGS)
}

/// Compares two paths by their parts, in which numbers count by value.
pub(crate) fn natural_order(one: &Path, other: &Path) -> Ordering {
    let parts = |path: &Path| {
        let parts = path.components().map(|part| part.as_os_str().to_owned());
        parts.collect::<Vec<_>>()
    };
    let (one, other) = (parts(one), parts(other));
    for (part, with) in one.iter().zip(&other) {
        let order = natural_names(part.as_encoded_bytes(), with.as_encoded_bytes());
        if order.is_ne() {
            return order;
        }
    }
    one.len().cmp(&other.len())
}

/// Compares two names. Zeros before a number count last.
fn natural_names(one: &[u8], other: &[u8]) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        match (left.first(), right.first()) {
            (None, None) => return one.cmp(other),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(first), Some(second)) if first.is_ascii_digit() && second.is_ascii_digit() => {
                let (number, with);
                (number, left) = digits(left);
                (with, right) = digits(right);
                let order = number.len().cmp(&with.len()).then_with(|| number.cmp(with));
                if order.is_ne() {
                    return order;
                }
            }
            (Some(first), Some(second)) if first != second => return first.cmp(second),
            _ => (left, right) = (&left[1..], &right[1..]),
        }
    }
}

/// The digits that bytes begin with, without zeros in front, and the rest.
fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit());
    let (number, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let zeros = number.iter().position(|digit| *digit != b'0');
    (&number[zeros.unwrap_or(number.len())..], rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn listed(folder: &Path, arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<PathBuf> = arguments.iter().map(|it| folder.join(it)).collect();
        let files = trace_files(&arguments).map_err(|error| error.to_string())?;
        let name = |file: &PathBuf| file.strip_prefix(folder).unwrap().display().to_string();
        Ok(files.iter().map(name).collect())
    }

    #[test]
    fn a_folder_gives_its_trace_files_in_the_order_of_their_names() {
        let folder = folder(&[
            "t/run-10.jsonl",
            "t/run-2.jsonl.gz",
            "t/b/one.JSON",
            "t/z.ndjson.zst",
            "t/notes.md",
            "t/x.gz",
            "t/.hidden.json",
            "t/.git/a.json",
        ]);
        assert_eq!(
            listed(folder.path(), &["t"]).unwrap(),
            [
                "t/b/one.JSON",
                "t/run-2.jsonl.gz",
                "t/run-10.jsonl",
                "t/z.ndjson.zst"
            ]
        );
    }

    #[test]
    fn patterns_match_files_and_arguments_keep_their_order() {
        let folder = folder(&[
            "b/2.json",
            "b/10.json",
            "a/1.json",
            "b/.x.json",
            "c/d/e.json",
        ]);
        let path = folder.path();
        assert_eq!(
            listed(path, &["b/*.json", "a/1.json"]).unwrap(),
            ["b/2.json", "b/10.json", "a/1.json"]
        );
        assert_eq!(
            listed(path, &["**/*.json", "a/1.json"]).unwrap(),
            ["a/1.json", "b/2.json", "b/10.json", "c/d/e.json"]
        );
        assert_eq!(listed(path, &["c*"]).unwrap(), ["c/d/e.json"]);
        assert_eq!(listed(path, &["b/[0-9].json"]).unwrap(), ["b/2.json"]);
    }

    #[test]
    fn a_file_wins_over_the_pattern_of_its_name() {
        let folder = folder(&["run[1].json", "run1.json"]);
        assert_eq!(
            listed(folder.path(), &["run[1].json"]).unwrap(),
            ["run[1].json"]
        );
    }

    #[test]
    fn names_without_files_are_errors() {
        let folder = folder(&["empty/notes.txt"]);
        let error = |name: &str| listed(folder.path(), &[name]).unwrap_err();
        assert!(
            error("empty").contains("has no trace files"),
            "{}",
            error("empty")
        );
        assert!(
            error("*.json").contains("matches no file"),
            "{}",
            error("*.json")
        );
        assert!(
            error("gone.json").contains("no such file"),
            "{}",
            error("gone.json")
        );
        assert!(error("a[").contains("pattern"), "{}", error("a["));
    }

    #[test]
    fn standard_input_is_kept() {
        let dash = [PathBuf::from("-")];
        assert_eq!(trace_files(&dash).unwrap(), dash);
    }

    #[test]
    fn numbers_count_by_value() {
        let mut names = ["a10", "a2", "a02", "a", "b", "a1/z", "a/b", "a2x"];
        names.sort_by(|one, other| natural_order(Path::new(one), Path::new(other)));
        assert_eq!(names, ["a", "a/b", "a1/z", "a02", "a2", "a2x", "a10", "b"]);
    }

    proptest! {
        #[test]
        fn the_order_is_total(names in prop::collection::vec("[a0-2/.]{0,5}", 3)) {
            let order = |one: usize, other: usize| {
                natural_names(names[one].as_bytes(), names[other].as_bytes())
            };
            prop_assert_eq!(order(0, 1), order(1, 0).reverse());
            prop_assert_eq!(order(0, 1).is_eq(), names[0] == names[1]);
            if order(0, 1).is_le() && order(1, 2).is_le() {
                prop_assert!(order(0, 2).is_le());
            }
        }
    }
}
