//! The progress of a run: a bar on a terminal, and the warnings and notes of events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcptest_events::Event;
use mcptest_json::text::one_line;

use crate::output::Output;

/// Shows events as they happen.
pub struct Progress {
    /// A bar, if a person is watching.
    bar: Option<ProgressBar>,
    output: Output,
    /// The label and the number of runs of each case.
    cases: Mutex<Vec<(String, u32)>>,
}

impl Progress {
    /// A display for a run that has not started.
    pub fn new(output: Output) -> Arc<Self> {
        let bar = output.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Arc::new(Self {
            bar,
            output,
            cases: Mutex::default(),
        })
    }

    /// Shows an event.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Warning { text } => self.line(&format!("warning: {}", one_line(text))),
            Event::Note { text } => self.line(&one_line(text)),
            _ => {
                if let Some(bar) = &self.bar {
                    self.advance(bar, event);
                }
            }
        }
    }

    fn advance(&self, bar: &ProgressBar, event: &Event) {
        let mut known = self.cases.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Planned { cases, .. } => {
                let runs: u64 = cases.iter().map(|case| u64::from(case.runs)).sum();
                bar.set_length(bar.length().unwrap_or(0) + runs);
                *known = cases
                    .iter()
                    .map(|case| (case.label.clone(), case.runs))
                    .collect();
            }
            Event::RunStarted { case, run } => {
                if let Some((label, runs)) = known.get(*case) {
                    let number = if *runs > 1 {
                        format!(" #{run}")
                    } else {
                        String::new()
                    };
                    bar.set_message(one_line(&format!("{label}{number}")));
                }
            }
            Event::RunFinished(_) => bar.inc(1),
            Event::RunsSaved { runs, .. } => {
                bar.set_length(bar.length().unwrap_or(0).saturating_sub(u64::from(*runs)));
            }
            _ => {}
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => self.output.status(text),
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
