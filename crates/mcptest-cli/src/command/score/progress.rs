//! The progress of scoring: a bar with the rate and the time left, if a person is watching.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcptest_runner::ScoreProgress;

use crate::output::Output;

/// The bar, or nothing.
pub struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
}

impl Progress {
    /// Starts a bar over the bytes of some files. The size of standard input is unknown.
    pub fn new(files: &[PathBuf], output: &Output) -> Self {
        let start = Instant::now();
        let bar = output.is_watched().then(|| bar(total_bytes(files)));
        Self { bar, start }
    }

    /// Shows the progress.
    pub fn show(&self, progress: ScoreProgress) {
        if let Some(bar) = &self.bar {
            bar.set_position(progress.bytes);
            bar.set_message(message(progress.traces, self.start.elapsed()));
        }
    }

    /// Removes the bar from the terminal.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => "{bar:24} {percent:>3}% {msg}, {eta} left",
        None => "{spinner} {msg}",
    };
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The sizes of all files; `None` if one is unknown.
fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let size = |file: &PathBuf| {
        let is_file = file != Path::new("-");
        let size = std::fs::metadata(file).ok().filter(|_| is_file)?.len();
        // A pipe has none.
        (size > 0).then_some(size)
    };
    files.iter().map(size).sum()
}

fn message(traces: u64, elapsed: Duration) -> String {
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let rate = traces.saturating_mul(1000) / millis;
    format!("{traces} traces, {rate} per second")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_whole_time() {
        let message = message(1500, Duration::from_millis(500));
        assert_eq!(message, "1500 traces, 3000 per second");
        assert_eq!(
            super::message(3, Duration::ZERO),
            "3 traces, 3000 per second"
        );
    }

    #[test]
    fn the_size_of_standard_input_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        std::fs::write(&one, "12345").unwrap();
        std::fs::write(&two, "678").unwrap();
        assert_eq!(total_bytes(&[one.clone(), two]), Some(8));
        assert_eq!(total_bytes(&[one.clone(), "-".into()]), None);
        assert_eq!(total_bytes(&[one, "missing".into()]), None);
    }
}
