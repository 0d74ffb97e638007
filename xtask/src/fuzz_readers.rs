//! Mutated fixtures through every reader of traces: `cargo xtask fuzz-readers [--inputs N]
//! [--seed S]`.
//!
//! Every input is a fixture with a few random changes: bytes, parts of other fixtures, JSON values
//! of other types, repeated and missing keys. It goes through detection, through every reader, and
//! through writing and reading the native traces. A panic, a trace that cannot be read back, or an
//! input that takes long ends the run with the seed and the number of the input. Each thread works
//! on its own numbers, so a run gives the same inputs on any number of cores.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use mcptest_formats::{Input, READERS, Reader, detect};
use mcptest_numbers::random::SplitMix64 as Random;
use serde_json::{Value, json};

use crate::workspace;

/// Inputs unless `--inputs` is given.
const DEFAULT_INPUTS: u64 = 100_000;
/// An input of a few kilobytes must not take longer.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Command-line options of `cargo xtask fuzz-readers`.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    inputs: u64,
    seed: u64,
}

impl Options {
    /// Reads `--inputs N` and `--seed S`, in any order; nothing if there is anything else.
    pub fn parse(mut flags: &[&str]) -> Option<Self> {
        let mut options = Self {
            inputs: DEFAULT_INPUTS,
            seed: 1,
        };
        while let [name, value, rest @ ..] = flags {
            match *name {
                "--inputs" => options.inputs = value.parse().ok().filter(|inputs| *inputs > 0)?,
                "--seed" => options.seed = value.parse().ok()?,
                _ => return None,
            }
            flags = rest;
        }
        flags.is_empty().then_some(options)
    }
}

/// Runs all inputs. Returns false if one failed.
pub fn run(options: &Options) -> Result<bool> {
    let fixtures = fixtures()?;
    ensure!(!fixtures.is_empty(), "found no fixture");
    println!(
        "{} inputs of {} fixtures through {} readers, seed {}",
        options.inputs,
        fixtures.len(),
        READERS.len(),
        options.seed
    );
    let start = Instant::now();
    let counts = Counts::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (fixtures, counts) = (&fixtures, &counts);
            scope.spawn(move || {
                let mut number = thread as u64;
                while number < options.inputs && !counts.failed.load(Ordering::Relaxed) {
                    one(fixtures, options.seed, number, counts);
                    number += threads as u64;
                }
            });
        }
    });
    let took = start.elapsed().as_secs_f64();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} inputs ({:.1} MB) in {took:.1} s: {:.0} inputs/s, {:.1} MB/s on {threads} threads; {} were \
         JSON, {} detected, {} read by a reader",
        count(&counts.inputs),
        count(&counts.bytes) as f64 / 1e6,
        count(&counts.inputs) as f64 / took,
        count(&counts.bytes) as f64 / 1e6 / took,
        count(&counts.parsed),
        count(&counts.detected),
        count(&counts.read),
    );
    Ok(!counts.failed.load(Ordering::Relaxed))
}

#[derive(Default)]
struct Counts {
    inputs: AtomicU64,
    bytes: AtomicU64,
    parsed: AtomicU64,
    detected: AtomicU64,
    read: AtomicU64,
    failed: AtomicBool,
}

/// The fixtures of all formats.
fn fixtures() -> Result<Vec<Vec<u8>>> {
    let root = workspace::root().join("crates/mcptest-formats/tests/fixtures");
    let mut paths = Vec::new();
    gather(&root, &mut paths)?;
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display())))
        .collect()
}

fn gather(folder: &Path, paths: &mut Vec<std::path::PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, paths)?;
        } else if path.file_name().is_some_and(|name| name != "README.md") {
            paths.push(path);
        }
    }
    Ok(())
}

