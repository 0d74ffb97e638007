//! How many runs go on at once.
//!
//! Work on this machine (server processes of a run's own, built-in models) gets a few places.
//! Direct calls over a session that is there anyway get twice as many: half of them can be with the
//! server while the answers to the others are looked at. A run that waits for a provider most of
//! the time costs nothing here, so many may wait together; how many requests the provider gets at
//! once is its own limiter's business. Whoever says a number (`--jobs`, `run_options.jobs`) gets
//! that number for everything.

use std::sync::Arc;

use mcptest_suite::Suite;
use mcptest_suite::suite::{Isolation, Test};
use tokio::sync::Semaphore;

use crate::plan::Case;
use crate::providers::is_live;

const NARROW: u32 = 8;
const PIPELINED: u32 = 16;
const WIDE: u32 = 64;

/// The places that runs wait for.
pub(crate) struct Lanes {
    narrow: Arc<Semaphore>,
    pipelined: Arc<Semaphore>,
    wide: Arc<Semaphore>,
}

impl Lanes {
    pub fn new(jobs: Option<u32>, suite: &Suite) -> Self {
        let places = |count: u32| Arc::new(Semaphore::new(count.max(1) as usize));
        if let Some(jobs) = jobs {
            let all = places(jobs);
            return Self {
                narrow: Arc::clone(&all),
                pipelined: Arc::clone(&all),
                wide: all,
            };
        }
        let allowed = suite
            .providers
            .values()
            .filter_map(|provider| provider.max_concurrency);
        Self {
            narrow: places(NARROW),
            pipelined: places(PIPELINED),
            wide: places(allowed.max().unwrap_or(WIDE).max(WIDE)),
        }
    }

    /// Where the runs of a case wait.
    pub fn of(&self, suite: &Suite, case: &Case) -> Arc<Semaphore> {
        let own_process = |name: &str, isolation: Option<Isolation>| {
            let server = suite.servers.get(name);
            server.is_some_and(|server| isolation.unwrap_or(server.isolation) == Isolation::Run)
        };
        let live = case.model.as_deref().is_some_and(is_live);
        Arc::clone(match &suite.tests[case.test] {
            Test::Agent(test)
                if live && !test.servers.iter().any(|name| own_process(name, None)) =>
            {
                &self.wide
            }
            Test::Tool(test)
                if !test
                    .servers()
                    .into_iter()
                    .any(|name| own_process(name, test.isolation)) =>
            {
                &self.pipelined
            }
            Test::Agent(_) | Test::Tool(_) | Test::ToolQuality(_) => &self.narrow,
        })
    }
}
