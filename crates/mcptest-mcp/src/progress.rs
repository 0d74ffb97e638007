//! The progress of a call, as notifications for the client that asked for them.

use std::time::{Duration, Instant};

use mcptest_events::Event;
use mcptest_json::text::one_line;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use serde::de::IgnoredAny;
use tokio::sync::mpsc;

use crate::result_size;

/// The shortest time between two notifications, except for the first and the last.
const PAUSE: Duration = Duration::from_millis(100);

/// A state of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub done: u64,
    pub total: u64,
    pub message: String,
}

/// A fold over the events of a run.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    /// The labels of the cases, and their runs.
    cases: Vec<(String, u64)>,
    done: u64,
    /// The id of the run in the history.
    pub id: Option<String>,
}

impl Fold {
    /// Adds a line of the log. Returns the new state, if runs were planned or finished.
    pub(crate) fn line(&mut self, line: &[u8]) -> Option<Step> {
        // Events of later versions, and lines that are not events, are ignored.
        let event: Event<IgnoredAny> = serde_json::from_slice(line).ok()?;
        let message = match event {
            Event::Begun(begun) => {
                self.id = Some(begun.id).filter(|id| !id.is_empty());
                return None;
            }
            Event::Planned { cases, .. } => {
                self.cases = cases
                    .into_iter()
                    .map(|case| (case.label, u64::from(case.runs)))
                    .collect();
                "started".to_owned()
            }
            Event::RunFinished(run) => {
                self.done += 1;
                format!("finished: {}", self.label(run.case))
            }
            Event::RunsSaved { case, runs } => {
                self.done += u64::from(runs);
                format!("decided: {}", self.label(case))
            }
            _ => return None,
        };
        let total = self.cases.iter().map(|(_, runs)| runs).sum::<u64>();
        Some(Step {
            done: self.done,
            total: total.max(self.done),
            message: result_size::short(&one_line(&message)),
        })
    }

    fn label(&self, case: usize) -> &str {
        self.cases.get(case).map_or("a test", |(label, _)| label)
    }
}

/// The way to the client.
pub(crate) struct Progress(Option<mpsc::UnboundedSender<Step>>);

impl Progress {
    pub(crate) fn step(&self, step: Step) {
        if let Some(steps) = &self.0 {
            // Fails only if the client has left.
            let _ = steps.send(step);
        }
    }
}

/// Notifications with the client's token; without one, nothing is sent. The future sends them until
/// the other half is dropped. It must be part of the call's own task: the SDK knows from there
/// which request the notifications belong to.
pub(crate) fn channel(
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
) -> (Progress, impl Future<Output = ()> + Send) {
    let (sender, steps) = mpsc::unbounded_channel();
    let progress = Progress(token.is_some().then_some(sender));
    (progress, async move {
        if let Some(token) = token {
            send(peer, token, steps).await;
        }
    })
}

/// Sends the newest step, but not too often, and never one that is not larger than the last.
async fn send(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut steps: mpsc::UnboundedReceiver<Step>,
) {
    let mut last: Option<(u64, Instant)> = None;
    while let Some(mut step) = steps.recv().await {
        while let Ok(newer) = steps.try_recv() {
            step = newer;
        }
        if last.is_some_and(|(done, _)| step.done <= done) {
            continue;
        }
        if let Some((_, at)) = last {
            tokio::time::sleep(PAUSE.saturating_sub(at.elapsed())).await;
        }
        last = Some((step.done, Instant::now()));
        #[expect(clippy::cast_precision_loss, reason = "nobody counts to 2^52 runs")]
        let (done, total) = (step.done as f64, step.total as f64);
        let params = ProgressNotificationParam::new(token.clone(), done)
            .with_total(total)
            .with_message(step.message);
        if peer.notify_progress(params).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted() {
        let mut fold = Fold::default();
        assert_eq!(
            fold.line(br#"{"begun":{"version":1,"id":"x","mcptest":"0","started_ms":0,"command_line":[],"inputs":[]}}"#),
            None
        );
        assert_eq!(fold.id.as_deref(), Some("x"));
        let planned = br#"{"planned":{"cases":[{"id":{"suite":"s","name":"a"},"kind":"agent","label":"a\u001b[1m","runs":3,"position":0}]}}"#;
        let step = fold.line(planned).unwrap();
        assert_eq!((step.done, step.total), (0, 3));
        assert_eq!(fold.line(br#"{"run_started":{"case":0,"run":1}}"#), None);
        let step = fold.line(br#"{"runs_saved":{"case":0,"runs":2}}"#).unwrap();
        assert_eq!((step.done, step.total), (2, 3));
        assert!(!step.message.contains('\u{1b}'), "{}", step.message);
        for junk in [&b""[..], b"{}", b"{\"later\":{}}", b"\xff"] {
            assert_eq!(fold.line(junk), None);
        }
    }
}
