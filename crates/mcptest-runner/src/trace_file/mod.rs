//! Trace files, read as a stream.
//!
//! A file of JSON Lines is read in blocks of whole lines. The traces of a block are views of its
//! text, and blocks are worked on by all cores while the next ones are read, so memory holds a few
//! blocks whatever the size of the file. Arrays and cassettes are read as a whole.
//!
//! The results, and the error of a broken file, are those of reading it in one piece. Traces are
//! self-delimiting: a trace that a block begins with is the same trace in every input that begins
//! so. A block that ends inside of a trace is continued with the blocks after it.

mod blocks;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use mcptest_trace::parallel;
use mcptest_trace::trace::{self, Trace, TraceSyntaxError, TraceView};

use blocks::{BYTE_ORDER_MARK, Blocks, HEAD, line_ends, without_mark};

/// The least size of a block, except for the last.
const BLOCK: usize = 256 << 10;
/// The number of traces in a part of a file that is read as a whole.
const PART: usize = 1000;
/// More threads than this are not kept busy by one reader.
const MAX_THREADS: usize = 16;

/// An error from reading a trace file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// The file cannot be read.
    #[error("cannot read `{name}`: {}", reason(error))]
    Unreadable {
        /// The file.
        name: String,
        /// The cause.
        error: io::Error,
    },
    /// The file is not text.
    #[error("{name}:{line}: not UTF-8")]
    NotText {
        /// The file.
        name: String,
        /// From 1.
        line: usize,
    },
    /// The file is text, but does not contain traces.
    #[error(
        "{name}:{}:{}: not a trace: {}\n  \
         a trace is a JSON object with at least `tool_calls`, see `mcptest schema trace`",
        error.line, error.column, error.message
    )]
    NotTraces {
        /// The file.
        name: String,
        /// The first place that is wrong.
        error: TraceSyntaxError,
    },
    /// The file is a damaged cassette. The message has the name.
    #[error("{0}")]
    Cassette(String),
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "no such file".to_owned()
    } else {
        error.to_string()
    }
}

/// Reads the traces of a file (`-` is standard input): one object, an array, JSON Lines, or a
/// cassette.
///
/// # Errors
/// The first error of the file, with its place.
pub fn read_traces(path: &Path) -> Result<Vec<Trace>, TraceFileError> {
    let mut traces = Vec::new();
    fold_traces(path, &Collect, &mut 0, |part: Vec<Trace>| {
        traces.extend(part)
    })?;
    Ok(traces)
}

/// Keeps every trace.
struct Collect;

impl Fold for Collect {
    type Part = Vec<Trace>;

    fn start(&self, _: u64) -> Vec<Trace> {
        Vec::new()
    }

    fn trace(&self, part: &mut Vec<Trace>, trace: TraceView<'_>) {
        part.push(trace.into_owned());
    }
}

/// Work on the traces of a file that is done part by part, on several threads.
pub(crate) trait Fold: Sync {
    /// The result of a part of the file.
    type Part: Send;
    /// Begins a part. Parts that come later in the file have higher numbers.
    fn start(&self, number: u64) -> Self::Part;
    /// Adds the next trace of a part.
    fn trace(&self, part: &mut Self::Part, trace: TraceView<'_>);
}

/// Reads a file (`-` is standard input) and hands the results of its parts to `take`, in the order
/// of the file. `number` is that of the next part.
///
/// # Errors
/// The first error of the file, with its place. Parts before it have been taken.
pub(crate) fn fold_traces<F: Fold>(
    path: &Path,
    fold: &F,
    number: &mut u64,
    take: impl FnMut(F::Part),
) -> Result<(), TraceFileError> {
    let name = path.display().to_string();
    let threads = parallel::threads().min(MAX_THREADS);
    if path == Path::new("-") {
        return fold_input(
            &name,
            io::stdin().lock(),
            threads,
            BLOCK,
            fold,
            number,
            take,
        );
    }
    match File::open(path) {
        Ok(file) => fold_input(&name, file, threads, BLOCK, fold, number, take),
        Err(error) => Err(TraceFileError::Unreadable { name, error }),
    }
}

/// The same for any number of threads and any size of blocks.
pub(crate) fn fold_input<F: Fold>(
    name: &str,
    input: impl Read,
    threads: usize,
    size: usize,
    fold: &F,
    number: &mut u64,
    mut take: impl FnMut(F::Part),
) -> Result<(), TraceFileError> {
    let unreadable = |error| TraceFileError::Unreadable {
        name: name.to_owned(),
        error,
    };
    let mut blocks = Blocks::new(input, size);
    let mut first = blocks.first().map_err(unreadable)?;
    if !is_sequence(&first) {
        blocks.rest(&mut first).map_err(unreadable)?;
        let mut traces = read_whole(name, first)?.into_iter().peekable();
        while traces.peek().is_some() {
            let mut part = fold.start(next_number(number));
            for trace in traces.by_ref().take(PART) {
                fold.trace(&mut part, trace);
            }
            take(part);
        }
        return Ok(());
    }
    if first.starts_with(BYTE_ORDER_MARK) {
        first.drain(..BYTE_ORDER_MARK.len());
    }
    let mut position = Position::default();
    // A small file is not worth starting a thread.
    let left = if threads < 2 || blocks.ended {
        Some(first)
    } else {
        let pass = |text: &[u8]| position.pass(text);
        in_parallel(&mut blocks, first, threads, fold, number, &mut take, pass)
            .map_err(unreadable)?
    };
    let Some(left) = left else {
        return Ok(());
    };
    match one_by_one(&mut blocks, left, &mut position, fold, number, &mut take)
        .map_err(unreadable)?
    {
        Ok(()) => Ok(()),
        Err(Flaw::NotText { line }) => Err(TraceFileError::NotText {
            name: name.to_owned(),
            line,
        }),
        Err(Flaw::NotTraces(error)) => Err(not_traces(name, error)),
    }
}

/// A place in a file, counted from 0.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    line: usize,
    /// In bytes.
    column: usize,
}

