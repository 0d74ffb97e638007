//! The state of the client without a transport, for the fuzz targets.

use std::future::Future as _;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::mpsc;

use crate::answers::{Answers, Elicitation};
use crate::handler::ClientHandler;
use crate::inbox::Inbox;
use crate::jsonrpc::Response;
use crate::limits::WireLimits;
use crate::log::ConnectionLog;
use crate::state::{Outgoing, PendingEvent, ServerMessage, State};
use crate::violation::Violation;

/// The lines that can wait to be sent.
const QUEUE: usize = 64;

/// An event of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// The reply.
    Reply(Response),
    /// A damaged reply, described.
    Damaged(String),
    /// The reason why no reply can arrive.
    Failed(String),
}

/// The client's side of a connection: lines of the server in, events and answers out.
#[derive(Debug)]
pub struct ClientState {
    state: State,
    calls: Vec<(u64, Inbox<PendingEvent>)>,
    outgoing: mpsc::Receiver<Outgoing>,
}

impl ClientState {
    /// Creates a connection that offers every kind of answer.
    #[must_use]
    pub fn new(limits: &WireLimits) -> Self {
        let handler: Arc<dyn ClientHandler> = Arc::new(Answers {
            roots: Some(vec!["file:///work".to_owned()]),
            elicitation: Some(Elicitation::Accept),
            sampling: Some("an answer".to_owned()),
        });
        let (sender, outgoing) = mpsc::channel(QUEUE);
        Self {
            state: State::new(limits, &handler, sender, ConnectionLog::default()),
            calls: Vec::new(),
            outgoing,
        }
    }

    /// Sends a request, and returns its id.
    pub fn call(&mut self) -> u64 {
        let (id, inbox) = self.state.open_call();
        self.state.mark_written(id);
        self.calls.push((id, inbox));
        id
    }

    /// Stops waiting for a request.
    pub fn abandon(&mut self, id: u64) {
        self.state.abandon_call(id);
    }

    /// Accepts batches, as revision 2025-03-26 does.
    pub fn allow_batches(&mut self) {
        self.state.batches_allowed = true;
    }

    /// Receives a line.
    pub fn line(&mut self, line: &[u8], terminated: bool) {
        self.state.line(line.to_vec(), terminated);
    }

    /// Receives the beginning of a line above the limit.
    pub fn line_too_long(&mut self, beginning: &[u8]) {
        self.state.line_too_long(beginning);
    }

    /// Takes the events of all calls so far.
    pub fn take_events(&mut self) -> Vec<(u64, CallEvent)> {
        let mut events = Vec::new();
        for (id, inbox) in &mut self.calls {
            while let Some(event) = next(inbox) {
                events.push((
                    *id,
                    match event {
                        PendingEvent::Reply(response) => CallEvent::Reply(response),
                        PendingEvent::Damaged(text) => CallEvent::Damaged(text),
                        PendingEvent::Fail(_, text) => CallEvent::Failed(text),
                        PendingEvent::Waited(_) => continue,
                    },
                ));
            }
        }
        events
    }

    /// Takes the lines that were sent so far.
    pub fn take_sent(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        while let Ok(outgoing) = self.outgoing.try_recv() {
            sent.push(outgoing.line);
        }
        sent
    }

    /// The violations that are kept.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.state.violations.to_vec()
    }

    /// The messages of the server that are kept.
    #[must_use]
    pub fn server_messages(&self) -> Vec<ServerMessage> {
        self.state.server_messages()
    }
}

/// The next event of a call, without waiting.
fn next(inbox: &mut Inbox<PendingEvent>) -> Option<PendingEvent> {
    let mut context = Context::from_waker(Waker::noop());
    match std::pin::pin!(inbox.recv()).poll(&mut context) {
        Poll::Ready(event) => event,
        Poll::Pending => None,
    }
}
