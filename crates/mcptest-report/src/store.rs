//! Storage for the records of runs.
//!
//! A report keeps a compact row per run and fetches a record, which holds the whole trace, only
//! when a reporter needs it. The records stay where they were written: in the log of the history,
//! in a temporary file, or in memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt as _;

use mcptest_events::RunRecord;
use mcptest_trace::expect::Assertion;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{RunError, Verdict};
use serde::Deserialize;

/// The size up to which a [`Spool`] stays in memory, in bytes.
const MAX_IN_MEMORY: usize = 4 * 1024 * 1024;

/// A record that cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be read.
    #[error("cannot read the record of a run: {0}")]
    Io(#[from] io::Error),
    /// The text is not a record.
    #[error("the record of a run is damaged: {0}")]
    Damaged(String),
}

/// The position of a record in its store, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordRange {
    pub offset: u64,
    pub len: u32,
}

/// The JSON records of runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunStore {
    /// Text in memory.
    Memory(Vec<u8>),
    /// A file, such as the log of a run.
    File(File),
}

impl RunStore {
    /// Reads the text of a record into `buffer`.
    pub(crate) fn fetch<'a>(
        &'a self,
        range: RecordRange,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a str, StoreError> {
        let len = range.len as usize;
        let bytes = match self {
            Self::Memory(text) => usize::try_from(range.offset)
                .ok()
                .and_then(|start| text.get(start..start.checked_add(len)?))
                .ok_or_else(|| StoreError::Damaged("it is beyond the end".to_owned()))?,
            Self::File(file) => {
                buffer.resize(len, 0);
                file.read_exact_at(buffer, range.offset)?;
                buffer.as_slice()
            }
        };
        std::str::from_utf8(bytes).map_err(|error| StoreError::Damaged(error.to_string()))
    }
}

impl RunStore {
    /// Reads the text of a record into `buffer`, after the beginning that the store does not have.
    pub(crate) fn fetch_after<'a>(
        &self,
        head: &[u8],
        range: RecordRange,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a str, StoreError> {
        buffer.clear();
        buffer.extend_from_slice(head);
        match self {
            Self::Memory(_) => {
                let text = self.fetch(range, &mut Vec::new())?.as_bytes().to_vec();
                buffer.extend_from_slice(&text);
            }
            Self::File(file) => {
                buffer.resize(head.len() + range.len as usize, 0);
                file.read_exact_at(&mut buffer[head.len()..], range.offset)?;
            }
        }
        std::str::from_utf8(buffer).map_err(|error| StoreError::Damaged(error.to_string()))
    }
}

/// Parses the text of a record. Answers of servers may be nested deeply; they are bounded where
/// they are received.
pub(crate) fn parse_record(text: &str) -> Result<RunRecord, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let record = RunRecord::deserialize(&mut reader)?;
    reader.end()?;
    Ok(record)
}

/// Parses the text of a record and leaves out its trace.
pub(crate) fn parse_without_trace(text: &str) -> Result<RunRecord, serde_json::Error> {
    #[derive(Deserialize)]
    struct WithoutTrace {
        index: u64,
        name: String,
        verdict: Verdict,
        assertions: Vec<Assertion>,
        error: Option<RunError>,
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let record = WithoutTrace::deserialize(&mut reader)?;
    reader.end()?;
    Ok(RunRecord {
        index: record.index,
        name: record.name,
        verdict: record.verdict,
        trace: Trace::default(),
        assertions: record.assertions,
        error: record.error,
    })
}

/// The lines of a log that is not kept: in memory while it is small, then in a temporary file that
/// disappears with the process.
#[derive(Debug, Default)]
pub struct Spool {
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
    len: u64,
}

impl Spool {
    /// An empty log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a line, in UTF-8, and returns its offset.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn append(&mut self, line: impl AsRef<[u8]>) -> io::Result<u64> {
        let line = line.as_ref();
        if self.file.is_none() && self.memory.len() + line.len() > MAX_IN_MEMORY {
            let mut file = BufWriter::new(tempfile::tempfile()?);
            file.write_all(&self.memory)?;
            self.memory = Vec::new();
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(line)?,
            None => self.memory.extend_from_slice(line),
        }
        let offset = self.len;
        self.len += line.len() as u64;
        Ok(offset)
    }

    /// The lines as a store of records.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn into_store(self) -> io::Result<RunStore> {
        Ok(match self.file {
            Some(file) => RunStore::File(file.into_inner().map_err(io::Error::from)?),
            None => RunStore::Memory(self.memory),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_moves_to_a_file_and_keeps_offsets() {
        let mut spool = Spool::new();
        let long = "x".repeat(MAX_IN_MEMORY / 2);
        let lines = ["first\n", &long, "second\n", &long, "third\n"];
        let ranges: Vec<RecordRange> = lines
            .iter()
            .map(|line| RecordRange {
                offset: spool.append(line).unwrap(),
                len: u32::try_from(line.len()).unwrap(),
            })
            .collect();
        assert!(spool.memory.is_empty());
        let store = spool.into_store().unwrap();
        assert!(matches!(store, RunStore::File(_)));
        let mut buffer = Vec::new();
        for (range, line) in ranges.into_iter().zip(lines) {
            assert_eq!(store.fetch(range, &mut buffer).unwrap(), line);
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_an_error() {
        let range = RecordRange { offset: 3, len: 4 };
        let mut spool = Spool::new();
        spool.append("short").unwrap();
        let memory = spool.into_store().unwrap();
        assert!(memory.fetch(range, &mut Vec::new()).is_err());
        let file = RunStore::File(tempfile::tempfile().unwrap());
        assert!(file.fetch(range, &mut Vec::new()).is_err());
    }
}
