mod rows;

use proptest::prelude::*;

use super::*;

/// The traces and the broken lines, or the error as text.
type Reading = Result<(Vec<Trace>, Vec<BrokenLine>), String>;

fn read_with(input: impl Read, settings: ReadSettings<'_>) -> Reading {
    let (mut traces, mut broken) = (Vec::new(), Vec::new());
    let take = |step| match step {
        Step::Part(part, _) => traces.extend(part),
        Step::Broken(line) => broken.push(line),
    };
    let result = fold_input("f", input, settings, &Collect, &mut 0, take);
    match result {
        Ok(()) => Ok((traces, broken)),
        Err(error) => Err(error.to_string()),
    }
}

fn settings(threads: usize, block: usize, strict: bool) -> ReadSettings<'static> {
    ReadSettings {
        threads,
        strict,
        block,
        format: TraceFormat::Native,
        ..ReadSettings::default()
    }
}

/// Reads strictly, in one piece.
fn whole(bytes: &[u8]) -> Result<Vec<Trace>, String> {
    in_blocks(bytes, 1, 1 << 20)
}

/// Reads strictly.
fn in_blocks(bytes: &[u8], threads: usize, size: usize) -> Result<Vec<Trace>, String> {
    let read = read_with(bytes, settings(threads, size, true))?;
    assert_eq!(read.1, []);
    Ok(read.0)
}

/// Reads past broken lines: the number of traces, and the broken lines.
fn tolerant(text: &[u8], threads: usize, size: usize) -> (usize, Vec<(usize, String)>) {
    let (traces, broken) = read_with(text, settings(threads, size, false)).unwrap();
    let place = |line: BrokenLine| (line.line, line.message);
    (traces.len(), broken.into_iter().map(place).collect())
}

#[test]
fn a_cassette_is_recognised_by_its_first_lines() {
    assert!(is_cassette(b"{\n  \"format\": \"mcptest-cassette\",\n"));
    assert!(!is_cassette(
        b"{}\n{}\n{}\n{\"format\": \"mcptest-cassette\"}"
    ));
    let long = format!(
        "{{\"tool_calls\": [],\n\"x\": \"{}\",\n\"mcptest-cassette\": 1}}\n",
        "y".repeat(100)
    );
    assert_eq!(in_blocks(long.as_bytes(), 2, 8), whole(long.as_bytes()));
    assert!(
        in_blocks(long.as_bytes(), 2, 8)
            .unwrap_err()
            .contains("format")
    );
}

#[test]
fn errors_keep_their_line() {
    let mut text = "{\"tool_calls\": []}\n".repeat(20);
    text.push_str("{\"tool_calls\": 7}\n");
    text.push_str(&"{\"tool_calls\": []}\n".repeat(20));
    let message = in_blocks(text.as_bytes(), 3, 50).unwrap_err();
    assert!(
        message.starts_with("f:21:16: not a trace: invalid type"),
        "{message}"
    );
    let mut bytes = "{\"tool_calls\": []}\n".repeat(41).into_bytes();
    bytes.extend([0xff, b'\n']);
    assert_eq!(in_blocks(&bytes, 3, 50).unwrap_err(), "f:42: not UTF-8");
}

#[test]
fn an_array_in_the_middle_is_not_a_trace() {
    let text = format!("{}[]\n", "{\"tool_calls\": []}\n".repeat(4));
    assert!(whole(text.as_bytes()).is_err());
    for size in 1..100 {
        assert_eq!(
            in_blocks(text.as_bytes(), 2, size),
            whole(text.as_bytes()),
            "size {size}"
        );
    }
}

#[test]
fn blank_lines_before_an_array_may_fill_any_number_of_blocks() {
    let blank = "\n \n\n \n";
    for before in [
        blank.to_owned(),
        blank.repeat(9),
        format!("\u{feff}{blank}"),
    ] {
        let text = format!("{before}[{{\"tool_calls\":[]}}]\n");
        assert_eq!(whole(text.as_bytes()).map(|traces| traces.len()), Ok(1));
        for size in 1..text.len() + 2 {
            assert_eq!(
                in_blocks(text.as_bytes(), 2, size),
                whole(text.as_bytes()),
                "size {size}: {text:?}"
            );
        }
    }
}

