//! The destinations of what scoring finds on its way.

use std::io;

/// Stores text and returns its offset.
pub type Store<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<u64>;

/// Writes lines of rows.
pub type WriteRows<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// The destinations of what scoring finds on its way.
#[non_exhaustive]
pub struct ScoreSinks<'a> {
    /// Takes the records of runs.
    pub store: Store<'a>,
    /// Takes the rows of traces: whole lines of JSON, in the order of the traces.
    pub rows: Option<WriteRows<'a>>,
    /// Is called after each part of an input.
    pub progress: Option<&'a mut dyn FnMut(ScoreProgress)>,
}

impl<'a> ScoreSinks<'a> {
    /// Stores the records of runs, and nothing else.
    pub fn new(store: Store<'a>) -> Self {
        Self {
            store,
            rows: None,
            progress: None,
        }
    }
}

/// The progress of scoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScoreProgress {
    /// The number of traces that are scored.
    pub traces: u64,
    /// The number of bytes that were read from files, as they are stored.
    pub bytes: u64,
}
