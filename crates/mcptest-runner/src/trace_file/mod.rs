//! Trace files, read as a stream.
//!
//! A file of JSON Lines is read in blocks of whole lines. The traces of a block are views of its
//! text, and blocks are worked on by all cores while the next ones are read, so memory holds a few
//! blocks whatever the size of the file. Arrays and cassettes are read as a whole. Compressed files
//! are decompressed on the way.
//!
//! The results and the broken lines are those of reading the file in one piece. Traces are
//! self-delimiting: a trace that a block begins with is the same trace in every input that begins
//! so. A block that ends inside of a trace is continued with the blocks after it.

mod blocks;
mod broken;
mod decompress;
mod each;
mod foreign;
mod inputs;
mod sequence;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use mcptest_formats::FormatError;
use mcptest_trace::parallel;
use mcptest_trace::trace::{self, Trace, TraceSyntaxError, TraceView};

use blocks::{BYTE_ORDER_MARK, Blocks, HEAD, line_ends, without_mark};
use broken::Flaw;
pub use broken::{BrokenLine, BrokenLines, MAX_BROKEN_PLACES};
use decompress::Decompressed;
pub use each::each_trace;
use foreign::{ForeignFile, Source};
pub use foreign::{ForeignFormat, FormatSetting, TraceFormat};
pub(crate) use inputs::natural_order;
pub use inputs::{COMPRESSED, TRACE_ENDINGS, trace_files};

/// The least size of a block, except for the last.
const BLOCK: usize = 256 << 10;
/// The number of traces in a part of a file that is read as a whole.
const PART: usize = 1000;
/// More threads than this are not kept busy by one reader.
const MAX_THREADS: usize = 16;
/// The most bytes of a file that cannot be read line by line, decompressed.
const MAX_WHOLE: u64 = 1 << 30;
/// The most bytes of one trace.
const MAX_TRACE: usize = 256 << 20;

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
    /// The folder has no file that could have traces.
    #[error(
        "the folder `{name}` has no trace files; \
         read are {} files, also with {}, and no hidden ones",
        endings(&TRACE_ENDINGS, "*."),
        endings(&COMPRESSED, ".")
    )]
    EmptyFolder {
        /// The folder.
        name: String,
    },
    /// The pattern matches no file.
    #[error("the pattern `{pattern}` matches no file")]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// The pattern is invalid.
    #[error("the pattern `{pattern}` is invalid: {message}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The problem.
        message: String,
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
    /// A trace, or a file that is read as a whole, is too large.
    #[error("{place}: larger than {} MiB; {advice}", limit >> 20)]
    TooLarge {
        /// The file, with the line if it is known.
        place: String,
        /// The most bytes.
        limit: u64,
        /// The form that is expected.
        advice: &'static str,
    },
    /// The file is of an unknown format, or not of the format that it is read as.
    #[error("{name}: {error}")]
    Format {
        /// The file.
        name: String,
        /// The problem.
        error: Box<FormatError>,
    },
    /// The file is a damaged cassette. The message has the name.
    #[error("{0}")]
    Cassette(String),
}

impl TraceFileError {
    fn unreadable(path: &Path, error: io::Error) -> Self {
        let name = path.display().to_string();
        Self::Unreadable { name, error }
    }
}

fn endings(all: &[&str], before: &str) -> String {
    let all: Vec<String> = all.iter().map(|it| format!("`{before}{it}`")).collect();
    all.join(", ")
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "no such file".to_owned()
    } else {
        error.to_string()
    }
}

/// Reads the traces of a file (`-` is standard input): one object, an array, JSON Lines, or a
/// cassette, or a file of another tool; also compressed.
///
/// # Errors
/// The first error of the file, with its place.
pub fn read_traces(path: &Path) -> Result<Vec<Trace>, TraceFileError> {
    read_traces_as(path, &FormatSetting::Detect)
}

