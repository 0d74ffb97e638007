//! Panics of mcptest itself. A panic is a bug of ours: it must not leave server processes behind,
//! nor lose finished runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcptest_events::Event;
use mcptest_report::ExitCode;

use crate::output;

static HAPPENED: AtomicBool = AtomicBool::new(false);

/// Does the work. If it panics, servers are ended first, and the exit code is one of ours.
pub fn guarded(work: impl FnOnce() -> ExitCode) -> ExitCode {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        mcptest_runner::kill_all();
        HAPPENED.store(true, Ordering::Relaxed);
        report(info);
        output::status(
            "error: mcptest panicked: this is a bug. Please report it with the message above",
        );
    }));
    // Nothing that the work may have left half done is used after this.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(ExitCode::CouldNotRun)
}

/// Returns true if something panicked since the last call.
pub fn happened() -> bool {
    HAPPENED.swap(false, Ordering::Relaxed)
}

/// The receiver of the events of a run.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// Panics where the environment variable `MCPTEST_PANIC_AT` asks for it, for tests: at the start of
/// the run it names, or at `planning`. Release builds do not have it.
#[cfg(debug_assertions)]
pub fn provoked(listener: Listener) -> Listener {
    let Ok(place) = std::env::var("MCPTEST_PANIC_AT") else {
        return listener;
    };
    let names = std::sync::Mutex::new(Vec::new());
    Arc::new(move |event| {
        let here = match &event {
            Event::Planned { cases, .. } => {
                let labels = cases.iter().map(|case| (case.label.clone(), case.runs));
                if let Ok(mut names) = names.lock() {
                    *names = labels.collect();
                }
                place == "planning"
            }
            Event::RunStarted { case, run } => names.lock().is_ok_and(|names| {
                names.get(*case).is_some_and(|(label, runs)| {
                    place
                        == if *runs > 1 {
                            format!("{label} #{run}")
                        } else {
                            label.clone()
                        }
                })
            }),
            _ => false,
        };
        assert!(!here, "provoked at `{place}`");
        listener(event);
    })
}

#[cfg(not(debug_assertions))]
pub fn provoked(listener: Listener) -> Listener {
    listener
}
