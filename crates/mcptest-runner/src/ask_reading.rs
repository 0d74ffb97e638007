//! Asking a model for the claims in the closing message of a run (`narrative.llm_assisted`).
//!
//! The reading is advisory. It is asked for after the run, recorded like every request, paid from
//! the same budgets, and written into the trace. A request that fails leaves its reason there and a
//! note; it never changes the run.

use mcptest_agent::{AssistantTurn, Message, Model, Offer, Request};
use mcptest_cassette::ModelRole;
use mcptest_events::Event;
use mcptest_suite::suite::AgentTest;
use mcptest_trace::claims::{self, CLAIMS_KEY, ModelClaims};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::ask_judges::script_of;
use crate::cassette_plans::RunCassette;
use crate::providers::is_live;
use crate::run_context::{CaseRef, RunContext};
use crate::stop_signal::{StopReason, StopSignal};

/// Asks the model that a gate of the test requests, and inserts its answer into the trace. A run
/// without a closing message needs no reader.
pub(crate) async fn ask(
    context: &RunContext,
    case: CaseRef<'_>,
    cassette: &RunCassette,
    (test, offer): (&AgentTest, &Offer),
    trace: &mut Trace,
    stop: StopSignal<'_>,
) {
    let Some(request) = test.gates.iter().find_map(|gate| gate.reading()) else {
        return;
    };
    let model = request.model.as_deref().unwrap_or(case.model);
    // The suite's loader has warned about it.
    if request.script.is_none() && !is_live(model) {
        return;
    }
    let message = trace.final_response.as_deref().unwrap_or_default();
    if message.trim().is_empty() {
        return;
    }
    // A secret is masked before it goes to another model. So a replay, which has only the masked
    // message, asks the same question.
    let message = context.redactor.text(message);
    let script = script_of(request.script.as_ref());
    let slot = case.model_slot(
        ModelRole::Reader(model.to_owned()),
        model,
        &script,
        case.run,
    );
    let answers = match context.open_model(&slot, cassette) {
        Ok(reader) => {
            let names = offer.tools().iter().map(|offered| offered.tool.name());
            let question = claims::question(&message, names);
            let answered = |turn: &AssistantTurn| {
                context.emit(Event::ModelAnswered {
                    case: context.planned(case.case),
                    run: case.run,
                    model: model.to_owned(),
                    judge: None,
                    reader: true,
                    usage: turn.usage.map(|usage| mcptest_events::AnswerTokens {
                        input: usage.input,
                        output: usage.output,
                    }),
                });
            };
            tokio::select! {
                biased;
                answers = answers(reader.as_ref(), question, answered) => answers,
                reason = stop.received() => vec![Err(stopped(&reason))],
            }
        }
        Err(error) => vec![Err(error)],
    };
    let reading = ModelClaims::from_answers(model, answers);
    if let Some(error) = &reading.error {
        context.note(format!(
            "test `{}`, run {}: `{model}` did not read the closing message ({}: {}); the verdict \
             does not depend on it",
            test.name,
            case.run,
            error.kind.as_str(),
            error.message
        ));
    }
    if let Ok(reading) = serde_json::to_value(reading) {
        trace.extra.insert(CLAIMS_KEY, reading);
    }
}

fn stopped(reason: &StopReason<'_>) -> RunError {
    let message = match reason {
        StopReason::Interrupted => "interrupted".to_owned(),
        StopReason::Deadline(deadline) => deadline.message.clone(),
    };
    RunError {
        kind: ErrorKind::Budget,
        message,
    }
}

/// The answers of a reader: one, or two if the first cannot be read.
async fn answers(
    reader: &dyn Model,
    (system, question): (&str, String),
    answered: impl Fn(&AssistantTurn),
) -> Vec<Result<String, RunError>> {
    let mut messages = vec![Message::User(question)];
    let mut answers = Vec::new();
    loop {
        let request = Request {
            system: Some(system),
            messages: &messages,
            tools: &[],
            max_tokens: None,
        };
        let turn = match reader.next(request).await {
            Ok(turn) => turn,
            Err(error) => {
                answers.push(Err(error));
                return answers;
            }
        };
        answered(&turn);
        let problem = claims::read_answer(&turn.text).err();
        answers.push(Ok(turn.text.clone()));
        let Some(problem) = problem.filter(|_| answers.len() < 2) else {
            return answers;
        };
        // Calls were not offered, and cannot be answered.
        messages.push(Message::Assistant(AssistantTurn {
            calls: Vec::new(),
            ..turn
        }));
        messages.push(Message::User(claims::repeat_question(&problem)));
    }
}
