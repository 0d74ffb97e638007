//! What a connection remembers, and what a line from the server does to it.
//!
//! Everything here is synchronous and under one lock: the tasks in `tasks.rs`
//! feed it, the callers in `connection.rs` wait for what it hands out.

use std::collections::{BTreeMap, VecDeque};
use std::process::ExitStatus;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::answers::Answers;
use crate::error::WireErrorKind;
use crate::jsonrpc::{self, CallOutcome, Id, Message, Payload, Response};
use crate::limits::Limits;
use crate::process::describe_exit;
use crate::violation::{ViolationKind, Violations};
use mcptest_http::text::{clip, quote};

/// Ids we stopped waiting for and still recognise. Older ones count as answered.
const MAX_FORGOTTEN: usize = 4096;

/// Distinct methods counted; a server could invent one per message.
const MAX_COUNTED_METHODS: usize = 64;

/// Parameters of a server message above this line length are not kept.
const MAX_KEPT_PARAMS_BYTES: usize = 16 * 1024;

/// A notification or a request that the server sent on its own account.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerMessage {
    /// Place in the order of all such messages of this connection.
    pub seq: u64,
    /// The method, as in `notifications/tools/list_changed`.
    pub method: String,
    /// Its parameters; absent also when they were too long to keep.
    pub params: Option<Value>,
    /// Whether it asked for an answer.
    pub is_request: bool,
}

/// What a waiting call is told.
#[derive(Debug)]
pub(crate) enum PendingEvent {
    Reply(Response),
    /// A reply arrived broken; a good one may still follow for a short while.
    Suspect(String),
    /// No good reply can come any more.
    Fail(WireErrorKind, String),
}

#[derive(Debug)]
struct Pending {
    events: mpsc::UnboundedSender<PendingEvent>,
    /// Whether the request has left us.
    written: bool,
    suspected: bool,
    /// Cancelled when nobody waits any more: answered, given up or closed.
    unneeded: DropGuard,
}

/// A line for the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: Option<u64>,
    pub(crate) line: Vec<u8>,
}

/// Why nothing more can be said on a connection.
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
    limits: Limits,
    answers: Answers,
    next_id: u64,
    pending: BTreeMap<u64, Pending>,
    forgotten: VecDeque<u64>,
    /// Set while an error without id may be about a notification of ours, which
    /// some servers answer although nothing may: the first id sent after it.
    notified_before: Option<u64>,
    pub(crate) outgoing: Option<mpsc::Sender<Outgoing>>,
    pub(crate) closed: Option<Closed>,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) violations: Violations,
    /// The last line of the server, cut but not cleaned.
    pub(crate) last_line: Option<String>,
    pub(crate) late_replies: u64,
    pub(crate) batches_allowed: bool,
    /// Whether a call that is given up is told to the server by a message.
    pub(crate) sends_cancelled: bool,
    messages: VecDeque<ServerMessage>,
    message_counts: BTreeMap<String, u64>,
    next_message: u64,
}

impl State {
    pub(crate) fn new(
        limits: &Limits,
        answers: &Answers,
        outgoing: mpsc::Sender<Outgoing>,
    ) -> Self {
        Self {
            limits: limits.clone(),
            answers: answers.clone(),
            next_id: 1,
            pending: BTreeMap::new(),
            forgotten: VecDeque::new(),
            notified_before: None,
            outgoing: Some(outgoing),
            closed: None,
            exit: None,
            violations: Violations::new(limits.max_violations, limits.max_text_chars),
            last_line: None,
            late_replies: 0,
            batches_allowed: false,
            sends_cancelled: true,
            messages: VecDeque::new(),
            message_counts: BTreeMap::new(),
            next_message: 0,
        }
    }

    pub(crate) fn exit_text(&self) -> Option<String> {
        self.exit.map(describe_exit)
    }

