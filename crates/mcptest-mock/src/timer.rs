//! Late answers on the stdio transport: one thread that waits, started when the first late answer
//! comes up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::later::{Deferred, Event};

/// How long answers are still waited for when the input has ended.
const GRACE: Duration = Duration::from_secs(2);

/// Sends late answers until the other end of the channel is gone, and then those that are due soon.
///
/// # Errors
/// Writing failed.
pub(crate) fn run(events: &Receiver<Event>, output: &Mutex<impl Write>) -> io::Result<()> {
    let mut jobs = Jobs::default();
    loop {
        let now = Instant::now();
        jobs.send_due(now, output)?;
        let event = match jobs.next_due() {
            Some(due) => events.recv_timeout(due.saturating_duration_since(now)),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Later(later)) => jobs.add(later, Instant::now()),
            Ok(Event::Cancelled(id)) => jobs.cancel(&id),
            Ok(Event::Answered(id)) => jobs.answered(&id, Instant::now()),
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
    /// When each is due, and in which order they came.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    jobs: Vec<Option<Deferred>>,
    /// Places in `jobs` that can be used again.
    free: Vec<usize>,
}

impl Jobs {
    fn add(&mut self, mut later: Deferred, now: Instant) {
        let Some(first) = later.steps.first() else {
            // Never answered.
            return;
        };
        let at = now + first.wait;
        later.steps.reverse();
        let index = self.free.pop().unwrap_or(self.jobs.len());
        if later.waiting.is_none() {
            self.due.push(Reverse((at, index)));
        }
        match self.jobs.get_mut(index) {
            Some(place) => *place = Some(later),
            None => self.jobs.push(Some(later)),
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
        // What is cancelled is not waited for.
        let jobs = &self.jobs;
        self.due
            .retain(|Reverse((_, job))| jobs.get(*job).is_some_and(Option::is_some));
    }

    /// Goes on with whatever waited for this reply.
    fn answered(&mut self, id: &Value, now: Instant) {
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let Some(job) = job.as_mut().filter(|job| job.waiting.as_ref() == Some(id)) else {
                continue;
            };
            job.waiting = None;
            if let Some(next) = job.steps.last() {
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
            if let Some(step) = job.steps.pop() {
                text.extend_from_slice(&step.frame);
                text.push(b'\n');
                job.waiting = step.ask;
            }
            match job.steps.last() {
                Some(_) if job.waiting.is_some() => {}
                Some(next) => self.due.push(Reverse((at + next.wait, index))),
                None => {
                    *slot = None;
                    self.free.push(index);
                }
            }
        }
        if text.is_empty() {
            return Ok(());
        }
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(&text)?;
        output.flush()
    }
}
