//! Every input in the repository through its target.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::collections::BTreeSet;
use std::fs;

use mcptest_fuzz::{TARGETS, inputs};

/// The corpus is for the code, not for the clones of the repository.
const MAX_CORPUS_BYTES: u64 = 1024 * 1024;

#[test]
fn every_input_passes() {
    for target in TARGETS {
        let files = [
            inputs::seeds(target).unwrap(),
            inputs::corpus(target).unwrap(),
            inputs::regressions(target).unwrap(),
        ];
        for file in files.iter().flatten() {
            let input = fs::read(file).unwrap();
            let outcome = std::panic::catch_unwind(|| (target.run)(&input));
            assert!(outcome.is_ok(), "{}: {}", target.name, file.display());
        }
        (target.run)(b"");
    }
}

#[test]
fn every_target_has_seeds_and_its_own_name() {
    let mut names = BTreeSet::new();
    for target in TARGETS {
        assert!(names.insert(target.name), "{} is there twice", target.name);
        assert!(
            !inputs::seeds(target).unwrap().is_empty(),
            "{} has no seeds",
            target.name
        );
    }
    assert!(TARGETS.is_sorted_by_key(|target| target.name));
}

#[test]
fn every_pattern_of_seeds_finds_files() {
    for target in TARGETS {
        for pattern in target.seeds {
            let pattern = inputs::root().join(pattern).display().to_string();
            let found = glob::glob(&pattern).unwrap().count();
            assert!(found > 0, "{}: {pattern} finds nothing", target.name);
        }
    }
}

#[test]
fn folders_belong_to_targets_and_the_corpus_stays_small() {
    let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    let mut bytes = 0;
    for folder in ["seeds", "corpus", "regressions"] {
        let root = inputs::root().join("fuzz").join(folder);
        for entry in fs::read_dir(root).unwrap() {
            let entry = entry.unwrap();
            if !entry.file_type().unwrap().is_dir() {
                continue;
            }
            let name = entry.file_name().into_string().unwrap();
            assert!(
                names.contains(name.as_str()),
                "{folder}/{name} has no target"
            );
            for file in fs::read_dir(entry.path()).unwrap() {
                bytes += file.unwrap().metadata().unwrap().len();
            }
        }
    }
    assert!(bytes < MAX_CORPUS_BYTES, "{bytes} bytes of inputs");
}

#[test]
fn every_target_is_documented() {
    let page = fs::read_to_string(inputs::root().join("docs/fuzzing.md")).unwrap();
    for target in TARGETS {
        let row = format!("| `{}` |", target.name);
        assert!(
            page.contains(&row),
            "docs/fuzzing.md has no row for {}",
            target.name
        );
    }
}