fn one(fixtures: &[Vec<u8>], seed: u64, number: u64, counts: &Counts) {
    // Each input has its own numbers, whatever thread makes it.
    let mut random = Random::new(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(number),
    );
    let input = mutated(fixtures, &mut random);
    let start = Instant::now();
    let failure = catch_unwind(AssertUnwindSafe(|| check(&input, counts)));
    let failure = match failure {
        Ok(Ok(())) if start.elapsed() < MAX_TIME => None,
        Ok(Ok(())) => Some(format!("took {:?}", start.elapsed())),
        Ok(Err(message)) => Some(message),
        Err(_) => Some("panicked".to_owned()),
    };
    counts.inputs.fetch_add(1, Ordering::Relaxed);
    counts
        .bytes
        .fetch_add(input.len() as u64, Ordering::Relaxed);
    if let Some(failure) = failure {
        counts.failed.store(true, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("fuzz-readers-{seed}-{number}"));
        println!("FAIL  seed {seed}, input {number}: {failure}");
        match std::fs::write(&path, &input) {
            Ok(()) => println!("      the input is in {}", path.display()),
            Err(error) => println!("      the input cannot be written: {error}"),
        }
    }
}

/// Sends an input through everything.
fn check(bytes: &[u8], counts: &Counts) -> std::result::Result<(), String> {
    let _ = Input::head(bytes);
    let (lines, _) = Input::parse_lines(bytes, 1);
    let input = match Input::parse(bytes) {
        Ok(input) => {
            counts.parsed.fetch_add(1, Ordering::Relaxed);
            input
        }
        // The lines that are JSON are read all the same.
        Err(_) => lines,
    };
    if detect(&input).is_ok() {
        counts.detected.fetch_add(1, Ordering::Relaxed);
    }
    let mut read = false;
    for reader in READERS {
        read |= through(*reader, &input)?;
    }
    if read {
        counts.read.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads an input. Returns true if it gives traces.
fn through(reader: &dyn Reader, input: &Input<'_>) -> std::result::Result<bool, String> {
    let name = reader.format().name;
    let _ = reader.grouping(input);
    let Ok(traces) = reader.read(input) else {
        return Ok(false);
    };
    for trace in &traces {
        let _ = (trace.pair_results(), trace.final_text());
        let text = serde_json::to_string(trace).map_err(|error| format!("{name}: {error}"))?;
        let again = mcptest_trace::trace::read(&text)
            .map_err(|error| format!("{name}: a trace cannot be read back: {error}"))?;
        if again.first() != Some(trace) {
            return Err(format!(
                "{name}: a trace differs after it was written: {text}"
            ));
        }
    }
    Ok(!traces.is_empty())
}

/// A fixture with a few changes.
fn mutated(fixtures: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = pick(fixtures, random).to_vec();
    // Changes of values keep the input JSON, so that it gets far into the readers.
    if random.below(4) > 0
        && let Some(changed) = with_changed_values(&bytes, fixtures, random)
    {
        bytes = changed;
    }
    if random.below(3) == 0 {
        for _ in 0..=random.below(6) {
            change_bytes(&mut bytes, fixtures, random);
        }
    }
    bytes
}

fn pick<'f>(fixtures: &'f [Vec<u8>], random: &mut Random) -> &'f [u8] {
    let at = random.below(fixtures.len() as u64) as usize;
    fixtures.get(at).map_or(&[], Vec::as_slice)
}

fn change_bytes(bytes: &mut Vec<u8>, fixtures: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let end = (at + random.below(64) as usize).min(bytes.len());
    match random.below(6) {
        0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        1 => drop(bytes.drain(at..end)),
        2 => bytes.truncate(at),
        3 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        4 => {
            let other = pick(fixtures, random);
            let from = random.below(other.len() as u64 + 1) as usize;
            let to = (from + random.below(256) as usize).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        _ => {
            let tokens: [&[u8]; 8] = [
                b"null",
                b"[]",
                b"{}",
                b"\"\"",
                b"1e308",
                b"-1",
                b"\n",
                b"[[[[[[[[",
            ];
            let token = tokens[random.below(8) as usize];
            bytes.splice(at..at, token.iter().copied());
        }
    }
}

/// The fixture with a few changed values; nothing if it is not JSON.
fn with_changed_values(bytes: &[u8], fixtures: &[Vec<u8>], random: &mut Random) -> Option<Vec<u8>> {
    let input = Input::parse(bytes).ok()?;
    let mut values: Vec<Value> = input
        .documents()
        .iter()
        .map(|one| one.value.clone())
        .collect();
    for _ in 0..=random.below(4) {
        let at = random.below(values.len() as u64) as usize;
        let donor = match random.below(3) {
            0 => Input::parse(pick(fixtures, random)).ok().and_then(|other| {
                let at = random.below(other.documents().len().max(1) as u64) as usize;
                Some(any_part(&other.documents().get(at)?.value, random).clone())
            }),
            _ => None,
        };
        let donor = donor.unwrap_or_else(|| odd_value(random));
        if let Some(value) = values.get_mut(at) {
            change_value(value, donor, random);
        }
    }
    let mut text = Vec::new();
    for value in values {
        text.extend(value.to_string().into_bytes());
        text.push(b'\n');
    }
    Some(text)
}

fn odd_value(random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(0.5),
        5 => json!(""),
        6 => json!("\u{1b}[31m\u{202e}"),
        7 => json!([]),
        8 => json!({}),
        _ => json!([[{"type": "tool_use"}], {"role": "assistant"}]),
    }
}

