//! How many runs go on at once.
//!
//! Work on this machine (server processes of a run's own, built-in models, direct calls) gets a few places. A run that waits for a provider most of the time costs
//! nothing here, so many may wait together; how many requests the provider gets at once is its own limiter's business. Whoever says a number (`--jobs`,
//! `run_options.jobs`) gets that number for everything.

use std::sync::Arc;

use mcptest_suite::Suite;
use mcptest_suite::suite::{Isolation, Test};
use tokio::sync::Semaphore;

use crate::plan::Case;
use crate::providers::is_live;

const NARROW: u32 = 8;
const WIDE: u32 = 64;

/// The places that runs wait for.
pub(crate) struct Lanes {
    narrow: Arc<Semaphore>,
    wide: Arc<Semaphore>,
}

impl Lanes {
    pub fn new(jobs: Option<u32>, suite: &Suite) -> Self {
        let places = |count: u32| Arc::new(Semaphore::new(count.max(1) as usize));
        if let Some(jobs) = jobs {
            let all = places(jobs);
            return Self {
                narrow: Arc::clone(&all),
                wide: all,
            };
        }
        let allowed = suite.providers.values().filter_map(|provider| provider.max_concurrency);
        Self {
            narrow: places(NARROW),
            wide: places(allowed.max().unwrap_or(WIDE).max(WIDE)),
        }
    }

    /// Where the runs of a case wait.
    pub fn of(&self, suite: &Suite, case: &Case) -> Arc<Semaphore> {
        Arc::clone(if is_mostly_waiting(suite, case) {
            &self.wide
        } else {
            &self.narrow
        })
    }
}

fn is_mostly_waiting(suite: &Suite, case: &Case) -> bool {
    let Test::Agent(test) = &suite.tests[case.test] else {
        return false;
    };
    let own_process = |name: &String| {
        let server = suite.servers.get(name);
        server.is_some_and(|server| server.isolation == Isolation::Run)
    };
    case.model.as_deref().is_some_and(is_live) && !test.servers.iter().any(own_process)
}
