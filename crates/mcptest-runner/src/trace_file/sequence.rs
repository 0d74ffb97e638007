//! A sequence of traces, usually one on each line, block by block.
//!
//! A trace that is broken is skipped with its line. If it has several lines, it ends where the next
//! line begins with `{`.

use std::collections::VecDeque;
use std::io::Read;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use mcptest_trace::trace::{self, TraceSyntaxError, TraceView};

use super::blocks::{Blocks, line_ends};
use super::broken::Flaw;
use super::{Fold, MAX_PART, MAX_TRACE, ReadSettings, Step, TraceFileError, next_number};

/// After this number of broken lines without a trace, the file is not a file of traces.
const MAX_HOPELESS: u64 = 1000;

/// The state of reading a sequence.
pub(super) struct Sequence<'a, F: Fold, T> {
    name: &'a str,
    settings: ReadSettings<'a>,
    fold: &'a F,
    number: &'a mut u64,
    take: &'a mut T,
    /// The number of lines before the next text, and the bytes before it on its line.
    line: usize,
    column: usize,
    traces: u64,
    broken: u64,
    /// The first broken line, for a file without any trace.
    first_flaw: Option<Flaw>,
}

/// The result of one piece of the input.
struct Worked<P> {
    part: P,
    text: Vec<u8>,
    traces: u64,
    /// The flaws of the text, with lines counted from 1 at its beginning.
    flaws: Vec<Flaw>,
    /// The end of the last whole trace or broken line, if more than white space follows it.
    stopped_at: Option<usize>,
    /// True if the rest needs another part, and not more text.
    is_full: bool,
}

impl<'a, F: Fold, T: FnMut(Step<F::Part>)> Sequence<'a, F, T> {
    pub fn new(
        name: &'a str,
        settings: ReadSettings<'a>,
        fold: &'a F,
        number: &'a mut u64,
        take: &'a mut T,
    ) -> Self {
        Self {
            name,
            settings,
            fold,
            number,
            take,
            line: 0,
            column: 0,
            traces: 0,
            broken: 0,
            first_flaw: None,
        }
    }

    /// Works on an input, of which `first` is the first block.
    pub fn fold(
        mut self,
        blocks: &mut Blocks<'_, impl Read>,
        first: Vec<u8>,
    ) -> Result<(), TraceFileError> {
        let mut next = first;
        while !next.is_empty() {
            // A small file is not worth starting a thread.
            let left = if self.settings.threads < 2 || blocks.ended {
                Some(next)
            } else {
                self.in_parallel(blocks, next)?
            };
            let Some(left) = left else { break };
            self.joined(blocks, left)?;
            next = blocks.next(1)?;
        }
        match self.first_flaw {
            Some(flaw) if self.traces == 0 && !self.settings.rows => {
                Err(flaw.into_error(self.name))
            }
            _ => Ok(()),
        }
    }

    /// Works on a piece, and on the blocks after it until they end with a whole trace.
    fn joined(
        &mut self,
        blocks: &mut Blocks<'_, impl Read>,
        mut text: Vec<u8>,
    ) -> Result<(), TraceFileError> {
        loop {
            let number = next_number(self.number);
            let worked = work(self.fold, self.settings.rows, number, text, blocks.ended);
            let (is_full, stopped_at) = (worked.is_full, worked.stopped_at);
            let worked = self.add(worked)?;
            let Some(stopped_at) = stopped_at else {
                blocks.recycle(worked);
                return Ok(());
            };
            text = worked;
            text.drain(..stopped_at);
            if is_full {
                continue;
            }
            if text.len() > MAX_TRACE {
                return Err(TraceFileError::TooLarge {
                    place: format!("{}:{}", self.name, self.line + 1),
                    limit: MAX_TRACE as u64,
                    advice: "this is too much for one trace",
                });
            }
            // The trace is read again from its start, so each time with twice the text.
            let enough = text.len() * 2;
            while text.len() <= enough && !blocks.ended {
                text.extend(blocks.next(1)?);
            }
        }
    }

    /// Adds the result of a piece, whose text is returned.
    fn add(&mut self, worked: Worked<F::Part>) -> Result<Vec<u8>, TraceFileError> {
        let Worked {
            part,
            text,
            traces,
            flaws,
            stopped_at,
            ..
        } = worked;
        self.traces += traces;
        (self.take)(Step::Part(part, self.line));
        for flaw in flaws {
            let flaw = flaw.after(self.line, self.column);
            self.broken += 1;
            let is_hopeless =
                self.traces == 0 && self.broken >= MAX_HOPELESS && !self.settings.rows;
            if self.settings.strict || is_hopeless {
                let first = self.first_flaw.take().unwrap_or(flaw);
                return Err(first.into_error(self.name));
            }
            if self.first_flaw.is_none() {
                self.first_flaw = Some(flaw.clone());
            }
            (self.take)(Step::Broken(flaw.into_line(self.name)));
        }
        let passed = &text[..stopped_at.unwrap_or(text.len())];
        self.line += line_ends(passed);
        self.column = match memchr::memrchr(b'\n', passed) {
            Some(end) => passed.len() - end - 1,
            None => self.column + passed.len(),
        };
        Ok(text)
    }

