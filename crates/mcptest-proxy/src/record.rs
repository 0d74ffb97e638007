//! The trace file, which is a complete trace at every moment.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcptest_json::visible::visible;
use mcptest_redact::redact::Redactor;
use mcptest_trace::trace::Trace;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::client_sessions::ClientSession;
use crate::log;

/// Writing takes at most one part in this number of the time; further writes wait.
const MAX_SHARE: u32 = 20;

/// Writes the trace of one session.
pub(crate) struct Recorder {
    path: PathBuf,
    redactor: Redactor,
    session: ClientSession,
    /// The end and the duration of the last write.
    last: Option<(Instant, Duration)>,
}

impl Recorder {
    pub(crate) fn new(path: &Path, redactor: &Redactor, session: ClientSession) -> Self {
        Self {
            path: path.to_owned(),
            redactor: redactor.clone(),
            session,
            last: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The time of the next write: now, unless the file is so large that writing would take too
    /// much of the time.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        match self.last {
            Some((ended, took)) => (ended + took * MAX_SHARE).max(now),
            None => now,
        }
    }

    /// Replaces the file atomically, with the calls of other sessions of the same client.
    pub(crate) fn write(&mut self, trace: &Trace) -> io::Result<()> {
        let start = Instant::now();
        let mut value = serde_json::to_value(trace).map_err(io::Error::other)?;
        self.redactor.value(&mut value);
        // Until the end of this function, no other session replaces the file.
        let _lock = lock_folder(&self.path);
        let value = self.session.merge(read(&self.path), value);
        let text = format!("{}\n", visible(&value.to_string()));
        let result = mcptest_files::write(&self.path, &text);
        let end = Instant::now();
        self.last = Some((end, end - start));
        if result.is_ok() {
            log::recorded(text.len(), (end - start).as_millis());
        }
        result
    }
}

/// Locks the folder of a file, until the result is dropped. A file system without locks gives
/// nothing: there, sessions at the same moment may lose calls.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).ok()?;
    flock(&folder, FlockOperation::LockExclusive).ok()?;
    Some(folder)
}

/// The trace in a file. A device or a pipe has none.
fn read(path: &Path) -> Option<Value> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use mcptest_trace::trace::ToolCall;

    use super::*;

    #[test]
    fn the_file_is_replaced_and_no_other_file_is_left() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("t.json");
        let mut recorder = Recorder::new(
            &path,
            &Redactor::new(["s3cret-value".to_owned()]),
            ClientSession::of_parent(None),
        );
        recorder.write(&Trace::default()).expect("written");
        let mut call = ToolCall::new(None, "a");
        call.set_args(serde_json::json!({"key": "it is s3cret-value\u{202e}\u{9b}", "x": 1}));
        let trace = Trace {
            tool_calls: vec![call],
            ..Trace::default()
        };
        recorder.write(&trace).expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        let written = "{\"tool_calls\":[{\"name\":\"a\",\"args\":\
                       {\"key\":\"it is [redacted]\\u202e\\u009b\",\"x\":1}}],\"recording\":";
        assert!(text.starts_with(written), "{text}");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }
}