    /// Reserves an id and the place where its reply will arrive.
    pub(crate) fn open_call(&mut self) -> (u64, mpsc::UnboundedReceiver<PendingEvent>) {
        let id = self.next_id;
        self.next_id += 1;
        let (events, receiver) = mpsc::unbounded_channel();
        let pending = Pending {
            events,
            written: false,
            suspected: false,
            unneeded: CancellationToken::new().drop_guard(),
        };
        self.pending.insert(id, pending);
        (id, receiver)
    }

    /// Stops waiting. Says whether the request was still open and had been sent.
    pub(crate) fn forget_call(&mut self, id: u64) -> bool {
        let Some(pending) = self.pending.remove(&id) else {
            return false;
        };
        self.forgotten.push_back(id);
        if self.forgotten.len() > MAX_FORGOTTEN {
            self.forgotten.pop_front();
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

    /// Whether the reply to this request has not come yet and is still wanted.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.pending.contains_key(&id)
    }

    /// Whether we stopped waiting for this request.
    pub(crate) fn is_forgotten(&self, id: u64) -> bool {
        self.forgotten.contains(&id)
    }

    /// What tells that nobody waits for this request any more; nothing if that is so already.
    pub(crate) fn unneeded(&self, id: u64) -> Option<CancellationToken> {
        self.pending
            .get(&id)
            .map(|pending| pending.unneeded.token().clone())
    }

    /// Tells a call that no reply can come.
    pub(crate) fn fail(&mut self, id: u64, kind: WireErrorKind, reason: String) {
        if let Some(pending) = self.pending.get(&id) {
            // A caller that is gone needs no news.
            let _ = pending.events.send(PendingEvent::Fail(kind, reason));
        }
    }

    /// Ends the connection; the first reason given stays. Waiting calls wake up
    /// and read it.
    pub(crate) fn close(&mut self, closed: Closed) {
        self.closed.get_or_insert(closed);
        self.pending.clear();
    }

    /// Queues a line that nobody waits for. A server that does not read must not
    /// stop us, so a full queue drops it and says so.
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
        let line = jsonrpc::encode_call(None, method, params);
        self.send_now(line, method);
    }

    pub(crate) fn server_messages(&self) -> Vec<ServerMessage> {
        self.messages.iter().cloned().collect()
    }

    pub(crate) fn message_counts(&self) -> BTreeMap<String, u64> {
        self.message_counts.clone()
    }

