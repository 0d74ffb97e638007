//! Connections to one host: opened when needed, used again when free.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::address::Address;

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

    /// Sends a request, over a free connection or a new one, and waits for the head of the response. The connection is to be given back after
    /// the response was read to its end.
    ///
    /// # Errors
    /// No connection, or one that broke.
    pub async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Sender), SendError> {
        // A free connection may have been closed by the server meanwhile; then the request comes back unsent.
        if let Some(mut sender) = self.free().await {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(SendError::Broke(error.into_error())),
                },
            }
        }
        let mut sender = self.connect().await.map_err(SendError::Connect)?;
        let response = sender.send_request(request).await.map_err(SendError::Broke)?;
        Ok((response, sender))
    }

    /// A connection that was used before and is free, if there is one.
    async fn free(&self) -> Option<Sender> {
        loop {
            let mut sender = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
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

    /// Waits while nobody listens there yet, and keeps the connection for the first request. The caller bounds the wait.
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
        timeout(limit, self.connect_at_leisure()).await.map_err(late)?
    }

    async fn connect_at_leisure(&self) -> io::Result<Sender> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        // Small messages both ways: waiting for more to send would cost 40 ms each.
        stream.set_nodelay(true)?;
        if !self.tls {
            return handshake(stream).await;
        }
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the host is no valid name for TLS"))?;
        let stream = TlsConnector::from(tls_config()?).connect(name, stream).await?;
        handshake(stream).await
    }
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<Sender> {
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
            return Err("no certificates were found on this system; name a file in SSL_CERT_FILE".to_owned());
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    });
    config.clone().map_err(io::Error::other)
}
