//! Agents behind HTTP: one request per message of the user.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request};
use mcptest_http::body::{describe_status, error_chain, read_all, read_excerpt};
use mcptest_http::text::quote;
use mcptest_http::{Address, Pool, SendError, header_map, sse};
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::agent::Agent;
use crate::command::mcp_prefixes;
use crate::failure::{Facts, Limit, error, error_of, kind_of_status, kind_of_text, not_started};
use crate::file::StreamFile;
use crate::outcome::{AgentOutcome, AgentTurn, TurnRole};
use crate::prepare;
use crate::reader::{MAX_STREAM_BYTES, Reader};
use crate::task::AgentTask;
use crate::values::Values;

/// The longest answer.
const MAX_BODY_BYTES: usize = 64 << 20;

/// Time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs an agent behind HTTP.
pub(crate) async fn run(agent: &Agent, mut task: AgentTask<'_>) -> AgentOutcome {
    let mut values = prepare::values(agent, task.servers, &task);
    let mut outcome = AgentOutcome::default();
    let deadline = Instant::now() + agent.timeout;
    let mut reader = Reader::new(&agent.output, mcp_prefixes(agent, &values));
    let mut history: Vec<Value> = Vec::new();
    let mut prompt = task.prompt.to_owned();
    let mut number = 1_u32;
    loop {
        outcome.turns.push(AgentTurn {
            role: TurnRole::User,
            content: prompt.clone(),
        });
        history.push(json!({"role": "user", "content": prompt}));
        values.set("history", history.clone());
        values.set("turn", number);
        let answer = timeout_at(deadline, exchange(agent, &values, &mut reader)).await;
        outcome.error = match answer {
            Ok(Ok(())) => {
                reader.finish();
                outcome.ended = reader.has_ended() || reader.found.stream.is_empty();
                let facts = Facts {
                    error: reader.error(),
                    ended: outcome.ended,
                    ..Facts::default()
                };
                error_of(agent, &facts)
            }
            Ok(Err(error)) => Some(error),
            Err(_) => {
                let facts = Facts {
                    limit: Some(Limit::Run(agent.timeout)),
                    ..Facts::default()
                };
                error_of(agent, &facts)
            }
        };
        outcome.final_response = reader.final_response();
        if let Some(answer) = &outcome.final_response {
            history.push(json!({"role": "assistant", "content": answer}));
            outcome.turns.push(AgentTurn {
                role: TurnRole::Assistant,
                content: answer.clone(),
            });
        }
        if outcome.error.is_some() {
            outcome.ended = false;
            break;
        }
        let Some(turns) = task.turns.as_mut() else {
            break;
        };
        let answer = outcome.final_response.clone().unwrap_or_default();
        let Some(next) = turns(answer).await else {
            break;
        };
        values.set("session", reader.session());
        values.set("prompt", next.as_str());
        reader.next_turn();
        prompt = next;
        number += 1;
    }
    outcome.tokens = reader.tokens();
    outcome.cost_usd = reader.cost();
    outcome.builtin_calls = std::mem::take(&mut reader.found.calls);
    outcome.stream = std::mem::take(&mut reader.found.stream);
    outcome.stream_truncated = reader.found.truncated;
    outcome
}

/// Sends one request and reads the answer.
async fn exchange(
    agent: &Agent,
    values: &Values<'_>,
    reader: &mut Reader<'_>,
) -> Result<(), RunError> {
    let url = agent.http.url.as_ref().map(|url| values.text(url));
    let address = Address::parse(&url.unwrap_or_default())
        .map_err(|error| not_started(agent, &error.to_string()))?;
    let request = request(agent, values, &address)?;
    let pool = Pool::new(&address, 0).with_connect_timeout(CONNECT_TIMEOUT);
    let (mut response, _sender) = pool.send(request).await.map_err(|failure| {
        let detail = error_chain(&failure);
        match failure {
            SendError::Connect(_) => not_started(agent, &format!("no connection: {detail}")),
            SendError::Lost(_) => lost(agent, &detail),
        }
    })?;
    let status = response.status();
    if !status.is_success() {
        let body = read_excerpt(response.body_mut()).await;
        let body = String::from_utf8_lossy(&body);
        let kind = kind_of_status(status.as_u16())
            .or_else(|| kind_of_text(agent, &body))
            .unwrap_or(ErrorKind::Provider);
        let text = format!(
            "the agent `{}` answered {}: {}",
            agent.name(),
            describe_status(status),
            quote(body.trim(), 300)
        );
        return Err(error(kind, text));
    }
    match agent.http.stream {
        None => {
            let body = read_all(response.body_mut(), MAX_BODY_BYTES)
                .await
                .map_err(|failure| lost(agent, &error_chain(&failure)))?;
            reader.push(&body);
        }
        Some(StreamFile::Sse) => {
            let mut parser = sse::Parser::new(MAX_STREAM_BYTES);
            let mut events = Vec::new();
            while let Some(frame) = response.body_mut().frame().await {
                let frame = frame.map_err(|failure| lost(agent, &error_chain(&failure)))?;
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                parser
                    .push(data, &mut events)
                    .map_err(|failure| lost(agent, &failure.to_string()))?;
                for event in events.drain(..) {
                    reader.sse(&event.kind, &event.data);
                }
                if reader.has_end_event() {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn lost(agent: &Agent, detail: &str) -> RunError {
    error(
        ErrorKind::Crashed,
        format!(
            "the agent `{}` did not complete its answer: {detail}",
            agent.name()
        ),
    )
}

fn request(
    agent: &Agent,
    values: &Values<'_>,
    address: &Address,
) -> Result<Request<Full<Bytes>>, RunError> {
    let invalid = |detail: String| not_started(agent, &detail);
    let method = agent.http.method.as_deref().unwrap_or("POST");
    let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
        .map_err(|_| invalid(format!("`{method}` is not a method of HTTP")))?;
    let headers = agent
        .http
        .headers
        .iter()
        .filter_map(|(name, template)| Some((name.as_str(), values.text_if_set(template)?)));
    let headers = header_map(headers).map_err(|error| invalid(error.to_string()))?;
    let body = match agent.http.body.as_ref().map(|body| values.body(body)) {
        None => Vec::new(),
        Some(Value::String(text)) => text.into_bytes(),
        Some(body) => body.to_string().into_bytes(),
    };
    let has_body = !body.is_empty();
    let mut request = Request::builder()
        .method(method)
        .uri(&address.path)
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| invalid(error.to_string()))?;
    *request.headers_mut() = headers;
    let map = request.headers_mut();
    map.insert(hyper::header::HOST, address.authority.clone());
    if has_body && !map.contains_key(CONTENT_TYPE) {
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(request)
}
