//! Models that answer servers: `sampling/createMessage`.

use std::fmt;
use std::sync::Arc;

use mcptest_agent::builtin::SCRIPTED;
use mcptest_agent::{AssistantTurn, Message, Model, Request, TurnEnd, Usage};
use mcptest_cassette::ModelRole;
use mcptest_events::{AnswerTokens, Event};
use mcptest_suite::client::{ClientScript, SamplingAnswer, SamplingModel};
use mcptest_trace::verdict::RunError;
use serde_json::{Value, json};

use crate::cassette_plans::RunCassette;
use crate::run_context::{CaseRef, RunContext};

/// The largest number of output tokens that a server can ask for.
const MAX_TOKENS: u64 = 100_000;

/// The models of a client, by the index of their rule.
#[derive(Default)]
pub(crate) struct SamplingModels {
    by_rule: Vec<Vec<Arc<dyn Model>>>,
    answered: Option<Answered>,
}

/// Receives the tokens of each answer.
type Answered = Arc<dyn Fn(&str, Option<Usage>) + Send + Sync>;

impl fmt::Debug for SamplingModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<usize> = self.by_rule.iter().map(Vec::len).collect();
        f.debug_tuple("SamplingModels").field(&counts).finish()
    }
}

/// A request that a model did not answer.
pub(crate) struct Unanswered {
    /// The message for the server.
    pub message: String,
    /// The failure of the infrastructure, if it was one.
    pub error: Option<RunError>,
}

impl SamplingModels {
    /// Opens the models of a client.
    pub fn open(
        context: &RunContext,
        case: CaseRef<'_>,
        script: &ClientScript,
        cassette: &RunCassette,
    ) -> Result<Self, RunError> {
        let mut by_rule = Vec::new();
        for (rule, answer) in script.sampling.iter().flatten().enumerate() {
            let models = match &answer.answer {
                SamplingAnswer::Model(model) => open_rule(context, case, rule, model, cassette)
                    .map_err(|error| RunError {
                        message: format!(
                            "model `{}` of `client.sampling`: {}",
                            model.id, error.message
                        ),
                        ..error
                    })?,
                SamplingAnswer::Result(_) | SamplingAnswer::Error(_) => Vec::new(),
            };
            by_rule.push(models);
        }
        let (emit, planned, run) = (
            Arc::clone(&context.emit),
            context.planned(case.case),
            case.run,
        );
        let answered: Answered = Arc::new(move |model, usage| {
            emit(Event::ModelAnswered {
                case: planned,
                run,
                model: model.to_owned(),
                judge: None,
                reader: false,
                usage: usage.map(|usage| AnswerTokens {
                    input: usage.input,
                    output: usage.output,
                }),
            });
        });
        Ok(Self {
            by_rule,
            answered: Some(answered),
        })
    }

    /// The answer of a rule's model to its request with this number (from 1).
    pub async fn answer(
        &self,
        rule: usize,
        number: u32,
        id: &str,
        params: Option<&Value>,
    ) -> Result<Value, Unanswered> {
        let refuse = |message: String| Unanswered {
            message,
            error: None,
        };
        let models = self.by_rule.get(rule).map_or(&[][..], Vec::as_slice);
        let at = (number.max(1) as usize - 1).min(models.len().saturating_sub(1));
        let Some(model) = models.get(at) else {
            return Err(refuse("the suite has no model for this request".to_owned()));
        };
        let params = params.unwrap_or(&Value::Null);
        let messages = messages(params).map_err(refuse)?;
        let max_tokens = params.get("maxTokens").and_then(Value::as_u64);
        let request = Request {
            system: params.get("systemPrompt").and_then(Value::as_str),
            messages: &messages,
            tools: &[],
            max_tokens: max_tokens.and_then(|most| u32::try_from(most.min(MAX_TOKENS)).ok()),
        };
        let turn = model.next(request).await.map_err(|error| Unanswered {
            message: "the client's model did not answer".to_owned(),
            error: Some(RunError {
                message: format!("model `{id}` of `client.sampling`: {}", error.message),
                ..error
            }),
        })?;
        if let Some(answered) = &self.answered {
            answered(id, turn.usage);
        }
        Ok(result(id, &turn))
    }
}

