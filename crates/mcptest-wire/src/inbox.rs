//! The channel from the task that reads replies to a waiting call.
//!
//! Nearly every call gets one event. A channel of tokio allocates a block of 32 for it, which was a
//! tenth of the work of a call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Inbox<T>(Arc<Shared<T>>);

/// The sending end.
#[derive(Debug)]
pub(crate) struct InboxSender<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    /// The next event, in place: most channels have no other one.
    next: Option<T>,
    /// The events after it.
    later: VecDeque<T>,
    waker: Option<Waker>,
    is_closed: bool,
}

/// Opens a channel.
pub(crate) fn inbox<T>() -> (InboxSender<T>, Inbox<T>) {
    let shared = Arc::new(Shared(Mutex::new(State {
        next: None,
        later: VecDeque::new(),
        waker: None,
        is_closed: false,
    })));
    (InboxSender(Arc::clone(&shared)), Inbox(shared))
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State<T>)) {
        let mut state = self.state();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> InboxSender<T> {
    /// Sends an event. The receiver may be gone.
    pub(crate) fn send(&self, event: T) {
        self.0.change(|state| match &state.next {
            None => state.next = Some(event),
            Some(_) => state.later.push_back(event),
        });
    }
}

impl<T> Drop for InboxSender<T> {
    fn drop(&mut self) {
        self.0.change(|state| state.is_closed = true);
    }
}

impl<T> Inbox<T> {
    /// Waits for the next event; `None` if there is no sender any more.
    pub(crate) async fn recv(&mut self) -> Option<T> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.state();
        if let Some(event) = state.next.take() {
            state.next = state.later.pop_front();
            return Poll::Ready(Some(event));
        }
        if state.is_closed {
            return Poll::Ready(None);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_arrive_in_order_and_before_the_end() {
        let (sender, mut inbox) = inbox();
        sender.send(1);
        sender.send(2);
        drop(sender);
        assert_eq!(inbox.recv().await, Some(1));
        assert_eq!(inbox.recv().await, Some(2));
        assert_eq!(inbox.recv().await, None);
    }

    #[tokio::test]
    async fn a_waiting_receiver_wakes_up() {
        let (sender, mut inbox) = inbox();
        let waiting = tokio::spawn(async move { (inbox.recv().await, inbox.recv().await) });
        tokio::task::yield_now().await;
        sender.send("reply");
        tokio::task::yield_now().await;
        drop(sender);
        assert_eq!(waiting.await.unwrap(), (Some("reply"), None));
    }
}