impl Position {
    fn pass(&mut self, text: &[u8]) {
        self.line += line_ends(text);
        self.column = match memchr::memrchr(b'\n', text) {
            Some(end) => text.len() - end - 1,
            None => self.column + text.len(),
        };
    }

    /// An error of the text that begins here, at its place in the file.
    fn locate(self, mut error: TraceSyntaxError) -> TraceSyntaxError {
        if error.line == 1 {
            error.column += self.column;
        }
        error.line += self.line;
        error
    }
}

/// Counts a part.
fn next_number(number: &mut u64) -> u64 {
    *number += 1;
    *number - 1
}

/// The result of a block.
struct Worked<P> {
    part: P,
    block: Vec<u8>,
    /// The end of the last whole trace; `None` if nothing but white space follows it.
    stopped_at: Option<usize>,
}

fn work<F: Fold>(fold: &F, number: u64, block: Vec<u8>) -> Worked<F::Part> {
    let mut part = fold.start(number);
    let stopped_at = match std::str::from_utf8(&block) {
        Ok(text) => fold_text(fold, &mut part, text),
        Err(_) => Some(0),
    };
    Worked {
        part,
        block,
        stopped_at,
    }
}

/// Folds the traces that a text begins with. Returns the end of the last one if more follows.
fn fold_text<F: Fold>(fold: &F, part: &mut F::Part, text: &str) -> Option<usize> {
    let mut views = trace::views(text);
    let mut end = 0;
    while let Some(view) = views.next() {
        match view {
            Ok(view) => fold.trace(part, view),
            Err(_) => return Some(end),
        }
        end = views.offset();
    }
    None
}

/// Works on the blocks of an input until it ends, or until a block does not consist of whole
/// traces. Returns the text that is left then. `pass` is called for the text before it.
fn in_parallel<F: Fold>(
    blocks: &mut Blocks<impl Read>,
    first: Vec<u8>,
    threads: usize,
    fold: &F,
    number: &mut u64,
    take: &mut impl FnMut(F::Part),
    mut pass: impl FnMut(&[u8]),
) -> io::Result<Option<Vec<u8>>> {
    type Job<P> = (u64, Vec<u8>, mpsc::Sender<Worked<P>>);
    let (jobs, queue) = mpsc::channel::<Job<F::Part>>();
    let queue = Mutex::new(queue);
    let next_job = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    let worker = || {
        while let Ok((number, block, reply)) = next_job() {
            // Nobody waits for it after an error.
            let _ = reply.send(work(fold, number, block));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let read = || -> io::Result<Option<Vec<u8>>> {
            // Dropped at the end, which ends the workers.
            let jobs = jobs;
            let mut under_way = VecDeque::new();
            let mut next = Some(first);
            loop {
                while let Some(block) = next.take_if(|_| under_way.len() <= threads) {
                    let (reply, result) = mpsc::channel();
                    // A worker takes jobs until it panics, which shows in the reply.
                    let _ = jobs.send((next_number(number), block, reply));
                    under_way.push_back(result);
                    next = Some(blocks.next(1)?).filter(|block| !block.is_empty());
                }
                let Some(oldest) = under_way.pop_front() else {
                    return Ok(None);
                };
                // The panic of a worker is passed on below.
                let Ok(worked) = oldest.recv() else {
                    return Ok(None);
                };
                take(worked.part);
                let Some(stopped_at) = worked.stopped_at else {
                    pass(&worked.block);
                    blocks.recycle(worked.block);
                    continue;
                };
                pass(&worked.block[..stopped_at]);
                let mut left = worked.block[stopped_at..].to_vec();
                // Blocks after it may begin inside of a trace: their results are dropped.
                for later in under_way {
                    left.extend(later.recv().map_or_else(|_| Vec::new(), |it| it.block));
                }
                left.extend(next.unwrap_or_default());
                return Ok(Some(left));
            }
        };
        let left = read();
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        left
    })
}

