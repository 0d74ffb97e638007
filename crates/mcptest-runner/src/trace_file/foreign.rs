//! Traces of other tools, by the readers of `mcptest-formats`.
//!
//! A file in which every line has its own traces is read line by line, and broken lines are
//! skipped as in native files. All others are read as a whole.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use mcptest_formats::{FormatError, Grouping, Input, Map, Reader};
use mcptest_trace::trace::{self, Trace, TraceView};

use super::blocks::{Blocks, line_ends, without_mark};
use super::broken::BrokenLine;
use super::{Fold, PART, ReadSettings, Step, TraceFileError, is_cassette, next_number};

/// The format of trace files.
#[derive(Clone, Copy, Default)]
pub enum TraceFormat<'a> {
    /// The format that each file shows. It is an error if none or several fit.
    #[default]
    Detect,
    /// The format of mcptest.
    Native,
    /// The format of another tool.
    Foreign(&'static dyn Reader),
    /// A home-made format.
    Map(&'a Map),
}

impl fmt::Debug for TraceFormat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detect => f.write_str("Detect"),
            Self::Native => f.write_str("Native"),
            Self::Foreign(reader) => write!(f, "Foreign({})", reader.format().name),
            Self::Map(_) => f.write_str("Map"),
        }
    }
}

/// The format of trace files, as a setting.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum FormatSetting {
    /// The format that each file shows.
    #[default]
    Detect,
    /// The format with this name, which `mcptest-formats` has.
    Named(ForeignFormat),
    /// A home-made format.
    Map(Arc<Map>),
}

/// A format by its reader.
#[derive(Clone, Copy)]
pub struct ForeignFormat(&'static dyn Reader);

impl fmt::Debug for ForeignFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.format().name)
    }
}

impl FormatSetting {
    /// The format of this name.
    ///
    /// # Errors
    /// No format has this name.
    pub fn named(name: &str) -> Result<Self, FormatError> {
        mcptest_formats::by_name(name).map(|reader| Self::Named(ForeignFormat(reader)))
    }

    /// The names of all formats.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let readers = mcptest_formats::READERS.iter();
        readers.map(|reader| reader.format().name).collect()
    }

    pub(crate) fn as_format(&self) -> TraceFormat<'_> {
        match self {
            Self::Detect => TraceFormat::Detect,
            Self::Named(format) if is_native(format.0) => TraceFormat::Native,
            Self::Named(format) => TraceFormat::Foreign(format.0),
            Self::Map(map) => TraceFormat::Map(map),
        }
    }
}

fn is_native(reader: &dyn Reader) -> bool {
    reader.format().name == "native"
}

/// Finds the format of a file by its first block, to which the rest is added if it is needed.
pub(super) fn detect<R: Read>(
    name: &str,
    blocks: &mut Blocks<'_, R>,
    first: &mut Vec<u8>,
) -> Result<TraceFormat<'static>, TraceFileError> {
    let text = without_mark(first);
    if trace::is_blank(text) || is_cassette(first) || begins_native(text) {
        return Ok(TraceFormat::Native);
    }
    let found = match Input::head(first) {
        Ok(Some(head)) => mcptest_formats::detect(&head),
        Ok(None) => {
            blocks.rest(first)?;
            Input::parse(first).and_then(|whole| mcptest_formats::detect(&whole))
        }
        Err(error) => Err(error),
    };
    match found {
        Ok(reader) if is_native(reader) => Ok(TraceFormat::Native),
        Ok(reader) => Ok(TraceFormat::Foreign(reader)),
        Err(FormatError::Unknown(_) | FormatError::Ambiguous { .. }) if has_native_line(first) => {
            Ok(TraceFormat::Native)
        }
        // The native reader has a better message about text that is not JSON.
        Err(FormatError::Syntax { .. } | FormatError::NotText { .. } | FormatError::Empty) => {
            Ok(TraceFormat::Native)
        }
        Err(error) => Err(unreadable(name, error)),
    }
}

/// Returns true if a text begins with a native trace, or with a list of them. Messages of other
/// formats have calls too, but also a role or a type.
fn begins_native(text: &[u8]) -> bool {
    let valid = match std::str::from_utf8(text) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    };
    let start = valid.trim_start();
    let start = start.strip_prefix('[').unwrap_or(start);
    match trace::views(start).next() {
        Some(Ok(view)) => is_plain(&view),
        _ => false,
    }
}

