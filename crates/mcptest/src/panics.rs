//! What happens when this program itself falls over. That is a bug of ours: it must not leave
//! somebody's server processes behind, nor take with it what was finished before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcptest_events::Event;
use mcptest_report::ExitCode;

use crate::output;

static HAPPENED: AtomicBool = AtomicBool::new(false);

/// Does the work. If it falls over, servers are ended first, and the exit code is one of ours.
pub fn guarded(work: impl FnOnce() -> ExitCode) -> ExitCode {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        mcptest_runner::kill_all();
        HAPPENED.store(true, Ordering::Relaxed);
        report(info);
        output::status(
            "error: mcptest itself fell over: this is a bug. Please report it with the message above",
        );
    }));
    // Nothing is used any more that the work may have left half done.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(ExitCode::CouldNotRun)
}

/// Whether something fell over since this was last asked.
pub fn happened() -> bool {
    HAPPENED.swap(false, Ordering::Relaxed)
}

/// Who is told what happens in a run.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

/// Falls over where the environment variable `MCPTEST_PANIC_AT` says, so that tests see what comes
/// of it: at the beginning of the run it names, or at `planning`. Release builds do not have it.
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
