//! Subscriptions to changes: of single resources, and of lists.
//!
//! Up to 2025-11-25 a client subscribes to a resource, and changes of lists are sent to everybody.
//! In the stateless revision both need a stream, `subscriptions/listen`, which stays open.

use std::time::Duration;

use mcptest_protocol::meta;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Client;
use crate::error::{WireError, WireErrorKind};
use crate::jsonrpc::{CallOutcome, Params, RpcError};
use crate::time::show_duration;
use mcptest_http::text::quote;

/// The first message on a stream of notifications.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The time that a stream may stay open.
const STREAM_TIME: Duration = Duration::from_secs(24 * 3600);

/// The changes that a client wants to hear of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedChanges {
    /// Resources, by their URIs.
    pub resources: Vec<String>,
    /// Lists: `tools`, `resources`, `prompts`.
    pub lists: Vec<&'static str>,
}

/// Subscriptions of a connection. Dropping it ends the stream, if there is one.
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    /// The resources that have to be unsubscribed.
    resources: Vec<String>,
    /// Ends the stream of the stateless revision.
    stream: Option<DropGuard>,
}

impl Client {
    /// Subscribes to changes. An error of the server is an outcome.
    pub async fn subscribe(
        &self,
        wanted: &WantedChanges,
    ) -> Result<Result<Subscription, RpcError>, WireError> {
        if self.server().revision.is_stateless() {
            return self.listen(wanted).await;
        }
        self.wait_until_listening().await;
        let mut subscription = Subscription {
            client: self.clone(),
            resources: Vec::new(),
            stream: None,
        };
        for uri in &wanted.resources {
            let action = format!("subscribing to `{}`", quote(uri, 200));
            let params = Params::Value(json!({ "uri": uri }));
            let limit = self.options().call_timeout;
            let sent = self.send("resources/subscribe", params, limit, None, &action);
            match sent.await?.outcome {
                CallOutcome::Result(_) => subscription.resources.push(uri.clone()),
                CallOutcome::Error(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(subscription))
    }

    /// Opens a stream and waits for its first message.
    async fn listen(
        &self,
        wanted: &WantedChanges,
    ) -> Result<Result<Subscription, RpcError>, WireError> {
        const ACTION: &str = "subscribing (subscriptions/listen)";
        let mut arrivals = self.arrivals();
        let first = *arrivals.borrow_and_update();
        let cancel = CancellationToken::new();
        let stream = cancel.clone().drop_guard();
        let params = json!({ "notifications": filter(wanted) });
        let client = self.clone();
        let mut open: JoinHandle<Result<_, WireError>> = tokio::spawn(async move {
            let params = Params::Value(params);
            client
                .send(
                    "subscriptions/listen",
                    params,
                    STREAM_TIME,
                    Some(&cancel),
                    &ACTION,
                )
                .await
        });
        let acknowledged = async {
            while !self.is_acknowledged(first) {
                if arrivals.changed().await.is_err() {
                    break;
                }
            }
        };
        let limit = self.options().call_timeout;
        tokio::select! {
            biased;
            ended = &mut open => match ended {
                Ok(Ok(response)) => match response.outcome {
                    CallOutcome::Error(error) => Ok(Err(error)),
                    CallOutcome::Result(_) => Err(self.protocol_error(
                        &ACTION,
                        "the stream ended before it was acknowledged".to_owned(),
                    )),
                },
                Ok(Err(error)) => Err(error),
                // The task panicked.
                Err(_) => Err(self.protocol_error(&ACTION, "the stream was lost".to_owned())),
            },
            acknowledged = timeout(limit, acknowledged) => match acknowledged {
                Ok(()) => Ok(Ok(Subscription {
                    client: self.clone(),
                    resources: Vec::new(),
                    stream: Some(stream),
                })),
                Err(_) => Err(self.failure(
                    WireErrorKind::Timeout,
                    &ACTION,
                    format!("no {ACKNOWLEDGED} within {}", show_duration(limit)),
                )),
            },
        }
    }

    /// Returns true if a stream was acknowledged after the first messages of the server.
    fn is_acknowledged(&self, after: u64) -> bool {
        self.server_messages()
            .iter()
            .any(|message| message.seq >= after && message.method == ACKNOWLEDGED)
    }
}

impl Subscription {
    /// Ends the subscriptions. A server that refuses it, or is gone, changes nothing.
    pub async fn end(mut self) {
        self.stream = None;
        let limit = self.client.options().call_timeout;
        for uri in std::mem::take(&mut self.resources) {
            let action = format!("unsubscribing from `{}`", quote(&uri, 200));
            let params = Params::Value(json!({ "uri": uri }));
            let sent = self
                .client
                .send("resources/unsubscribe", params, limit, None, &action);
            let _ = sent.await;
        }
    }
}

/// The filter of a stream.
fn filter(wanted: &WantedChanges) -> Value {
    let mut filter = Map::new();
    for list in &wanted.lists {
        filter.insert(format!("{list}ListChanged"), true.into());
    }
    if !wanted.resources.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(wanted.resources));
    }
    Value::Object(filter)
}

/// The resource that a notification reports as changed.
#[must_use]
pub fn updated_resource<'a>(method: &str, params: Option<&'a Value>) -> Option<&'a str> {
    match method {
        "notifications/resources/updated" => params?.get("uri")?.as_str(),
        _ => None,
    }
}

/// The list that a notification reports as changed: `tools`, `resources` or `prompts`.
#[must_use]
pub fn changed_list(method: &str) -> Option<&'static str> {
    match method {
        "notifications/tools/list_changed" => Some("tools"),
        "notifications/resources/list_changed" => Some("resources"),
        "notifications/prompts/list_changed" => Some("prompts"),
        _ => None,
    }
}

/// Returns true for notifications that only concern the stream itself.
#[must_use]
pub fn is_about_stream(method: &str) -> bool {
    method == ACKNOWLEDGED
}

/// The parameters of a notification without the id of its stream.
#[must_use]
pub fn without_stream(params: Option<&Value>) -> Option<Value> {
    let mut params = params?.clone();
    if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
        meta.shift_remove(meta::SUBSCRIPTION_ID);
        if meta.is_empty()
            && let Some(params) = params.as_object_mut()
        {
            params.shift_remove("_meta");
        }
    }
    Some(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_a_filter() {
        let wanted = WantedChanges {
            resources: vec!["test://a".to_owned()],
            lists: vec!["tools", "prompts"],
        };
        assert_eq!(
            filter(&wanted),
            json!({
                "toolsListChanged": true, "promptsListChanged": true,
                "resourceSubscriptions": ["test://a"],
            })
        );
        assert_eq!(filter(&WantedChanges::default()), json!({}));
    }

    #[test]
    fn notifications_name_what_changed() {
        let params = json!({"uri": "test://a", "_meta": {meta::SUBSCRIPTION_ID: 3}});
        let method = "notifications/resources/updated";
        assert_eq!(updated_resource(method, Some(&params)), Some("test://a"));
        assert_eq!(updated_resource("other", Some(&params)), None);
        assert_eq!(
            changed_list("notifications/tools/list_changed"),
            Some("tools")
        );
        assert_eq!(changed_list(method), None);
        assert_eq!(
            without_stream(Some(&params)),
            Some(json!({"uri": "test://a"}))
        );
    }
}
