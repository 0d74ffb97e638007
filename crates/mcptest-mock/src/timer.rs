//! Late answers on the stdio transport, sent by one thread that is started for the first of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::deferred::{Deferred, TransportEvent};
use crate::log;
use crate::server::MockServer;

/// The time for late answers after the end of the input.
const GRACE: Duration = Duration::from_secs(2);

/// Sends late answers until the channel is closed, and then those that are due soon.
///
/// # Errors
/// Writing failed.
pub(crate) fn run(
    server: &MockServer,
    events: &Receiver<TransportEvent>,
    output: &Mutex<impl Write>,
) -> io::Result<()> {
    let mut jobs = Jobs::default();
    loop {
        let now = Instant::now();
        jobs.send_due(now, output)?;
        let event = match jobs.next_due() {
            Some(due) => events.recv_timeout(due.saturating_duration_since(now)),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(TransportEvent::Deferred(deferred)) => jobs.add(deferred, Instant::now()),
            Ok(TransportEvent::Cancelled(id)) => jobs.cancel(&id),
            Ok(TransportEvent::Answered(id, answer)) => {
                jobs.answered(server, &id, answer, Instant::now());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let end = Instant::now() + GRACE;
    while let Some(due) = jobs.next_due().filter(|due| *due <= end) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        jobs.send_due(Instant::now(), output)?;
    }
    Ok(())
}

#[derive(Default)]
struct Jobs {
    /// The times at which jobs are due, with their indices.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    jobs: Vec<Option<Deferred>>,
    /// Indices in `jobs` that can be reused.
    free: Vec<usize>,
}

impl Jobs {
    fn add(&mut self, mut deferred: Deferred, now: Instant) {
        if deferred.is_done() {
            // Never answered.
            return;
        }
        deferred.messages.reverse();
        let index = self.free.pop().unwrap_or(self.jobs.len());
        if let Some(first) = deferred
            .messages
            .last()
            .filter(|_| deferred.waiting.is_none())
        {
            self.due.push(Reverse((now + first.wait, index)));
        }
        match self.jobs.get_mut(index) {
            Some(slot) => *slot = Some(deferred),
            None => self.jobs.push(Some(deferred)),
        }
    }

    fn cancel(&mut self, id: &Value) {
        for (index, job) in self.jobs.iter_mut().enumerate() {
            if job
                .as_ref()
                .is_some_and(|job| job.honours_cancel && job.id == *id)
            {
                *job = None;
                self.free.push(index);
            }
        }
        // Cancelled jobs are no longer due.
        let jobs = &self.jobs;
        self.due
            .retain(|Reverse((_, job))| jobs.get(*job).is_some_and(Option::is_some));
    }

    /// Continues the jobs that waited for this reply.
    fn answered(&mut self, server: &MockServer, id: &Value, answer: Option<Value>, now: Instant) {
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let Some(job) = job.as_mut().filter(|job| job.waiting.as_ref() == Some(id)) else {
                continue;
            };
            job.answered(id, answer.clone());
            if job.can_resume() {
                server.resume(job);
                job.messages.reverse();
            }
            if let Some(next) = job.messages.last() {
                self.due.push(Reverse((now + next.wait, index)));
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn send_due(&mut self, now: Instant, output: &Mutex<impl Write>) -> io::Result<()> {
        let mut text = Vec::new();
        while let Some(Reverse((at, index))) = self
            .due
            .peek()
            .copied()
            .filter(|Reverse((at, _))| *at <= now)
        {
            self.due.pop();
            let Some(slot) = self.jobs.get_mut(index) else {
                continue;
            };
            let Some(job) = slot else { continue };
            if let Some(message) = job.messages.pop() {
                text.extend_from_slice(&message.frame);
                text.push(b'\n');
                job.waiting = message.ask;
            }
            match job.messages.last() {
                Some(_) if job.waiting.is_some() => {}
                Some(next) => self.due.push(Reverse((at + next.wait, index))),
                // The rest follows the client's answer.
                None if job.rest.is_some() => {}
                None => {
                    *slot = None;
                    self.free.push(index);
                }
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        log::sent(&text);
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(&text)?;
        output.flush()
    }
}
