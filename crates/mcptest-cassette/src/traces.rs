//! The traces in a cassette, for whoever scores recorded runs.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcptest_agent::{Offer, Task, ignore_events};
use mcptest_redact::redact::Redactor;
use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::Trace;

use crate::format::{Answer, Cassette, RecordedRun};
use crate::replay::Player;
use crate::role::Role;

/// Replays every run and keeps its trace.
///
/// # Errors
/// That the cassette's rules cannot be used.
pub fn traces(cassette: Cassette) -> Result<Vec<Trace>, String> {
    // The cassette was cleaned when it was written.
    let player = Player::new(cassette, Arc::new(Redactor::default()))?;
    let mut traces = Vec::new();
    for run in &player.cassette().runs {
        let mut trace = trace_of(&player, run);
        trace.test = Some(player.cassette().subject.test.clone().into());
        trace.model = Some(player.cassette().subject.model.clone().into());
        trace.run = Some(u64::from(run.run));
        traces.push(trace);
    }
    Ok(traces)
}

fn trace_of(player: &Arc<Player>, run: &RecordedRun) -> Trace {
    let broken = |error| Trace {
        error: Some(error),
        ..Trace::default()
    };
    let replay = match player.run(run.run) {
        Ok(replay) => replay,
        Err(error) => return broken(error),
    };
    if let Some(error) = replay.error() {
        return broken(error);
    }
    let listed = replay
        .catalogs()
        .iter()
        .map(|one| (one.server.clone(), one.tools()));
    let mut offer = Offer::new(listed.collect());
    let fakes = run.distractors.as_ref();
    if let Some(fakes) = fakes {
        offer.inject_in_order(
            fakes
                .tools
                .iter()
                .map(|one| (one.tool.clone(), one.refusal.clone()))
                .collect(),
            &fakes.order,
        );
    }
    let subject = &player.cassette().subject;
    let turns = run
        .models
        .get(&Role::Agent.to_string())
        .map_or(&[][..], Vec::as_slice);
    let ended = turns.last().is_some_and(|last| match &last.answer {
        Answer::Turn(turn) => turn.calls.is_empty(),
        Answer::Error(_) => true,
    });
    let task = Task {
        system: subject.system.as_deref(),
        prompt: &subject.prompt,
        // A run that did not end by itself was out of turns.
        max_turns: u32::try_from(turns.len()).unwrap_or(u32::MAX) + u32::from(ended),
        max_tokens: subject
            .settings
            .get("max_tokens")
            .and_then(|most| u32::try_from(most.as_u64()?).ok()),
    };
    let model = replay.model(Role::Agent);
    let tools = replay.tools();
    let run = pin!(mcptest_agent::run(
        &task,
        model.as_ref(),
        &offer,
        &tools,
        &ignore_events
    ));
    let mut trace = match run.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(trace) => trace,
        // Nothing in a replay waits.
        Poll::Pending => Trace::default(),
    };
    trace.distractors = fakes.map(|fakes| {
        let ids = fakes
            .tools
            .iter()
            .map(|one| full_id(one.tool.server(), one.tool.name()));
        ids.collect()
    });
    trace
}
