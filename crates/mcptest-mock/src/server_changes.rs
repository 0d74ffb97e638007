//! The state that calls change: resources that were updated, entries that were revealed; and the
//! open streams of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcptest_protocol::meta as meta_keys;
use serde_json::{Map, Value, json};

use crate::jsonrpc::{RpcError, write_json};
use crate::manifest::ChangedList;

/// The largest number of open streams, and of subscriptions of one client.
const MAX_LISTENERS: usize = 1000;
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1000;

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A resource has its next content.
    Updated(String),
    /// A list has changed.
    List(ChangedList),
    /// A hidden entry is listed.
    Reveal(ChangedList, String),
}

/// The changes so far that the requests of a session see. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerChanges(Arc<Mutex<Changed>>);

#[derive(Debug, Default)]
struct Changed {
    revealed: BTreeSet<(ChangedList, String)>,
    /// The number of updates of each resource.
    updates: BTreeMap<String, usize>,
}

impl ServerChanges {
    fn lock(&self) -> MutexGuard<'_, Changed> {
        // A panic elsewhere leaves the sets usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a hidden entry is listed.
    pub(crate) fn has_revealed(&self, list: ChangedList, name: &str) -> bool {
        self.lock().revealed.contains(&(list, name.to_owned()))
    }

    /// Lists a hidden entry. Returns true if it was hidden.
    pub(crate) fn reveal(&self, list: ChangedList, name: &str) -> bool {
        self.lock().revealed.insert((list, name.to_owned()))
    }

    /// Gives a resource its next content.
    pub(crate) fn update(&self, uri: &str) {
        *self.lock().updates.entry(uri.to_owned()).or_default() += 1;
    }

    /// The number of updates of a resource.
    pub(crate) fn updates_of(&self, uri: &str) -> usize {
        self.lock().updates.get(uri).copied().unwrap_or(0)
    }
}

/// A stream of notifications.
#[derive(Debug, Clone)]
struct Listener {
    number: u64,
    /// The id of the request that opened it.
    request: Value,
    lists: Vec<ChangedList>,
    resources: BTreeSet<String>,
}

/// The open streams of a server.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    open: Vec<Listener>,
}

/// The parts of a filter with their lists.
const LISTS: [(&str, ChangedList); 3] = [
    ("toolsListChanged", ChangedList::Tools),
    ("resourcesListChanged", ChangedList::Resources),
    ("promptsListChanged", ChangedList::Prompts),
];

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream, and returns its number and its first message. `offers` returns true for
    /// lists that exist, and `watchable` for resources that can be subscribed to.
    pub(crate) fn open(
        &self,
        id: &Value,
        params: &Map<String, Value>,
        offers: impl Fn(ChangedList) -> bool,
        watchable: impl Fn(&str) -> bool,
    ) -> Result<(u64, Vec<u8>), RpcError> {
        let wanted = params.get("notifications").and_then(Value::as_object);
        let wanted = wanted.ok_or_else(|| {
            RpcError::invalid_params("Invalid params: notifications is not an object")
        })?;
        let lists: Vec<(&str, ChangedList)> = LISTS
            .into_iter()
            .filter(|(key, list)| wanted.get(*key) == Some(&Value::Bool(true)) && offers(*list))
            .collect();
        let resources = wanted
            .get("resourceSubscriptions")
            .and_then(Value::as_array);
        let resources: BTreeSet<String> = resources
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|uri| watchable(uri))
            .take(MAX_SUBSCRIPTIONS)
            .map(str::to_owned)
            .collect();
        let mut honoured = Map::new();
        for (key, _) in &lists {
            honoured.insert((*key).to_owned(), true.into());
        }
        if !resources.is_empty() {
            honoured.insert("resourceSubscriptions".to_owned(), json!(resources));
        }
        let mut open = self.lock();
        if open.open.len() >= MAX_LISTENERS {
            return Err(RpcError::internal("Internal error: too many open streams"));
        }
        open.next += 1;
        let number = open.next;
        open.open.push(Listener {
            number,
            request: id.clone(),
            lists: lists.into_iter().map(|(_, list)| list).collect(),
            resources,
        });
        let message = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": {meta_keys::SUBSCRIPTION_ID: id}, "notifications": honoured,
            },
        });
        Ok((number, json_of(&message)))
    }

    /// Closes the stream with this number.
    pub(crate) fn close(&self, number: u64) {
        self.lock().open.retain(|one| one.number != number);
    }

    /// Closes the streams that this request opened.
    pub(crate) fn close_request(&self, id: &Value) {
        self.lock().open.retain(|one| one.request != *id);
    }

    /// The streams that a change is sent on, with the ids of their requests.
    pub(crate) fn told(&self, change: &ChangeNotice<'_>) -> Vec<(u64, Value)> {
        let wants = |listener: &&Listener| match change {
            ChangeNotice::Updated(uri) => listener.resources.contains(*uri),
            ChangeNotice::List(list) => listener.lists.contains(list),
        };
        let open = self.lock();
        let told = open.open.iter().filter(wants);
        told.map(|one| (one.number, one.request.clone())).collect()
    }
}

/// A change as clients see it.
pub(crate) enum ChangeNotice<'a> {
    Updated(&'a str),
    List(ChangedList),
}

/// A message as it is sent.
pub(crate) fn json_of(message: &Value) -> Vec<u8> {
    let mut frame = Vec::new();
    write_json(&mut frame, message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_receives_what_it_requested_and_the_server_has() {
        let listeners = Listeners::default();
        let wanted = json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false,
            "resourceSubscriptions": ["a:1", "a:2", 7],
        }});
        let params = wanted.as_object().unwrap();
        let opened = listeners.open(
            &json!(5),
            params,
            |list| list != ChangedList::Prompts,
            |uri| uri == "a:1",
        );
        let (number, first) = opened.unwrap();
        let first: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(
            first["params"]["notifications"],
            json!({"toolsListChanged": true, "resourceSubscriptions": ["a:1"]})
        );
        assert_eq!(
            listeners.told(&ChangeNotice::Updated("a:1")),
            [(number, json!(5))]
        );
        assert_eq!(listeners.told(&ChangeNotice::Updated("a:2")), []);
        assert_eq!(
            listeners
                .told(&ChangeNotice::List(ChangedList::Tools))
                .len(),
            1
        );
        assert_eq!(
            listeners.told(&ChangeNotice::List(ChangedList::Prompts)),
            []
        );
        listeners.close_request(&json!(5));
        assert_eq!(listeners.told(&ChangeNotice::Updated("a:1")), []);
        let none = Map::new();
        assert!(
            listeners
                .open(&json!(6), &none, |_| true, |_| true)
                .is_err()
        );
    }
}
