//! `tests/golden/*.frames`: lines with `> ` are sent, the lines with `< ` below are expected.
//! `UPDATE_GOLDEN=1` rewrites them.

use std::fmt::Write as _;
use std::path::Path;

fn check(name: &str) {
    check_with("full.yml", name);
}

fn check_with(manifest: &str, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let expected = std::fs::read_to_string(&path).expect("a golden file");
    let server = crate::server(manifest);
    let mut session = server.session();
    let mut actual = String::new();
    for line in expected.lines().filter(|line| !line.starts_with("< ")) {
        actual.push_str(line);
        actual.push('\n');
        if let Some(frame) = line.strip_prefix("> ") {
            let mut out = Vec::new();
            server.handle_line(&mut session, frame.as_bytes(), &mut out);
            let out = String::from_utf8(out).expect("UTF-8");
            assert!(out.is_empty() || out.ends_with('\n'), "{out}");
            for reply in out.lines() {
                writeln!(actual, "< {reply}").expect("a string");
            }
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &actual).expect("a writable golden file");
        return;
    }
    for (number, (actual, expected)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "{name}, line {}", number + 1);
    }
    assert_eq!(actual, expected, "{name}");
}

#[test]
fn initialize() {
    check("initialize.frames");
}

#[test]
fn calls() {
    check("calls.frames");
}

#[test]
fn stateless() {
    check("stateless.frames");
}

#[test]
fn invalid() {
    check("invalid.frames");
}

#[test]
fn batch() {
    check("batch.frames");
}

#[test]
fn behaviour() {
    check_with("behaviour.yml", "behaviour.frames");
}

#[test]
fn ask() {
    check_with("behaviour.yml", "ask.frames");
}
