//! Trace files. Long ones are read in blocks of whole lines, which are parsed on all cores while
//! the next ones are read, so that the text of a file is never in memory as a whole.
//!
//! What comes out, and what is said about a broken file, is as if it had been read in one piece: a
//! block that parses as whole traces is the beginning of any text that begins with it. At the first
//! block that does not, the rest of the file is read as one piece.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use mcptest_trace::parallel;
use mcptest_trace::trace::{self, Trace, TraceSyntaxError};

/// The least that a block has, but for the last.
const BLOCK: usize = 1 << 20;
/// How much larger traces may be than their text.
const GROWTH: usize = 8;
/// A cassette says in one of its first lines that it is one.
const HEAD: usize = 3;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TraceFileError {
    /// It cannot be read.
    #[error("cannot read `{name}`: {}", if error.kind() == io::ErrorKind::NotFound { "no such file".to_owned() } else { error.to_string() })]
    Unreadable {
        /// The file.
        name: String,
        /// Why not.
        error: io::Error,
    },
    /// It is no text.
    #[error("{name}:{line}: not UTF-8")]
    NotText {
        /// The file.
        name: String,
        /// From 1.
        line: usize,
    },
    /// It is text, but not traces.
    #[error("{name}:{}:{}: not a trace: {}\n  a trace is a JSON object with at least `tool_calls`, see `mcptest schema trace`", error.line, error.column, error.message)]
    NotTraces {
        /// The file.
        name: String,
        /// The first place that is wrong.
        error: TraceSyntaxError,
    },
    /// It is a cassette that is broken, in words with the name.
    #[error("{0}")]
    Cassette(String),
}

/// Reads the traces of a file (`-` is standard input): one object, an array, JSON Lines, or a
/// cassette.
///
/// # Errors
/// The first thing that is wrong, with the place.
pub fn read_traces(path: &Path) -> Result<Vec<Trace>, TraceFileError> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return read(&name, io::stdin().lock(), parallel::threads(), BLOCK);
    }
    match File::open(path) {
        Ok(file) => read(&name, file, parallel::threads(), BLOCK),
        Err(error) => Err(TraceFileError::Unreadable { name, error }),
    }
}

/// The same whatever the number of threads and the size of blocks.
fn read(
    name: &str,
    input: impl Read,
    threads: usize,
    size: usize,
) -> Result<Vec<Trace>, TraceFileError> {
    let unreadable = |error| TraceFileError::Unreadable {
        name: name.to_owned(),
        error,
    };
    let mut blocks = Blocks::new(input, size);
    let mut first = blocks.first().map_err(unreadable)?;
    if blocks.ended || !is_sequence(&first) {
        blocks.rest(&mut first).map_err(unreadable)?;
        return read_whole(name, first);
    }
    if first.starts_with(BYTE_ORDER_MARK) {
        first.drain(..BYTE_ORDER_MARK.len());
    }
    let mut traces = Vec::new();
    let mut lines_before = 0;
    // Pieces as large as this are taken from the system one by one, until one was given back.
    make_room(2 * GROWTH * size);
    // What is left when a block is no sequence of whole traces.
    let mut left = None;
    thread::scope(|scope| -> io::Result<()> {
        let mut under_way = VecDeque::new();
        let mut next = Some(first);
        loop {
            while let Some(block) = next.take_if(|_| under_way.len() < threads.max(1)) {
                under_way.push_back(scope.spawn(move || {
                    make_room(GROWTH * size);
                    let parsed = parse(&block);
                    (block, parsed)
                }));
                next = Some(blocks.next(1)?).filter(|block| !block.is_empty());
            }
            let Some(oldest) = under_way.pop_front() else {
                return Ok(());
            };
            match oldest.join().unwrap_or_else(|panic| resume_unwind(panic)) {
                (block, Some(parsed)) => {
                    traces.extend(parsed);
                    lines_before += line_ends(&block);
                    blocks.spare.push(block);
                }
                (mut text, None) => {
                    for later in under_way {
                        let (block, _) = later.join().unwrap_or_else(|panic| resume_unwind(panic));
                        text.extend(block);
                    }
                    text.extend(next.unwrap_or_default());
                    blocks.rest(&mut text)?;
                    left = Some(text);
                    return Ok(());
                }
            }
        }
    })
    .map_err(unreadable)?;
    if let Some(left) = left {
        let text = utf8(name, left, lines_before)?;
        let more = trace::read_sequence(&text).map_err(|mut error| {
            error.line += lines_before;
            not_traces(name, error)
        })?;
        traces.extend(more);
    }
    Ok(traces)
}

/// Has the allocator get so much room at once. A thread that is new has none, and would else ask
/// the system for every page of what it parses.
fn make_room(bytes: usize) {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(bytes)));
}

