//! The progress of a run: a display that moves on a terminal, a line every half minute elsewhere,
//! and the warnings and notes of events.

mod state;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcptest_events::Event;
use mcptest_json::text::one_line;
use mcptest_report::pretty_row;

use self::state::{Failure, RunState, columns, fitted};
use crate::output::Output;

/// The time between two updates of the display.
const TICK: Duration = Duration::from_millis(250);
/// The time between two lines where nobody is watching.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// The width of a display whose width is not known, in columns.
const DEFAULT_WIDTH: u16 = 80;
/// The widest display, in columns: lines of any length are hard to read.
const MAX_WIDTH: u16 = 200;

/// Shows events as they happen.
pub struct Progress {
    shared: Arc<Shared>,
    /// The thread that updates the display, until it is cleared.
    ticker: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    /// The display, if a person is watching.
    bar: Option<ProgressBar>,
    output: Output,
    start: Instant,
    state: Mutex<RunState>,
    /// Set at the end of the run.
    ended: Mutex<bool>,
    end: Condvar,
}

impl Progress {
    /// A display for a run that has not started.
    pub fn new(output: Output) -> Arc<Self> {
        let bar = output.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let shared = Arc::new(Shared {
            bar,
            output,
            start: Instant::now(),
            state: Mutex::default(),
            ended: Mutex::default(),
            end: Condvar::new(),
        });
        let ticking = Arc::clone(&shared);
        // Without a thread, there are no updates, and everything else works.
        let ticker = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || ticking.tick())
            .ok();
        Arc::new(Self {
            shared,
            ticker: Mutex::new(ticker),
        })
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        let shared = &self.shared;
        match event {
            Event::Warning { text } => shared.line(&format!("warning: {}", one_line(text))),
            Event::Note { text } => shared.line(&one_line(text)),
            _ => {
                let failures = shared.state().add(event, shared.start.elapsed());
                if let Some(bar) = &shared.bar {
                    for failure in failures {
                        bar.println(shared.row(&failure));
                    }
                }
            }
        }
    }

    /// Removes the display.
    pub fn clear(&self) {
        *self.shared.ended() = true;
        self.shared.end.notify_all();
        let ticker = {
            let mut ticker = self.ticker.lock().unwrap_or_else(PoisonError::into_inner);
            ticker.take()
        };
        if let Some(ticker) = ticker {
            // A thread that panicked has nothing to give back.
            let _ = ticker.join();
        }
        if let Some(bar) = &self.shared.bar {
            bar.finish_and_clear();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> MutexGuard<'_, bool> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the display until the end of the run.
    fn tick(&self) {
        let pause = if self.bar.is_some() { TICK } else { HEARTBEAT };
        let mut ended = self.ended();
        loop {
            let waited = self.end.wait_timeout_while(ended, pause, |ended| !*ended);
            let (guard, result) = waited.unwrap_or_else(PoisonError::into_inner);
            ended = guard;
            if !result.timed_out() {
                return;
            }
            let now = self.start.elapsed();
            match &self.bar {
                Some(bar) => {
                    let lines = self.state().lines(now, usize::from(width()));
                    bar.set_message(lines.join("\n"));
                    bar.tick();
                }
                None => self.output.status(&self.state().summary(now)),
            }
        }
    }

    /// The row of a failure, in one line of the display.
    fn row(&self, failure: &Failure) -> String {
        // The badge and the spaces around it take nine columns.
        let room = usize::from(width()).saturating_sub(10);
        let text = match failure.what.is_empty() {
            true => fitted(&failure.name, room),
            false => {
                // The name gives way: without the rest, rows of long names are all the same.
                let what = fitted(&failure.what, room / 2);
                let name = fitted(&failure.name, room.saturating_sub(columns(&what) + 2));
                format!("{name}  {what}")
            }
        };
        pretty_row(failure.verdict, &text, self.output.status_style())
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.output.status(text),
        }
    }
}

/// The width of the terminal, in columns.
fn width() -> u16 {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(DEFAULT_WIDTH, |(width, _)| width.0)
        .min(MAX_WIDTH)
}