/// A random part of a value.
fn any_part<'v>(value: &'v Value, random: &mut Random) -> &'v Value {
    let child = match value {
        Value::Array(items) if !items.is_empty() => {
            items.get(random.below(items.len() as u64) as usize)
        }
        Value::Object(map) if !map.is_empty() => {
            map.values().nth(random.below(map.len() as u64) as usize)
        }
        _ => None,
    };
    match child {
        Some(child) if random.below(4) > 0 => any_part(child, random),
        _ => value,
    }
}

/// Changes a random part of a value: replaces it, removes it, repeats it or renames its key.
fn change_value(value: &mut Value, donor: Value, random: &mut Random) {
    let deeper = random.below(5) > 0;
    match value {
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len() as u64) as usize;
            match (deeper, random.below(4)) {
                (true, _) => {
                    if let Some(item) = items.get_mut(at) {
                        change_value(item, donor, random);
                    }
                }
                (false, 0) => drop(items.remove(at)),
                (false, 1) => items.push(donor),
                (false, 2) => items.reverse(),
                (false, _) => {
                    let copy = items.get(at).cloned().unwrap_or_default();
                    items.insert(at, copy);
                }
            }
        }
        Value::Object(map) if !map.is_empty() => {
            let at = random.below(map.len() as u64) as usize;
            let Some(key) = map.keys().nth(at).cloned() else {
                return;
            };
            match (deeper, random.below(3)) {
                (true, _) => {
                    if let Some(inner) = map.get_mut(&key) {
                        change_value(inner, donor, random);
                    }
                }
                (false, 0) => drop(map.remove(&key)),
                (false, 1) => drop(map.insert(key, donor)),
                (false, _) => {
                    let inner = map.remove(&key).unwrap_or_default();
                    map.insert(format!("{key}s"), inner);
                }
            }
        }
        other => *other = donor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        let parse = |flags: &[&str]| Options::parse(flags);
        assert_eq!(
            parse(&[]),
            Some(Options {
                inputs: DEFAULT_INPUTS,
                seed: 1
            })
        );
        let wanted = Some(Options { inputs: 5, seed: 9 });
        assert_eq!(parse(&["--seed", "9", "--inputs", "5"]), wanted);
        assert_eq!(parse(&["--inputs", "0"]), None);
        assert_eq!(parse(&["--inputs"]), None);
    }

    #[test]
    fn a_few_hundred_inputs_of_every_kind_pass() {
        let fixtures = fixtures().unwrap();
        let counts = Counts::default();
        for number in 0..400 {
            one(&fixtures, 7, number, &counts);
        }
        assert!(!counts.failed.load(Ordering::Relaxed));
        // The changes leave enough to read, and enough to reject.
        let read = counts.read.load(Ordering::Relaxed);
        assert!((40..400).contains(&read), "{read}");
    }

    #[test]
    fn the_same_number_is_the_same_input() {
        let fixtures = fixtures().unwrap();
        let make = |number| mutated(&fixtures, &mut Random::new(number));
        assert_eq!(make(3), make(3));
        assert_ne!(make(3), make(4));
    }
}
