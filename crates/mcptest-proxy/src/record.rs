//! The trace file. Whoever looks at it, at any moment, finds a whole trace.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcptest_redact::redact::Redactor;
use mcptest_trace::trace::Trace;

/// Writing is put off while it would take more than this share of the time (one in so many parts).
const SHARE: u32 = 20;

/// Writes the trace of one session.
pub(crate) struct Recorder {
    path: PathBuf,
    redactor: Redactor,
    last: Option<(Instant, Duration)>,
}

impl Recorder {
    pub(crate) fn new(path: &Path, secrets: &[String]) -> Self {
        // Hiding every `1` of a trace would hide the trace.
        let secrets = secrets.iter().filter(|secret| secret.len() >= 6).cloned();
        Self {
            path: path.to_owned(),
            redactor: Redactor::new(secrets),
            last: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// When the next write may be made: at once, unless the file has grown so large that writing
    /// would take over.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        match self.last {
            Some((ended, took)) => (ended + took * SHARE).max(now),
            None => now,
        }
    }

    /// Writes beside the file and puts it in its place.
    pub(crate) fn write(&mut self, trace: &Trace) -> io::Result<()> {
        let started = Instant::now();
        let mut value = serde_json::to_value(trace).map_err(io::Error::other)?;
        self.redactor.value(&mut value);
        let mut text = value.to_string().into_bytes();
        text.push(b'\n');
        let written = mcptest_files::write(&self.path, &text);
        let ended = Instant::now();
        self.last = Some((ended, ended - started));
        written
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use mcptest_trace::trace::ToolCall;

    use super::*;

    #[test]
    fn replaces_the_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.json");
        let mut recorder = Recorder::new(&path, &["s3cret-value".to_owned(), "x".to_owned()]);
        recorder.write(&Trace::default()).expect("written");
        let mut call = ToolCall::new(None, "a");
        call.set_args(serde_json::json!({"key": "it is s3cret-value", "x": 1}));
        let trace = Trace {
            tool_calls: vec![call],
            ..Trace::default()
        };
        recorder.write(&trace).expect("written");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            text,
            "{\"tool_calls\":[{\"name\":\"a\",\"args\":{\"key\":\"it is [redacted]\",\"x\":1}}]}\n"
        );
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
    }
}
