//! A server that requires a token, and the authorization server that issues it, on one socket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The secret of the client `ci`.
pub const SECRET: &str = "cl1ent-s3cret-XYZ";

/// The beginning of every token. Opaque: only the program itself can know that it is a secret.
pub const TOKEN: &str = "opaqueT0ken";

/// The behaviour of the server.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The number of calls for which a token is accepted; `None` means unlimited.
    pub uses: Option<usize>,
    /// The number of tokens that are issued; later requests for one are refused.
    pub max_tokens: Option<usize>,
}

#[derive(Debug, Default)]
struct Facts {
    /// The number of uses of each token.
    uses: BTreeMap<String, usize>,
    issued: usize,
    grants: Vec<String>,
    calls: Vec<String>,
}

/// Ends with the test's process.
pub struct Guarded {
    pub url: String,
    facts: Arc<Mutex<Facts>>,
}

impl Guarded {
    pub fn start(rules: Rules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let facts: Arc<Mutex<Facts>> = Arc::default();
        let (shared, own) = (Arc::clone(&facts), base.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (facts, rules, base) = (Arc::clone(&shared), rules.clone(), own.clone());
                thread::spawn(move || while answer(&stream, &facts, &rules, &base).is_some() {});
            }
        });
        Self {
            url: format!("{base}/mcp"),
            facts,
        }
    }

    /// The grants of the tokens that were issued.
    pub fn grants(&self) -> Vec<String> {
        self.facts.lock().unwrap().grants.clone()
    }

    /// The tools that were called.
    pub fn calls(&self) -> Vec<String> {
        self.facts.lock().unwrap().calls.clone()
    }
}

struct Request {
    method: String,
    path: String,
    fields: BTreeMap<String, String>,
    authorization: Option<String>,
    message: Value,
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut authorization) = (0, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let form = if method == "GET" { query } else { &body };
    let fields = form.split('&').filter_map(|field| field.split_once('='));
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let parts: Vec<&str> = text.split('%').collect();
        let mut out = parts[0].to_owned();
        for part in &parts[1..] {
            let code = u8::from_str_radix(part.get(..2).unwrap_or("3f"), 16).unwrap_or(b'?');
            out.push(char::from(code));
            out.push_str(part.get(2..).unwrap_or_default());
        }
        out
    };
    Some(Request {
        fields: fields
            .map(|(name, value)| (decode(name), decode(value)))
            .collect(),
        method,
        path: path.to_owned(),
        authorization,
        message: serde_json::from_str(&body).unwrap_or_default(),
    })
}

fn answer(stream: &TcpStream, facts: &Mutex<Facts>, rules: &Rules, base: &str) -> Option<()> {
    let request = read(stream)?;
    let mut facts = facts.lock().unwrap();
    let (status, headers, body) = match request.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => (
            200,
            String::new(),
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base],
                   "scopes_supported": ["tools"]}),
        ),
        "/.well-known/oauth-authorization-server" => (
            200,
            String::new(),
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "grant_types_supported":
                    ["authorization_code", "refresh_token", "client_credentials"],
            }),
        ),
        "/register" => (201, String::new(), json!({"client_id": "registered"})),
        "/revoke" => (200, String::new(), json!({})),
        "/authorize" => {
            let redirect = format!(
                "location: {}?code=c0de-of-the-login&state={}\r\n",
                request.fields["redirect_uri"], request.fields["state"]
            );
            (302, redirect, json!(null))
        }
        "/token" => token(&request, &mut facts, rules),
        _ => resource(&request, &mut facts, rules, base),
    };
    drop(facts);
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let kind = "content-type: application/json\r\n";
    let head = format!(
        "HTTP/1.1 {status} x\r\n{kind}content-length: {}\r\n{headers}\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all((head + &body).as_bytes()).ok()
}

type Answer = (u16, String, Value);

fn token(request: &Request, facts: &mut Facts, rules: &Rules) -> Answer {
    let grant = request.fields["grant_type"].clone();
    let is_known = match grant.as_str() {
        "client_credentials" => {
            // ci:cl1ent-s3cret-XYZ
            request.authorization.as_deref() == Some("Basic Y2k6Y2wxZW50LXMzY3JldC1YWVo=")
        }
        _ => true,
    };
    if !is_known {
        let error = json!({"error": "invalid_client", "error_description": "who are you?"});
        return (401, String::new(), error);
    }
    if rules.max_tokens.is_some_and(|max| facts.issued >= max) {
        let error = json!({"error": "invalid_grant"});
        return (400, String::new(), error);
    }
    facts.issued += 1;
    facts.grants.push(grant.clone());
    let number = facts.issued;
    let mut body = json!({
        "access_token": format!("{TOKEN}-{number:03}-QxZ81vB7f3Kq9"),
        "token_type": "Bearer",
        "expires_in": 3600,
    });
    if grant != "client_credentials" {
        body["refresh_token"] = format!("{TOKEN}-refresh-{number:03}").into();
    }
    (200, String::new(), body)
}

fn resource(request: &Request, facts: &mut Facts, rules: &Rules, base: &str) -> Answer {
    let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
    let refused = (
        401,
        format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"),
        json!({"error": "invalid_token"}),
    );
    let Some(token) = request
        .authorization
        .as_deref()
        .and_then(|value| value.strip_prefix("Bearer "))
    else {
        return refused;
    };
    let known = token.starts_with(TOKEN) && !token.contains("refresh");
    let uses = facts.uses.entry(token.to_owned()).or_default();
    *uses += usize::from(request.message["method"] == "tools/call");
    if !known || rules.uses.is_some_and(|max| *uses > max) {
        return refused;
    }
    let message = &request.message;
    let result = match message["method"].as_str() {
        _ if request.method != "POST" => return (405, String::new(), Value::Null),
        Some("initialize") => {
            json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
        }
        Some("tools/list") => json!({"tools": [
            {"name": "search", "description": "Search.", "inputSchema": {"type": "object"}},
        ]}),
        Some("tools/call") => {
            facts.calls.push(
                message["params"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
            // A bad server repeats the token, in several forms.
            let text = format!("found with {token}");
            json!({"content": [{"type": "text", "text": text}]})
        }
        Some(_) if message.get("id").is_none() => return (202, String::new(), Value::Null),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            return (
                200,
                String::new(),
                json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
            );
        }
    };
    (
        200,
        String::new(),
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
    )
}

/// Requests a page as a browser would. Returns the address that it redirects to.
pub fn visit(url: &str) -> Option<String> {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut target = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("location") => {
                target = Some(value.to_owned());
            }
            None if line.trim_end().is_empty() => return target,
            _ => {}
        }
    }
}