    /// A line was longer than allowed; its beginning is all there is.
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
            // A caller that is gone needs no news.
            let _ = pending
                .events
                .send(PendingEvent::Fail(WireErrorKind::Protocol, reason.clone()));
        }
    }

    /// Takes in one line of stdout.
    pub(crate) fn line(&mut self, line: Vec<u8>, terminated: bool) {
        let mut classified = jsonrpc::classify(line);
        let raw = std::mem::take(&mut classified.raw);
        if !raw.trim().is_empty() {
            // Cleaned when it is shown, which is seldom.
            self.last_line = Some(clip(&raw, self.limits.max_text_chars));
        }
        if !terminated {
            self.violations
                .record(ViolationKind::Unterminated, "", &raw);
        }
        for finding in classified.findings {
            if finding.kind == ViolationKind::Batch && self.batches_allowed {
                continue;
            }
            self.violations.record(finding.kind, &finding.detail, &raw);
            if finding.damaged_reply {
                let text = self.describe(finding.kind, &finding.detail, &raw);
                match finding.about {
                    Some(id) => self.suspect(id, &text),
                    None => self.suspect_sole(&text),
                }
            }
        }
        for message in classified.messages {
            match message {
                Message::Notification { method, params } => {
                    self.keep_message(method, params, false, raw.len());
                }
                Message::Request { id, method, params } => self.answer(&id, method, params, &raw),
                Message::Reply { id, payload } => self.reply(&id, payload, &raw),
            }
        }
    }

    fn describe(&self, kind: ViolationKind, detail: &str, raw: &str) -> String {
        let detail = match detail {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        let shown = quote(raw, self.limits.max_text_chars);
        format!("the server sent a {kind}{detail}: {shown}")
    }

    fn reply(&mut self, id: &Id, payload: Payload, raw: &str) {
        let target = match id {
            Id::Number(n) if self.pending.contains_key(n) => Ok(*n),
            Id::Number(n) if self.forgotten.contains(n) => {
                self.late_replies += 1;
                return;
            }
            Id::Number(n) if (1..self.next_id).contains(n) => {
                let detail = format!("id {n}");
                self.violations
                    .record(ViolationKind::DuplicateReply, &detail, raw);
                return;
            }
            Id::Number(n) => Err((ViolationKind::UnknownId, format!("id {n}"), None)),
            Id::Text(text) => {
                let meant = text.parse().ok().filter(|n| self.pending.contains_key(n));
                let kind = match meant {
                    Some(_) => ViolationKind::WrongIdType,
                    None => ViolationKind::UnknownId,
                };
                Err((kind, format!("id {:?}, a string", quote(text, 80)), meant))
            }
            Id::Other(value) => {
                let detail = format!("id {}", quote(&value.to_string(), 80));
                Err((ViolationKind::WrongIdType, detail, None))
            }
            Id::Absent | Id::Null => Err((ViolationKind::MissingId, String::new(), None)),
        };
        match (target, payload) {
            (Ok(id), Payload::Good(outcome)) => {
                // A server that got here has passed the notification.
                self.notified_before = self.notified_before.filter(|first| id < *first);
                if let Some(pending) = self.pending.remove(&id) {
                    let raw = raw.to_owned();
                    // A caller that is gone needs no reply.
                    let _ = pending
                        .events
                        .send(PendingEvent::Reply(Response { id, outcome, raw }));
                }
            }
            (Ok(id), Payload::Broken(kind, detail)) => {
                self.violations.record(kind, &detail, raw);
                let text = self.describe(kind, &detail, raw);
                self.suspect(id, &text);
            }
            (Err((kind, detail, meant)), payload) => {
                self.violations.record(kind, &detail, raw);
                let is_error = matches!(payload, Payload::Good(CallOutcome::Error(_)));
                if let Payload::Broken(kind, detail) = payload {
                    self.violations.record(kind, &detail, raw);
                }
                let about_notification = is_error && self.notified_before.is_some();
                if kind == ViolationKind::MissingId && about_notification {
                    return;
                }
                let text = self.describe(kind, &detail, raw);
                match meant {
                    Some(id) => self.suspect(id, &text),
                    None => self.suspect_sole(&text),
                }
            }
        }
    }

    /// Tells a call that its reply came in broken.
    fn suspect(&mut self, id: u64, text: &str) {
        if let Some(pending) = self.pending.get_mut(&id)
            && !pending.suspected
        {
            pending.suspected = true;
            let _ = pending.events.send(PendingEvent::Suspect(text.to_owned()));
        }
    }

    /// A broken reply that names nobody can only be meant for a lone call.
    fn suspect_sole(&mut self, text: &str) {
        let mut ids = self.pending.keys().copied();
        if let (Some(id), None) = (ids.next(), ids.next()) {
            self.suspect(id, text);
        }
    }

    /// Answers a request of the server.
    fn answer(&mut self, id: &Id, method: String, params: Option<Value>, raw: &str) {
        let outcome = self.answers.answer(&method, params.as_ref());
        let line = jsonrpc::encode_reply(id, outcome);
        self.send_now(line, "answer to a request");
        self.keep_message(method, params, true, raw.len());
    }

    fn keep_message(
        &mut self,
        method: String,
        params: Option<Value>,
        is_request: bool,
        size: usize,
    ) {
        let method = quote(&method, self.limits.max_text_chars);
        if self.message_counts.len() < MAX_COUNTED_METHODS
            || self.message_counts.contains_key(&method)
        {
            *self.message_counts.entry(method.clone()).or_default() += 1;
        }
        self.messages.push_back(ServerMessage {
            seq: self.next_message,
            method,
            params: params.filter(|_| size <= MAX_KEPT_PARAMS_BYTES),
            is_request,
        });
        self.next_message += 1;
        while self.messages.len() > self.limits.max_server_messages {
            self.messages.pop_front();
        }
    }
}
