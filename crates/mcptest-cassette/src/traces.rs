//! The traces of a cassette, for scoring recorded runs.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mcptest_agent::{Offer, Task, ignore_events};
use mcptest_redact::redact::Redactor;
use mcptest_trace::claims::{CLAIMS_KEY, ModelClaims};
use mcptest_trace::server_messages;
use mcptest_trace::tool_id::full_id;
use mcptest_trace::trace::Trace;
use mcptest_trace::user_turn::UserTurn;
use serde_json::Value;

use crate::format::{Cassette, ModelAnswer, RecordedRun};
use crate::replay::{InvalidRules, Player, RunReplay};
use crate::role::ModelRole;

/// Replays every run and returns the traces.
///
/// # Errors
/// The cassette's rules for volatile values are invalid.
pub fn traces(cassette: Cassette) -> Result<Vec<Trace>, InvalidRules> {
    // Secrets were redacted when the cassette was written.
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
    let failed = |error| Trace {
        error: Some(error),
        ..Trace::default()
    };
    let replay = match player.run(run.run) {
        Ok(replay) => replay,
        Err(error) => return failed(error),
    };
    if let Some(error) = replay.error() {
        return failed(error);
    }
    let listed = replay
        .catalogs()
        .iter()
        .map(|one| (one.server.clone(), one.tools()));
    let mut offer = Offer::new(listed.collect());
    let distractors = run.distractors.as_ref();
    if let Some(distractors) = distractors {
        offer.inject_in_order(
            distractors
                .tools
                .iter()
                .map(|one| (one.tool.clone(), one.refusal.clone()))
                .collect(),
            &distractors.order,
        );
    }
    let subject = &player.cassette().subject;
    let turns = run
        .models
        .get(&ModelRole::Agent.to_string())
        .map_or(&[][..], Vec::as_slice);
    let settings = &subject.settings;
    let further = settings.get("turns").and_then(Value::as_array);
    let further: Vec<UserTurn> = further
        .into_iter()
        .flatten()
        .filter_map(UserTurn::read)
        .collect();
    let task = Task {
        system: subject.system.as_deref(),
        prompt: &subject.prompt,
        turns: &further,
        // A run that did not end by itself reached its limit of turns.
        max_turns: u32::try_from(turns.len()).unwrap_or(u32::MAX),
        max_tokens: settings
            .get("max_tokens")
            .and_then(|most| u32::try_from(most.as_u64()?).ok()),
    };
    let model = replay.model(ModelRole::Agent);
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
        // A replay never waits, so this is unreachable.
        Poll::Pending => Trace::default(),
    };
    trace.distractors = distractors.map(|distractors| {
        let ids = distractors
            .tools
            .iter()
            .map(|one| full_id(one.tool.server(), one.tool.name()));
        ids.collect()
    });
    if settings.contains_key("client") {
        trace.extra.insert(server_messages::KEY, replay.messages());
    }
    let after = replay.after();
    if trace.error.is_none() && !after.is_empty() {
        trace.extra.insert("after", after);
    }
    if let Some(claims) = reading(&replay) {
        trace.extra.insert(CLAIMS_KEY, claims);
    }
    trace
}

/// The claims that a model read in the closing message, if it was asked. Its answers are those of
/// the recording, so the reading is the one of the recorded run.
fn reading(replay: &RunReplay) -> Option<Value> {
    let models = &replay.recorded().models;
    let (model, exchanges) = models
        .iter()
        .find_map(|(role, exchanges)| Some((ModelRole::reader_of(role)?, exchanges)))?;
    let answers = exchanges.iter().map(|exchange| match &exchange.answer {
        ModelAnswer::Turn(turn) => Ok(replay.restored(turn.clone()).text),
        ModelAnswer::Error(error) => Err(replay.restored(error.clone())),
    });
    let claims = ModelClaims::from_answers(model, answers);
    serde_json::to_value(claims).ok()
}