/// A flaw of a file.
enum Flaw {
    NotText { line: usize },
    NotTraces(TraceSyntaxError),
}

/// Works on the rest of a sequence, trace by trace. `text` begins at `position`.
fn one_by_one<F: Fold>(
    blocks: &mut Blocks<impl Read>,
    mut text: Vec<u8>,
    position: &mut Position,
    fold: &F,
    number: &mut u64,
    take: &mut impl FnMut(F::Part),
) -> io::Result<Result<(), Flaw>> {
    loop {
        let valid = match std::str::from_utf8(&text) {
            Ok(valid) => valid,
            Err(error) => {
                position.pass(&text[..error.valid_up_to()]);
                let line = position.line + 1;
                return Ok(Err(Flaw::NotText { line }));
            }
        };
        let mut part = fold.start(next_number(number));
        let mut views = trace::views(valid);
        let mut end = 0;
        let mut error = None;
        while let Some(view) = views.next() {
            match view {
                Ok(view) => fold.trace(&mut part, view),
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
            end = views.offset();
        }
        take(part);
        match error {
            None => {
                position.pass(&text);
                text = blocks.next(1)?;
                if text.is_empty() {
                    return Ok(Ok(()));
                }
            }
            Some(error) if error.is_incomplete() && !blocks.ended => {
                position.pass(&text[..end]);
                text.drain(..end);
                // The trace is read again from its start, so each time with twice the text.
                let enough = text.len() * 2;
                while text.len() <= enough && !blocks.ended {
                    text.extend(blocks.next(1)?);
                }
            }
            Some(error) => {
                let error = position.locate(error);
                position.pass(&text);
                // A file that is not text is reported as such, wherever it is not.
                return Ok(match first_line_not_text(blocks, position)? {
                    Some(line) => Err(Flaw::NotText { line }),
                    None => Err(Flaw::NotTraces(error)),
                });
            }
        }
    }
}

/// The first line of the rest that is not UTF-8, from 1.
fn first_line_not_text(
    blocks: &mut Blocks<impl Read>,
    position: &mut Position,
) -> io::Result<Option<usize>> {
    loop {
        let block = blocks.next(1)?;
        if block.is_empty() {
            return Ok(None);
        }
        if let Err(error) = std::str::from_utf8(&block) {
            position.pass(&block[..error.valid_up_to()]);
            return Ok(Some(position.line + 1));
        }
        position.pass(&block);
        blocks.recycle(block);
    }
}

/// Returns true if a file that begins with these bytes is a sequence of traces: neither an array
/// nor a cassette.
fn is_sequence(first: &[u8]) -> bool {
    !trace::starts_array(without_mark(first)) && !is_cassette(first)
}

fn is_cassette(text: &[u8]) -> bool {
    let mark = mcptest_cassette::FORMAT.as_bytes();
    let mut head = text.split(|byte| *byte == b'\n').take(HEAD);
    head.any(|line| line.windows(mark.len()).any(|part| part == mark))
}

fn read_whole(name: &str, bytes: Vec<u8>) -> Result<Vec<Trace>, TraceFileError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        TraceFileError::NotText {
            name: name.to_owned(),
            line: line_ends(good) + 1,
        }
    })?;
    if is_cassette(text.as_bytes()) {
        let cassette = mcptest_cassette::parse(name, text.as_bytes())
            .map_err(|error| TraceFileError::Cassette(error.to_string()))?;
        return mcptest_cassette::traces(cassette)
            .map_err(|error| TraceFileError::Cassette(format!("{name}: {error}")));
    }
    trace::read(&text).map_err(|error| not_traces(name, error))
}

fn not_traces(name: &str, error: TraceSyntaxError) -> TraceFileError {
    TraceFileError::NotTraces {
        name: name.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests;
