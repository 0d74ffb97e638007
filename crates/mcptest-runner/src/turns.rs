//! Who may talk to a shared server now.
//!
//! Tests share servers, and mostly do not mind each other. One that is `serial` wants its servers
//! for itself: it waits for the tests that came before it and keeps those after it waiting. Turns
//! are given in the order of the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcptest_suite::suite::{Isolation, Server, Test};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

#[derive(Default)]
pub(crate) struct Turns(BTreeMap<String, (Server, Arc<RwLock<()>>)>);

/// The right to talk to one server, until it is dropped.
#[expect(dead_code, reason = "held, never looked at")]
pub(crate) enum Turn {
    WithOthers(OwnedRwLockReadGuard<()>),
    Alone(OwnedRwLockWriteGuard<()>),
}

impl Turns {
    pub fn new(servers: &BTreeMap<String, Server>) -> Self {
        Self(
            servers
                .iter()
                .map(|(name, server)| (name.clone(), (server.clone(), Arc::default())))
                .collect(),
        )
    }

    /// Waits until the test may talk to all of its servers. They are taken in one order by
    /// everybody, so nobody waits in a circle.
    pub async fn take(&self, test: &Test) -> Vec<Turn> {
        let (servers, isolation, alone): (BTreeSet<&str>, _, _) = match test {
            Test::Agent(test) => (
                test.servers.iter().map(String::as_str).collect(),
                None,
                false,
            ),
            Test::Tool(test) => (test.servers(), test.isolation, test.serial),
            Test::ToolQuality(test) => (BTreeSet::from([test.server.as_str()]), None, false),
        };
        let mut turns = Vec::new();
        for (server, lock) in servers.into_iter().filter_map(|name| self.0.get(name)) {
            // In a process of its own nobody else is met. Behind an address there may be one server
            // for all sessions.
            if server.http.is_none() && isolation.unwrap_or(server.isolation) == Isolation::Run {
                continue;
            }
            let lock = Arc::clone(lock);
            turns.push(if alone {
                Turn::Alone(lock.write_owned().await)
            } else {
                Turn::WithOthers(lock.read_owned().await)
            });
        }
        turns
    }
}
