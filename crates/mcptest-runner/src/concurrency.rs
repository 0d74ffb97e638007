//! The number of runs that are made in parallel.
//!
//! Work on this machine (server processes of a run's own, built-in models) has a low limit. Direct
//! calls over a shared session have twice as many: half of them can be at the server while the
//! answers to the others are checked. A run that waits for a provider most of the time costs
//! nothing here, so its limit is high; the provider's own limiter bounds the requests. A number set
//! by `--jobs` or `run_options.jobs` applies to everything.

use std::sync::Arc;

use mcptest_suite::Suite;
use mcptest_suite::suite::{Isolation, Test};
use tokio::sync::Semaphore;

use crate::plan::Case;
use crate::providers::is_live;

const LOCAL: u32 = 8;
const SHARED_SESSION: u32 = 16;
const PROVIDER: u32 = 64;

/// The permits that runs wait for.
pub(crate) struct ConcurrencyLimits {
    local: Arc<Semaphore>,
    shared_session: Arc<Semaphore>,
    provider: Arc<Semaphore>,
}

impl ConcurrencyLimits {
    pub fn new(jobs: Option<u32>, suite: &Suite) -> Self {
        let permits = |count: u32| Arc::new(Semaphore::new(count.max(1) as usize));
        if let Some(jobs) = jobs {
            let all = permits(jobs);
            return Self {
                local: Arc::clone(&all),
                shared_session: Arc::clone(&all),
                provider: all,
            };
        }
        let allowed = suite
            .providers
            .values()
            .filter_map(|provider| provider.max_concurrency);
        Self {
            local: permits(LOCAL),
            shared_session: permits(SHARED_SESSION),
            provider: permits(allowed.max().unwrap_or(PROVIDER).max(PROVIDER)),
        }
    }

    /// The permits for the runs of a case.
    pub fn of(&self, suite: &Suite, case: &Case) -> &Arc<Semaphore> {
        let own_process = |name: &str, isolation: Option<Isolation>| {
            let server = suite.servers.get(name);
            server.is_some_and(|server| isolation.unwrap_or(server.isolation) == Isolation::Run)
        };
        let live = case.model.as_deref().is_some_and(is_live);
        match &suite.tests[case.test] {
            // An agent under test is a process here, whatever its model.
            Test::Agent(test)
                if live
                    && test.agents.is_empty()
                    && !test
                        .servers
                        .iter()
                        .any(|name| own_process(name, test.isolation())) =>
            {
                &self.provider
            }
            Test::Direct(test)
                if !test
                    .called_servers()
                    .any(|name| own_process(name, test.isolation)) =>
            {
                &self.shared_session
            }
            Test::Agent(_) | Test::Direct(_) | Test::ToolQuality(_) => &self.local,
        }
    }
}
