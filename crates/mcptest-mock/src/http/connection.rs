//! A session over HTTP, and its answers in progress.

use std::sync::{Arc, Mutex};

use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};

use super::body::event;
use super::{State, lock};
use crate::deferred::{Deferred, DeferredMessage, Route};
use crate::log;
use crate::session::Session;

/// A session and the answers in progress.
#[derive(Default)]
pub(super) struct Connection {
    pub(super) session: Mutex<Session>,
    /// The stream for messages outside of requests.
    pub(super) stream: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// The answers that a cancellation of their request ends.
    cancellable: Mutex<Vec<(Value, Arc<Notify>)>>,
    /// The requests to the client that wait for an answer.
    asked: Mutex<Vec<(Value, oneshot::Sender<Option<Value>>)>>,
    pub(super) ended: Notify,
}

impl Connection {
    /// Ends the answers to a request that the client has cancelled.
    pub(super) fn cancelled(&self, id: &Value) {
        for (request, notify) in lock(&self.cancellable).iter() {
            if request == id {
                notify.notify_one();
            }
        }
    }

    /// Passes on the client's answer to a request.
    pub(super) fn answered(&self, id: &Value, answer: Option<Value>) {
        let mut asked = lock(&self.asked);
        let found = asked.iter().position(|(request, _)| request == id);
        if let Some(found) = found {
            let (_, waiting) = asked.swap_remove(found);
            let _ = waiting.send(answer);
        }
    }

    /// Sends the messages of a deferred answer until it is cancelled or the client disconnects.
    pub(super) async fn send_messages(
        &self,
        state: &State,
        mut deferred: Deferred,
        sender: &mpsc::Sender<Bytes>,
        events: bool,
    ) {
        let cancelled = Arc::new(Notify::new());
        let entry = (deferred.id.clone(), Arc::clone(&cancelled));
        lock(&self.cancellable).push(entry);
        let honours_cancel = deferred.honours_cancel;
        let sending = async {
            loop {
                for message in std::mem::take(&mut deferred.messages) {
                    let ask = message.ask.clone();
                    // Before it is sent, because the reply may arrive immediately.
                    let answer = ask.map(|id| (id.clone(), self.wait_for_answer(id)));
                    if !self.send(state, message, sender, events).await {
                        return;
                    }
                    if let Some((id, answer)) = answer {
                        // The sender is dropped only with the connection.
                        let answer = answer.await.unwrap_or_default();
                        deferred.answered(&id, answer);
                    }
                }
                if deferred.rest.is_none() {
                    return;
                }
                state.server.resume(&mut deferred);
            }
        };
        tokio::select! {
            () = sending => {}
            () = cancelled.notified(), if honours_cancel => {}
            () = sender.closed() => {}
        }
        lock(&self.cancellable).retain(|(_, other)| !Arc::ptr_eq(other, &cancelled));
    }

    fn wait_for_answer(&self, id: Value) -> oneshot::Receiver<Option<Value>> {
        let (sender, receiver) = oneshot::channel();
        let mut asked = lock(&self.asked);
        // Those of answers that have ended.
        asked.retain(|(_, waiting)| !waiting.is_closed());
        asked.push((id, sender));
        receiver
    }

    /// Sends one message where it belongs. Returns false if the client is gone.
    async fn send(
        &self,
        state: &State,
        message: DeferredMessage,
        sender: &mpsc::Sender<Bytes>,
        events: bool,
    ) -> bool {
        tokio::time::sleep(message.wait).await;
        log::sent(&message.frame);
        let stream = match message.route {
            Route::Reply => None,
            Route::Session => lock(&self.stream).clone(),
            Route::Listener(number) => {
                state.send_to_stream(number, event(&message.frame)).await;
                return true;
            }
        };
        if let Some(stream) = stream {
            // A stream that is closed meanwhile loses the message, as on a real server.
            let _ = stream.send(event(&message.frame)).await;
            return true;
        }
        let is_reply = message.route == Route::Reply;
        let frame = match events {
            true => event(&message.frame),
            // Without a stream only the answer can be sent.
            false if !is_reply => return true,
            false => message.frame.into(),
        };
        sender.send(frame).await.is_ok()
    }
}
