//! Asking the judges of a run's judged assertions. What they say goes into the trace; the verdict
//! is drawn from there.

use mcptest_agent::{AssistantTurn, Message, Model, Request};
use mcptest_cassette::Role;
use mcptest_json::text::{one_line, shorten};
use mcptest_suite::suite::ScriptTurn;
use mcptest_trace::expect::{Assertion, Expectation};
use mcptest_trace::judged::{self, Judge, Judgement, Unjudged, judged_text, read_answer};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::cassettes::Tape;
use crate::providers::is_live;
use crate::stage::{Place, Stage};

/// Every judge's opinion on what it is asked about in `seen`. A value that is not there needs none.
pub(crate) async fn ask(
    stage: &Stage,
    place: Place<'_>,
    tape: &Tape,
    expect: &[Expectation],
    seen: &Value,
    run: u32,
) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    let mut number = 0;
    for expectation in expect {
        let Some(judge) = expectation.judge() else {
            continue;
        };
        let Some(value) = expectation.target.select(seen) else {
            continue;
        };
        let target = expectation.target.as_str();
        let text = judged_text(&value);
        for juror in &judge.jurors {
            let script = script_of(juror.script.as_ref());
            number += 1;
            let seat = place.seat(Role::Judge(number), &juror.model, &script, run);
            let opinion = match stage.open_model(&seat, tape) {
                Ok(model) => opinion(judge, &text, model.as_ref()).await,
                Err(error) => Err(error),
            };
            let (said, error) = match opinion {
                Ok(said) => (Some(said), None),
                Err(error) => (None, Some(of_judge(&juror.model, error))),
            };
            let (score, reason) = said.unzip();
            judgements.push(Judgement {
                target: target.to_owned(),
                digest: judge.digest(target, &text),
                model: juror.model.clone(),
                score,
                reason,
                error,
            });
        }
    }
    judgements
}

/// What the expectations of a direct call come to. Opinions are asked for where an expectation is
/// judged, and kept in the trace; one that could not be had is the trace's error.
pub(crate) async fn apply(
    stage: &Stage,
    place: Place<'_>,
    expect: &[Expectation],
    seen: &Value,
    trace: &mut Trace,
) -> Vec<Assertion> {
    let jurors = || {
        expect
            .iter()
            .filter_map(Expectation::judge)
            .flat_map(|judge| &judge.jurors)
    };
    if stage.judges && jurors().next().is_some() {
        // A direct call is made each time, so there is no recorded opinion on its answer.
        match jurors().find(|juror| stage.replay_only && is_live(&juror.model)) {
            Some(juror) => {
                trace.error = Some(RunError {
                    kind: ErrorKind::Protocol,
                    message: format!(
                        "judge `{}` was not asked: with `--replay-only` no model is asked that costs, and direct tool tests have no cassettes; \
                         `--no-judges` leaves judged assertions out",
                        juror.model
                    ),
                });
            }
            None => {
                trace.judgements = Box::pin(ask(stage, place, &Tape::Off, expect, seen, 1)).await
            }
        }
    }
    let mut assertions = Vec::with_capacity(expect.len());
    for expectation in expect {
        let Some(judge) = expectation.judge() else {
            assertions.push(expectation.apply(seen, None));
            continue;
        };
        let (assertion, unjudged) =
            judged::apply(expectation, judge, seen, &trace.judgements, !stage.judges);
        if let Some(Unjudged::Broken(error)) = unjudged {
            trace.error.get_or_insert(error);
        }
        assertions.push(assertion);
    }
    assertions
}

/// The suite's loader has read it before.
fn script_of(written: Option<&Value>) -> Vec<Vec<ScriptTurn>> {
    written
        .and_then(|written| serde_json::from_value(written.clone()).ok())
        .unwrap_or_default()
}

fn of_judge(model: &str, error: RunError) -> RunError {
    RunError {
        message: format!("judge `{model}`: {}", error.message),
        ..error
    }
}

/// Asks once, and once more after an answer that makes no sense.
async fn opinion(
    judge: &Judge,
    text: &str,
    model: &dyn Model,
) -> Result<(serde_json::Number, String), RunError> {
    let (system, question) = judge.question(text);
    let mut messages = vec![Message::User(question)];
    let mut wrong = String::new();
    for _ in 0..2 {
        let request = Request {
            system: Some(&system),
            messages: &messages,
            tools: &[],
            max_tokens: None,
        };
        let turn = model.next(request).await?;
        match read_answer(&turn.text) {
            Ok(said) => return Ok(said),
            Err(words) => {
                let again = format!(
                    "That cannot be read: {words}. Answer with the JSON object alone: {{\"score\": S, \"reason\": \"R\"}}."
                );
                wrong = format!(
                    "{words}; it said {}",
                    shorten(&one_line(&format!("{:?}", turn.text)), 120)
                );
                // Calls were not offered, and cannot be answered.
                messages.push(Message::Assistant(AssistantTurn {
                    calls: Vec::new(),
                    ..turn
                }));
                messages.push(Message::User(again));
            }
        }
    }
    Err(RunError {
        kind: ErrorKind::Provider,
        message: format!("two answers that cannot be read: {wrong}"),
    })
}
