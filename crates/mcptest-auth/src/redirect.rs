//! The redirect address on this machine, at which the answer of a login arrives.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use mcptest_http::text::quote;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Url, form_urlencoded};

use crate::error::AuthError;

const PATH: &str = "/callback";

/// Time for a browser to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// After the answer: time for the browser to read its page.
const PAGE_WAIT: Duration = Duration::from_millis(500);

/// Connections at the same time. A browser opens a few; other programs on this machine may open
/// more, and get none.
const MAX_CONNECTIONS: usize = 32;

/// The answer of an authorization server to a login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RedirectAnswer {
    pub(crate) code: Option<String>,
    pub(crate) issuer: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) error_description: Option<String>,
}

/// A listener on a loopback address.
pub(crate) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

impl RedirectListener {
    /// Listens on a port of this machine; without one, on any.
    pub(crate) async fn bind(port: Option<u16>) -> Result<Self, AuthError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        let fail = |error: std::io::Error| {
            AuthError::new(format!(
                "cannot listen on {address} for the answer of the login: {error}"
            ))
        };
        let listener = TcpListener::bind(address).await.map_err(fail)?;
        let port = listener.local_addr().map_err(fail)?.port();
        Ok(Self { listener, port })
    }

    /// The redirect address.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the answer with this state. Other requests are refused, and nothing is waited for
    /// after them.
    pub(crate) async fn answer(&self, state: &str) -> RedirectAnswer {
        let (sender, mut receiver) = oneshot::channel();
        let shared = Arc::new(Expected {
            state: state.to_owned(),
            port: self.port,
            sender: Mutex::new(Some(sender)),
        });
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Ok(answer) = &mut receiver => {
                    // The browser gets its page; its other connections are not waited for.
                    let served = async { while connections.join_next().await.is_some() {} };
                    let _ = timeout(PAGE_WAIT, served).await;
                    return answer;
                }
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(serve(stream, Arc::clone(&shared)));
                        }
                        // Too many open files: others may close soon.
                        Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            }
        }
    }
}

/// The answer that is waited for.
struct Expected {
    state: String,
    port: u16,
    sender: Mutex<Option<oneshot::Sender<RedirectAnswer>>>,
}

/// Serves one request.
async fn serve(stream: TcpStream, expected: Arc<Expected>) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = expected.respond(&request);
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // The browser may be gone.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Expected {
    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let hosts = [
            format!("127.0.0.1:{}", self.port),
            format!("localhost:{}", self.port),
        ];
        let host = request
            .headers()
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        // A page of another site must not reach us under a name that it controls.
        if !host.is_some_and(|host| hosts.iter().any(|own| own == host)) {
            return page(StatusCode::BAD_REQUEST, "This address is not known here.");
        }
        if request.method() != Method::GET || request.uri().path() != PATH {
            return page(StatusCode::NOT_FOUND, "There is nothing here.");
        }
        match parse_query(request.uri().query().unwrap_or_default(), &self.state) {
            Err(reason) => page(StatusCode::BAD_REQUEST, reason),
            Ok(answer) => {
                let text = match &answer.error {
                    None => "You are logged in. You can close this page.",
                    Some(_) => "The login failed. The terminal shows the reason.",
                };
                let sender = self
                    .sender
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                if let Some(sender) = sender {
                    // The receiver may have given up.
                    let _ = sender.send(answer);
                }
                page(StatusCode::OK, text)
            }
        }
    }
}

/// The answer in a redirect address that a user pasted.
pub(crate) fn parse_pasted(text: &str, state: &str) -> Result<RedirectAnswer, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "that is not an address")?;
    parse_query(url.query().unwrap_or_default(), state)
}

