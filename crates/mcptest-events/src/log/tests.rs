use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::samples;

/// An event with its record parsed, to compare it with the one that was encoded.
fn whole(event: Event<RawRecord<'_>>) -> Event {
    let line = serde_json::to_string(&event).expect("it serialises");
    serde_json::from_str(&line).expect("an event")
}

fn log_of(events: &[Event]) -> String {
    let redactor = Redactor::default();
    events
        .iter()
        .map(|event| encode(event, &redactor))
        .collect()
}

fn lines_of(text: &str) -> Result<Vec<(usize, u64, String)>, LogError> {
    let mut reader = LogReader::new(text.as_bytes());
    let mut lines = Vec::new();
    while let Some(line) = reader.next_event()? {
        let name = format!("{:?}", line.event);
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        lines.push((line.number, line.offset, name));
    }
    Ok(lines)
}

#[test]
fn hidden_characters_are_escapes_of_the_same_event() {
    let event = Event::Warning {
        text: "a\u{202e}b\u{9b}31m\u{7f}é".to_owned(),
    };
    let mut line = String::new();
    let is_whole = encode_into(&event, &Redactor::default(), &mut line);
    assert!(!is_whole, "the line has other characters than the event");
    assert!(line.contains(r"a\u202eb\u009b31m\u007fé"), "{line}");
    assert_eq!(decode(&line).expect("an event").map(whole), Some(event));
}

#[test]
fn every_event_is_known_by_its_name() {
    let log = log_of(&samples::all("x"));
    let names: BTreeSet<&str> = log
        .lines()
        .filter_map(|line| line.split('"').nth(1))
        .collect();
    assert_eq!(names, BTreeSet::from(NAMES));
}

