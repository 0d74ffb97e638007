//! The state of a connection, and the effect of a line from the server on it.
//!
//! Everything here is synchronous and under one lock: the tasks in `tasks.rs` pass lines in, and
//! the callers in `connection.rs` wait for replies.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::WireErrorKind;
use crate::handler::{AnswerFuture, Answering, ClientHandler};
use crate::inbox::{Inbox, InboxSender, inbox};
use crate::jsonrpc::{self, CallOutcome, Id, Message, Payload, Response};
use crate::limits::WireLimits;
use crate::log::ConnectionLog;
use crate::process::describe_exit;
use crate::violation::ViolationKind;
use crate::violation_list::ViolationList;
use mcptest_http::text::{clip_into, quote};

/// Abandoned ids that are still recognised. Older ones count as answered.
const MAX_ABANDONED: usize = 4096;

/// Distinct methods that are counted; a server could invent one per message.
const MAX_COUNTED_METHODS: usize = 64;

/// The longest line of a server message whose parameters are kept.
const MAX_KEPT_PARAMS_BYTES: usize = 16 * 1024;

/// A notification or a request from the server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerMessage {
    /// The position among all such messages of this connection.
    pub seq: u64,
    /// The method, such as `notifications/tools/list_changed`.
    pub method: String,
    /// The parameters; also absent if they were too long to keep.
    pub params: Option<Value>,
    /// True for a request.
    pub is_request: bool,
}

/// An event for a waiting call.
#[derive(Debug)]
pub(crate) enum PendingEvent {
    Reply(Response),
    /// A damaged reply arrived; a good one may follow shortly.
    Damaged(String),
    /// No good reply can arrive any more.
    Fail(WireErrorKind, String),
    /// A credential was obtained, in this time.
    Waited(Duration),
}

#[derive(Debug)]
struct Pending {
    events: InboxSender<PendingEvent>,
    /// True once the request was sent.
    written: bool,
    /// True once a damaged reply was reported.
    damaged: bool,
    /// Cancelled when nobody waits any more: answered, abandoned or closed. Only requests over HTTP
    /// need it.
    unneeded: Option<DropGuard>,
    opened: Instant,
    /// Set while a credential for the request is obtained.
    waiting_since: Option<Instant>,
}

/// A line for the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: Option<u64>,
    pub(crate) line: Vec<u8>,
}

/// The reason why a connection is closed.
#[derive(Debug, Clone)]
pub(crate) struct Closed {
    pub(crate) kind: WireErrorKind,
    pub(crate) detail: String,
}

impl Closed {
    pub(crate) fn by_us() -> Self {
        Self {
            kind: WireErrorKind::Transport,
            detail: "the connection was shut down".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    limits: WireLimits,
    handler: Arc<dyn ClientHandler>,
    /// The answers to requests of the server that are being worked on.
    answering: JoinSet<()>,
    next_id: u64,
    pending: BTreeMap<u64, Pending>,
    abandoned: VecDeque<u64>,
    /// Set while an error without id may be the answer to a notification of ours, which some
    /// servers send against the protocol: the first id sent after the notification.
    notified_before: Option<u64>,
    pub(crate) outgoing: Option<mpsc::Sender<Outgoing>>,
    pub(crate) closed: Option<Closed>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) violations: ViolationList,
    /// The last line of the server, truncated but not sanitized.
    pub(crate) last_line: Option<String>,
    pub(crate) late_replies: u64,
    /// The time in which credentials for requests were obtained.
    pub(crate) credential_wait: Duration,
    /// Set while a credential for a notification is obtained.
    blocked_since: Option<Instant>,
    pub(crate) batches_allowed: bool,
    /// True if the server is notified of an abandoned call by a message.
    pub(crate) sends_cancelled: bool,
    messages: VecDeque<ServerMessage>,
    message_counts: BTreeMap<String, u64>,
    /// The number of messages of the server so far.
    arrived: watch::Sender<u64>,
    log: ConnectionLog,
}

impl State {
    pub(crate) fn new(
        limits: &WireLimits,
        handler: &Arc<dyn ClientHandler>,
        outgoing: mpsc::Sender<Outgoing>,
        log: ConnectionLog,
    ) -> Self {
        Self {
            limits: limits.clone(),
            handler: Arc::clone(handler),
            answering: JoinSet::new(),
            next_id: 1,
            pending: BTreeMap::new(),
            abandoned: VecDeque::new(),
            notified_before: None,
            outgoing: Some(outgoing),
            closed: None,
            exit: None,
            violations: ViolationList::new(
                limits.max_violations,
                limits.max_text_chars,
                log.clone(),
            ),
            last_line: None,
            late_replies: 0,
            credential_wait: Duration::ZERO,
            blocked_since: None,
            batches_allowed: false,
            sends_cancelled: true,
            messages: VecDeque::new(),
            message_counts: BTreeMap::new(),
            arrived: watch::Sender::new(0),
            log,
        }
    }

