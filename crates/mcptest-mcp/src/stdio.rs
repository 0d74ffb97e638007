//! The stdio transport.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::Options;
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
/// A message: the root folder does not exist, or the session failed.
pub async fn serve_stdio(
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<SessionEnd, String> {
    let server =
        Server::new(options).map_err(|error| format!("cannot use the root folder: {error}"))?;
    let mut stop = std::pin::pin!(stop);
    let started = tokio::select! {
        started = server.clone().serve(rmcp::transport::stdio()) => started,
        () = &mut stop => return Ok(SessionEnd::Stopped),
    };
    let session = match started {
        Ok(session) => session,
        // A client that leaves before it has asked for anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(SessionEnd::Client),
        Err(error) => return Err(format!("the session did not start: {error}")),
    };
    let token = session.cancellation_token();
    let mut waiting = std::pin::pin!(session.waiting());
    let end = tokio::select! {
        ended = &mut waiting => {
            ended.map_err(|error| format!("the session failed: {error}"))?;
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
