//! Access to shared servers.
//!
//! Tests share servers and mostly do not affect each other. A `serial` test needs its servers
//! alone: it waits for the tests before it, and the tests after it wait for it. Access is granted
//! in the order of the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcptest_suite::suite::{Isolation, Server, Test};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The locks of the servers. Without a test that needs its servers alone, there are none: no test
/// would ever wait.
#[derive(Default)]
pub(crate) struct ServerLocks(BTreeMap<String, (Server, Arc<RwLock<()>>)>);

/// Access to one server, until it is dropped.
#[expect(dead_code, reason = "held, never read")]
pub(crate) enum ServerGuard {
    Shared(OwnedRwLockReadGuard<()>),
    Exclusive(OwnedRwLockWriteGuard<()>),
}

impl ServerLocks {
    pub fn new<'t>(
        servers: &BTreeMap<String, Server>,
        tests: impl IntoIterator<Item = &'t Test>,
    ) -> Self {
        if !tests.into_iter().any(is_exclusive) {
            return Self::default();
        }
        Self(
            servers
                .iter()
                .map(|(name, server)| (name.clone(), (server.clone(), Arc::default())))
                .collect(),
        )
    }

    /// Waits until the test may use all of its servers. Every test locks them in the same order, so
    /// there is no deadlock.
    pub async fn acquire(&self, test: &Test) -> Vec<ServerGuard> {
        let mut guards = Vec::new();
        if self.0.is_empty() {
            return guards;
        }
        let (servers, isolation): (BTreeSet<&str>, _) = match test {
            Test::Agent(test) => (test.all_servers(), test.isolation()),
            Test::Direct(test) => (test.servers(), test.isolation),
            Test::ToolQuality(test) => (BTreeSet::from([test.server.as_str()]), None),
        };
        let exclusive = is_exclusive(test);
        for (server, lock) in servers.into_iter().filter_map(|name| self.0.get(name)) {
            // A process of the run's own is not shared. Behind an address there may be one server
            // for all sessions.
            if server.http.is_none() && isolation.unwrap_or(server.isolation) == Isolation::Run {
                continue;
            }
            let lock = Arc::clone(lock);
            guards.push(if exclusive {
                ServerGuard::Exclusive(lock.write_owned().await)
            } else {
                ServerGuard::Shared(lock.read_owned().await)
            });
        }
        guards
    }
}

/// Returns true if a test needs its servers alone.
fn is_exclusive(test: &Test) -> bool {
    match test {
        // Behind an address, the state is that of all sessions.
        Test::Agent(test) => !test.state.is_empty(),
        Test::Direct(test) => test.serial,
        Test::ToolQuality(_) => false,
    }
}
