//! Streams of the providers: events become the answer, the answer becomes a turn, and the turn
//! can be sent back.

use std::sync::LazyLock;

use mcptest_agent::{AssistantTurn, Message, OfferedTool, Request, ToolReply};
use mcptest_http::sse::Parser;
use mcptest_provider::{
    Adapter, Anthropic, ApiError, Gemini, OpenAiChat, OpenAiResponses, ProviderRequest,
};
use mcptest_trace::catalog::Tool;
use serde_json::{Map, Value, json};

use crate::property::assert_printable;

/// The largest stream that is parsed.
const LIMIT: usize = 1 << 20;

static TOOLS: LazyLock<Vec<OfferedTool>> = LazyLock::new(|| {
    let names = ["get_weather", "größe/now"];
    let tools = names.iter().filter_map(|name| {
        let listed = json!({"name": name, "inputSchema": {"type": "object"}});
        let tool = Tool::from_listing(Some("s"), &listed)?;
        Some(OfferedTool {
            wire_name: tool.name().to_owned(),
            server: "s".into(),
            tool,
            refusal: None,
        })
    });
    tools.collect()
});

/// Runs one input through Anthropic's API.
pub(super) fn anthropic(input: &[u8]) {
    run(&Anthropic, input);
}

/// Runs one input through Gemini's API.
pub(super) fn gemini(input: &[u8]) {
    run(&Gemini, input);
}

/// Runs one input through OpenAI's chat completions, as OpenAI and others write them.
pub(super) fn openai_chat(input: &[u8]) {
    run(&OpenAiChat::openai(), input);
    run(&OpenAiChat::compatible(), input);
}

/// Runs one input through OpenAI's responses.
pub(super) fn openai_responses(input: &[u8]) {
    run(&OpenAiResponses, input);
}

fn run(adapter: &dyn Adapter, input: &[u8]) {
    let messages = [Message::User("Weather?".into())];
    let streamed = assemble(adapter, input).and_then(|answer| {
        let turn = adapter.turn(&request(&messages, &Map::new()), &answer)?;
        // The same answer without a stream is the same turn.
        let again: Value = serde_json::from_str(&answer.to_string()).unwrap_or_default();
        let whole = adapter.turn(&request(&messages, &Map::new()), &again);
        assert_eq!(whole.as_ref(), Ok(&turn));
        Ok(turn)
    });
    check(adapter, streamed);
    if let Ok(answer) = serde_json::from_slice::<Value>(input) {
        check(
            adapter,
            adapter.turn(&request(&messages, &Map::new()), &answer),
        );
    }
    for status in [400, 401, 429, 503, 529] {
        assert_error(&adapter.error(status, input));
    }
}

fn assemble(adapter: &dyn Adapter, input: &[u8]) -> Result<Value, ApiError> {
    let mut parser = Parser::new(LIMIT);
    let mut events = Vec::new();
    // Events before an error count.
    let _ = parser.push(input, &mut events);
    let mut assembler = adapter.assembler();
    for event in events {
        let name = (!event.kind.is_empty()).then_some(event.kind.as_str());
        assembler.event(name, &String::from_utf8_lossy(&event.data))?;
    }
    assembler.finish()
}

fn check(adapter: &dyn Adapter, turn: Result<AssistantTurn, ApiError>) {
    let turn = match turn {
        Ok(turn) => turn,
        Err(error) => return assert_error(&error),
    };
    let written = serde_json::to_string(&turn).unwrap_or_default();
    let again: AssistantTurn = match serde_json::from_str(&written) {
        Ok(again) => again,
        Err(error) => panic!("a recorded turn cannot be read back: {error}: {written}"),
    };
    assert_eq!(again, turn, "differs after it was recorded");
    let calls = turn.calls.iter().cloned();
    let results = calls.map(|call| (call, ToolReply::refusal("no"))).collect();
    let history = [
        Message::User("Weather?".into()),
        Message::Assistant(turn),
        Message::Results(results),
    ];
    let body = adapter.body(&request(&history, &Map::new()));
    assert!(body.is_object());
}

fn assert_error(error: &ApiError) {
    assert!(!error.message.is_empty(), "an error without a message");
    assert!(error.message.len() < 16 * 1024, "a long message");
    assert_printable(&error.message);
}

fn request<'a>(messages: &'a [Message], body: &'a Map<String, Value>) -> ProviderRequest<'a> {
    ProviderRequest {
        model: "m-1",
        turn: Request {
            system: Some("Be brief."),
            messages,
            tools: &TOOLS,
            max_tokens: Some(100),
        },
        stream: true,
        body,
    }
}
