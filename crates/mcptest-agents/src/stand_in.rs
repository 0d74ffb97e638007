//! A stand-in for a model's provider, on the loopback interface: it answers every request with the
//! same text, in the API of the request. `mcptest agents check` runs agents against it, so that a
//! turn needs neither a network nor a key.
//!
//! It supports Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini, streamed or
//! not.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// The maximum size of a request.
const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// A running stand-in. It ends when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl StandIn {
    /// Starts to answer requests with this text. Must be called within a tokio runtime with I/O
    /// enabled.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(answer: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(serve(listener, answer.into()));
        Ok(Self { address, serving })
    }

    /// The address, without a path.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, answer: Arc<str>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let answer = Arc::clone(&answer);
        connections.spawn(async move {
            let service = service_fn(move |request| respond(request, Arc::clone(&answer)));
            // A client may disconnect early.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    request: Request<Incoming>,
    answer: Arc<str>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES);
    let body = body.collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok(match answer_to(&path, &request, &answer) {
        Answer::Json(status, value) => response(status, "application/json", value.to_string()),
        Answer::Events(events) => response(StatusCode::OK, "text/event-stream", events.concat()),
    })
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The answer to a request.
#[derive(Debug)]
enum Answer {
    Json(StatusCode, Value),
    Events(Vec<String>),
}

fn answer_to(path: &str, request: &Value, text: &str) -> Answer {
    let json = |value| Answer::Json(StatusCode::OK, value);
    let streamed = request.get("stream") == Some(&Value::Bool(true));
    let model = request.get("model").cloned().unwrap_or_default();
    let path = path.trim_end_matches('/');
    if path.ends_with("count_tokens") {
        json(json!({"input_tokens": 1}))
    } else if path.ends_with(":countTokens") {
        json(json!({"totalTokens": 1}))
    } else if path.ends_with("/messages") {
        anthropic(&model, text, streamed)
    } else if path.ends_with("/chat/completions") {
        chat(&model, text, streamed)
    } else if path.ends_with("/responses") {
        responses(&model, text, streamed)
    } else if path.ends_with(":generateContent") {
        json(gemini(request, text))
    } else if path.ends_with(":streamGenerateContent") {
        Answer::Events(vec![event(None, &gemini(request, text))])
    } else if path.ends_with("/models") {
        json(json!({"object": "list", "data": [], "models": []}))
    } else {
        let message = format!("the stand-in has no path {path}");
        Answer::Json(
            StatusCode::NOT_FOUND,
            json!({"error": {"message": message}}),
        )
    }
}

fn event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// Events whose name is the `type` of their data.
fn typed_events(events: &[Value]) -> Answer {
    let named = |data: &Value| event(data["type"].as_str(), data);
    Answer::Events(events.iter().map(named).collect())
}

fn anthropic(model: &Value, text: &str, streamed: bool) -> Answer {
    let usage = json!({
        "input_tokens": 1, "output_tokens": 1,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0
    });
    let mut message = json!({
        "id": "msg_stand_in", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage
    });
    if streamed {
        return typed_events(&[
            json!({"type": "message_start", "message": message}),
            json!({
                "type": "content_block_start", "index": 0,
                "content_block": {"type": "text", "text": ""}
            }),
            json!({
                "type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}
            }),
            json!({"type": "content_block_stop", "index": 0}),
            json!({
                "type": "message_delta", "usage": usage,
                "delta": {"stop_reason": "end_turn", "stop_sequence": null}
            }),
            json!({"type": "message_stop"}),
        ]);
    }
    message["content"] = json!([{"type": "text", "text": text}]);
    message["stop_reason"] = "end_turn".into();
    Answer::Json(StatusCode::OK, message)
}

fn chat(model: &Value, text: &str, streamed: bool) -> Answer {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let message = json!({"role": "assistant", "content": text});
    if !streamed {
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        return Answer::Json(
            StatusCode::OK,
            json!({
                "id": "chatcmpl-stand-in", "object": "chat.completion", "created": 0,
                "model": model, "choices": [choice], "usage": usage
            }),
        );
    }
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({
            "id": "chatcmpl-stand-in", "object": "chat.completion.chunk", "created": 0,
            "model": model, "choices": choices
        });
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        event(None, &chunk)
    };
    let said = json!([{"index": 0, "delta": message, "finish_reason": null}]);
    let ended = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
    Answer::Events(vec![
        chunk(said, Value::Null),
        chunk(ended, Value::Null),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ])
}

fn responses(model: &Value, text: &str, streamed: bool) -> Answer {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let item = json!({
        "type": "message", "id": "msg_stand_in", "role": "assistant", "status": "completed",
        "content": [part]
    });
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_stand_in", "object": "response", "created_at": 0, "model": model,
            "status": status, "output": output, "usage": usage, "error": null,
            "incomplete_details": null, "instructions": null, "metadata": {},
            "parallel_tool_calls": false, "temperature": 1, "tool_choice": "auto", "tools": [],
            "top_p": 1
        })
    };
    let usage = json!({
        "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0}
    });
    let complete = response("completed", json!([item]), usage);
    if !streamed {
        return Answer::Json(StatusCode::OK, complete);
    }
    let begun = response("in_progress", json!([]), Value::Null);
    let place = |kind: &str| {
        json!({
            "type": kind, "item_id": "msg_stand_in", "output_index": 0, "content_index": 0
        })
    };
    let with = |mut event: Value, key: &str, value: Value| {
        event[key] = value;
        event
    };
    let mut open_item = item.clone();
    open_item["content"] = json!([]);
    open_item["status"] = "in_progress".into();
    let empty = json!({"type": "output_text", "text": "", "annotations": []});
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": open_item}),
        with(place("response.content_part.added"), "part", empty),
        with(place("response.output_text.delta"), "delta", text.into()),
        with(place("response.output_text.done"), "text", text.into()),
        with(place("response.content_part.done"), "part", part),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": complete}),
    ];
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    typed_events(&events)
}

fn gemini(request: &Value, text: &str) -> Value {
    // Gemini CLI also asks for decisions in JSON.
    let format = request.pointer("/generationConfig/responseMimeType");
    let text = match format.and_then(Value::as_str) {
        Some("application/json") => json!({
            "reasoning": text, "next_speaker": "user", "model_choice": "flash",
            "complexity_reasoning": text, "complexity_score": 1
        })
        .to_string(),
        _ => text.to_owned(),
    };
    json!({
        "candidates": [{
            "index": 0, "content": {"role": "model", "parts": [{"text": text}]},
            "finishReason": "STOP"
        }],
        "usageMetadata": {
            "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2
        },
        "modelVersion": "stand-in"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_api_has_the_text_streamed_or_not() {
        for path in [
            "/v1/messages",
            "/v1/chat/completions",
            "/v1/responses",
            "/v1beta/models/gemini-2.5-flash:generateContent",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
        ] {
            for streamed in [false, true] {
                let request = json!({"model": "m", "stream": streamed});
                let shown = match answer_to(path, &request, "I am ready.") {
                    Answer::Json(status, value) => {
                        assert_eq!(status, StatusCode::OK, "{path}");
                        value.to_string()
                    }
                    Answer::Events(events) => {
                        assert!(events.iter().all(|event| event.ends_with("\n\n")));
                        events.concat()
                    }
                };
                assert!(shown.contains("I am ready."), "{path}: {shown}");
            }
        }
        let unknown = answer_to("/v2/other", &Value::Null, "x");
        assert!(matches!(unknown, Answer::Json(StatusCode::NOT_FOUND, _)));
    }
}
