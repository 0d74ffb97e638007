//! Properties of all adapters, and helpers for their tests.

mod ends;
mod properties;

use mcptest_agent::{AssistantTurn, Message, ModelCall, OfferedTool, Request, ToolReply};
use mcptest_trace::catalog::Tool;
use serde_json::{Map, Value, json};

use super::{Adapter, ApiError, ProviderRequest};

/// The owned parts of a request.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub model: String,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<OfferedTool>,
    pub max_tokens: Option<u32>,
    pub stream: bool,
    pub body: Map<String, Value>,
}

impl Case {
    pub(super) fn request(&self) -> ProviderRequest<'_> {
        ProviderRequest {
            model: &self.model,
            turn: Request {
                system: self.system.as_deref(),
                messages: &self.messages,
                tools: &self.tools,
                max_tokens: self.max_tokens,
            },
            stream: self.stream,
            body: &self.body,
        }
    }

    pub(super) fn body_of(&self, adapter: &dyn Adapter) -> Value {
        adapter.body(&self.request())
    }

    pub(super) fn turn_of(
        &self,
        adapter: &dyn Adapter,
        answer: &Value,
    ) -> Result<AssistantTurn, ApiError> {
        adapter.turn(&self.request(), answer)
    }
}

pub(super) fn offered(listed: Value) -> OfferedTool {
    let tool = Tool::from_listing(Some("s"), &listed).unwrap();
    OfferedTool {
        wire_name: tool.name().to_owned(),
        server: "s".into(),
        tool,
        refusal: None,
    }
}

/// A weather tool, and one whose name no provider accepts.
pub(super) fn weather() -> Case {
    Case {
        model: "m-1".into(),
        system: Some("Be brief.".into()),
        messages: vec![Message::User("Weather in Paris?".into())],
        tools: vec![
            offered(json!({
                "name": "get_weather",
                "description": "The weather of a city.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                },
            })),
            offered(json!({
                "name": "größe/now",
                "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema"},
            })),
        ],
        ..Case::default()
    }
}

pub(super) fn call(id: Option<&str>, name: &str, args: Value) -> ModelCall {
    ModelCall {
        id: id.map(str::to_owned),
        wire_name: name.into(),
        args: Some(args),
        caller: None,
    }
}

pub(super) fn text_reply(text: &str) -> ToolReply {
    ToolReply {
        content: json!([{"type": "text", "text": text}]),
        ..ToolReply::default()
    }
}

/// Returns a turn and its results: one reply for each of its calls.
pub(super) fn answered(turn: &AssistantTurn, replies: Vec<ToolReply>) -> [Message; 2] {
    assert_eq!(turn.calls.len(), replies.len());
    let results = turn.calls.iter().cloned().zip(replies).collect();
    [Message::Assistant(turn.clone()), Message::Results(results)]
}

/// Assembles a stream of events.
pub(super) fn assembled(adapter: &dyn Adapter, events: &[Value]) -> Result<Value, ApiError> {
    let mut assembler = adapter.assembler();
    for event in events {
        let name = event.get("type").and_then(Value::as_str);
        assembler.event(name, &event.to_string())?;
    }
    assembler.finish()
}
