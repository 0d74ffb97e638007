//! Runs every property test with fresh random cases, many more of them than `cargo test` does.
//!
//! `cargo test` has a fixed seed (`.cargo/config.toml`), so that it either always passes or always
//! fails. This command looks for new counterexamples. A counterexample that it finds is saved by
//! proptest in a `proptest-regressions` file of the test's crate, to be committed with the fix:
//! from then on `cargo test` tries it first.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::workspace::{self, files};

/// Cases per property unless `--cases` is given; `cargo test` runs 256.
const DEFAULT_CASES: u32 = 10_000;

/// Command-line options of `cargo xtask properties`.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    cases: u32,
    /// Chosen at random if none is given.
    seed: Option<u64>,
}

impl Options {
    /// Reads `--cases N` and `--seed S`, in any order; `None` if there is anything else.
    pub fn parse(mut flags: &[&str]) -> Option<Self> {
        let mut options = Self {
            cases: DEFAULT_CASES,
            seed: None,
        };
        while let [name, value, rest @ ..] = flags {
            match *name {
                "--cases" => options.cases = value.parse().ok().filter(|cases| *cases > 0)?,
                "--seed" => options.seed = Some(value.parse().ok()?),
                _ => return None,
            }
            flags = rest;
        }
        flags.is_empty().then_some(options)
    }
}

/// Runs all property tests. Returns false if one of them failed.
pub fn run(options: &Options) -> Result<bool> {
    let seed = match options.seed {
        Some(seed) => seed,
        None => fresh_seed()?,
    };
    let names = all()?;
    println!(
        "{} property tests, {} cases each, seed {seed}",
        names.len(),
        options.cases
    );
    let before = regressions()?;
    let status = workspace::cargo()
        .args(["test", "--workspace", "--quiet", "--no-fail-fast", "--"])
        .args(&names)
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_CASES", options.cases.to_string())
        .status()
        .context("cannot run cargo test")?;
    if status.success() {
        println!("all property tests passed with seed {seed}");
        return Ok(true);
    }
    println!(
        "failed; to repeat: cargo xtask properties --cases {} --seed {seed}",
        options.cases
    );
    let after = regressions()?;
    let changed: Vec<&str> = after
        .lines()
        .filter(|line| !before.lines().any(|known| known == *line))
        .filter_map(|line| line.get(3..))
        .collect();
    if !changed.is_empty() {
        println!("counterexamples were saved; commit with the fix:");
        for path in changed {
            println!("  {path}");
        }
    }
    Ok(false)
}

/// A seed from the entropy with which the standard library seeds its hash maps.
fn fresh_seed() -> Result<u64> {
    use std::hash::{BuildHasher as _, Hasher as _};
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u128(since.as_nanos());
    Ok(hasher.finish())
}

/// The saved counterexamples that are new or changed, in git's words.
fn regressions() -> Result<String> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=all", "--"])
        .arg(":(glob)**/proptest-regressions/**")
        .current_dir(workspace::root())
        .output()
        .context("cannot run git status")?;
    ensure!(output.status.success(), "git status failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names of all property tests of the workspace.
fn all() -> Result<Vec<String>> {
    let mut names = BTreeSet::new();
    for folder in ["crates", "xtask/src"] {
        for path in files(&workspace::root().join(folder), "rs")? {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            names.extend(names_in(&text));
        }
    }
    if names.is_empty() {
        bail!("found no property test");
    }
    Ok(names.into_iter().collect())
}

/// The names of the property tests in a source file: the functions inside of `proptest! { … }`, and
/// tests that make their own `TestRunner`.
fn names_in(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    // The indentation of the macro that is open.
    let mut inside: Option<usize> = None;
    let mut last = None;
    for line in source.lines() {
        let trimmed = line.trim_start();
        let indentation = line.len() - trimmed.len();
        if trimmed.starts_with("proptest! {") {
            inside = Some(indentation);
        } else if inside == Some(indentation) && trimmed.starts_with('}') {
            inside = None;
        } else if let Some(rest) = trimmed.strip_prefix("fn ") {
            let name: String = rest
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            match inside {
                Some(_) => names.push(name),
                None => last = Some(name),
            }
        } else if trimmed.contains("TestRunner::new(") {
            names.extend(last.take());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order() {
        assert_eq!(
            Options::parse(&["--seed", "7", "--cases", "50"]),
            Some(Options {
                cases: 50,
                seed: Some(7)
            })
        );
        assert_eq!(
            Options::parse(&[]),
            Some(Options {
                cases: DEFAULT_CASES,
                seed: None
            })
        );
        for wrong in [&["--cases"][..], &["--cases", "0"], &["--what", "1"]] {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn properties_are_found_in_sources() {
        let source = "fn helper() {}\nproptest! {\n    #[test]\n    fn first(x: u8) {\n    }\n    fn \
                      second(y: u8) {}\n}\n#[test]\nfn third() {\n    let r = TestRunner::new(c);\n}\n\
                      fn fourth() {}\n";
        assert_eq!(names_in(source), ["first", "second", "third"]);
    }

    #[test]
    fn the_workspace_has_properties_and_a_fixed_seed_for_them() {
        let names = all().unwrap();
        assert!(names.len() > 100, "{}", names.len());
        assert!(names.iter().any(|name| name == "random_bytes_never_panic"));
        let config = std::fs::read_to_string(workspace::root().join(".cargo/config.toml")).unwrap();
        assert!(config.contains("PROPTEST_RNG_SEED = \""), "{config}");
    }

    #[test]
    fn a_fixed_seed_gives_the_same_cases_every_time() {
        use proptest::strategy::{Strategy as _, ValueTree as _};
        use proptest::test_runner::{Config, RngSeed, TestRunner};
        let config = Config::default();
        assert!(
            matches!(config.rng_seed, RngSeed::Fixed(_)),
            "run tests with cargo: it sets the seed"
        );
        let draw = || -> Vec<u64> {
            let mut runner = TestRunner::new(Config::default());
            (0..20)
                .map(|_| {
                    let tree = proptest::num::u64::ANY.new_tree(&mut runner).unwrap();
                    tree.current()
                })
                .collect()
        };
        assert_eq!(draw(), draw());
    }
}
