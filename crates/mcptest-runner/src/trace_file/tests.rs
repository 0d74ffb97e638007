use proptest::prelude::*;

use super::*;

/// With the error as text, which can be compared.
fn shown(result: Result<Vec<Trace>, TraceFileError>) -> Result<Vec<Trace>, String> {
    result.map_err(|error| error.to_string())
}

fn whole(bytes: &[u8]) -> Result<Vec<Trace>, String> {
    shown(read_whole("f", bytes.to_vec()))
}

fn read(input: impl Read, threads: usize, size: usize) -> Result<Vec<Trace>, String> {
    let mut traces = Vec::new();
    let take = |part: Vec<Trace>| traces.extend(part);
    let result = fold_input("f", input, threads, size, &Collect, &mut 0, take);
    shown(result.map(|()| traces))
}

fn in_blocks(bytes: &[u8], threads: usize, size: usize) -> Result<Vec<Trace>, String> {
    read(bytes, threads, size)
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
    let mut bytes = text.into_bytes();
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
        let message = read(Broken(good), 2, 18).unwrap_err();
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
        fn trace(&self, (): &mut (), trace: TraceView<'_>) {
            assert_ne!(trace.run, Some(31), "the run that panics");
        }
    }
    let text: String = (0..50)
        .map(|run| format!("{{\"run\": {run}, \"tool_calls\": []}}\n"))
        .collect();
    let hit = std::panic::catch_unwind(|| {
        let _ = fold_input("f", text.as_bytes(), 3, 40, &Panics, &mut 0, |()| {});
    });
    let message = hit.unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    assert!(message.contains("the run that panics"), "{message}");
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
        prop_assert_eq!(in_blocks(&bytes, threads, size), whole(&bytes));
    }
}
