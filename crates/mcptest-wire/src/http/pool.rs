//! Connections to one host: opened when needed, used again when free.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Free connections kept; more are closed after use.
const MOST_FREE: usize = 16;

/// The largest head of a response.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Time between two attempts to reach a server that is starting.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Time for a connection to be ready again after its last response.
const SETTLE_WAIT: Duration = Duration::from_millis(5);

pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// The connections to one host.
#[derive(Debug)]
pub(crate) struct Pool {
    host: String,
    port: u16,
    tls: bool,
    free: Mutex<Vec<Sender>>,
}

impl Pool {
    pub(crate) fn new(host: &str, port: u16, tls: bool) -> Self {
        Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            tls,
            free: Mutex::default(),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls
    }

    /// A connection that was used before and is free, if there is one.
    pub(crate) async fn free(&self) -> Option<Sender> {
        loop {
            let mut sender = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            // One that has just been given back needs a moment.
            if let Ok(Ok(())) = timeout(SETTLE_WAIT, sender.ready()).await {
                return Some(sender);
            }
        }
    }

    /// Takes a connection back after its response was read to the end.
    pub(crate) fn give_back(&self, sender: Sender) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST_FREE && !sender.is_closed() {
            free.push(sender);
        }
    }

    /// Waits while nobody listens there yet, and keeps the connection for the first request. The caller bounds the wait.
    pub(crate) async fn wait_until_ready(&self) -> io::Result<()> {
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

    pub(crate) async fn connect(&self) -> io::Result<Sender> {
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