#[test]
fn a_torn_last_line_is_ignored_at_every_byte() {
    let events = samples::all("Zürich\n\"quoted\"");
    let log = log_of(&events);
    let whole_lines = log.lines().count();
    let last = log.trim_end().rfind('\n').expect("several lines") + 1;
    for cut in last..log.len() {
        let Some(torn) = log.get(..cut) else { continue };
        assert_eq!(read(torn).expect("a log").len(), whole_lines - 1, "{cut}");
        assert_eq!(lines_of(torn).expect("a log").len(), whole_lines - 1);
    }
    assert_eq!(read(&log).expect("a log").len(), whole_lines);
    // A cut inside of a character, as a file may have it.
    let torn = &log.as_bytes()[..log.find('ü').expect("a letter") + 1];
    let mut reader = LogReader::new(torn);
    while reader.next_event().expect("a log").is_some() {}
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error_with_its_number() {
    let log = log_of(&samples::all("x"));
    let lines: Vec<&str> = log.lines().collect();
    for damaged in 1..lines.len() - 1 {
        let mut lines = lines.clone();
        let cut = &lines[damaged][..lines[damaged].len() - 1];
        lines[damaged] = cut;
        let text = format!("{}\n", lines.join("\n"));
        for error in [
            read(&text).expect_err("damaged"),
            lines_of(&text).expect_err("damaged"),
        ] {
            assert!(
                matches!(&error, LogError::Line { number, .. } if *number == damaged + 1),
                "{error}"
            );
        }
    }
    let mut bytes = log_of(&[samples::begun(VERSION)]).into_bytes();
    bytes.extend(b"\xff\n");
    let mut reader = LogReader::new(bytes.as_slice());
    reader.next_event().expect("the first line");
    let error = reader.next_event().expect_err("not UTF-8").to_string();
    assert!(error.starts_with("line 2: "), "{error}");
}

#[test]
fn events_of_later_versions_are_skipped() {
    let mut lines: Vec<String> = log_of(&samples::all("x"))
        .lines()
        .map(|line| format!("{line}\n"))
        .collect();
    let known = lines.len();
    lines.insert(
        1,
        "{\"invented_later\":{\"case\":0,\"record\":[1]}}\n".to_owned(),
    );
    let text = lines.concat();
    assert_eq!(read(&text).expect("a log").len(), known);
    let lines = lines_of(&text).expect("a log");
    assert_eq!(lines.len(), known);
    assert_eq!(lines[1].0, 3);
    for (_, offset, _) in lines {
        assert!(text[offset as usize..].starts_with("{\""));
    }
    // A known event with another shape is not one of a later version.
    assert!(decode("{\"note\":{}}").is_err());
    assert!(decode("{\"a\":1,\"b\":2}").is_err());
    assert!(decode("[]").is_err());
}

#[test]
fn a_log_of_another_version_or_without_a_beginning_is_refused() {
    let other = log_of(&[samples::begun(VERSION + 1)]);
    for error in [
        read(&other).expect_err("another version"),
        lines_of(&other).expect_err("another version"),
    ] {
        assert_eq!(
            error.to_string(),
            "the log has version 2, and this mcptest reads version 1"
        );
    }
    let log = log_of(&samples::all("x"));
    let beheaded = &log[log.find('\n').expect("a line") + 1..];
    for text in ["", "\n", "{\"later\":{}}\n", &log[..20], beheaded] {
        assert!(read(text).is_err(), "{text:?}");
        assert!(lines_of(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_record_can_be_found_in_its_line() {
    let line = encode(&samples::run_finished(3, 2, "x"), &Redactor::default());
    let Ok(Some(Event::RunFinished(finished))) = decode(&line) else {
        panic!("not a finished run: {line}");
    };
    let record = finished.record.expect("a record");
    let range = record.range_in(&line).expect("in this line");
    assert_eq!(&line[range.clone()], record.text());
    assert_eq!(record_range(&line), Some(range));
    assert_eq!(record_range("{\"note\":{}}\n"), None);
    assert!(line.ends_with(&format!("{}}}}}\n", record.text())));
    assert_eq!(record.parse().expect("a record"), samples::record("x"));
    assert_eq!(record.range_in("another line"), None);
}

#[test]
fn a_secret_that_is_a_word_of_the_format_leaves_a_warning() {
    let redactor = Redactor::new(["run_finished".to_owned()]);
    let line = encode(&samples::run_finished(0, 1, "x"), &redactor);
    assert!(line.starts_with("{\"warning\":"), "{line}");
    // One that is a word of the record.
    let redactor = Redactor::new(["tool_calls".to_owned()]);
    let line = encode(&samples::run_finished(0, 1, "x"), &redactor);
    assert!(!line.contains("tool_calls"), "{line}");
    assert!(decode(&line).is_ok_and(|event| event.is_some()));
}

#[test]
fn recorded_line_breaks_do_not_break_the_line() {
    let mut record = samples::record("x");
    record.name = "a\r\nb".to_owned();
    let mut event = samples::run_finished(0, 1, "x");
    if let Event::RunFinished(finished) = &mut event {
        finished.record = Some(record);
    }
    let line = encode(&event, &Redactor::default());
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(
        whole(decode(&line).expect("an event").expect("known")),
        event
    );
}

proptest! {
    #[test]
    fn events_survive_the_log(text in "\\PC{0,12}|[\\x00-\\x20\"\\\\]{0,6}") {
        let events = samples::all(&text);
        let log = log_of(&events);
        let read: Vec<Event> = read(&log).expect("a log").into_iter().map(whole).collect();
        prop_assert_eq!(read, events);
    }

    #[test]
    fn secrets_never_reach_a_line(
        before in "\\PC{0,6}|[\"\\\\\n]{0,3}",
        after in "\\PC{0,6}|[\"\\\\\n]{0,3}",
        secret in "[A-Z\"\\\\ü]{6,10}",
        nested in any::<bool>(),
    ) {
        let mut text = format!("{before}{secret}{after}");
        if nested {
            // JSON inside of a string, as servers answer it.
            text = serde_json::json!({"inner": text}).to_string();
        }
        let redactor = Redactor::new([secret.clone()]);
        for event in samples::all(&text) {
            let line = encode(&event, &redactor);
            let mut again = "before".to_owned();
            let is_whole = encode_into(&event, &redactor, &mut again);
            prop_assert_eq!(&again, &line);
            prop_assert_eq!(is_whole, line == encode(&event, &Redactor::default()));
            let decoded = decode(&line).expect("an event").expect("a known one");
            let value = serde_json::to_value(whole(decoded)).expect("it serialises");
            prop_assert!(redactor.is_clean_in(&value), "{}", line);
            prop_assert!(!line.contains(&secret));
        }
    }

    #[test]
    fn clean_json_is_what_the_redactor_leaves_unchanged(parts in proptest::collection::vec("\\PC{0,4}|s3cret|[\"\\\\\n\t/]", 0..6)) {
        let redactor = Redactor::new(["s3cret".to_owned()]);
        let value = serde_json::json!({parts.concat(): [parts.concat()]});
        prop_assert_eq!(is_clean_json(&value.to_string(), &redactor), redactor.is_clean_in(&value));
    }
}

#[test]
fn a_document_is_checked_piece_by_piece() {
    use std::io::Write as _;

    let redactor = Redactor::new(["hunter2-secret".to_owned()]);
    let filler = format!("[{}1]", r#"{"a":"x\"y\\","b":[1,null]},"#.repeat(40_000));
    for (document, is_clean) in [
        (filler.clone(), true),
        (
            format!(r#"{{"rows":{filler},"last":"a hunter2-secret"}}"#),
            false,
        ),
        (
            format!(r#"{{"first":"hunter2-secret","rows":{filler}}}"#),
            false,
        ),
        (r#"{"a":"hunter2\u002dsecret"}"#.to_owned(), false),
    ] {
        for size in [7, 1 << 20] {
            let mut check = CleanCheck::new(&redactor);
            for piece in document.as_bytes().chunks(size) {
                check.write_all(piece).unwrap();
            }
            assert_eq!(
                check.finish(),
                is_clean,
                "{size} {}",
                &document[..40.min(document.len())]
            );
        }
    }
}

proptest! {
    #[test]
    fn events_are_written_as_serde_writes_them(text in any::<String>()) {
        for event in samples::all(&text) {
            let mut written = Vec::new();
            write_event(&event, &mut written).expect("it serialises");
            let expected = serde_json::to_string(&event).expect("it serialises");
            prop_assert_eq!(String::from_utf8(written).expect("text"), expected);
        }
    }
}
