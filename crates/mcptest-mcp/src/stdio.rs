//! The stdio transport.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::Options;
use crate::error::ServeError;
use crate::server::Server;

/// The reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The client closed its end.
    Client,
    /// The caller requested the end.
    Stopped,
}

/// Serves one client over standard input and output, until it disconnects or `stop` completes.
/// All children are ended then.
///
/// # Errors
/// The root folder does not exist, or the session failed.
pub async fn serve_stdio(
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<SessionEnd, ServeError> {
    let server = Server::new(options).map_err(ServeError::Root)?;
    let mut stop = std::pin::pin!(stop);
    let started = tokio::select! {
        started = server.clone().serve(rmcp::transport::stdio()) => started,
        () = &mut stop => return Ok(SessionEnd::Stopped),
    };
    let session = match started {
        Ok(session) => session,
        // A client that leaves before it has asked for anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(SessionEnd::Client),
        Err(error) => return Err(ServeError::Start(Box::new(error))),
    };
    let token = session.cancellation_token();
    let mut waiting = std::pin::pin!(session.waiting());
    let end = tokio::select! {
        ended = &mut waiting => {
            ended.map_err(ServeError::Session)?;
            SessionEnd::Client
        }
        () = &mut stop => {
            token.cancel();
            let _ = waiting.await;
            SessionEnd::Stopped
        }
    };
    server.end().await;
    Ok(end)
}
