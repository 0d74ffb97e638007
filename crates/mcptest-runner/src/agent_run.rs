//! Carrying out one run of an agent: servers, offer, faults, the loop.

use mcptest_agent::{Model, Offer, Task, ignore_events};
use mcptest_cassette::{Catalog, Role};
use mcptest_gates::distractors::{PlannedRun, offer_order, plan_injection, refusal};
use mcptest_suite::suite::AgentTest;
use mcptest_trace::catalog::Tool;
use mcptest_trace::fault::FaultState;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::cassettes::Tape;
use crate::event::Event;
use crate::judges;
use crate::sessions::{RunTools, Sessions};
use crate::stage::{Place, Stage};

/// Runs an agent once; whatever keeps it from running is the trace's error.
pub(crate) async fn agent_run(
    stage: &Stage,
    place: Place<'_>,
    test: &AgentTest,
    run: u32,
    tape: &Tape,
) -> Trace {
    let broken = |error: RunError| Trace {
        error: Some(error),
        ..Trace::default()
    };
    if let Some(error) = tape.error() {
        return broken(error);
    }
    let mut tools = RunTools::new(
        FaultState::new(&test.faults, test.detection_budget_ms),
        test.detection_budget_ms,
    );
    let ready = prepare(stage, place, test, run, tape, &mut tools).await;
    let trace = match ready {
        Err(error) => {
            if let Some(recorder) = tape.recorder() {
                recorder.record_failure(&error);
            }
            broken(error)
        }
        Ok((model, offer, distractors)) => {
            let task = Task {
                system: test.system.as_deref(),
                prompt: &test.prompt,
                max_turns: test.max_turns,
                max_tokens: test.max_tokens,
            };
            let model = model.as_ref();
            let mut trace = match (tape.servers(), tape.recorder()) {
                (Some(replay), _) => {
                    mcptest_agent::run(&task, model, &offer, &replay.tools(), &ignore_events).await
                }
                (None, Some(recorder)) => {
                    mcptest_agent::run(
                        &task,
                        model,
                        &offer,
                        &recorder.tools(&tools),
                        &ignore_events,
                    )
                    .await
                }
                (None, None) => {
                    mcptest_agent::run(&task, model, &offer, &tools, &ignore_events).await
                }
            };
            trace.distractors = distractors;
            if stage.judges
                && trace.error.is_none()
                && test.expect.iter().any(|one| one.judge().is_some())
            {
                let seen = trace.observable().to_value();
                trace.judgements = judges::ask(stage, place, tape, &test.expect, &seen, run).await;
            }
            trace
        }
    };
    tools.release().await;
    trace
}

type Ready = (Box<dyn Model>, Offer, Option<Vec<String>>);

/// The model and what it is offered.
async fn prepare(
    stage: &Stage,
    place: Place<'_>,
    test: &AgentTest,
    run: u32,
    tape: &Tape,
    tools: &mut RunTools<'_>,
) -> Result<Ready, RunError> {
    // With several counts of distractors, each count has all the runs; a script starts again at
    // each.
    let seat = place.seat(
        Role::Agent,
        place.model,
        &test.script,
        (run - 1) % test.runs + 1,
    );
    let model = stage.open_model(&seat, tape)?;
    let catalogs = match tape.servers() {
        Some(replay) => replay.catalogs().to_vec(),
        None => {
            let catalogs = list(test, &stage.sessions, tools).await?;
            tape.listed(&catalogs, &stage.redactor)?;
            catalogs
        }
    };
    let listed = catalogs
        .iter()
        .map(|one| (one.server.clone(), one.tools()))
        .collect();
    let (offer, distractors) = offer(stage, test, run, listed)?;
    if let (Some(recorder), Some(_)) = (tape.recorder(), &distractors) {
        recorder.record_offer(&offer);
    }
    Ok((model, offer, distractors))
}

/// What each of the test's servers lists.
async fn list(
    test: &AgentTest,
    sessions: &Sessions,
    tools: &mut RunTools<'_>,
) -> Result<Vec<Catalog>, RunError> {
    let mut listed = Vec::new();
    for name in &test.servers {
        let session = sessions.open(name).await?;
        let found = session.listing().await;
        tools.sessions.insert(name.clone(), session);
        listed.push(Catalog {
            server: name.clone(),
            tools: found?,
        });
    }
    Ok(listed)
}

type Offered = (Offer, Option<Vec<String>>);

/// What the model is offered, and the ids of the tools in it that no server has.
fn offer(
    stage: &Stage,
    test: &AgentTest,
    run: u32,
    listed: Vec<(String, Vec<Tool>)>,
) -> Result<Offered, RunError> {
    let real: Vec<Tool> = listed
        .iter()
        .flat_map(|(_, tools)| tools.iter().cloned())
        .collect();
    keep_promise(stage, test, run, &real)?;
    let mut offer = Offer::new(listed);
    let Some(block) = &test.distractors else {
        return Ok((offer, None));
    };
    let schedule = block.schedule(&test.name, test.runs);
    let planned = schedule
        .get(run as usize - 1)
        .copied()
        .unwrap_or(PlannedRun { count: 0, seed: 0 });
    let fakes =
        plan_injection(block, &real, planned.count, planned.seed).map_err(|error| RunError {
            kind: ErrorKind::Protocol,
            message: error.to_string(),
        })?;
    let ids = fakes
        .iter()
        .map(|fake| mcptest_trace::tool_id::full_id(fake.server(), fake.name()))
        .collect();
    offer.inject(fakes, refusal, |count| offer_order(count, planned.seed));
    Ok((offer, Some(ids)))
}

/// A prompt that is declared name-free is held against the tools that are really offered. The
/// suite's loader knew only some of them.
fn keep_promise(stage: &Stage, test: &AgentTest, run: u32, real: &[Tool]) -> Result<(), RunError> {
    let servers = test.servers.iter().map(String::as_str);
    let Some(problem) = test
        .discovery
        .check(&test.prompt, servers, real.iter().map(Tool::name))
    else {
        return Ok(());
    };
    let text = format!("test `{}`: {}", test.name, problem.message);
    if problem.warning {
        if run == 1 {
            stage.tell(Event::Warning { text });
        }
        return Ok(());
    }
    Err(RunError {
        kind: ErrorKind::Protocol,
        message: text,
    })
}
