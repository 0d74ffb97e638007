//! Log events about connections and requests. Credentials are masked here already.

use std::fmt::Write as _;
use std::io;
use std::time::Instant;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use tracing::{Level, debug, enabled, info, trace};

use crate::address::without_query;
use crate::body::error_chain;
use crate::proxy::Route;
use crate::secrets::is_secret_header;
use crate::text::{quote, quote_bytes};

/// The target of the events in this crate.
pub(crate) const TARGET: &str = "mcptest::http";

/// Characters shown of one header value.
const MAX_HEADER_CHARS: usize = 200;

/// One request, from its start to the head of its response.
pub(crate) struct Exchange {
    method: hyper::Method,
    url: String,
    start: Instant,
}

impl Exchange {
    pub fn start<B>(tls: bool, authority: &HeaderValue, request: &Request<B>) -> Self {
        let scheme = if tls { "https" } else { "http" };
        let authority = String::from_utf8_lossy(authority.as_bytes());
        let path = without_query(&request.uri().to_string());
        let exchange = Self {
            method: request.method().clone(),
            url: quote(&format!("{scheme}://{authority}{path}"), 300),
            start: Instant::now(),
        };
        if enabled!(target: TARGET, Level::TRACE) {
            let headers = show_headers(request.headers());
            let (method, url) = (&exchange.method, &exchange.url);
            trace!(target: TARGET, %method, %url, %headers, "request");
        }
        exchange
    }

    pub fn answered<B>(&self, response: &Response<B>) {
        let status = response.status().as_u16();
        let (method, url) = (&self.method, &self.url);
        debug!(target: TARGET, %method, %url, status, ms = self.ms(), "response");
        if enabled!(target: TARGET, Level::TRACE) {
            let headers = show_headers(response.headers());
            trace!(target: TARGET, status, %headers, "response headers");
        }
    }

    pub fn failed(&self, error: &dyn std::error::Error) {
        info!(
            target: TARGET,
            method = %self.method,
            url = %self.url,
            ms = self.ms(),
            error = error_chain(error),
            "request failed"
        );
    }

    fn ms(&self) -> u128 {
        self.start.elapsed().as_millis()
    }
}

/// Logs the outcome of opening a connection.
pub(crate) fn connected(
    host: &str,
    port: u16,
    route: &Route,
    start: Instant,
    error: Option<&io::Error>,
) {
    if !enabled!(target: TARGET, Level::INFO) {
        return;
    }
    let via = match route {
        Route::Proxy(proxy) => proxy.to_string(),
        Route::Direct | Route::Invalid(_) => "direct".to_owned(),
    };
    let ms = start.elapsed().as_millis();
    let host = quote(host, 200);
    match error {
        None => info!(target: TARGET, host, port, via, ms, "connected"),
        Some(error) => {
            let error = error_chain(error);
            info!(target: TARGET, host, port, via, ms, error, "cannot connect");
        }
    }
}

/// The headers on one line, with the values of credentials masked.
fn show_headers(headers: &HeaderMap) -> String {
    let mut shown = String::new();
    for (name, value) in headers {
        let separator = if shown.is_empty() { "" } else { ", " };
        let value = if is_secret(name, value) {
            "***".to_owned()
        } else {
            quote_bytes(value.as_bytes(), MAX_HEADER_CHARS)
        };
        // Writing to a string cannot fail.
        let _ = write!(shown, "{separator}{name}: {value}");
    }
    shown
}

/// Returns true if a value must not be shown. Session ids grant access like credentials.
fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive() || is_secret_header(name.as_str()) || name.as_str().contains("session")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header_map;

    #[test]
    fn credentials_in_headers_are_masked() {
        let mut headers = header_map([("x-own", "private-value")]).unwrap();
        for (name, value) in [
            ("accept", "text/plain"),
            ("authorization", "Bearer s3cret"),
            ("set-cookie", "id=s3cret"),
            ("mcp-session-id", "s3cret"),
        ] {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let shown = show_headers(&headers);
        assert!(shown.contains("accept: text/plain"), "{shown}");
        assert!(shown.contains("x-own: ***"), "{shown}");
        assert!(
            !shown.contains("s3cret") && !shown.contains("private"),
            "{shown}"
        );
    }
}
