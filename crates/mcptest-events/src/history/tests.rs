use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn history() -> (TempDir, History) {
    let directory = tempfile::tempdir().expect("a directory");
    let history = History::of(directory.path());
    (directory, history)
}

fn ids(history: &History) -> Vec<String> {
    let entries = history.list().expect("a list");
    entries.into_iter().map(|entry| entry.id).collect()
}

#[test]
fn ids_are_times_with_random_digits() {
    for (seconds, id) in [
        (0, "19700101T000000Z-3fa9"),
        (951_782_399, "20000228T235959Z-3fa9"),
        (951_782_400, "20000229T000000Z-3fa9"),
        (1_795_026_612, "20261118T183012Z-3fa9"),
        (4_107_542_399, "21000228T235959Z-3fa9"),
        (4_107_542_400, "21000301T000000Z-3fa9"),
    ] {
        assert_eq!(log_id(at(seconds), 0x3fa9), id);
        assert!(is_id(id));
    }
    for text in [
        "",
        "last-run",
        "20261118T183012Z-3FA9",
        "20261118T183012Z-3fa9x",
        "../x",
    ] {
        assert!(!is_id(text), "{text}");
    }
}

#[test]
fn a_log_is_made_with_a_folder_that_git_ignores() {
    let (directory, history) = history();
    assert_eq!(history.latest().expect("no list"), None);
    let mut log = history.create(at(0), 7).expect("a log");
    log.append("a\n").expect("a line");
    log.append("b\n").expect("a line");
    let ignore = directory.path().join(".mcptest/.gitignore");
    assert_eq!(fs::read_to_string(ignore).expect("a file"), "*\n");
    let path = directory
        .path()
        .join(".mcptest/history/19700101T000000Z-0007.jsonl");
    assert_eq!(log.path(), path);
    assert_eq!(fs::read_to_string(path).expect("a log"), "a\nb\n");
    // The same second and the same digits.
    let other = history.create(at(0), 7).expect("another log");
    assert_eq!(other.id(), "19700101T000000Z-0008");
    fs::write(history.folder().join("notes.jsonl"), "mine").expect("a file");
    fs::write(history.folder().join("19700101T000000Z-0009.txt"), "mine").expect("a file");
    assert_eq!(
        ids(&history),
        ["19700101T000000Z-0008", "19700101T000000Z-0007"]
    );
    let latest = history.latest().expect("a list").expect("a log");
    assert_eq!((latest.id.as_str(), latest.bytes), (other.id(), 0));
    let found = history.find(log.id()).expect("a list").expect("a log");
    assert_eq!(found.bytes, 4);
}

#[test]
fn a_continued_log_loses_its_torn_line_only() {
    let (_directory, history) = history();
    for (written, kept) in [
        ("", ""),
        ("torn", ""),
        ("a\n", "a\n"),
        ("a\nb\ntorn", "a\nb\n"),
    ] {
        let mut log = history.create(at(5), 1).expect("a log");
        log.append(written).expect("a line");
        let (id, path) = (log.id().to_owned(), log.path().to_owned());
        assert!(matches!(history.resume(&id), Err(OpenError::Busy { .. })));
        drop(log);
        let mut log = history.resume(&id).expect("it continues");
        log.append("c\n").expect("a line");
        assert_eq!(
            fs::read_to_string(path).expect("a log"),
            format!("{kept}c\n")
        );
    }
    let mut log = history.create(at(6), 1).expect("a log");
    log.append(&format!("a\n{}", "x".repeat(200_000)))
        .expect("a line");
    let id = log.id().to_owned();
    drop(log);
    let log = history.resume(&id).expect("it continues");
    assert_eq!(fs::metadata(log.path()).expect("a file").len(), 2);
    for id in ["19700101T000009Z-0000", "..", ""] {
        assert!(
            matches!(history.resume(id), Err(OpenError::Unknown { .. })),
            "{id}"
        );
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(".mcptest"), "a file").expect("a file");
    assert!(History::of(directory.path()).create(at(0), 0).is_err());
}

#[test]
fn logs_that_are_being_written_are_kept() {
    let (_directory, history) = history();
    let oldest = history.create(at(0), 0).expect("a log");
    drop(history.create(at(1), 0).expect("a log"));
    let current = history.create(at(2), 0).expect("a log");
    let removed = history
        .remove_beyond(current.id(), 1, 1000)
        .expect("a list");
    assert_eq!(removed, ["19700101T000001Z-0000"]);
    drop(oldest);
    let removed = history
        .remove_beyond(current.id(), 1, 1000)
        .expect("a list");
    assert_eq!(removed, ["19700101T000000Z-0000"]);
}

#[test]
fn twenty_logs_are_kept() {
    let (_directory, history) = history();
    for second in 0..30 {
        drop(history.create(at(second), 0).expect("a log"));
    }
    // A resumed log is the current one, whatever its age.
    let removed = history.remove_old("19700101T000000Z-0000").expect("a list");
    assert_eq!(removed.len(), 10);
    let left = ids(&history);
    assert_eq!(
        (left.len(), left[19].as_str()),
        (20, "19700101T000000Z-0000")
    );
    assert_eq!(left[0], "19700101T000029Z-0000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn retention_keeps_the_newest(
        sizes in proptest::collection::vec(0..10_usize, 1..8),
        max_logs in 1..8_usize,
        max_bytes in 0..40_u64,
    ) {
        let (_directory, history) = history();
        for (second, size) in (0..).zip(&sizes) {
            let mut log = history.create(at(second), 0).expect("a log");
            log.append(&"x".repeat(*size)).expect("a line");
        }
        let current = history.latest().expect("a list").expect("a log").id;
        let before = ids(&history);
        history.remove_beyond(&current, max_logs, max_bytes).expect("a list");
        let left = history.list().expect("a list");
        prop_assert_eq!(&left[0].id, &current);
        prop_assert!(left.len() <= max_logs);
        let bytes: u64 = left.iter().map(|entry| entry.bytes).sum();
        prop_assert!(left.len() == 1 || bytes <= max_bytes);
        let left: Vec<String> = left.into_iter().map(|entry| entry.id).collect();
        prop_assert_eq!(&before[..left.len()], &left[..], "only the oldest go");
        // No log is removed that would have had room.
        if left.len() < before.len() && left.len() < max_logs {
            let next = sizes[sizes.len() - left.len() - 1] as u64;
            prop_assert!(bytes + next > max_bytes);
        }
    }
}