    /// Works on the blocks of an input until it ends, or until a block does not end with a whole
    /// trace. Returns the text that is left then.
    fn in_parallel(
        &mut self,
        blocks: &mut Blocks<'_, impl Read>,
        first: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, TraceFileError> {
        type Job<P> = (u64, Vec<u8>, bool, mpsc::Sender<Worked<P>>);
        let (fold, threads) = (self.fold, self.settings.threads);
        let rows = self.settings.rows;
        let (jobs, queue) = mpsc::channel::<Job<F::Part>>();
        let queue = Mutex::new(queue);
        let next_job = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let worker = || {
            while let Ok((number, block, is_last, reply)) = next_job() {
                // Nobody waits for it after an error.
                let _ = reply.send(work(fold, rows, number, block, is_last));
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            let read = || -> Result<Option<Vec<u8>>, TraceFileError> {
                // Dropped at the end, which ends the workers.
                let jobs = jobs;
                let mut under_way = VecDeque::new();
                let mut next = Some(first);
                loop {
                    while let Some(block) = next.take_if(|_| under_way.len() <= threads) {
                        let (reply, result) = mpsc::channel();
                        // A worker takes jobs until it panics, which shows in the reply.
                        let _ = jobs.send((next_number(self.number), block, blocks.ended, reply));
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
                    let stopped_at = worked.stopped_at;
                    let mut left = self.add(worked)?;
                    let Some(stopped_at) = stopped_at else {
                        blocks.recycle(left);
                        continue;
                    };
                    left.drain(..stopped_at);
                    // Blocks after it may begin inside of a trace: their results are dropped.
                    for later in under_way {
                        left.extend(later.recv().map_or_else(|_| Vec::new(), |it| it.text));
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
}

/// Folds the traces that a text begins with. If the text is not the last of its input, a trace that
/// it ends within is left.
fn work<F: Fold>(
    fold: &F,
    rows: bool,
    number: u64,
    text: Vec<u8>,
    is_last: bool,
) -> Worked<F::Part> {
    let mut work = Work {
        fold,
        part: fold.start(number),
        traces: 0,
        flaws: Vec::new(),
        line: 0,
        counted: 0,
        is_full: false,
    };
    let stopped_at = match rows {
        true => work.rows(&text),
        false => work.bytes(&text, is_last),
    };
    Worked {
        part: work.part,
        traces: work.traces,
        flaws: work.flaws,
        is_full: work.is_full,
        stopped_at,
        text,
    }
}

/// The work on a piece.
struct Work<'a, F: Fold> {
    fold: &'a F,
    part: F::Part,
    traces: u64,
    flaws: Vec<Flaw>,
    /// The number of lines that end before `counted`.
    line: usize,
    counted: usize,
    is_full: bool,
}

impl<F: Fold> Work<'_, F> {
    /// Works on rows: each line is a trace, or broken. Returns the place of a row that needs
    /// another part.
    fn rows(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut start = 0;
        for line in 0.. {
            if start == bytes.len() {
                break;
            }
            if self.traces == MAX_PART {
                self.is_full = true;
                return Some(start);
            }
            let end = memchr::memchr(b'\n', &bytes[start..]);
            let end = end.map_or(bytes.len(), |end| start + end);
            match self.row(line, &bytes[start..end]) {
                Ok(()) => self.traces += 1,
                Err(flaw) => self.flaws.push(flaw.after(line, 0)),
            }
            start = (end + 1).min(bytes.len());
        }
        None
    }

    /// Works on one row.
    fn row(&mut self, line: usize, row: &[u8]) -> Result<(), Flaw> {
        let flaw = |column: usize, message: &str| {
            Flaw::NotTrace(TraceSyntaxError {
                line: 1,
                column,
                message: message.to_owned(),
            })
        };
        let text = std::str::from_utf8(row).map_err(|_| Flaw::NotText { line: 1 })?;
        let mut views = trace::views(text);
        let mut view = TraceView::default();
        let read = views.next_into(&mut view);
        read.ok_or_else(|| flaw(1, "the row is empty"))?
            .map_err(Flaw::NotTrace)?;
        let end = views.offset();
        if !trace::is_blank(&row[end..]) {
            return Err(flaw(end + 1, "a row is one trace, and more follows it"));
        }
        self.fold.trace(&mut self.part, Some(line), &mut view);
        Ok(())
    }

    /// Works on bytes. Lines that are not text are skipped.
    fn bytes(&mut self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let mut start = 0;
        loop {
            let error = match std::str::from_utf8(&bytes[start..]) {
                Ok(text) => return self.text(bytes, start, text, is_last),
                Err(error) => error,
            };
            let bad = start + error.valid_up_to();
            let line_start = memchr::memrchr(b'\n', &bytes[start..bad]);
            let line_start = line_start.map_or(start, |end| start + end + 1);
            // Up to a line end it is text, see above.
            let text = std::str::from_utf8(&bytes[start..line_start]).unwrap_or_default();
            if let Some(stopped_at) = self.text(bytes, start, text, true) {
                return Some(stopped_at);
            }
            let line = self.line_of(bytes, line_start) + 1;
            self.flaws.push(Flaw::NotText { line });
            match memchr::memchr(b'\n', &bytes[bad..]) {
                Some(end) => start = bad + end + 1,
                None => return None,
            }
        }
    }

    /// Works on the text that is at `start` of all bytes.
    fn text(&mut self, all: &[u8], start: usize, text: &str, is_last: bool) -> Option<usize> {
        let mut from = 0;
        let mut view = TraceView::default();
        'again: while from < text.len() {
            let rest = &text[from..];
            let mut views = trace::views(rest);
            let mut end = 0;
            while let Some(read) = views.next_into(&mut view) {
                let at = from + end + white_space(&rest[end..]);
                match read {
                    Ok(()) => {
                        if self.traces == MAX_PART {
                            self.is_full = true;
                            return Some(start + from + end);
                        }
                        let needs_line = self.fold.needs_lines();
                        let line = needs_line.then(|| self.line_of(all, start + at));
                        self.fold.trace(&mut self.part, line, &mut view);
                        self.traces += 1;
                    }
                    Err(error) => {
                        let stopped_at = Some(start + from + end);
                        if error.is_incomplete() && !is_last {
                            return stopped_at;
                        }
                        let Some(broken) = skip(text, at, error, is_last) else {
                            return stopped_at;
                        };
                        // The error counts from `rest`; that of one line counts from there.
                        let before = match broken.is_of_line {
                            true => self.line_of(all, start + at),
                            false => self.line_of(all, start + from),
                        };
                        self.flaws
                            .push(Flaw::NotTrace(broken.error).after(before, 0));
                        from = broken.end;
                        continue 'again;
                    }
                }
                end = views.offset();
            }
            break;
        }
        None
    }

    /// The number of lines that end before a place, which is not before the last one asked for.
    fn line_of(&mut self, all: &[u8], place: usize) -> usize {
        if place >= self.counted {
            self.line += line_ends(&all[self.counted..place]);
        } else {
            self.line -= line_ends(&all[place..self.counted]);
        }
        self.counted = place;
        self.line
    }
}

/// A broken trace.
struct Broken {
    error: TraceSyntaxError,
    /// True if the position of the error counts from the line of the trace, and not from the text.
    is_of_line: bool,
    /// The place where reading continues.
    end: usize,
}

/// Finds the end of a broken trace at this place; `None` if more text is needed.
fn skip(text: &str, at: usize, error: TraceSyntaxError, is_last: bool) -> Option<Broken> {
    let line_end = line_end(text, at);
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[at..line_end].trim_end();
    let alone = match trace::views(line).next() {
        Some(Err(mut alone)) => {
            alone.column += at - line_start;
            alone
        }
        // The beginning of a trace: the error is further on.
        _ => {
            return Some(Broken {
                error,
                is_of_line: false,
                end: line_end,
            });
        }
    };
    if alone.is_incomplete() {
        // Either the line was cut off, or the trace has several lines.
        let next = line_end + white_space(&text[line_end..]);
        if next == text.len() && !is_last {
            return None;
        }
        let begins_line = |place: usize| text[..place].ends_with('\n');
        if next < text.len() && !(text[next..].starts_with('{') && begins_line(next)) {
            let next_trace = memchr::memmem::find(&text.as_bytes()[line_end - 1..], b"\n{");
            let end = match next_trace {
                Some(found) => line_end + found,
                None if is_last => text.len(),
                None => return None,
            };
            return Some(Broken {
                error,
                is_of_line: false,
                end,
            });
        }
    }
    Some(Broken {
        error: alone,
        is_of_line: true,
        end: line_end,
    })
}

fn line_end(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end + 1)
}

/// The number of JSON's white space characters that a text begins with.
fn white_space(text: &str) -> usize {
    let blank = |byte: &u8| trace::is_blank(std::slice::from_ref(byte));
    text.bytes().take_while(|byte| blank(byte)).count()
}
