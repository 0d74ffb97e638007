//! A pool of HTTP/1 connections to one host.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

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
use crate::log;
use crate::proxy::{Proxy, Route};

/// The largest response head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The pause between attempts to reach a server that is starting.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Time for a connection to become ready again after its last response.
const READY_WAIT: Duration = Duration::from_millis(5);

/// A connection that can carry a request.
pub type Sender = SendRequest<Full<Bytes>>;

/// A request without a response.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection could be opened; nothing was sent.
    #[error("{0}")]
    Connect(#[source] io::Error),
    /// The connection was lost; the server may have seen the request.
    #[error("{0}")]
    Lost(#[source] hyper::Error),
}

/// A pool of connections to one host.
#[derive(Debug)]
pub struct Pool {
    host: String,
    port: u16,
    tls: bool,
    /// Host and port as the `Host` header has them.
    authority: HeaderValue,
    route: Route,
    /// The number of free connections kept; further ones are closed after use.
    max_free: usize,
    /// The time allowed for opening a connection.
    connect_timeout: Option<Duration>,
    free: Mutex<Vec<Sender>>,
}

impl Pool {
    /// Creates a pool for the host of an address; nothing is opened yet.
    #[must_use]
    pub fn new(address: &Address, max_free: usize) -> Self {
        Self {
            host: address.host.clone(),
            port: address.port,
            tls: address.tls,
            authority: address.authority.clone(),
            route: Route::to(address),
            max_free,
            connect_timeout: None,
            free: Mutex::default(),
        }
    }

    /// Limits the time for opening a connection.
    #[must_use]
    pub fn with_connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = Some(limit);
        self
    }

    /// Returns true if the connections use TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Sends a request over a free connection or a new one, and waits for the head of the response.
    ///
    /// The caller gives the connection back after reading the response to its end.
    ///
    /// # Errors
    /// No connection could be opened, or it was lost.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), SendError> {
        if !tracing::enabled!(target: log::TARGET, tracing::Level::INFO) {
            return self.send_unlogged(request).await;
        }
        let logged = log::Exchange::start(self.tls, &self.authority, &request);
        let result = self.send_unlogged(request).await;
        match &result {
            Ok((response, _)) => logged.answered(response),
            Err(error) => logged.failed(error),
        }
        result
    }

    async fn send_unlogged(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), SendError> {
        if let Route::Proxy(proxy) = &self.route
            && !self.tls
        {
            self.forward_through(proxy, &mut request)
                .map_err(SendError::Connect)?;
        }
        // The server may have closed a free connection meanwhile; then the request comes back
        // unsent.
        if let Some(mut sender) = self.take_free().await {
            match sender.try_send_request(request).await {
                Ok(response) => return self.check_proxy(response, sender),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Lost(error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await.map_err(SendError::Connect)?;
        let response = sender
            .send_request(request)
            .await
            .map_err(SendError::Lost)?;
        self.check_proxy(response, sender)
    }

    /// Addresses a request without TLS to the proxy, which forwards it: it names the whole URL.
    fn forward_through(&self, proxy: &Proxy, request: &mut Request<Full<Bytes>>) -> io::Result<()> {
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

    /// Turns a proxy's own refusal into an error: it is not an answer of the server.
    fn check_proxy(
        &self,
        response: Response<Incoming>,
        sender: Sender,
    ) -> Result<(Response<Incoming>, Sender), SendError> {
        match &self.route {
            Route::Proxy(proxy)
                if !self.tls && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED =>
            {
                Err(SendError::Connect(refusal(proxy, response.status())))
            }
            _ => Ok((response, sender)),
        }
    }

    /// Takes a free connection that still works, if there is one.
    async fn take_free(&self) -> Option<Sender> {
        loop {
            let mut sender = self
                .free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop()?;
            // A connection that was just given back needs a moment.
            if let Ok(Ok(())) = timeout(READY_WAIT, sender.ready()).await {
                return Some(sender);
            }
        }
    }

    /// Returns a connection to the pool after its response was read to the end.
    pub fn give_back(&self, sender: Sender) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.max_free && !sender.is_closed() {
            free.push(sender);
        }
    }

    /// Waits until the host accepts connections, and keeps the connection for the first request.
    /// The caller limits the wait.
    ///
    /// # Errors
    /// Any error except a refused connection.
    pub async fn wait_until_ready(&self) -> io::Result<()> {
        loop {
            match self.connect().await {
                Ok(sender) => {
                    self.give_back(sender);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&self) -> io::Result<Sender> {
        let start = Instant::now();
        let result = match self.connect_timeout {
            None => self.connect_without_limit().await,
            Some(limit) => match timeout(limit, self.connect_without_limit()).await {
                Ok(result) => result,
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection within {}s", limit.as_secs()),
                )),
            },
        };
        log::connected(
            &self.host,
            self.port,
            &self.route,
            start,
            result.as_ref().err(),
        );
        result
    }

    async fn connect_without_limit(&self) -> io::Result<Sender> {
        let proxy = match &self.route {
            Route::Direct => {
                let stream = tcp(&self.host, self.port).await?;
                return if self.tls {
                    handshake(tls(&self.host, stream).await?).await
                } else {
                    handshake(stream).await
                };
            }
            Route::Invalid(error) => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, error.clone()));
            }
            Route::Proxy(proxy) => proxy,
        };
        // The kind changes: a proxy that refuses connections is not a server that is starting.
        let unreachable =
            |error: io::Error| io::Error::other(format!("cannot reach {proxy}: {error}"));
        let stream = tcp(&proxy.host, proxy.port).await.map_err(unreachable)?;
        if proxy.tls {
            let stream = tls(&proxy.host, stream).await.map_err(unreachable)?;
            self.connect_through(proxy, stream).await
        } else {
            self.connect_through(proxy, stream).await
        }
    }

    /// Connects to the host over a connection to its proxy.
    async fn connect_through(&self, proxy: &Proxy, stream: impl Stream) -> io::Result<Sender> {
        if !self.tls {
            return handshake(stream).await;
        }
        let tunnel = tunnel(proxy, &self.host, self.port, stream).await?;
        handshake(tls(&self.host, tunnel).await?).await
    }
}

