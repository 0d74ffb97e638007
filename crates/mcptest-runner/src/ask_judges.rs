//! Asking the judges of a run's judged assertions. Their answers go into the trace, from which the
//! verdict is computed.

use mcptest_agent::{AssistantTurn, Message, Model, Request, Usage};
use mcptest_cassette::ModelRole;
use mcptest_events::Event;
use mcptest_json::text::{one_line, shorten};
use mcptest_suite::suite::ScriptTurn;
use mcptest_trace::expect::{Assertion, Expectation};
use mcptest_trace::judged::{self, Judge, Judgement, Unjudged, judged_text, read_answer};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::Value;

use crate::cassette_plans::RunCassette;
use crate::providers::is_live;
use crate::run_context::{CaseRef, RunContext};

/// Asks every judge about its value in `seen`. A value that is missing needs no judge.
pub(crate) async fn ask(
    context: &RunContext,
    case: CaseRef<'_>,
    cassette: &RunCassette,
    expect: &[Expectation],
    seen: &Value,
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
            let slot = case.model_slot(ModelRole::Judge(number), &juror.model, &script, case.run);
            let answered = |usage: Option<Usage>| {
                context.emit(Event::ModelAnswered {
                    case: context.planned(case.case),
                    run: case.run,
                    model: juror.model.clone(),
                    judge: Some(number),
                    reader: false,
                    usage: usage.map(|usage| mcptest_events::AnswerTokens {
                        input: usage.input,
                        output: usage.output,
                    }),
                });
            };
            let opinion = match context.open_model(&slot, cassette) {
                Ok(model) => opinion(judge, &text, model.as_ref(), answered).await,
                Err(error) => Err(error),
            };
            let (answer, error) = match opinion {
                Ok(answer) => (Some(answer), None),
                Err(error) => (None, Some(of_judge(&juror.model, error))),
            };
            let (score, reason) = answer.unzip();
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

/// Applies the expectations of a direct call. Judges are asked where an expectation is judged, and
/// their answers are kept in the trace. A judge that fails is the trace's error.
pub(crate) async fn apply(
    context: &RunContext,
    case: CaseRef<'_>,
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
    if context.judges && jurors().next().is_some() {
        // A direct call is always live, so there is no recorded opinion on its answer.
        match jurors().find(|juror| context.replay_only && is_live(&juror.model)) {
            Some(juror) => {
                trace.error = Some(RunError {
                    kind: ErrorKind::Protocol,
                    message: format!(
                        "judge `{}` was not asked: with `--replay-only` no model is asked that \
                         costs, and direct tool tests have no cassettes; `--no-judges` skips \
                         judged assertions",
                        juror.model
                    ),
                });
            }
            None => {
                let asked = ask(context, case, &RunCassette::Off, expect, seen);
                trace.judgements = Box::pin(asked).await;
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
            judged::apply(expectation, judge, seen, &trace.judgements, !context.judges);
        if let Some(Unjudged::Broken(error)) = unjudged {
            trace.error.get_or_insert(error);
        }
        assertions.push(assertion);
    }
    assertions
}

/// The script of a judge or a reader. The suite's loader has checked it.
pub(crate) fn script_of(written: Option<&Value>) -> Vec<Vec<ScriptTurn>> {
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

/// Asks a judge, and a second time after an answer that cannot be read.
async fn opinion(
    judge: &Judge,
    text: &str,
    model: &dyn Model,
    answered: impl Fn(Option<Usage>),
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
        answered(turn.usage);
        match read_answer(&turn.text) {
            Ok(answer) => return Ok(answer),
            Err(problem) => {
                let again = format!(
                    "That cannot be read: {problem}. Answer with the JSON object alone: \
                     {{\"score\": S, \"reason\": \"R\"}}."
                );
                wrong = format!(
                    "{problem}; it said {}",
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