/// Does the same for a file of a known format.
///
/// # Errors
/// The first error of the file, with its place.
pub fn read_traces_as(path: &Path, format: &FormatSetting) -> Result<Vec<Trace>, TraceFileError> {
    let mut traces = Vec::new();
    let settings = ReadSettings {
        strict: true,
        format: format.as_format(),
        ..ReadSettings::default()
    };
    fold_traces(path, settings, &Collect, &mut 0, |step| {
        if let Step::Part(part, _) = step {
            traces.extend(part);
        }
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

    fn trace(&self, part: &mut Vec<Trace>, _: Option<usize>, trace: &mut TraceView<'_>) {
        part.push(std::mem::take(trace).into_owned());
    }
}

/// Work on the traces of a file that is done part by part, on several threads.
pub(crate) trait Fold: Sync {
    /// The result of a part of the file.
    type Part: Send;
    /// Returns true if the lines of traces are needed.
    fn needs_lines(&self) -> bool {
        false
    }
    /// Begins a part. Parts that come later in the file have higher numbers. A part has at most
    /// [`MAX_PART`] traces.
    fn start(&self, number: u64) -> Self::Part;
    /// Adds the next trace of a part, which nobody needs afterwards. `line` counts from 0, from the
    /// first line of the part.
    fn trace(&self, part: &mut Self::Part, line: Option<usize>, trace: &mut TraceView<'_>);
}

/// The most traces of a part.
pub(crate) const MAX_PART: u64 = 1 << 20;

/// The result of reading a part of a file.
pub(crate) enum Step<P> {
    /// The traces of a part of the file, and the number of lines before it.
    Part(P, usize),
    /// A line that was skipped.
    Broken(BrokenLine),
}

/// The settings for reading a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadSettings<'a> {
    /// The number of threads that work on traces.
    pub threads: usize,
    /// A broken line is an error.
    pub strict: bool,
    /// The least size of a block.
    pub block: usize,
    /// The format of the file.
    pub format: TraceFormat<'a>,
    /// Each line is one row: a trace, or broken.
    pub rows: bool,
    /// Counts the bytes that are read from files.
    pub bytes: Option<&'a AtomicU64>,
}

impl Default for ReadSettings<'_> {
    fn default() -> Self {
        Self {
            threads: parallel::threads().min(MAX_THREADS),
            strict: false,
            block: BLOCK,
            format: TraceFormat::Detect,
            rows: false,
            bytes: None,
        }
    }
}

/// Reads a file (`-` is standard input) and hands the results of its parts to `take`, in the order
/// of the file. `number` is that of the next part.
///
/// # Errors
/// A file that cannot be read, or in which no line is a trace; with `strict`, the first broken
/// line. Parts before it have been taken.
pub(crate) fn fold_traces<F: Fold>(
    path: &Path,
    settings: ReadSettings<'_>,
    fold: &F,
    number: &mut u64,
    take: impl FnMut(Step<F::Part>),
) -> Result<(), TraceFileError> {
    let name = path.display().to_string();
    let bytes = settings.bytes;
    if path == Path::new("-") {
        let input = io::stdin().lock();
        return fold_input(
            &name,
            Counted { input, bytes },
            settings,
            fold,
            number,
            take,
        );
    }
    match File::open(path) {
        Ok(input) => fold_input(
            &name,
            Counted { input, bytes },
            settings,
            fold,
            number,
            take,
        ),
        Err(error) => Err(TraceFileError::Unreadable { name, error }),
    }
}

/// An input whose bytes are counted.
struct Counted<'a, R> {
    input: R,
    bytes: Option<&'a AtomicU64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if let Some(bytes) = self.bytes {
            bytes.fetch_add(read as u64, Ordering::Relaxed);
        }
        Ok(read)
    }
}

/// The same for any input.
pub(crate) fn fold_input<F: Fold>(
    name: &str,
    input: impl Read,
    settings: ReadSettings<'_>,
    fold: &F,
    number: &mut u64,
    mut take: impl FnMut(Step<F::Part>),
) -> Result<(), TraceFileError> {
    let unreadable = |error| TraceFileError::Unreadable {
        name: name.to_owned(),
        error,
    };
    let input = Decompressed::new(input).map_err(unreadable)?;
    let mut blocks = Blocks::new(input, settings.block, name);
    let mut first = blocks.first()?;
    let format = match settings.format {
        TraceFormat::Detect => foreign::detect(name, &mut blocks, &mut first)?,
        format => format,
    };
    let source = match format {
        TraceFormat::Foreign(reader) => Some(Source::Reader(reader)),
        TraceFormat::Map(map) => Some(Source::Map(map)),
        TraceFormat::Detect | TraceFormat::Native => None,
    };
    if let Some(source) = source {
        let file = ForeignFile {
            name,
            source,
            settings,
            fold,
            number,
            take: &mut take,
        };
        return file.read(&mut blocks, first);
    }
    if is_sequence(&first) {
        if first.starts_with(BYTE_ORDER_MARK) {
            first.drain(..BYTE_ORDER_MARK.len());
        }
        let sequence = sequence::Sequence::new(name, settings, fold, number, &mut take);
        return sequence.fold(&mut blocks, first);
    }
    blocks.rest(&mut first)?;
    let mut traces = read_whole(name, first)?.into_iter().peekable();
    while traces.peek().is_some() {
        let mut part = fold.start(next_number(number));
        for mut trace in traces.by_ref().take(PART) {
            fold.trace(&mut part, None, &mut trace);
        }
        take(Step::Part(part, 0));
    }
    Ok(())
}

/// The same for rows: each line is one trace, or broken. An input without any trace is accepted.
pub(crate) fn fold_rows<F: Fold>(
    name: &str,
    input: impl Read,
    settings: ReadSettings<'_>,
    fold: &F,
    number: &mut u64,
    mut take: impl FnMut(Step<F::Part>),
) -> Result<(), TraceFileError> {
    let settings = ReadSettings {
        rows: true,
        ..settings
    };
    let mut blocks = Blocks::new(input, settings.block, name);
    let first = blocks.next(1)?;
    sequence::Sequence::new(name, settings, fold, number, &mut take).fold(&mut blocks, first)
}

/// Counts a part.
fn next_number(number: &mut u64) -> u64 {
    *number += 1;
    *number - 1
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
    trace::read(&text).map_err(|error| Flaw::NotTrace(error).into_error(name))
}

#[cfg(test)]
mod tests;