#[test]
fn a_read_error_is_not_the_end_of_the_file() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let line = b"{\"tool_calls\":[]}\n";
            if self.0 == 0 {
                return Err(io::Error::other("gone"));
            }
            self.0 -= 1;
            let length = line.len().min(into.len());
            into[..length].copy_from_slice(&line[..length]);
            Ok(length)
        }
    }
    for good in [0, 1, 30] {
        let message = read_with(Broken(good), settings(2, 18, false)).unwrap_err();
        assert_eq!(message, "cannot read `f`: gone");
    }
}

#[test]
fn a_trace_of_many_lines_may_be_larger_than_a_block() {
    let long: String = (0..50).map(|at| format!("\"k{at}\":\n{{}},\n")).collect();
    let text = format!("{{\n{long}\"tool_calls\": []}} {{\"tool_calls\": []}}\n").repeat(5);
    assert_eq!(whole(text.as_bytes()).unwrap().len(), 10);
    for size in [1, 7, 64, 500, 5000] {
        assert_eq!(in_blocks(text.as_bytes(), 3, size), whole(text.as_bytes()));
    }
    let torn = format!("{text}{{\"tool_calls\": []}} {{\"tool_calls\": 7}}\n{text}");
    let message = whole(torn.as_bytes()).unwrap_err();
    assert!(message.starts_with("f:511:35: not a trace"), "{message}");
    for size in [1, 7, 64, 500, 5000] {
        assert_eq!(in_blocks(torn.as_bytes(), 3, size).unwrap_err(), message);
    }
}

#[test]
fn a_panic_of_the_work_is_passed_on() {
    struct Panics;
    impl Fold for Panics {
        type Part = ();
        fn start(&self, _: u64) {}
        fn trace(&self, (): &mut (), _: Option<usize>, trace: &mut TraceView<'_>) {
            assert_ne!(trace.run, Some(31), "the run that panics");
        }
    }
    let text: String = (0..50)
        .map(|run| format!("{{\"run\": {run}, \"tool_calls\": []}}\n"))
        .collect();
    let hit = std::panic::catch_unwind(|| {
        let how = settings(3, 40, false);
        let _ = fold_input("f", text.as_bytes(), how, &Panics, &mut 0, |_| {});
    });
    let message = hit.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("the run that panics"), "{message}");
}

/// Broken lines of JSON Lines, also cut off ones.
const BROKEN: [&[u8]; 7] = [
    b"{\"tool_calls\":7}\n",
    b"{\"tool_cals\":[]}\n",
    b"{\"tool_calls\":[{\"name\":\"a\n",
    b"{\"tool_calls\":[{\"name\":\n",
    b"{\"tool_calls\":[\n",
    b"{\n",
    b"{\"final_response\": \"\xff\"}\n",
];

#[test]
fn broken_lines_are_skipped_and_counted() {
    let good = "{\"tool_calls\": []}\n";
    let text = format!(
        "{good}{{\"tool_calls\": [{{\n{good}\nnonsense\n{good}{{\"tool_calls\": 1}} {good}{good}"
    );
    let expected = (
        4,
        vec![
            (2, "EOF while parsing an object".to_owned()),
            (5, "expected ident".to_owned()),
            (
                7,
                "invalid type: integer `1`, expected a sequence".to_owned(),
            ),
        ],
    );
    for size in 1..text.len() + 2 {
        assert_eq!(tolerant(text.as_bytes(), 2, size), expected, "size {size}");
    }
}

#[test]
fn a_broken_trace_of_several_lines_is_one_broken_trace() {
    let good = "{\n  \"tool_calls\": []\n}\n";
    let bad = "{\n  \"tool_calls\": [\n    {\"turn\": \"x\"}\n  ]\n}\n";
    let text = [good, bad, good, bad, good].concat();
    for size in [1, 5, 20, 60, 500] {
        let (traces, broken) = tolerant(text.as_bytes(), 2, size);
        let lines: Vec<usize> = broken.iter().map(|(line, _)| *line).collect();
        assert_eq!((traces, lines), (3, vec![6, 14]), "size {size}");
    }
}

