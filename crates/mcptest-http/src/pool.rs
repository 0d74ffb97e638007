//! Connections to one host: opened when needed, used again when free.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::address::Address;
use crate::proxy::{Proxy, Route};

/// The largest head of a response.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Time between two attempts to reach a server that is starting.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Time for a connection to be ready again after its last response.
const SETTLE_WAIT: Duration = Duration::from_millis(5);

/// A connection that can carry a request.
pub type Sender = SendRequest<Full<Bytes>>;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection could be made; nothing was sent.
    #[error("{0}")]
    Connect(#[source] io::Error),
    /// The connection broke; the request may have been seen.
    #[error("{0}")]
    Broke(#[source] hyper::Error),
}

/// The connections to one host.
#[derive(Debug)]
pub struct Pool {
    host: String,
    port: u16,
    tls: bool,
    /// Host and port, as requests name them.
    authority: HeaderValue,
    route: Route,
    /// Free connections kept; more are closed after use.
    most_free: usize,
    /// The time allowed for a connection to be made.
    connect_timeout: Option<Duration>,
    free: Mutex<Vec<Sender>>,
}

impl Pool {
    /// For the host of an address; nothing is opened yet.
    #[must_use]
    pub fn new(address: &Address, most_free: usize) -> Self {
        Self {
            host: address.host.clone(),
            port: address.port,
            tls: address.tls,
            authority: address.authority.clone(),
            route: Route::to(address),
            most_free,
            connect_timeout: None,
            free: Mutex::default(),
        }
    }

    /// The same with a bound on the time in which a connection must be made.
    #[must_use]
    pub fn with_connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Whether it speaks TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Sends a request, over a free connection or a new one, and waits for the head of the
    /// response. The connection is to be given back after the response was read to its end.
    ///
    /// # Errors
    /// No connection, or one that broke.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), SendError> {
        if let Route::Via(proxy) = &self.route
            && !self.tls
        {
            self.address_to(proxy, &mut request)
                .map_err(SendError::Connect)?;
        }
        // A free connection may have been closed by the server meanwhile; then the request comes
        // back unsent.
        if let Some(mut sender) = self.free().await {
            match sender.try_send_request(request).await {
                Ok(response) => return self.answered(response, sender),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Broke(error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await.map_err(SendError::Connect)?;
        let response = sender
            .send_request(request)
            .await
            .map_err(SendError::Broke)?;
        self.answered(response, sender)
    }

    /// A request without TLS is the proxy's to send on: it names the whole address.
    fn address_to(&self, proxy: &Proxy, request: &mut Request<Full<Bytes>>) -> io::Result<()> {
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        let authority = self.authority.to_str().map_err(io::Error::other)?;
        *request.uri_mut() = format!("http://{authority}{path}")
            .parse()
            .map_err(io::Error::other)?;
        if let Some(authorization) = &proxy.authorization {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, authorization.clone());
        }
        Ok(())
    }

    /// What a proxy says about itself is no answer of the server.
    fn answered(
        &self,
        response: Response<Incoming>,
        sender: Sender,
    ) -> Result<(Response<Incoming>, Sender), SendError> {
        match &self.route {
            Route::Via(proxy)
                if !self.tls && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED =>
            {
                Err(SendError::Connect(refused(proxy, response.status())))
            }
            _ => Ok((response, sender)),
        }
    }

    /// A connection that was used before and is free, if there is one.
    async fn free(&self) -> Option<Sender> {
        loop {
            let mut sender = self
                .free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop()?;
            // One that has just been given back needs a moment.
            if let Ok(Ok(())) = timeout(SETTLE_WAIT, sender.ready()).await {
                return Some(sender);
            }
        }
    }

    /// Takes a connection back after its response was read to the end.
    pub fn give_back(&self, sender: Sender) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.most_free && !sender.is_closed() {
            free.push(sender);
        }
    }

    /// Waits while nobody listens there yet, and keeps the connection for the first request. The
    /// caller bounds the wait.
    ///
    /// # Errors
    /// Anything but that the connection is refused.
    pub async fn wait_until_ready(&self) -> io::Result<()> {
        loop {
            match self.connect().await {
                Ok(sender) => {
                    self.give_back(sender);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> io::Result<Sender> {
        let Some(limit) = self.connect_timeout else {
            return self.connect_at_leisure().await;
        };
        let late = |_| {
            io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no connection within {}s", limit.as_secs()),
            )
        };
        timeout(limit, self.connect_at_leisure())
            .await
            .map_err(late)?
    }

    async fn connect_at_leisure(&self) -> io::Result<Sender> {
        let proxy = match &self.route {
            Route::Direct => {
                let stream = tcp(&self.host, self.port).await?;
                return if self.tls {
                    handshake(tls(&self.host, stream).await?).await
                } else {
                    handshake(stream).await
                };
            }
            Route::Unknown(words) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, words.clone()));
            }
            Route::Via(proxy) => proxy,
        };
        // Of another kind than it was: a proxy that refuses is no server that is about to start.
        let unreachable =
            |error: io::Error| io::Error::other(format!("cannot reach {proxy}: {error}"));
        let stream = tcp(&proxy.host, proxy.port).await.map_err(unreachable)?;
        if proxy.tls {
            let stream = tls(&proxy.host, stream).await.map_err(unreachable)?;
            self.through(proxy, stream).await
        } else {
            self.through(proxy, stream).await
        }
    }

    /// A connection to the host over one to its proxy.
    async fn through(&self, proxy: &Proxy, stream: impl Stream) -> io::Result<Sender> {
        if !self.tls {
            return handshake(stream).await;
        }
        let tunnel = tunnel(proxy, &self.host, self.port, stream).await?;
        handshake(tls(&self.host, tunnel).await?).await
    }
}

/// What bytes go over.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Small messages both ways: waiting for more to send would cost 40 ms each.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn tls<S: Stream>(host: &str, stream: S) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the host is no valid name for TLS",
        )
    })?;
    TlsConnector::from(tls_config()?)
        .connect(name, stream)
        .await
}

/// Asks a proxy for a tunnel to the host.
async fn tunnel(
    proxy: &Proxy,
    host: &str,
    port: u16,
    stream: impl Stream,
) -> io::Result<impl Stream> {
    let broke = |error: hyper::Error| io::Error::other(format!("{proxy} broke off: {error}"));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broke)?;
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let to = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let mut request = Request::connect(&to).header(HOST, &to);
    if let Some(authorization) = &proxy.authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization.clone());
    }
    let request = request.body(Full::default()).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(broke)?;
    if !response.status().is_success() {
        return Err(refused(proxy, response.status()));
    }
    hyper::upgrade::on(response)
        .await
        .map(TokioIo::new)
        .map_err(broke)
}

fn refused(proxy: &Proxy, status: StatusCode) -> io::Error {
    let what_to_do = match (status, &proxy.authorization) {
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, None) => {
            "; it wants a name and a password: http://name:password@host:port"
        }
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(_)) => {
            "; it does not take the name and the password"
        }
        _ => "; NO_PROXY names hosts that go without it",
    };
    // What is refused as it is need not be tried again.
    let kind = if status.is_client_error() {
        io::ErrorKind::InvalidInput
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, format!("{proxy} refused with {status}{what_to_do}"))
}

async fn handshake(stream: impl Stream) -> io::Result<Sender> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    // Ends with the sender; what went wrong reaches whoever waits for the response.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// The system's certificates, read when the first `https` address is met.
fn tls_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(
                "no certificates were found on this system; name a file in SSL_CERT_FILE"
                    .to_owned(),
            );
        }
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    });
    config.clone().map_err(io::Error::other)
}
