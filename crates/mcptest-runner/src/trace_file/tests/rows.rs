//! Rows: each line is one trace, or broken.

use super::*;

/// The number of traces, and the broken rows.
fn rows(text: &[u8], threads: usize, size: usize) -> (usize, Vec<usize>) {
    let (mut traces, mut broken) = (0, Vec::new());
    let take = |step: Step<Vec<Trace>>| match step {
        Step::Part(part, _) => traces += part.len(),
        Step::Broken(line) => broken.push(line.line),
    };
    let settings = settings(threads, size, false);
    fold_rows("rows", text, settings, &Collect, &mut 0, take).unwrap();
    (traces, broken)
}

/// Rows of all kinds, with the answer if it is a trace.
const ROWS: [(&[u8], bool); 12] = [
    (b"{\"tool_calls\":[]}", true),
    (b" {\"tool_calls\": [{\"name\": \"a\"}]}\r", true),
    (b"", false),
    (b"  ", false),
    // Two rows that are a trace together, and neither of them alone.
    (b"{\"tool_calls\": [", false),
    (b"{\"name\": \"a\"}]}", false),
    (b"{\"tool_calls\": []} {\"tool_calls\": []}", false),
    (b"[{\"tool_calls\": []}]", false),
    (b"null", false),
    (b"\xff", false),
    (b"\x1f\x8b\x08", false),
    (
        b"{\"tool_calls\": 1, \"format\": \"mcptest-cassette\"}",
        false,
    ),
];

#[test]
fn a_row_is_a_trace_or_broken_whatever_is_around_it() {
    let text: Vec<u8> = ROWS
        .iter()
        .flat_map(|(row, _)| [row, &b"\n"[..]].concat())
        .collect();
    assert_eq!(rows(&text, 1, 1 << 20), (2, (3..=12).collect()));
    assert_eq!(rows(b"", 1, 10), (0, vec![]));
    // Files without a trace are errors; rows are not.
    assert_eq!(rows(b"7\n8\n", 2, 1), (0, vec![1, 2]));
    // The last row needs no line end.
    assert_eq!(
        rows(b"{\"tool_calls\":[]}\n{\"tool_calls\":[]}", 1, 10),
        (2, vec![])
    );
    let strict = settings(1, 10, true);
    let error = fold_rows("rows", &b"7"[..], strict, &Collect, &mut 0, |_| {}).unwrap_err();
    assert!(error.to_string().starts_with("rows:1:"), "{error}");
}

proptest! {
    #[test]
    fn neither_neighbours_nor_blocks_change_a_row(
        picks in prop::collection::vec(0..ROWS.len(), 0..30),
        threads in 1..4_usize,
        size in 1..200_usize,
    ) {
        let text: Vec<u8> = picks.iter().flat_map(|at| [ROWS[*at].0, b"\n"].concat()).collect();
        let broken: Vec<usize> =
            (1..).zip(&picks).filter(|(_, at)| !ROWS[**at].1).map(|(line, _)| line).collect();
        let traces = picks.len() - broken.len();
        prop_assert_eq!(rows(&text, threads, size), (traces, broken));
    }
}