    pub(crate) fn exit_text(&self) -> Option<String> {
        self.exit.map(describe_exit)
    }

    /// Reserves an id and a channel for its reply.
    pub(crate) fn open_call(&mut self) -> (u64, Inbox<PendingEvent>) {
        let id = self.next_id;
        self.next_id += 1;
        let (events, receiver) = inbox();
        let pending = Pending {
            events,
            written: false,
            damaged: false,
            unneeded: None,
            opened: Instant::now(),
            waiting_since: None,
        };
        self.pending.insert(id, pending);
        (id, receiver)
    }

    /// Stops waiting for a call. Returns true if the request was open and had been sent.
    pub(crate) fn abandon_call(&mut self, id: u64) -> bool {
        let Some(pending) = self.pending.remove(&id) else {
            return false;
        };
        self.abandoned.push_back(id);
        if self.abandoned.len() > MAX_ABANDONED {
            self.abandoned.pop_front();
        }
        pending.written
    }

    pub(crate) fn mark_written(&mut self, id: u64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.written = true;
        }
    }

    pub(crate) fn was_written(&self, id: u64) -> bool {
        self.pending.get(&id).is_none_or(|pending| pending.written)
    }

    /// Returns true if a caller waits for the reply to this request.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.pending.contains_key(&id)
    }

    /// Returns true if the caller stopped waiting for this request.
    pub(crate) fn is_abandoned(&self, id: u64) -> bool {
        self.abandoned.contains(&id)
    }

    /// A token that is cancelled when nobody waits for this request any more; `None` if that is so
    /// already.
    pub(crate) fn unneeded(&mut self, id: u64) -> Option<CancellationToken> {
        let pending = self.pending.get_mut(&id)?;
        let guard = pending
            .unneeded
            .get_or_insert_with(|| CancellationToken::new().drop_guard());
        Some(guard.token().clone())
    }

    /// Begins or ends the wait for the credential of a message. It is not the time of its call, nor
    /// of the calls that are queued behind a notification.
    pub(crate) fn wait_for_credential(&mut self, id: Option<u64>, waits: bool) {
        let Some(id) = id else {
            return self.block(waits);
        };
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        if waits {
            pending.waiting_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = pending.waiting_since.take() {
            let waited = since.elapsed();
            self.credential_wait += waited;
            pending.events.send(PendingEvent::Waited(waited));
        }
    }

    /// Begins or ends the wait for the credential of a notification.
    fn block(&mut self, waits: bool) {
        if waits {
            self.blocked_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.blocked_since.take() {
            let now = Instant::now();
            self.credential_wait += now - since;
            for pending in self.pending.values().filter(|pending| !pending.written) {
                let waited = now.saturating_duration_since(since.max(pending.opened));
                pending.events.send(PendingEvent::Waited(waited));
            }
        }
    }

    /// Returns true if a credential for a notification is being obtained.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Returns true if a credential for the request, or for one before it, is being obtained.
    pub(crate) fn waits_for_credential(&self, id: u64) -> bool {
        self.pending.get(&id).is_some_and(|pending| {
            pending.waiting_since.is_some() || (self.blocked_since.is_some() && !pending.written)
        })
    }

    /// Fails a call for which no reply can arrive.
    pub(crate) fn fail(&mut self, id: u64, kind: WireErrorKind, reason: String) {
        if let Some(pending) = self.pending.get(&id) {
            pending.events.send(PendingEvent::Fail(kind, reason));
        }
    }

    /// Closes the connection; the first reason wins. Waiting calls wake up and report it.
    pub(crate) fn close(&mut self, closed: Closed) {
        if self.closed.is_none() {
            self.log.closed(&closed.detail);
        }
        self.closed.get_or_insert(closed);
        self.pending.clear();
        self.answering.abort_all();
    }

    /// Ends all sending: the writer stops, and no answer is worked on any more.
    pub(crate) fn end_sending(&mut self) {
        self.outgoing = None;
        self.answering.abort_all();
    }

    /// Queues a line that nobody waits for. A server that does not read must not block us, so a
    /// full queue drops the line and records a violation.
    pub(crate) fn send_now(&mut self, line: Vec<u8>, what: &str) {
        let Some(outgoing) = &self.outgoing else {
            return;
        };
        if let Err(mpsc::error::TrySendError::Full(_)) =
            outgoing.try_send(Outgoing { id: None, line })
        {
            let detail = format!("our {what} was dropped");
            self.violations
                .record(ViolationKind::NotReading, &detail, "");
        }
    }

    pub(crate) fn notify(&mut self, method: &str, params: Option<Value>) {
        self.notified_before = Some(self.next_id);
        let line = jsonrpc::encode_call(None, method, &params.into());
        self.log.sent(method, None, &line);
        self.send_now(line, method);
    }

    pub(crate) fn server_messages(&self) -> Vec<ServerMessage> {
        self.messages.iter().cloned().collect()
    }

    pub(crate) fn message_counts(&self) -> BTreeMap<String, u64> {
        self.message_counts.clone()
    }

    /// Handles a line above the limit, of which only the beginning was kept.
    pub(crate) fn line_too_long(&mut self, beginning: &[u8]) {
        let text = String::from_utf8_lossy(beginning);
        let detail = format!("more than {} bytes", self.limits.max_line_bytes);
        self.violations
            .record(ViolationKind::LineTooLong, &detail, &text);
        let shown = quote(&text, self.limits.max_text_chars.min(120));
        let reason = format!(
            "the server sent a line of more than {} bytes, which is the limit; it begins: {shown}",
            self.limits.max_line_bytes
        );
        self.last_line = Some(shown);
        for pending in self.pending.values() {
            let fail = PendingEvent::Fail(WireErrorKind::Protocol, reason.clone());
            pending.events.send(fail);
        }
    }

    /// Handles one line of stdout.
    pub(crate) fn line(&mut self, line: Vec<u8>, terminated: bool) {
        self.log.received(&line);
        let mut parsed = jsonrpc::parse_line(line);
        let mut raw = std::mem::take(&mut parsed.raw);
        if !raw.trim().is_empty() {
            // Sanitized when it is shown, which is rare. The buffer is used again for each line.
            let last_line = self.last_line.get_or_insert_default();
            clip_into(&raw, self.limits.max_text_chars, last_line);
        }
        if !terminated {
            self.violations
                .record(ViolationKind::Unterminated, "", &raw);
        }
        for violation in parsed.violations {
            if violation.kind == ViolationKind::Batch && self.batches_allowed {
                continue;
            }
            self.violations
                .record(violation.kind, &violation.detail, &raw);
            if violation.damaged_reply {
                let text = self.describe(violation.kind, &violation.detail, &raw);
                match violation.request_id {
                    Some(id) => self.report_damage(id, &text),
                    None => self.report_damage_to_only_call(&text),
                }
            }
        }
        let is_alone = parsed.messages.len() == 1;
        for message in parsed.messages {
            match message {
                Message::Notification { method, params } => {
                    self.handler.notified(&method, params.as_ref());
                    self.keep_message(method, params, false, raw.len());
                }
                Message::Request { id, method, params } => self.answer(&id, method, params, &raw),
                // The line is moved into the reply that is the only message of it.
                Message::Reply { id, payload } if is_alone => {
                    self.reply(&id, payload, std::mem::take(&mut raw).into());
                }
                Message::Reply { id, payload } => self.reply(&id, payload, raw.as_str().into()),
            }
        }
    }

    fn describe(&self, kind: ViolationKind, detail: &str, raw: &str) -> String {
        let detail = match detail {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        let shown = quote(raw, self.limits.max_text_chars);
        format!("the server sent {}{detail}: {shown}", kind.sent())
    }

    fn reply(&mut self, id: &Id, payload: Payload, raw: Cow<'_, str>) {
        let target = match id {
            Id::Number(n) if self.pending.contains_key(n) => Ok(*n),
            Id::Number(n) if self.abandoned.contains(n) => {
                self.late_replies += 1;
                return;
            }
            Id::Number(n) if (1..self.next_id).contains(n) => {
                let detail = format!("id {n}");
                self.violations
                    .record(ViolationKind::DuplicateReply, &detail, &raw);
                return;
            }
            Id::Number(n) => Err((ViolationKind::UnknownId, format!("id {n}"), None)),
            Id::String(text) => {
                let intended = text.parse().ok().filter(|n| self.pending.contains_key(n));
                let kind = match intended {
                    Some(_) => ViolationKind::WrongIdType,
                    None => ViolationKind::UnknownId,
                };
                Err((
                    kind,
                    format!("id {:?}, a string", quote(text, 80)),
                    intended,
                ))
            }
            Id::Other(value) => {
                let detail = format!("id {}", quote(&value.to_string(), 80));
                Err((ViolationKind::WrongIdType, detail, None))
            }
            Id::Absent | Id::Null => Err((ViolationKind::MissingId, String::new(), None)),
        };
        match (target, payload) {
            (Ok(id), Payload::Valid(outcome)) => {
                // The server has handled the notification before this request.
                self.notified_before = self.notified_before.filter(|first| id < *first);
                if let Some(pending) = self.pending.remove(&id) {
                    let reply = PendingEvent::Reply(Response {
                        id,
                        outcome,
                        raw: raw.into_owned(),
                        credential_wait: Duration::ZERO,
                    });
                    pending.events.send(reply);
                }
            }
            (Ok(id), Payload::Invalid(kind, detail)) => {
                self.violations.record(kind, &detail, &raw);
                let text = self.describe(kind, &detail, &raw);
                self.report_damage(id, &text);
            }
            (Err((kind, detail, intended)), payload) => {
                self.violations.record(kind, &detail, &raw);
                let is_error = matches!(payload, Payload::Valid(CallOutcome::Error(_)));
                if let Payload::Invalid(kind, detail) = payload {
                    self.violations.record(kind, &detail, &raw);
                }
                let about_notification = is_error && self.notified_before.is_some();
                if kind == ViolationKind::MissingId && about_notification {
                    return;
                }
                let text = self.describe(kind, &detail, &raw);
                match intended {
                    Some(id) => self.report_damage(id, &text),
                    None => self.report_damage_to_only_call(&text),
                }
            }
        }
    }

    /// Reports a damaged reply to its call.
    fn report_damage(&mut self, id: u64, text: &str) {
        if let Some(pending) = self.pending.get_mut(&id)
            && !pending.damaged
        {
            pending.damaged = true;
            pending.events.send(PendingEvent::Damaged(text.to_owned()));
        }
    }

    /// Reports a damaged reply without an id, which can only belong to the only open call.
    fn report_damage_to_only_call(&mut self, text: &str) {
        let mut ids = self.pending.keys().copied();
        if let (Some(id), None) = (ids.next(), ids.next()) {
            self.report_damage(id, text);
        }
    }

    /// Answers a request of the server, now or later.
    fn answer(&mut self, id: &Id, method: String, params: Option<Value>, raw: &str) {
        let answering = match method.as_str() {
            "ping" => Answering::Now(Ok(json!({}))),
            // The server continues although nobody listens any more.
            _ if self.closed.is_some() => return,
            method => self.handler.asked(method, params.as_ref()),
        };
        match answering {
            Answering::Now(outcome) => {
                let line = jsonrpc::encode_reply(id, outcome);
                self.send_now(line, "answer to a request");
            }
            Answering::Later(answer) => self.answer_later(id.clone(), answer),
            Answering::Refuse(error) => {
                let line = jsonrpc::encode_reply(id, Err(error));
                self.send_now(line, "answer to a request");
            }
            Answering::End(detail) => self.close(Closed {
                kind: WireErrorKind::Protocol,
                detail,
            }),
        }
        self.keep_message(method, params, true, raw.len());
    }

    fn answer_later(&mut self, id: Id, answer: AnswerFuture) {
        while self.answering.try_join_next().is_some() {}
        let Some(outgoing) = self.outgoing.clone() else {
            return;
        };
        self.answering.spawn(async move {
            let line = jsonrpc::encode_reply(&id, answer.await);
            // Fails only after the writer has stopped.
            let _ = outgoing.send(Outgoing { id: None, line }).await;
        });
    }

    /// The number of messages of the server so far, to wait for the next one.
    pub(crate) fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrived.subscribe()
    }

    fn keep_message(
        &mut self,
        method: String,
        params: Option<Value>,
        is_request: bool,
        size: usize,
    ) {
        let method = quote(&method, self.limits.max_text_chars);
        self.log.server_message(&method, is_request, size);
        if self.message_counts.len() < MAX_COUNTED_METHODS
            || self.message_counts.contains_key(&method)
        {
            *self.message_counts.entry(method.clone()).or_default() += 1;
        }
        self.messages.push_back(ServerMessage {
            seq: *self.arrived.borrow(),
            method,
            params: params.filter(|_| size <= MAX_KEPT_PARAMS_BYTES),
            is_request,
        });
        while self.messages.len() > self.limits.max_server_messages {
            self.messages.pop_front();
        }
        self.arrived.send_modify(|count| *count += 1);
    }
}
