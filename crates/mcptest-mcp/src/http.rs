//! The streamable HTTP transport, on loopback only.
//!
//! There is no authorization, so only this machine may connect: the listener must be on a loopback
//! address, and requests must be for a local name (`Host`) and from a local page, if from any
//! (`Origin`). A web page that has rebound its name to 127.0.0.1 does not reach the server.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Options;
use crate::error::ServeError;
use crate::server::Server;

/// The path that clients use. Other paths are refused.
pub const HTTP_PATH: &str = "/mcp";

/// The time that a client has to send the head of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The names of this machine.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Serves clients on a listener until `stop` is done. All children are ended then.
///
/// # Errors
/// The root folder does not exist, or the listener is not on a loopback address.
pub async fn serve_http(
    options: Options,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Listener)?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let server = Server::new(options).map_err(ServeError::Root)?;
    let ended = CancellationToken::new();
    let origins = HOSTS
        .iter()
        .flat_map(|host| [format!("http://{host}:*"), format!("https://{host}:*")]);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(HOSTS)
        .with_allowed_origins(origins)
        .with_cancellation_token(ended.clone());
    let of_session = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(of_session.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let accept = async {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // Fails only for a client that has left.
            let _ = stream.set_nodelay(true);
            let inner = TowerToHyperService::new(service.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let inner = inner.clone();
                async move {
                    if request.uri().path() == HTTP_PATH {
                        return inner.call(request).await;
                    }
                    let mut answer = Response::new(Full::from("there is only /mcp here\n").boxed());
                    *answer.status_mut() = StatusCode::NOT_FOUND;
                    Ok(answer)
                }
            });
            tokio::spawn(async move {
                // A failed connection affects its client only.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(READ_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    tokio::select! {
        () = stop => {}
        () = accept => {}
    }
    ended.cancel();
    server.end().await;
    Ok(())
}