fn parse_query(query: &str, state: &str) -> Result<RedirectAnswer, &'static str> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        // A field that occurs twice is a mistake or an attack.
        if fields
            .insert(name.into_owned(), value.into_owned())
            .is_some()
        {
            return Err("The answer has a field twice.");
        }
    }
    // Not an answer to this login: a page elsewhere, or an older login.
    if fields.get("state").map(String::as_str) != Some(state) {
        return Err("This is not the answer to the login that the terminal waits for.");
    }
    let answer = RedirectAnswer {
        code: fields.remove("code").filter(|code| !code.is_empty()),
        issuer: fields.remove("iss"),
        error: fields.remove("error"),
        error_description: fields.remove("error_description"),
    };
    if answer.code.is_none() && answer.error.is_none() {
        return Err("The answer has neither a code nor an error.");
    }
    Ok(answer)
}

impl RedirectAnswer {
    /// The code, if the answer is that of the issuer (RFC 9207).
    pub(crate) fn code_of(self, issuer: &str, sends_issuer: bool) -> Result<String, AuthError> {
        match &self.issuer {
            Some(found) if found != issuer => {
                return Err(AuthError::new(format!(
                    "the answer of the login is that of another issuer, {}, not of {issuer}: it \
                     is not used",
                    quote(found, 200)
                )));
            }
            None if sends_issuer => {
                return Err(AuthError::new(format!(
                    "the answer of the login does not name its issuer, although {issuer} states \
                     that its answers do (authorization_response_iss_parameter_supported): it is \
                     not used"
                )));
            }
            _ => {}
        }
        if let Some(error) = &self.error {
            let description = self
                .error_description
                .as_deref()
                .unwrap_or("no description");
            return Err(AuthError::new(format!(
                "the authorization server refused the login: `{error}`: {description}"
            )));
        }
        self.code
            .ok_or_else(|| AuthError::new("the answer of the login has no code"))
    }
}

fn page(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>mcptest</title>\
         <body style=\"font-family: system-ui; margin: 4rem auto; max-width: 30rem\">\
         <h1>mcptest</h1><p>{text}</p></body></html>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    headers.insert(
        "content-security-policy",
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_with_the_state_counts() {
        let answer = parse_query("code=abc&state=s1&iss=https%3A%2F%2Fas.example", "s1").unwrap();
        assert_eq!(answer.code.as_deref(), Some("abc"));
        assert_eq!(answer.issuer.as_deref(), Some("https://as.example"));
        for query in [
            "",
            "code=abc",
            "code=abc&state=s2",
            "state=s1",
            "code=&state=s1",
            "code=a&code=b&state=s1",
            "code=a&state=s2&state=s1",
        ] {
            assert!(parse_query(query, "s1").is_err(), "{query}");
        }
        let pasted = parse_pasted(" http://127.0.0.1:1/callback?code=x&state=s1\n", "s1");
        assert_eq!(pasted.unwrap().code.as_deref(), Some("x"));
        assert!(parse_pasted("code=x&state=s1", "s1").is_err());
    }

    #[test]
    fn the_issuer_is_compared_as_it_is() {
        let answer = |issuer: Option<&str>| RedirectAnswer {
            code: Some("c".to_owned()),
            issuer: issuer.map(str::to_owned),
            ..RedirectAnswer::default()
        };
        let issuer = "https://as.example";
        assert_eq!(answer(Some(issuer)).code_of(issuer, true).unwrap(), "c");
        assert_eq!(answer(None).code_of(issuer, false).unwrap(), "c");
        for wrong in [
            "https://evil.example",
            "https://as.example/",
            "https://AS.example",
        ] {
            let error = answer(Some(wrong)).code_of(issuer, false).unwrap_err();
            assert!(error.message.contains("another issuer"), "{error}");
        }
        let error = answer(None).code_of(issuer, true).unwrap_err();
        assert!(error.message.contains("does not name its issuer"));
        let refused = RedirectAnswer {
            error: Some("access_denied".to_owned()),
            error_description: Some("no\u{1b}[31m".to_owned()),
            ..RedirectAnswer::default()
        };
        let error = refused.code_of(issuer, false).unwrap_err();
        assert!(error.message.contains("`access_denied`: no\\u{1b}[31m"));
    }
}
