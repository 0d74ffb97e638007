//! `builtin/lexical`: a deterministic model that picks a tool by shared words.
//!
//! It calls the tool whose name and description share most content words with the prompt, fills the
//! required arguments from the prompt, and answers with the text of the result. It is a
//! reproducible baseline for comparing catalogs and models, not a language model.

use mcptest_catalog::lexical;
use mcptest_trace::verdict::RunError;

use super::arguments;
use crate::model::{AssistantTurn, Future, Message, Model, ModelCall, Request};

/// The model; it has no state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lexical;

impl Model for Lexical {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        let turn = match request.messages.last() {
            Some(Message::Results(results)) => answer(results),
            _ => choose(&request),
        };
        Box::pin(async move { Ok(turn) })
    }
}

fn choose(request: &Request<'_>) -> AssistantTurn {
    let prompt = request
        .messages
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::User(text) => Some(text.as_str()),
            _ => None,
        })
        .unwrap_or("");
    let offered = request.tools.iter().map(|offered| {
        (
            offered.tool.name(),
            offered.tool.description().unwrap_or(""),
        )
    });
    let Some(pick) = lexical::select(prompt, offered) else {
        return AssistantTurn {
            text: "None of the offered tools fits the request.".to_owned(),
            ..AssistantTurn::default()
        };
    };
    let chosen = &request.tools[pick.index];
    AssistantTurn {
        calls: vec![ModelCall {
            id: None,
            wire_name: chosen.wire_name.clone(),
            args: Some(arguments::fill(chosen.tool.input_schema(), prompt)),
            caller: None,
        }],
        ..AssistantTurn::default()
    }
}

fn answer(results: &[(ModelCall, crate::model::ToolReply)]) -> AssistantTurn {
    let lines: Vec<String> = results
        .iter()
        .map(|(call, reply)| {
            let text = reply.text();
            if reply.is_error {
                format!("The tool {} failed: {text}", call.wire_name)
            } else {
                text
            }
        })
        .collect();
    AssistantTurn {
        text: lines.join("\n"),
        ..AssistantTurn::default()
    }
}