#[test]
fn a_file_without_any_trace_is_an_error() {
    for text in ["nonsense\nmore\n", "{}\n", "{\"tool_calls\": [", "\u{1}"] {
        let message = read_with(text.as_bytes(), settings(2, 8, false)).unwrap_err();
        assert!(message.starts_with("f:1:"), "{message}");
    }
    let hopeless = "x\n".repeat(5000);
    let error = read_with(hopeless.as_bytes(), settings(2, 64, false)).unwrap_err();
    assert!(error.starts_with("f:1:1: not a trace"), "{error}");
}

#[test]
fn nested_beginnings_take_linear_time() {
    // Each line begins a trace that seems to continue in the next line.
    let good = "{\"tool_calls\":[]}\n";
    let text = good.to_owned() + &"{\"x\":[\n".repeat(2_000) + good;
    let (traces, broken) = tolerant(text.as_bytes(), 2, 1 << 14);
    assert_eq!((traces, broken.len()), (2, 2_000));
}

/// Pieces of trace files, good and bad; a file is some of them in a row.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => Just(b"{\"tool_calls\":[{\"name\":\"a\"}]}\n".to_vec()),
        4 => Just("{\"tool_calls\": [],\r\n\"final_response\": \"é\"}\r\n".as_bytes().to_vec()),
        4 => Just(b"{\n  \"tool_calls\": [\n{\"name\": \"b\"}\n],\n\"x\":\n{}\n}\n".to_vec()),
        2 => Just(b"\n \n".to_vec()),
        2 => Just(b"{\"tool_calls\":[]} {\"tool_calls\":[]}".to_vec()),
        1 => Just(b"[{\"tool_calls\":[]}]\n".to_vec()),
        1 => Just(b"[\n".to_vec()),
        1 => Just(b"]\n".to_vec()),
        1 => Just(b"{\"tool_calls\":\n".to_vec()),
        1 => Just("\u{feff}".as_bytes().to_vec()),
        1 => Just(b"\xff\n".to_vec()),
        1 => Just(b"{\"format\": \"mcptest-cassette\"}\n".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]
    #[test]
    fn blocks_and_threads_do_not_show(
        pieces in prop::collection::vec(piece(), 0..12),
        threads in 1..4_usize,
        size in 1..120_usize,
    ) {
        let bytes = pieces.concat();
        for strict in [true, false] {
            prop_assert_eq!(
                read_with(bytes.as_slice(), settings(threads, size, strict)),
                read_with(bytes.as_slice(), settings(1, 1 << 20, strict))
            );
        }
        // The reader of whole texts knows no broken lines.
        if std::str::from_utf8(&bytes).is_ok() {
            let good = read_whole("f", bytes.clone()).map_err(|_| ());
            prop_assert_eq!(whole(&bytes).map_err(|_| ()), good);
        }
    }

    #[test]
    fn good_lines_are_never_lost(
        broken in prop::collection::vec(prop::option::of(0..BROKEN.len()), 1..30),
        threads in 1..4_usize,
        size in 1..300_usize,
    ) {
        let good = "{\"tool_calls\":[{\"name\":\"a\"}]}\n";
        let line = |at: &Option<usize>| at.map_or(good.as_bytes(), |at| BROKEN[at]);
        let text: Vec<u8> = broken.iter().flat_map(line).copied().collect();
        let lost: Vec<usize> = (1..).zip(&broken).filter(|(_, at)| at.is_some()).map(|(line, _)| line).collect();
        let reading = read_with(text.as_slice(), settings(threads, size, false));
        if lost.len() == broken.len() {
            prop_assert!(reading.is_err());
        } else {
            let (traces, places) = reading.unwrap();
            prop_assert_eq!(traces.len(), broken.len() - lost.len());
            let places: Vec<usize> = places.iter().map(|place| place.line).collect();
            prop_assert_eq!(places, lost);
        }
    }
}
