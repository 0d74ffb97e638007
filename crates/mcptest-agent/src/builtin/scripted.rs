//! `builtin/scripted`: plays the turns that the suite scripts, so that every gate can be tested
//! with exact passing and failing runs.

use mcptest_trace::verdict::RunError;
use serde_json::Value;

use crate::model::{AssistantTurn, Future, Message, Model, ModelCall, Request, Usage};
use crate::offer::OfferedTool;

/// One scripted turn.
#[derive(Debug, Clone, Default)]
pub struct ScriptedTurn {
    /// The assistant's text.
    pub say: Option<String>,
    /// The calls.
    pub calls: Vec<ScriptedCall>,
    /// The usage; without it the run's usage is unknown.
    pub usage: Option<Usage>,
}

/// One scripted call.
#[derive(Debug, Clone, Default)]
pub struct ScriptedCall {
    /// `server.tool`, a wire name or a bare name. It need not exist.
    pub tool: String,
    /// The arguments; a string simulates arguments that are not valid JSON.
    pub args: Option<Value>,
    /// The provider's tag for a call made from generated code.
    pub caller: Option<Value>,
}

/// The script of one run.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    turns: Vec<ScriptedTurn>,
}

impl Scripted {
    /// Returns the script of run `number` (from 1). The last scripted run serves all further runs.
    #[must_use]
    pub fn for_run(runs: &[Vec<ScriptedTurn>], number: u32) -> Self {
        let index = (number.max(1) as usize - 1).min(runs.len().saturating_sub(1));
        Self {
            turns: runs.get(index).cloned().unwrap_or_default(),
        }
    }
}

impl Model for Scripted {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let played = request
            .messages
            .iter()
            .filter(|message| matches!(message, Message::Assistant(_)))
            .count();
        let turn = match self.turns.get(played) {
            Some(turn) => AssistantTurn {
                text: turn.say.clone().unwrap_or_default(),
                calls: turn
                    .calls
                    .iter()
                    .map(|call| to_model_call(call, request.tools))
                    .collect(),
                usage: turn.usage,
                ..AssistantTurn::default()
            },
            // After the last scripted turn, the model ends with an empty turn at no cost.
            None => AssistantTurn {
                usage: Some(Usage::default()),
                ..AssistantTurn::default()
            },
        };
        Box::pin(async move { Ok(turn) })
    }
}

/// Translates the author's `server.tool` into the wire name that a model would use.
fn to_model_call(call: &ScriptedCall, tools: &[OfferedTool]) -> ModelCall {
    let by_id = tools
        .iter()
        .find(|tool| format!("{}.{}", tool.server, tool.tool.name()) == call.tool);
    let by_name = || tools.iter().find(|tool| tool.tool.name() == call.tool);
    let known = tools
        .iter()
        .find(|tool| tool.wire_name == call.tool)
        .or(by_id)
        .or_else(by_name);
    ModelCall {
        id: None,
        wire_name: known.map_or_else(|| call.tool.clone(), |tool| tool.wire_name.clone()),
        args: Some(
            call.args
                .clone()
                .unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        ),
        caller: call.caller.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_serves_all_further_ones() {
        let run = |text: &str| {
            vec![ScriptedTurn {
                say: Some(text.into()),
                ..ScriptedTurn::default()
            }]
        };
        let runs = [run("a"), run("b")];
        for (number, text) in [(1, "a"), (2, "b"), (3, "b"), (99, "b")] {
            assert_eq!(
                Scripted::for_run(&runs, number).turns[0].say.as_deref(),
                Some(text)
            );
        }
        assert!(Scripted::for_run(&[], 1).turns.is_empty());
    }
}
