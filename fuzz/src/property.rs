//! Properties that several targets share.

use mcptest_numbers::random::SplitMix64;
use mcptest_yaml::Diagnostics;

/// Splits an input into chunks whose sizes follow from its bytes.
pub(crate) fn chunks(input: &[u8]) -> Vec<&[u8]> {
    let sum = input.iter().fold(input.len() as u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(*byte))
    });
    let mut random = SplitMix64::new(sum);
    let mut rest = input;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let longest = [1, 7, 64, 1024][random.below(4) as usize];
        let size = (1 + random.below(longest) as usize).min(rest.len());
        let (chunk, after) = rest.split_at(size);
        chunks.push(chunk);
        rest = after;
    }
    chunks
}

/// Panics unless there are problems, each in a file and at a place that exists, and unless they
/// can be shown on a terminal.
pub(crate) fn assert_located(problems: &Diagnostics, name: &str) {
    assert!(!problems.0.is_empty(), "rejected without a reason");
    for problem in &problems.0 {
        let (file, place) = problem.location();
        assert_eq!(file, Some(name), "without a file: {}", problem.message);
        if let Some((line, column)) = place {
            assert!(line > 0 && column > 0, "not from 1: {}", problem.message);
        }
    }
    assert_printable(&problems.render(false));
}

/// Panics if a text has characters that control a terminal.
pub(crate) fn assert_printable(text: &str) {
    let is_unsafe = |c: char| c.is_control() && c != '\n' && c != '\t';
    if let Some(found) = text.chars().find(|c| is_unsafe(*c)) {
        panic!("{found:?} in a text for people: {text:?}");
    }
}
