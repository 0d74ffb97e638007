//! Changes that calls cause: resources that are updated, entries that are revealed; and the
//! notifications of clients.
//!
//! Up to 2025-11-25 a session subscribes to resources, and every session is notified of changed
//! lists. In 2026-07-28 a client opens a stream with `subscriptions/listen`, and is notified there
//! of the changes that it asked for.

use mcptest_protocol::meta as meta_keys;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::deferred::{Route, Schedule};
use crate::server_changes::{Change, ChangeNotice, json_of};

/// Applies a change, and notifies the clients of it.
pub(crate) fn apply(change: &Change, caller: &Caller<'_>, schedule: &mut Schedule) {
    let told = match change {
        Change::Updated(uri) => {
            caller.changes.update(uri);
            ChangeNotice::Updated(uri)
        }
        Change::List(list) => ChangeNotice::List(*list),
        Change::Reveal(list, name) => {
            if !caller.changes.reveal(*list, name) {
                return;
            }
            ChangeNotice::List(*list)
        }
    };
    if caller.revision.is_stateless() {
        for (number, request) in caller.listeners.told(&told) {
            let frame = notification(&told, Some(&request));
            schedule.send_to(frame, Route::Listener(number));
        }
        return;
    }
    let is_told = match &told {
        ChangeNotice::Updated(uri) => caller.subscribed.contains(*uri),
        ChangeNotice::List(_) => true,
    };
    if is_told {
        schedule.send_to(notification(&told, None), Route::Session);
    }
}

fn notification(told: &ChangeNotice<'_>, stream: Option<&Value>) -> Vec<u8> {
    let (method, mut params) = match told {
        ChangeNotice::Updated(uri) => (
            "notifications/resources/updated".to_owned(),
            json!({ "uri": uri }),
        ),
        ChangeNotice::List(list) => (
            format!("notifications/{}/list_changed", list.as_str()),
            json!({}),
        ),
    };
    if let Some(stream) = stream {
        params["_meta"] = json!({ meta_keys::SUBSCRIPTION_ID: stream });
    }
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if params.as_object().is_some_and(|params| !params.is_empty()) {
        message["params"] = params;
    }
    json_of(&message)
}
