//! The report so far: a fold over the log, continued whenever somebody asks.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use mcptest_report::{LiveState, Report, ReportFold, RunStore};

/// The source of a report.
#[derive(Debug)]
pub struct Source {
    log: Option<Log>,
    report: Arc<Report>,
    state: LiveState,
}

/// A log that may still grow.
#[derive(Debug)]
struct Log {
    file: File,
    fold: ReportFold,
    /// The bytes that were read and are not folded yet: the beginning of a line.
    rest: Vec<u8>,
    /// The offset of `rest` in the file.
    offset: u64,
}

impl Source {
    /// A report that does not change.
    pub fn of_report(report: Report) -> Self {
        let runs = report.tests.iter().map(|test| test.run_count()).sum();
        Self {
            log: None,
            report: Arc::new(report),
            state: LiveState {
                version: 0,
                ended: true,
                planned_runs: runs,
                finished_runs: runs,
            },
        }
    }

    /// The report of a log, as far as it is written.
    pub fn of_log(path: &Path) -> io::Result<Self> {
        let empty = ReportFold::new().finish(RunStore::Memory(Vec::new()));
        let mut source = Self {
            log: Some(Log {
                file: File::open(path)?,
                fold: ReportFold::new(),
                rest: Vec::new(),
                offset: 0,
            }),
            report: Arc::new(empty),
            state: LiveState {
                version: 0,
                ended: false,
                planned_runs: 0,
                finished_runs: 0,
            },
        };
        source.update()?;
        Ok(source)
    }

    /// The report with everything that is in the log now.
    pub fn update(&mut self) -> io::Result<(Arc<Report>, LiveState)> {
        if let Some(log) = &mut self.log
            && log.read()?
        {
            // The store is the file, so a report costs its rows and no records.
            let store = RunStore::File(log.file.try_clone()?);
            self.report = Arc::new(log.fold.clone().finish(store));
            self.state = LiveState {
                version: self.state.version + 1,
                ended: log.fold.has_ended(),
                planned_runs: log.fold.planned_runs(),
                finished_runs: log.fold.finished_runs(),
            };
        }
        Ok((Arc::clone(&self.report), self.state))
    }
}

impl Log {
    /// Folds the lines that were added. Returns false if there are none.
    fn read(&mut self) -> io::Result<bool> {
        self.file.read_to_end(&mut self.rest)?;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(false);
        };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let text = std::str::from_utf8(line).map_err(io::Error::other)?;
            self.fold
                .line(text, self.offset)
                .map_err(io::Error::other)?;
            self.offset += line.len() as u64;
        }
        Ok(true)
    }
}