/// The models of one rule. A script has one for each request.
fn open_rule(
    context: &RunContext,
    case: CaseRef<'_>,
    rule: usize,
    model: &SamplingModel,
    cassette: &RunCassette,
) -> Result<Vec<Arc<dyn Model>>, RunError> {
    let number = u32::try_from(rule + 1).unwrap_or(u32::MAX);
    let role = ModelRole::Sampling(number);
    let requests = match model.id.as_str() {
        SCRIPTED => model.script.len().max(1),
        _ => 1,
    };
    let mut opened: Vec<Arc<dyn Model>> = Vec::new();
    for request in 1..=requests {
        let request = u32::try_from(request).unwrap_or(u32::MAX);
        let slot = case.model_slot(role.clone(), &model.id, &model.script, request);
        opened.push(context.open_model(&slot, cassette)?.into());
    }
    Ok(opened)
}

/// The conversation of a request. Only text can be passed on to every model.
fn messages(params: &Value) -> Result<Vec<Message>, String> {
    if params.get("tools").is_some() {
        return Err("the client's model takes no tools here".to_owned());
    }
    let written = params.get("messages").and_then(Value::as_array);
    let written = written.ok_or("`messages` is not an array")?;
    let mut messages = Vec::new();
    for message in written {
        let text = text_of(message.get("content"))?;
        match message.get("role").and_then(Value::as_str) {
            Some("assistant") => messages.push(Message::Assistant(AssistantTurn {
                text,
                ..AssistantTurn::default()
            })),
            Some("user") => messages.push(Message::User(text)),
            _ => return Err("a message has neither the role `user` nor `assistant`".to_owned()),
        }
    }
    if messages.is_empty() {
        return Err("there are no messages".to_owned());
    }
    Ok(messages)
}

/// The text of a block, or of a list of blocks.
fn text_of(content: Option<&Value>) -> Result<String, String> {
    let blocks = match content {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block) => vec![block],
        None => Vec::new(),
    };
    let mut texts = Vec::new();
    for block in blocks {
        match (
            block.get("type").and_then(Value::as_str),
            block.get("text").and_then(Value::as_str),
        ) {
            (Some("text"), Some(text)) => texts.push(text),
            (kind, _) => {
                let kind = kind.unwrap_or("unknown");
                let kind: String = kind.chars().take(40).collect();
                return Err(format!(
                    "the client's model takes only text, and a message has content of type {kind}"
                ));
            }
        }
    }
    Ok(texts.join("\n"))
}

fn result(id: &str, turn: &AssistantTurn) -> Value {
    let stop_reason = match turn.end {
        TurnEnd::OutOfTokens => "maxTokens",
        _ => "endTurn",
    };
    json!({
        "role": "assistant",
        "content": {"type": "text", "text": turn.text},
        "model": id,
        "stopReason": stop_reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_a_request_become_a_conversation() {
        let block = |text: &str| json!({"type": "text", "text": text});
        let params = json!({"messages": [
            {"role": "user", "content": block("Hi")},
            {"role": "assistant", "content": [block("a"), block("b")]},
        ]});
        let read = messages(&params).unwrap();
        assert_eq!(read[0], Message::User("Hi".to_owned()));
        let Message::Assistant(turn) = &read[1] else {
            panic!("{read:?}");
        };
        assert_eq!(turn.text, "a\nb");
        for (bad, words) in [
            (json!({}), "not an array"),
            (json!({"messages": []}), "no messages"),
            (
                json!({"messages": [{"role": "system", "content": block("x")}]}),
                "role",
            ),
            (
                json!({"messages": [{"role": "user", "content": {"type": "image"}}]}),
                "type image",
            ),
            (
                json!({"messages": [{"role": "user", "content": block("x")}], "tools": []}),
                "no tools",
            ),
        ] {
            let error = messages(&bad).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_turn_becomes_a_result() {
        let turn = AssistantTurn {
            text: "Hello".to_owned(),
            end: TurnEnd::OutOfTokens,
            ..AssistantTurn::default()
        };
        assert_eq!(
            result("p/m", &turn),
            json!({
                "role": "assistant", "content": {"type": "text", "text": "Hello"},
                "model": "p/m", "stopReason": "maxTokens",
            })
        );
    }
}