/// Returns true if a file that begins with these bytes is a sequence of traces: neither an array
/// nor a cassette.
fn is_sequence(first: &[u8]) -> bool {
    !trace::starts_array(without_mark(first)) && !is_cassette(first)
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

fn is_cassette(text: &[u8]) -> bool {
    let mark = mcptest_cassette::FORMAT.as_bytes();
    let mut head = text.split(|byte| *byte == b'\n').take(HEAD);
    head.any(|line| line.windows(mark.len()).any(|part| part == mark))
}

/// The traces of a block, if it is whole traces and nothing else.
fn parse(block: &[u8]) -> Option<Vec<Trace>> {
    trace::read_sequence(std::str::from_utf8(block).ok()?).ok()
}

fn read_whole(name: &str, bytes: Vec<u8>) -> Result<Vec<Trace>, TraceFileError> {
    let text = utf8(name, bytes, 0)?;
    if is_cassette(text.as_bytes()) {
        let cassette = mcptest_cassette::parse(name, text.as_bytes())
            .map_err(|error| TraceFileError::Cassette(error.to_string()))?;
        return mcptest_cassette::traces(cassette)
            .map_err(|words| TraceFileError::Cassette(format!("{name}: {words}")));
    }
    trace::read(&text).map_err(|error| not_traces(name, error))
}

fn not_traces(name: &str, error: TraceSyntaxError) -> TraceFileError {
    TraceFileError::NotTraces {
        name: name.to_owned(),
        error,
    }
}

fn utf8(name: &str, bytes: Vec<u8>, lines_before: usize) -> Result<String, TraceFileError> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        TraceFileError::NotText {
            name: name.to_owned(),
            line: lines_before + line_ends(good) + 1,
        }
    })
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Cuts what is read into blocks of whole lines.
struct Blocks<R> {
    input: R,
    size: usize,
    /// What was read behind the last block.
    over: Vec<u8>,
    /// Nothing more is to be read.
    ended: bool,
    /// Blocks that are done with, to be filled again.
    spare: Vec<Vec<u8>>,
}

impl<R: Read> Blocks<R> {
    fn new(input: R, size: usize) -> Self {
        Self {
            input,
            size,
            over: Vec::new(),
            ended: false,
            spare: Vec::new(),
        }
    }

    /// The first block. It has the lines that show whether the file is a cassette, and the first
    /// byte that is not blank, which shows whether the file is an array.
    fn first(&mut self) -> io::Result<Vec<u8>> {
        let mut first = self.next(HEAD)?;
        while !self.ended && trace::is_blank(without_mark(&first)) {
            let more = self.next(1)?;
            first.extend(more);
        }
        Ok(first)
    }

    /// The next block: so many lines at least, if there are. Empty at the end.
    fn next(&mut self, lines: usize) -> io::Result<Vec<u8>> {
        let mut block = self.spare.pop().unwrap_or_default();
        block.clear();
        block.append(&mut self.over);
        let mut ends = line_ends(&block);
        while !self.ended {
            let before = block.len();
            let wanted = u64::try_from(self.size).unwrap_or(u64::MAX);
            let got = self.input.by_ref().take(wanted).read_to_end(&mut block)?;
            self.ended = got < self.size;
            ends += line_ends(&block[before..]);
            if ends < lines || self.ended {
                continue;
            }
            // Where the next line begins an object, there most likely begins a trace, also in a
            // file with many lines for each.
            let new = before.saturating_sub(1);
            let cut = block[new..]
                .windows(2)
                .rposition(|pair| pair == b"\n{")
                .or_else(|| block[new..].iter().rposition(|byte| *byte == b'\n'));
            if let Some(cut) = cut
                .map(|cut| new + cut + 1)
                .filter(|cut| line_ends(&block[..*cut]) >= lines)
            {
                self.over.extend_from_slice(&block[cut..]);
                block.truncate(cut);
                return Ok(block);
            }
        }
        Ok(block)
    }

    /// Everything that no block has had yet.
    fn rest(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        text.append(&mut self.over);
        if !self.ended {
            self.ended = true;
            self.input.read_to_end(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// In words, so that errors can be compared.
    fn told(result: Result<Vec<Trace>, TraceFileError>) -> Result<Vec<Trace>, String> {
        result.map_err(|error| error.to_string())
    }

    fn whole(bytes: &[u8]) -> Result<Vec<Trace>, String> {
        told(read_whole("f", bytes.to_vec()))
    }

    fn in_blocks(bytes: &[u8], threads: usize, size: usize) -> Result<Vec<Trace>, String> {
        told(read("f", bytes, threads, size))
    }

    #[test]
    fn blocks_end_with_a_line_and_lose_nothing() {
        let text = b"{1}\n{22}\n\n{333333}\n  {4\n}\n{5}";
        for size in 1..40 {
            let mut blocks = Blocks::new(text.as_slice(), size);
            let mut all = Vec::new();
            loop {
                let block = blocks.next(1).unwrap();
                if block.is_empty() {
                    break;
                }
                assert!(
                    all.is_empty() || all.ends_with(b"\n"),
                    "size {size}: {all:?}"
                );
                all.extend(block);
            }
            assert_eq!(all, text, "size {size}");
        }
    }

    #[test]
    fn a_cassette_is_known_by_its_first_lines_only() {
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
        let words = in_blocks(text.as_bytes(), 3, 50).unwrap_err();
        assert!(
            words.starts_with("f:21:16: not a trace: invalid type"),
            "{words}"
        );
        let mut bytes = text.into_bytes();
        bytes.extend([0xff, b'\n']);
        assert_eq!(in_blocks(&bytes, 3, 50).unwrap_err(), "f:42: not UTF-8");
    }

    #[test]
    fn an_array_in_the_middle_is_no_trace() {
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
    fn a_file_that_cannot_be_read_on_is_no_shorter_file() {
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
            let words = told(read("f", Broken(good), 2, 18)).unwrap_err();
            assert_eq!(words, "cannot read `f`: gone");
        }
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
        fn blocks_and_threads_show_nowhere(
            pieces in prop::collection::vec(piece(), 0..12),
            threads in 1..4_usize,
            size in 1..120_usize,
        ) {
            let bytes = pieces.concat();
            prop_assert_eq!(in_blocks(&bytes, threads, size), whole(&bytes));
        }
    }
}
