//! The history: the logs of the last invocations in a folder.
//!
//! The logs are `.mcptest/history/<id>.jsonl` in the current directory. The folder is made on
//! demand and makes git ignore it. An id is the time of the start with some random digits, so
//! ids sort by age.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};

/// The folder that everything of mcptest is in.
const FOLDER: &str = ".mcptest";

/// The ending of a log.
const ENDING: &str = "jsonl";

/// The number of logs that are kept.
pub const MAX_LOGS: usize = 20;

/// The size that all logs have together at most.
pub const MAX_BYTES: u64 = 100 * 1024 * 1024;

/// The history of one directory.
#[derive(Debug, Clone)]
pub struct History {
    /// The folder of mcptest.
    folder: PathBuf,
}

/// One log of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The id of the log.
    pub id: String,
    /// The file.
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// The reason why a log cannot be continued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no log with this id.
    #[error("there is no run `{id}` in the history")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Another process writes it.
    #[error("the run `{id}` has not ended: another process is writing its log")]
    Busy {
        /// The id.
        id: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A log that is being written. It is locked until it is dropped.
#[derive(Debug)]
pub struct LogWriter {
    id: String,
    path: PathBuf,
    file: File,
}

impl History {
    /// The history of a directory. Nothing is made yet.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        Self {
            folder: directory.join(FOLDER),
        }
    }

    /// The folder of the logs.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.join("history")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder().join(format!("{id}.{ENDING}"))
    }

    /// Starts a log. `random` distinguishes logs that start in the same second.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn create(&self, now: SystemTime, random: u16) -> io::Result<LogWriter> {
        fs::create_dir_all(self.folder())?;
        let ignore = self.folder.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        let mut random = random;
        loop {
            let id = log_id(now, random);
            let path = self.path(&id);
            let options = OpenOptions::new().append(true).create_new(true).open(&path);
            match options {
                Ok(file) => {
                    // Where locks do not work, the log is written without one.
                    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok(LogWriter { id, path, file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    random = random.wrapping_add(1);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a log to continue it. A torn last line is cut off.
    ///
    /// # Errors
    /// An unknown id, a log that another process writes, a file that cannot be written.
    pub fn resume(&self, id: &str) -> Result<LogWriter, OpenError> {
        let id = id.to_owned();
        let path = self.path(&id);
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Ok(file) if is_id(&id) => file,
            Ok(_) => return Err(OpenError::Unknown { id }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Unknown { id });
            }
            Err(error) => return Err(error.into()),
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive)
            == Err(rustix::io::Errno::WOULDBLOCK)
        {
            return Err(OpenError::Busy { id });
        }
        let end = end_of_last_line(&mut file)?;
        file.set_len(end)?;
        Ok(LogWriter { id, path, file })
    }

    /// All logs, the newest first. Other files in the folder are ignored.
    ///
    /// # Errors
    /// A folder that cannot be read; one that does not exist has no logs.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let folder = match fs::read_dir(self.folder()) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut entries = Vec::new();
        for file in folder {
            let path = file?.path();
            let id = path.file_stem().and_then(|stem| stem.to_str());
            let Some(id) = id.filter(|id| is_id(id)).map(str::to_owned) else {
                continue;
            };
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            // A log that another process removed meanwhile is no longer there.
            if let Ok(about) = fs::metadata(&path) {
                let bytes = about.len();
                entries.push(Entry { id, path, bytes });
            }
        }
        entries.sort_by(|a, b| b.id.cmp(&a.id));
        Ok(entries)
    }

    /// The newest log.
    ///
    /// # Errors
    /// The same as [`Self::list`].
    pub fn latest(&self) -> io::Result<Option<Entry>> {
        Ok(self.list()?.into_iter().next())
    }

    /// The log with an id.
    ///
    /// # Errors
    /// The same as [`Self::list`].
    pub fn find(&self, id: &str) -> io::Result<Option<Entry>> {
        Ok(self.list()?.into_iter().find(|entry| entry.id == id))
    }

    /// Removes old logs: the newest [`MAX_LOGS`] with at most [`MAX_BYTES`] together are kept, and
    /// always the log `current` and those that another process writes. Returns the removed ids.
    ///
    /// # Errors
    /// A folder that cannot be read or written.
    pub fn remove_old(&self, current: &str) -> io::Result<Vec<String>> {
        self.remove_beyond(current, MAX_LOGS, MAX_BYTES)
    }

    fn remove_beyond(
        &self,
        current: &str,
        max_logs: usize,
        max_bytes: u64,
    ) -> io::Result<Vec<String>> {
        let mut entries = self.list()?;
        // It takes part in the count, before all others.
        entries.sort_by_key(|entry| entry.id != current);
        let (mut logs, mut bytes) = (0, 0_u64);
        let mut removed = Vec::new();
        for entry in entries {
            logs += 1;
            bytes = bytes.saturating_add(entry.bytes);
            let fits = logs <= max_logs && bytes <= max_bytes;
            if fits || entry.id == current || is_being_written(&entry.path) {
                continue;
            }
            fs::remove_file(&entry.path)?;
            removed.push(entry.id);
        }
        Ok(removed)
    }
}

impl LogWriter {
    /// The id of the log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The file of the log.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends an encoded event, in one write.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())
    }
}

/// Returns true if another process has the log open for writing.
fn is_being_written(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    })
}

/// The offset after the last line feed.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 64 * 1024;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// `20261117T183012Z-3fa9`: the time of the start and random digits.
fn log_id(now: SystemTime, random: u16) -> String {
    let since_1970 = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let seconds = since_1970.as_secs();
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z-{random:04x}")
}

/// The date of a day, counted from 1970-01-01. Years begin in March here, so that the leap day is
/// the last of its year.
fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// Returns true for a string of the form of an id.
fn is_id(text: &str) -> bool {
    let form = b"00000000T000000Z-xxxx";
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
            other => byte == *other,
        })
}

#[cfg(test)]
mod tests;
