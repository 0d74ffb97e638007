//! An authorization server and a protected resource on one socket, with answers that a test can
//! replace.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hyper::Response;
use mcptest_auth::{AuthConfig, AuthTimeouts, Grant, OAuth, OAuthOptions, SecretVariable};
use mcptest_http::credentials::{Credential, CredentialError, Credentials, Refusal};
use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The fields of the form, or of the query of a GET.
    pub fn form(&self) -> BTreeMap<String, String> {
        let text = match self.method.as_str() {
            "GET" => &self.query,
            _ => &self.body,
        };
        url::form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect()
    }
}

/// An answer: the whole response, or a function that writes to the socket.
pub enum Answer {
    Json(u16, Value),
    Text(u16, Vec<(&'static str, String)>, String),
    Raw(Box<dyn FnOnce(&mut TcpStream) + Send>),
}

impl Answer {
    pub fn json(value: Value) -> Option<Self> {
        Some(Self::Json(200, value))
    }

    pub fn redirect(to: impl Into<String>) -> Option<Self> {
        let headers = vec![("location", to.into())];
        Some(Self::Text(302, headers, String::new()))
    }
}

type Handler = dyn Fn(&Seen, &str) -> Option<Answer> + Send + Sync;

/// The server. Its resource is `/mcp`.
pub struct Fake {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    /// A server without mistakes.
    pub fn start() -> Self {
        Self::with(|_, _| None)
    }

    /// A server on which a test answers some requests. The second argument is its address.
    pub fn with(handler: impl Fn(&Seen, &str) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (log, own) = (Arc::clone(&seen), url.clone());
        let handler: Arc<Handler> = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, handler, own) = (log.clone(), handler.clone(), own.clone());
                thread::spawn(move || serve(stream, &log, &*handler, &own));
            }
        });
        Self { url, seen }
    }

    pub fn server(&self) -> String {
        format!("{}/mcp", self.url)
    }

    pub fn seen(&self, path: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|one| one.path == path)
            .cloned()
            .collect()
    }

    pub fn paths(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|one| one.path.clone()).collect()
    }

    /// The settings of a client with a secret.
    pub fn client_credentials(&self) -> AuthConfig {
        AuthConfig {
            client_id: Some("ci client".to_owned()),
            client_secret: Some(SecretVariable {
                name: "CI_SECRET".to_owned(),
                value: Some("s3cret:of/the client".to_owned()),
            }),
            ..AuthConfig::new(&self.server(), Grant::ClientCredentials)
        }
    }
}

/// The metadata of the authorization server.
pub fn metadata(url: &str) -> Value {
    json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "registration_endpoint": format!("{url}/register"),
        "revocation_endpoint": format!("{url}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, handler: &Handler, own: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let Some(seen) = read(&mut reader) else {
        return;
    };
    log.lock().unwrap().push(seen.clone());
    let number = log.lock().unwrap().len();
    let answer = handler(&seen, own).or_else(|| default(&seen, own, number));
    match answer {
        Some(Answer::Raw(write)) => write(&mut stream),
        Some(Answer::Json(status, value)) => {
            let headers = [("content-type", "application/json".to_owned())];
            respond(&mut stream, status, &headers, &value.to_string());
        }
        Some(Answer::Text(status, headers, text)) => respond(&mut stream, status, &headers, &text),
        None => respond(&mut stream, 404, &[], "nothing"),
    }
}

fn default(seen: &Seen, own: &str, number: usize) -> Option<Answer> {
    match seen.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => Answer::json(json!({
            "resource": format!("{own}/mcp"),
            "authorization_servers": [own],
        })),
        "/.well-known/oauth-authorization-server" => Answer::json(metadata(own)),
        "/token" => {
            let mut response = json!({
                "access_token": format!("access-{number}"),
                "token_type": "Bearer",
                "expires_in": 3600,
            });
            if seen.form()["grant_type"] != "client_credentials" {
                response["refresh_token"] = format!("refresh-{number}").into();
            }
            Answer::json(response)
        }
        "/register" => Some(Answer::Json(201, json!({"client_id": "registered"}))),
        "/revoke" => Answer::json(json!({})),
        "/authorize" => {
            let form = seen.form();
            let mut redirect = url::Url::parse(&form["redirect_uri"]).unwrap();
            redirect
                .query_pairs_mut()
                .append_pair("code", "the-code")
                .append_pair("state", &form["state"])
                .append_pair("iss", own);
            Answer::redirect(redirect)
        }
        _ => None,
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen {
        method,
        path,
        query,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

fn respond(stream: &mut TcpStream, status: u16, headers: &[(&str, String)], body: &str) {
    let mut head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The client may be gone.
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

/// Options with short times.
pub fn options() -> OAuthOptions {
    OAuthOptions {
        timeouts: AuthTimeouts {
            exchange: Duration::from_secs(5),
            obtain: Duration::from_secs(20),
            login: Duration::from_secs(10),
        },
        ..OAuthOptions::default()
    }
}

pub fn oauth(config: AuthConfig) -> OAuth {
    OAuth::new(config, options())
}

/// A 401 of the resource, with its challenge.
pub async fn refused(
    oauth: &OAuth,
    used: Option<&Credential>,
    status: u16,
    challenge: &str,
) -> Result<Option<Credential>, CredentialError> {
    let mut response = Response::builder().status(status);
    if !challenge.is_empty() {
        response = response.header("www-authenticate", challenge);
    }
    let response = response.body(()).unwrap();
    oauth.replace(Refusal::of(&response, used).unwrap()).await
}

/// The first token of a source.
pub async fn first(oauth: &OAuth) -> Result<Credential, CredentialError> {
    assert!(oauth.current().await?.is_none());
    Ok(refused(oauth, None, 401, "Bearer").await?.unwrap())
}

pub fn token(credential: &Credential) -> String {
    let header = credential.header().to_str().unwrap();
    header.strip_prefix("Bearer ").unwrap().to_owned()
}

/// Runs a future to its end.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
