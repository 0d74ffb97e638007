//! Requests: headers, credentials, redirects.

use http_body_util::Full;
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use mcptest_http::body::error_chain;
use mcptest_http::credentials::{Attempts, Credential};
use mcptest_http::{SendError, Sender};

use super::headers::Header;
use super::{Endpoint, ExchangeError};
use crate::error::WireErrorKind;

/// Redirects followed on the same host.
const MAX_REDIRECTS: usize = 3;

/// A request that may be sent more than once.
pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) body: Bytes,
    /// The headers of this request.
    pub(super) extra: &'a [Header],
}

impl Endpoint {
    /// Sends one request and waits for the head of the response.
    pub(super) async fn send(
        &self,
        method: &Method,
        body: Bytes,
        extra: &[Header],
    ) -> Result<(hyper::Response<Incoming>, Sender), ExchangeError> {
        let path = &self.path;
        let request = Request {
            method,
            path,
            body,
            extra,
        };
        self.send_waiting(|_| {}, request).await
    }

    /// Like [`Self::send`]. Reports when a credential is waited for, which is not the time of the
    /// request.
    pub(super) async fn send_waiting(
        &self,
        waiting: impl Fn(bool) + Sync,
        request: Request<'_>,
    ) -> Result<(hyper::Response<Incoming>, Sender), ExchangeError> {
        let credentials = self.credentials.as_deref();
        let mut attempts = Attempts::begin(credentials, &waiting).await?;
        loop {
            let (response, sender) = self.follow(&request, attempts.credential()).await?;
            let refusal = attempts.refusal(&response);
            // The body of a refusal is not read, so its connection is not used again.
            if !attempts.repeat(refusal, &waiting).await? {
                return Ok((response, sender));
            }
        }
    }

    /// Sends a request, and again where a redirect on the same host leads.
    async fn follow(
        &self,
        request: &Request<'_>,
        credential: Option<&Credential>,
    ) -> Result<(hyper::Response<Incoming>, Sender), ExchangeError> {
        let mut path = request.path.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let (response, sender) = self.send_once(request, &path, credential).await?;
            if !response.status().is_redirection() {
                return Ok((response, sender));
            }
            path = self.redirected(&response)?;
        }
        Err(ExchangeError::new(
            WireErrorKind::Protocol,
            format!("more than {MAX_REDIRECTS} redirects"),
        ))
    }

    async fn send_once(
        &self,
        Request {
            method,
            body,
            extra,
            ..
        }: &Request<'_>,
        path: &str,
        credential: Option<&Credential>,
    ) -> Result<(hyper::Response<Incoming>, Sender), ExchangeError> {
        let mut request = hyper::Request::builder()
            .method(*method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(ACCEPT, accepted(method))
            .body(Full::new(body.clone()))
            .map_err(|error| {
                ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!("the path cannot be requested: {error}"),
                )
            })?;
        let map = request.headers_mut();
        if **method == Method::POST {
            map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in *extra {
            let value = HeaderValue::from_str(value).map_err(|_| {
                ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!("{name} has characters that a header cannot carry"),
                )
            })?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                ExchangeError::new(
                    WireErrorKind::Protocol,
                    format!("`{name}` is not a valid header name"),
                )
            })?;
            map.insert(name, value);
        }
        if let Some(credential) = credential {
            map.insert(AUTHORIZATION, credential.header().clone());
        }
        // The caller's headers replace ours: a test may send wrong ones on purpose.
        for name in self.headers.keys() {
            map.remove(name);
        }
        for (name, value) in &self.headers {
            map.append(name, value.clone());
        }
        self.pool.send(request).await.map_err(|error| match error {
            SendError::Connect(error) => ExchangeError {
                kind: WireErrorKind::Transport,
                detail: format!("cannot connect to {}: {error}", self.shown),
                closes_connection: true,
                session_ended: false,
            },
            SendError::Lost(error) => ExchangeError::new(
                WireErrorKind::Transport,
                format!(
                    "the connection to {} was lost before a response arrived: {}",
                    self.shown,
                    error_chain(&error)
                ),
            ),
        })
    }
}

fn accepted(method: &Method) -> &'static str {
    match *method {
        Method::GET => "text/event-stream",
        _ => "application/json, text/event-stream",
    }
}