fn is_plain(view: &TraceView<'_>) -> bool {
    view.extra.raw("role").is_none() && view.extra.raw("type").is_none()
}

/// Returns true if one of the first lines is a native trace: then the others are broken.
fn has_native_line(first: &[u8]) -> bool {
    let mut lines = first.split(|byte| *byte == b'\n').take(1000);
    lines.any(|line| {
        let text = std::str::from_utf8(line).unwrap_or_default();
        TraceView::parse(text).is_ok_and(|view| is_plain(&view))
    })
}

fn unreadable(name: &str, error: FormatError) -> TraceFileError {
    TraceFileError::Format {
        name: name.to_owned(),
        error: Box::new(error),
    }
}

/// A reader or a map.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Reader(&'static dyn Reader),
    Map(&'a Map),
}

impl Source<'_> {
    fn read(self, input: &Input<'_>) -> Result<Vec<Trace>, FormatError> {
        match self {
            Self::Reader(reader) => reader.read(input),
            Self::Map(map) => map.read(input),
        }
    }

    /// Returns true if each line of a file that begins so has its own traces.
    fn is_by_line(self, first: &[u8]) -> bool {
        let first = without_mark(first);
        let mut lines = first.split(|byte| *byte == b'\n');
        let Some(line) = lines.find(|line| !trace::is_blank(line)) else {
            return false;
        };
        if line.first() != Some(&b'{') {
            return false;
        }
        let Ok(input) = Input::parse(line) else {
            return false;
        };
        match self {
            Self::Reader(reader) => reader.grouping(&input) == Grouping::Document,
            Self::Map(_) => true,
        }
    }
}

/// A file of another tool, and the work on its traces.
pub(super) struct ForeignFile<'a, F: Fold, T> {
    pub name: &'a str,
    pub source: Source<'a>,
    pub settings: ReadSettings<'a>,
    pub fold: &'a F,
    pub number: &'a mut u64,
    pub take: &'a mut T,
}

impl<F: Fold, T: FnMut(Step<F::Part>)> ForeignFile<'_, F, T> {
    /// Reads the traces of the file, of which `first` is the first block.
    pub fn read(
        self,
        blocks: &mut Blocks<'_, impl Read>,
        mut first: Vec<u8>,
    ) -> Result<(), TraceFileError> {
        if self.source.is_by_line(&first) {
            return self.by_line(blocks, first);
        }
        blocks.rest(&mut first)?;
        let read = Input::parse(&first).and_then(|input| self.source.read(&input));
        let traces = read.map_err(|error| unreadable(self.name, error))?;
        drop(first);
        let mut traces = traces.into_iter().peekable();
        while traces.peek().is_some() {
            let mut part = self.fold.start(next_number(self.number));
            for mut trace in traces.by_ref().take(PART) {
                self.fold.trace(&mut part, None, &mut trace);
            }
            (self.take)(Step::Part(part, 0));
        }
        Ok(())
    }

    fn by_line(
        self,
        blocks: &mut Blocks<'_, impl Read>,
        first: Vec<u8>,
    ) -> Result<(), TraceFileError> {
        let (mut block, mut before) = (first, 0);
        let (mut good, mut first_error) = (0_u64, None);
        while !block.is_empty() {
            let mut part = self.fold.start(next_number(self.number));
            let mut broken = Vec::new();
            let lines = without_mark(&block).split(|byte| *byte == b'\n');
            for (at, line) in lines.enumerate() {
                if trace::is_blank(line) {
                    continue;
                }
                let input = Input::parse_at(line, before + at + 1);
                match input.and_then(|input| self.source.read(&input)) {
                    Ok(traces) => {
                        good += 1;
                        for mut trace in traces {
                            self.fold.trace(&mut part, Some(at), &mut trace);
                        }
                    }
                    Err(error) if self.settings.strict => {
                        return Err(unreadable(self.name, error));
                    }
                    Err(error) => {
                        broken.push(BrokenLine {
                            file: self.name.to_owned(),
                            line: before + at + 1,
                            column: None,
                            message: error.to_string(),
                        });
                        first_error.get_or_insert(error);
                    }
                }
            }
            (self.take)(Step::Part(part, before));
            broken
                .into_iter()
                .map(Step::Broken)
                .for_each(&mut *self.take);
            before += line_ends(&block);
            blocks.recycle(block);
            block = blocks.next(1)?;
        }
        match first_error {
            Some(error) if good == 0 => Err(unreadable(self.name, error)),
            _ => Ok(()),
        }
    }
}
