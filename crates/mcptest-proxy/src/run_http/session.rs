//! A session over HTTP, as lines to and from its server.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use mcptest_json::surrogates::mended;
use mcptest_protocol::meta;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::lock;
use crate::lines::{LinePart, LineSplitter, MAX_LINE_BYTES};
use crate::pump::CHUNK_BYTES;

/// The messages of a server that are kept until a stream for them is open. Older ones are dropped.
const MAX_KEPT: usize = 100;

/// A request of the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    id: Value,
}

impl Request {
    /// The request that a message is; notifications and replies are none.
    pub(super) fn of(message: &Value) -> Option<Self> {
        message.get("method")?;
        let id = message.get("id").filter(|id| !id.is_null())?;
        Some(Self { id: id.clone() })
    }
}

/// A message for the client.
#[derive(Debug)]
pub(super) struct FromServer {
    pub(super) bytes: Vec<u8>,
    /// True for the reply to a request, false for what the server sends by itself.
    pub(super) is_reply: bool,
}

/// A session: the way to its server, and the streams to its client.
pub(super) struct Session {
    server: usize,
    to_server: AsyncMutex<Option<DuplexStream>>,
    routes: Mutex<Routes>,
}

/// The streams to the client.
#[derive(Default)]
struct Routes {
    /// The requests without a reply, oldest first.
    waiting: Vec<(Value, mpsc::Sender<FromServer>)>,
    /// The stream for messages that belong to no request.
    stream: Option<mpsc::Sender<FromServer>>,
    kept: VecDeque<Vec<u8>>,
    has_ended: bool,
}

/// Requests whose replies a client waits for. If it stops waiting, a request without a session is
/// cancelled.
pub(super) struct Pending {
    session: Arc<Session>,
    ids: Vec<Value>,
    cancels: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let left: Vec<Value> = {
            let mut routes = self.session.routes();
            let (left, other) = std::mem::take(&mut routes.waiting)
                .into_iter()
                .partition(|(id, _)| self.cancels && self.ids.contains(id));
            routes.waiting = other;
            let left: Vec<(Value, _)> = left;
            left.into_iter().map(|(id, _)| id).collect()
        };
        if left.is_empty() {
            return;
        }
        let session = Arc::clone(&self.session);
        tokio::spawn(async move {
            for id in left {
                let params = json!({"requestId": id, "reason": "the client closed the answer"});
                let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
                // The server may have ended.
                let _ = session.send(format!("{message}\n").as_bytes()).await;
            }
        });
    }
}

impl Session {
    pub(super) fn new(server: usize, to_server: DuplexStream) -> Self {
        Self {
            server,
            to_server: AsyncMutex::new(Some(to_server)),
            routes: Mutex::default(),
        }
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        lock(&self.routes)
    }

    /// The position of its server.
    pub(super) fn server(&self) -> usize {
        self.server
    }

    pub(super) fn has_ended(&self) -> bool {
        self.routes().has_ended
    }

    /// Returns true if no request with one of these ids waits for its reply.
    pub(super) fn is_free(&self, requests: &[Request]) -> bool {
        let routes = self.routes();
        let mut waiting = routes.waiting.iter();
        !waiting.any(|(id, _)| requests.iter().any(|request| request.id == *id))
    }

    /// Sends a line to the server.
    pub(super) async fn send(&self, line: &[u8]) -> io::Result<()> {
        match self.to_server.lock().await.as_mut() {
            Some(to_server) => to_server.write_all(line).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Registers where the replies to requests go.
    pub(super) fn expect(
        self: &Arc<Self>,
        requests: Vec<Request>,
        sender: &mpsc::Sender<FromServer>,
        cancels: bool,
    ) -> Pending {
        let ids: Vec<Value> = requests.into_iter().map(|request| request.id).collect();
        let mut routes = self.routes();
        if !routes.has_ended {
            let waiting = ids.iter().map(|id| (id.clone(), sender.clone()));
            routes.waiting.extend(waiting);
        }
        Pending {
            session: Arc::clone(self),
            ids,
            cancels,
        }
    }

    /// Opens the stream for messages that belong to no request; an earlier one ends.
    pub(super) fn open_stream(&self, sender: mpsc::Sender<FromServer>) {
        let mut routes = self.routes();
        if routes.has_ended {
            return;
        }
        while let Some(bytes) = routes.kept.pop_front() {
            let message = FromServer {
                bytes,
                is_reply: false,
            };
            if sender.try_send(message).is_err() {
                break;
            }
        }
        routes.stream = Some(sender);
    }

    /// Closes the way to the server, and all streams.
    pub(super) async fn end(&self) {
        self.to_server.lock().await.take();
        let mut routes = self.routes();
        routes.waiting.clear();
        routes.stream = None;
        routes.has_ended = true;
    }

    /// Passes the lines of the server on until they end.
    pub(super) async fn route(&self, mut from_server: impl AsyncRead + Unpin) {
        let mut lines = LineSplitter::new(MAX_LINE_BYTES);
        let mut parts = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(read @ 1..) = from_server.read(&mut chunk).await {
            lines.push(&chunk[..read], &mut parts);
            for part in parts.drain(..) {
                // A message that is too long to be parsed belongs to no request.
                if let LinePart::Line(line) = part {
                    self.pass(line).await;
                }
            }
        }
        // Requests without a reply never get one.
        self.routes().waiting.clear();
    }

    async fn pass(&self, bytes: Vec<u8>) {
        let Ok(message) = serde_json::from_slice::<Value>(&mended(&bytes)) else {
            return;
        };
        let first = match &message {
            Value::Array(batch) => batch.first().unwrap_or(&Value::Null),
            single => single,
        };
        let is_reply = first.get("method").is_none();
        let sender = if is_reply {
            let ids: Vec<&Value> = match &message {
                Value::Array(batch) => batch.iter().filter_map(|one| one.get("id")).collect(),
                single => single.get("id").into_iter().collect(),
            };
            let mut routes = self.routes();
            let sender = routes.waiting.iter().find(|(id, _)| ids.contains(&id));
            let sender = sender.map(|(_, sender)| sender.clone());
            routes.waiting.retain(|(id, _)| !ids.contains(&id));
            sender
        } else {
            self.routes().for_message(first, &bytes)
        };
        if let Some(sender) = sender {
            // The client may have left.
            let _ = sender.send(FromServer { bytes, is_reply }).await;
        }
    }
}

impl Routes {
    /// The stream for a message that the server sends by itself. Without one, it is kept.
    fn for_message(&mut self, message: &Value, bytes: &[u8]) -> Option<mpsc::Sender<FromServer>> {
        if self.stream.as_ref().is_some_and(mpsc::Sender::is_closed) {
            self.stream = None;
        }
        let params = &message["params"];
        let named = [
            &params["_meta"][meta::SUBSCRIPTION_ID],
            &params["progressToken"],
        ];
        let of_request = self.waiting.iter().find(|(id, _)| named.contains(&id));
        let method = message["method"].as_str().unwrap_or_default();
        let is_general =
            method.ends_with("/list_changed") || method == "notifications/resources/updated";
        let newest = self.waiting.last().filter(|_| !is_general);
        let request = of_request.or(newest).map(|(_, sender)| sender.clone());
        let sender = request.or_else(|| self.stream.clone());
        if sender.is_none() {
            self.kept.push_back(bytes.to_vec());
            if self.kept.len() > MAX_KEPT {
                self.kept.pop_front();
            }
        }
        sender
    }
}