/// A connection below HTTP.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Messages are small: waiting for more data to send would cost 40 ms each.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn tls<S: Stream>(host: &str, stream: S) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the host is not a valid name for TLS",
        )
    })?;
    TlsConnector::from(tls_config()?)
        .connect(name, stream)
        .await
}

/// Asks a proxy for a tunnel to the host (`CONNECT`).
///
/// This is hyper's own client and upgrade. hyper-util's `Tunnel` would need its legacy client,
/// discards the proxy's status, which our messages and retries depend on, and loses bytes that
/// follow the response head.
async fn tunnel(
    proxy: &Proxy,
    host: &str,
    port: u16,
    stream: impl Stream,
) -> io::Result<impl Stream> {
    let lost =
        |error: hyper::Error| io::Error::other(format!("{proxy} closed the connection: {error}"));
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(lost)?;
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let target = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let mut request = Request::connect(&target).header(HOST, &target);
    if let Some(authorization) = &proxy.authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization.clone());
    }
    let request = request.body(Full::default()).map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(lost)?;
    if !response.status().is_success() {
        return Err(refusal(proxy, response.status()));
    }
    hyper::upgrade::on(response)
        .await
        .map(TokioIo::new)
        .map_err(lost)
}

/// The error for a proxy that refuses a request.
fn refusal(proxy: &Proxy, status: StatusCode) -> io::Error {
    let hint = match (status, &proxy.authorization) {
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, None) => {
            "; it requires a name and a password: http://name:password@host:port"
        }
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(_)) => {
            "; it rejects the name and the password"
        }
        _ => "; NO_PROXY lists hosts that are reached without it",
    };
    // The same request would be refused again, so this kind is not retried.
    let kind = if status.is_client_error() {
        io::ErrorKind::InvalidInput
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, format!("{proxy} refused with {status}{hint}"))
}

async fn handshake(stream: impl Stream) -> io::Result<Sender> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    // Ends with the sender; errors reach the caller that waits for the response.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// The TLS settings with the system's certificates, loaded for the first `https` address.
fn tls_config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(
                "no certificates were found on this system; set SSL_CERT_FILE to a certificate file"
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
