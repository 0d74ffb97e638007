//! The inputs of a target that are in the repository: seeds, corpus and regressions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::Target;

/// Larger files are not used: they slow fuzzing down and find nothing that smaller ones do not.
pub const MAX_BYTES: u64 = 128 * 1024;

/// The number of words of a dictionary.
const MAX_WORDS: usize = 600;

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// The files that fuzzing of a target starts from.
///
/// # Errors
/// A folder that cannot be read.
pub fn seeds(target: &Target) -> Result<Vec<PathBuf>> {
    let mut files = below(&format!("fuzz/seeds/{}", target.name))?;
    for pattern in target.seeds {
        files.extend(matching(pattern)?);
    }
    files.retain(|file| file.file_name().is_some_and(|name| name != "README.md"));
    Ok(files)
}

/// The minimised corpus of a target.
///
/// # Errors
/// A folder that cannot be read.
pub fn corpus(target: &Target) -> Result<Vec<PathBuf>> {
    below(&format!("fuzz/corpus/{}", target.name))
}

/// The inputs that failed once.
///
/// # Errors
/// A folder that cannot be read.
pub fn regressions(target: &Target) -> Result<Vec<PathBuf>> {
    below(&format!("fuzz/regressions/{}", target.name))
}

/// The contents of all inputs of a target.
///
/// # Errors
/// A file that cannot be read.
pub fn contents(target: &Target) -> Result<Vec<Vec<u8>>> {
    let files = [seeds(target)?, corpus(target)?, regressions(target)?];
    files.iter().flatten().map(|file| read(file)).collect()
}

/// Reads a file.
///
/// # Errors
/// It cannot be read.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The words of inputs, for the dictionary of libFuzzer: keys and values that nobody guesses.
#[must_use]
pub fn words(inputs: &[Vec<u8>]) -> Vec<String> {
    let mut words = BTreeSet::new();
    for input in inputs {
        let text = String::from_utf8_lossy(input);
        let is_inner = |c: char| c.is_ascii_alphanumeric() || "_-$/.".contains(c);
        let found = text.split(|c: char| !is_inner(c));
        let found = found.filter(|word| (3..=24).contains(&word.len()));
        words.extend(found.map(str::to_owned));
    }
    // Words with letters first; the rest are numbers and ids.
    let mut words: Vec<String> = words.into_iter().collect();
    words.sort_by_key(|word| (word.chars().any(|c| c.is_ascii_digit()), word.len()));
    words.truncate(MAX_WORDS);
    words
}

fn below(folder: &str) -> Result<Vec<PathBuf>> {
    matching(&format!("{folder}/*"))
}

fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let pattern = root().join(pattern).display().to_string();
    let mut files = Vec::new();
    for file in glob::glob(&pattern)? {
        let file = file?;
        if file.is_file() && fs::metadata(&file)?.len() <= MAX_BYTES {
            files.push(file);
        }
    }
    Ok(files)
}
