//! Responses that are refusals, redirects, incomplete, or start a session.

use hyper::body::{Bytes, Incoming};
use hyper::header::{LOCATION, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode, Uri};
use mcptest_http::body::{
    BodyError, content_type, describe_status, error_chain, read_all, read_excerpt,
};
use mcptest_http::text::quote;
use mcptest_http::without_query;

use super::headers::SESSION_ID;
use super::{Endpoint, ExchangeError};
use crate::error::WireErrorKind;
use crate::tasks::Shared;

/// Characters that an error shows of an unusable response.
const EXCERPT_CHARS: usize = 300;

/// The notification after `initialize`.
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Endpoint {
    /// The path of a redirect. Redirects to other hosts are errors, because the headers carry
    /// credentials.
    pub(super) fn redirected(
        &self,
        response: &Response<Incoming>,
    ) -> Result<String, ExchangeError> {
        let status = response.status();
        let fail = |reason: String| {
            ExchangeError::new(
                WireErrorKind::Protocol,
                format!("{}: {reason}", describe_status(status)),
            )
        };
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| fail("a redirect without a target".to_owned()))?;
        let shown = quote(&self.mask(&without_query(target)), 200);
        if !matches!(
            status,
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        ) {
            return Err(fail(format!(
                "a redirect to `{shown}` that would lose the message; use that URL"
            )));
        }
        let uri: Uri = target
            .parse()
            .map_err(|_| fail(format!("a redirect to `{shown}`, which is not a valid URL")))?;
        if uri.authority().is_none() && target.starts_with('/') && !target.starts_with("//") {
            return Ok(target.to_owned());
        }
        let same = uri
            .authority()
            .map(|authority| authority.as_str().as_bytes())
            == Some(self.authority.as_bytes())
            && (uri.scheme_str() == Some("https")) == self.pool.is_tls();
        if !same {
            return Err(fail(format!(
                "a redirect to another host, `{shown}`, is not followed, because our headers are \
                 not meant for it; use that URL if it is the right one"
            )));
        }
        Ok(uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned())
    }

    /// Handles an unsuccessful status. A JSON-RPC error for this request is still an answer.
    pub(super) async fn handle_refusal(
        &self,
        shared: &Shared,
        mut response: Response<Incoming>,
        id: Option<u64>,
        had_session: bool,
    ) -> Result<(), ExchangeError> {
        let status = response.status();
        let challenge = response
            .headers()
            .get(WWW_AUTHENTICATE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = read_excerpt(response.body_mut()).await;
        // A JSON-RPC error about the session is not an answer to the request.
        let session_ended = had_session && status == StatusCode::NOT_FOUND;
        if let Some(id) = id
            && !session_ended
            && replies_to(&body, id)
        {
            self.handle_message(shared, &body);
            return Ok(());
        }
        let mut detail = describe_status(status);
        if !body.trim_ascii().is_empty() {
            detail = format!("{detail}: {}", self.quoted(&body));
        }
        if let Some(challenge) = challenge {
            detail = format!("{detail}; it requires: {}", quote(&challenge, 200));
        }
        let kind = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => WireErrorKind::Auth,
            StatusCode::TOO_MANY_REQUESTS => WireErrorKind::RateLimit,
            _ => WireErrorKind::Protocol,
        };
        if kind == WireErrorKind::Auth && self.credentials.is_none() {
            detail.push_str(if self.headers.is_empty() {
                "; no header with a credential was sent"
            } else {
                "; check the headers"
            });
        }
        if session_ended {
            detail = format!("the server no longer knows the session ({detail})");
        }
        Err(ExchangeError {
            kind: if session_ended {
                WireErrorKind::Transport
            } else {
                kind
            },
            detail,
            closes_connection: session_ended,
            session_ended,
        })
    }

    /// Opens another session in place of the one that the server no longer knows, unless another
    /// call has done it already.
    pub(super) async fn renew_session(
        &self,
        shared: &Shared,
        ended: Option<&str>,
    ) -> Result<(), String> {
        let _renewal = self.renewal.lock().await;
        let initialize = {
            let mut negotiated = self.negotiated();
            if negotiated.session.as_deref() != ended {
                return Ok(());
            }
            negotiated.session = None;
            negotiated.initialize.clone()
        };
        let initialize = initialize.ok_or("no session was opened before")?;
        let sent = self.send(&Method::POST, initialize, &[]).await;
        let (mut response, sender) = sent.map_err(|error| error.detail)?;
        let status = response.status();
        if !status.is_success() {
            return Err(describe_status(status));
        }
        self.take_session(shared, &response);
        // The answer is that of the first session; a stream may stay open behind it.
        if content_type(&response).is_some_and(|kind| kind == "application/json") {
            self.read_body(response.body_mut())
                .await
                .map_err(|error| error.detail)?;
            self.pool.give_back(sender);
        } else {
            read_excerpt(response.body_mut()).await;
        }
        let ready = Bytes::from_static(INITIALIZED);
        let sent = self
            .send(&Method::POST, ready, &self.session_headers())
            .await;
        let (mut response, sender) = sent.map_err(|error| error.detail)?;
        read_excerpt(response.body_mut()).await;
        self.pool.give_back(sender);
        Ok(())
    }

    /// Stores the session id of a response.
    pub(super) fn take_session(&self, shared: &Shared, response: &Response<Incoming>) {
        let Some(value) = response.headers().get(SESSION_ID) else {
            return;
        };
        match value.to_str() {
            Ok(session)
                if !session.is_empty() && session.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                self.negotiated().session = Some(session.to_owned());
            }
            _ => {
                let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
                self.record_violation(
                    shared,
                    "the session id has other than visible ASCII characters",
                    &text,
                );
            }
        }
    }

    /// Reads a whole body.
    pub(super) async fn read_body(&self, body: &mut Incoming) -> Result<Vec<u8>, ExchangeError> {
        read_all(body, self.max_bytes)
            .await
            .map_err(|unread| match unread {
                BodyError::Interrupted { read, error } => ExchangeError::new(
                    WireErrorKind::Transport,
                    format!(
                        "the response was interrupted after {} bytes ({}): {}",
                        read.len(),
                        error_chain(&error),
                        self.quoted(&read)
                    ),
                ),
                BodyError::TooLong { read } => ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!(
                        "a response of more than {} bytes, which is the limit; it begins: {}",
                        self.max_bytes,
                        self.quoted(&read)
                    ),
                ),
            })
    }

    /// The error for a response without a reply to the request.
    pub(super) fn no_reply(&self, status: StatusCode, what: &str, body: &[u8]) -> ExchangeError {
        let detail = if body.trim_ascii().is_empty() {
            format!(
                "{} without a reply: the body is empty",
                describe_status(status)
            )
        } else {
            format!(
                "{} without a reply to the request: {what}: {}",
                describe_status(status),
                self.quoted(body)
            )
        };
        ExchangeError::new(WireErrorKind::Protocol, detail)
    }

    fn quoted(&self, body: &[u8]) -> String {
        quote(
            &self.mask(&String::from_utf8_lossy(body)),
            EXCERPT_CHARS.min(self.max_text_chars),
        )
    }
}

/// Returns true if a body is a JSON-RPC error for this request.
fn replies_to(body: &[u8], id: u64) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|value| {
        value.get("error").is_some()
            && value.get("id").and_then(serde_json::Value::as_u64) == Some(id)
    })
}
