//! Requests with headers and credentials, and refusals because they are missing.

use std::sync::PoisonError;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use mcptest_http::body::describe_status;
use mcptest_http::credentials::{Attempts, Credential};
use mcptest_http::secrets::mask;
use mcptest_http::{SendError, Sender};

use super::{Endpoint, Unanswered, describe_refusal};

impl Endpoint {
    pub(super) async fn send(
        &self,
        method: Method,
        body: Bytes,
        extra: &[(String, String)],
    ) -> Result<(Response<Incoming>, Sender), String> {
        self.send_to(&self.path, method, body, extra).await
    }

    /// Sends a request to a path of the server. If it is refused, it is sent again with another
    /// credential.
    pub(super) async fn send_to(
        &self,
        path: &str,
        method: Method,
        body: Bytes,
        extra: &[(String, String)],
    ) -> Result<(Response<Incoming>, Sender), String> {
        let credentials = self.credentials.as_deref();
        let waiting = |waits| self.clock.set(waits);
        let unauthorized = |reason: String| {
            self.set_auth_failure(&reason);
            reason
        };
        let attempts = Attempts::begin(credentials, &waiting).await;
        let mut attempts = attempts.map_err(|error| unauthorized(error.0))?;
        loop {
            let credential = attempts.credential();
            let (response, sender) = self
                .send_once(path, &method, body.clone(), extra, credential)
                .await?;
            let refusal = attempts.refusal(&response);
            let repeats = attempts.repeat(refusal, &waiting).await;
            if !repeats.map_err(|error| unauthorized(error.0))? {
                return Ok((response, sender));
            }
        }
    }

    async fn send_once(
        &self,
        path: &str,
        method: &Method,
        body: Bytes,
        extra: &[(String, String)],
        credential: Option<&Credential>,
    ) -> Result<(Response<Incoming>, Sender), String> {
        let accepts = match *method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(ACCEPT, accepts)
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        let map = request.headers_mut();
        if *method == Method::POST {
            map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in extra {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            map.insert(
                name,
                HeaderValue::from_str(value).map_err(|error| error.to_string())?,
            );
        }
        if let Some(credential) = credential {
            map.insert(AUTHORIZATION, credential.header().clone());
        }
        // The headers of the command line replace ours.
        for name in self.headers.keys() {
            map.remove(name);
        }
        for (name, value) in &self.headers {
            map.append(name, value.clone());
        }
        self.pool.send(request).await.map_err(|error| match error {
            SendError::Connect(error) => format!("cannot connect: {error}"),
            SendError::Lost(error) => format!("the connection was lost: {error}"),
        })
    }

    /// The error for a response that is not a reply.
    pub(super) fn refused(&self, status: StatusCode, body: &[u8]) -> Unanswered {
        self.note_refusal(status, body);
        Unanswered {
            reason: self.masked(&describe_refusal(&describe_status(status), body)),
            status: Some(status),
        }
    }

    /// Remembers that the server refused a message without authorization: it is not a failure
    /// of the client.
    pub(super) fn note_refusal(&self, status: StatusCode, body: &[u8]) {
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            self.set_auth_failure(&describe_refusal(&describe_status(status), body));
        }
    }

    /// The reason why the server refused a message without authorization, if it did.
    pub(super) fn auth_failure(&self) -> Option<String> {
        let failure = self.auth_failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_auth_failure(&self, reason: &str) {
        let reason = self.masked(reason);
        let mut failure = self
            .auth_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(reason);
    }

    fn masked(&self, text: &str) -> String {
        match &self.credentials {
            Some(credentials) => mask(text, &credentials.secrets()),
            None => text.to_owned(),
        }
    }
}
